"""Parts of a composite posterior that look at the same columns, worked out together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.kernel_posterior import LEAST_VARIANCE
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["PartsAlike"]


@dataclass(frozen=True)
class PartsAlike:
    """Normal logits, linear in the same columns, before a link bends them.

    Attributes
    ----------
    parts : list of int, length q
        Which parts they are.
    blocks : tuple of int
        Of the constant and the linear parts, 0 to 2, those whose columns they look at.
    curves : tuple of Curve
        Whose values they look at.
    mean : Tensor, shape (d, q)
    form : Tensor, shape (q, d, d)
    variances : Tensor, shape (q, 2 + k)
        Prior ones of the linear parts and of curves.
    """

    parts: list[int]
    blocks: tuple[int, ...]
    curves: tuple[Curve, ...]
    mean: Tensor
    form: Tensor
    variances: Tensor

    def columns(self, linear: list[Tensor], values: Mapping[Curve, Tensor]) -> Tensor:
        """What they look at, of the constant and linear columns and of curves' values; (m, d)."""
        return torch.cat(
            [*(linear[at] for at in self.blocks), *(values[curve] for curve in self.curves)], dim=1
        )

    def moments(self, columns: Tensor, prior: Tensor, at_once: int) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of logits, (m, q) each.

        Of few rows all parts at once, which are a handful of operations; of many one by one.

        Parameters
        ----------
        columns : Tensor, shape (m, d)
        prior : Tensor, shape (m, 2 + k)
            What the prior variances are multiplied by.
        at_once : int
            Numbers that an array may hold.
        """
        squares = [
            torch.matmul(columns, self.form[some]).mul_(columns).sum(-1)
            for some in row_blocks(len(self.parts), columns.numel(), at_once)
        ]
        variance = torch.cat(squares).mT + prior @ self.variances.mT
        return columns @ self.mean, variance.clamp_min_(LEAST_VARIANCE).sqrt_()
