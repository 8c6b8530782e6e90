"""Kernels of the curved part of a composite posterior, on views of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import torch
from torch import Tensor

from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.kernels.views import ColumnViews, View, ViewKernels

__all__ = ["FAMILIES", "VIEWS", "Curve", "Landmarks", "Seen", "candidates"]

FAMILIES = ("none", "rbf", "laplacian", "additive", "quadratic", "both")
"""Kernels, by their number."""
VIEWS: tuple[View, ...] = get_args(View)
_MOST_KNOTS, _LEAST_KNOTS = 10, 4  # of a column
_ADDITIVE_GAMMAS = (1 / 8, 1 / 2, 2.0)

Seen = Mapping[View, Tensor]
"""Rows by the view of their columns."""


@dataclass(frozen=True, order=True)
class Curve:
    """A kernel of a view of the columns.

    "rbf" and "laplacian" are those of `bootprob_gpu`. "additive" is the mean over the columns of
    ``exp(−γ (x_j − z_j)²)``: functions are sums of smooth functions of one column (T. Hastie,
    R. Tibshirani, "Generalized Additive Models", 1990). "quadratic" is ``⟨x, z⟩² / u²``, where u²
    is the mean of ``‖x‖⁴`` over the landmarks: squares and products of two columns. "both" is the
    mean of these two.

    Attributes
    ----------
    family, view : str
        In `FAMILIES` and `VIEWS`.
    gamma : float
        0 for "quadratic", which has none.
    """

    family: str
    view: View
    gamma: float


@dataclass(frozen=True)
class Landmarks:
    """Where curves are known: rows (l, p), and of additive ones knots of each column."""

    rows: Tensor
    views: ColumnViews

    @cached_property
    def _seen(self) -> Seen:
        return self.seen(self.rows)

    @property
    def n_knots(self) -> int:
        """Of each column; 0 where columns are too many."""
        found = min(_MOST_KNOTS, len(self.rows) // max(1, self.rows.shape[1]))
        return found if found >= _LEAST_KNOTS else 0

    def seen(self, rows: Tensor) -> Seen:
        """All views of rows (m, p)."""
        return {view: self.views.of(view, rows) for view in self.views.known}

    def values(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between rows and landmarks; (m, l).

        Of an additive kernel, those of single columns with quantiles of the landmarks'.
        """
        own, known = rows[curve.view], self._seen[curve.view]
        if curve.family == "additive":
            apart = own.unsqueeze(2) - self._knots(curve.view)
            return (apart.square_() * -curve.gamma).exp_().flatten(1)
        if curve.family == "quadratic":
            enough = known[: own.shape[1] * (own.shape[1] + 1)]  # twice the rank
            return (own @ (enough.mT / self._size(curve.view))).square_()
        if curve.family == "both":
            return torch.cat([self.values(each, rows) for each in _single(curve)], dim=1)
        gamma = own.new_tensor([curve.gamma])
        kernel = Rbf(gamma) if curve.family == "rbf" else Laplacian(gamma)
        return kernel.gram(own, known)[0]

    def own_values(self, curve: Curve) -> Tensor:
        """What `values` have to be divided by, as a matrix, to be the kernel; (l, l)."""
        if curve.family == "both":
            return 2 * torch.block_diag(*(self.own_values(each) for each in _single(curve)))
        if curve.family == "additive":
            knots = self._knots(curve.view)
            apart = knots.unsqueeze(2) - knots.unsqueeze(1)
            return len(knots) * torch.block_diag(*(apart.square() * -curve.gamma).exp())
        values = self.values(curve, self._seen)
        return values[: values.shape[1]]

    def diagonal(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between rows (m, p) and themselves, (m,)."""
        own = rows[curve.view]
        if curve.family == "quadratic":
            return (own.square().sum(1) / self._size(curve.view)).square()
        if curve.family == "both":
            additive, quadratic = (self.diagonal(each, rows) for each in _single(curve))
            return (additive + quadratic) / 2
        return torch.ones_like(own[:, 0])

    def _knots(self, view: View) -> Tensor:
        """Quantiles of each column of the landmarks, (p, k)."""
        shares = torch.linspace(0, 1, self.n_knots, dtype=torch.float64, device=self.rows.device)
        return self._seen[view].quantile(shares, dim=0).mT.contiguous()

    def _size(self, view: View) -> float:
        return float(self._seen[view].square().sum(1).square().mean().sqrt()) or 1.0


def _single(curve: Curve) -> list[Curve]:
    return [replace(curve, family=family) for family in ("additive", "quadratic")]


def candidates(kernels: ViewKernels, landmarks: Landmarks) -> list[Curve]:
    """The curved ones of a grid, and additive and quadratic ones on the same views."""
    found = [
        Curve(family, view, float(gamma))
        for family, view, gamma in zip(
            kernels.families, kernels.views, kernels.gamma.tolist(), strict=True
        )
        if family in FAMILIES
    ]
    for view in dict.fromkeys(view for view in kernels.views if not view.endswith("levels")):
        if landmarks.n_knots:
            found += [
                Curve(family, view, gamma)
                for family in ("additive", "both")
                for gamma in _ADDITIVE_GAMMAS
            ]
        found.append(Curve("quadratic", view, 0.0))
    return found
