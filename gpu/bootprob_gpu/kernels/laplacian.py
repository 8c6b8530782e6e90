"""The Laplacian kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from torch import Tensor

from bootprob_gpu.kernels.exponential import Exponential, inverse_median, spaced_rows

__all__ = ["Laplacian", "laplacian_median_gamma", "laplacian_scale_gamma"]

_MANY = 8  # rows, and columns of two values, from which on a product is quicker than differences
_FEW_DIFFERENCES = 2**17


def laplacian_scale_gamma(X: ArrayLike) -> float:
    """γ by the rule "scale": 1 / (p · mean absolute deviation of all entries of X (n, p)).

    What scikit-learn's rule for RBF kernels is to squares, to absolute values.
    """
    X = np.asarray(X, dtype=np.float64)
    deviation = np.abs(X - X.mean()).mean()
    return 1.0 / (X.shape[1] * float(deviation)) if deviation > 0 else 1.0


def laplacian_median_gamma(X: ArrayLike) -> float:
    """γ by the "sigest" rule, as `bootprob_gpu.median_gamma`, of the L1 distances between rows."""
    return inverse_median(torch.pdist(spaced_rows(X), p=1))


@dataclass(frozen=True)
class _TwoValued:
    """Columns of rows that have two values, apart from the others."""

    at: Tensor
    low: Tensor
    high: Tensor
    is_high: Tensor  # 0 or 1, (columns, n)
    other_columns: Tensor
    others: Tensor

    def distances(self, rows: Tensor) -> Tensor:
        """L1 distances (m, n) of rows (m, p)."""
        of = rows.index_select(1, self.at)
        from_low = (of - self.low).abs_()
        found = (of.sub_(self.high).abs_() - from_low) @ self.is_high
        found += from_low.sum(1, keepdim=True)
        if len(self.other_columns):
            own = rows.index_select(1, self.other_columns)
            found += torch.cdist(own, self.others, p=1)
        return found.clamp_min_(0)


class _Others:
    """Rows (..., n, p) that others are compared with; what is made of them alone is made once.

    A column in which they are a or b adds ``|x − a|`` or ``|x − b|``, which is linear in which of
    the two they are: many such columns are a matrix product. It rounds: equal rows may be 1e-15
    apart. Few distances are not worth a second thread, which on busy cores is waited for.
    """

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def distances(self, rows: Tensor) -> Tensor:
        """L1 distances (..., m, n) of rows (..., m, p)."""
        others = self._rows
        tables = rows.dim() == others.dim() == 2 and others.numel() > 0
        if tables and rows.is_cpu and rows.numel() * len(others) <= _FEW_DIFFERENCES:
            few = cdist(rows.numpy(), others.numpy(), "cityblock")
            return torch.from_numpy(few).to(rows.dtype)
        if tables and len(rows) >= _MANY and self._two_valued is not None:
            return self._two_valued.distances(rows)
        return torch.cdist(rows, others, p=1)

    @cached_property
    def _two_valued(self) -> _TwoValued | None:
        """None where such columns are few."""
        rows = self._rows
        low, high = torch.aminmax(rows, dim=0)
        is_high = rows == high
        two = (is_high | (rows == low)).all(0)
        at, other_columns = (each.nonzero().flatten() for each in (two, ~two))
        if len(at) < _MANY:
            return None
        return _TwoValued(
            at,
            low[at],
            high[at],
            is_high[:, at].to(rows.dtype).mT.contiguous(),
            other_columns,
            rows[:, other_columns],
        )


@dataclass(frozen=True, eq=False)
class Laplacian(Exponential):
    """``k(x, z) = exp(−γ ‖x − z‖₁)``, as `sklearn.metrics.pairwise.laplacian_kernel`."""

    name: ClassVar[str] = "laplacian"
    metric: ClassVar = "cityblock"
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {
        "scale": laplacian_scale_gamma,
        "median": laplacian_median_gamma,
    }
    term_degree: ClassVar[int] = 1
    needs_products: ClassVar[bool] = False

    def gram(self, rows: Tensor, others: Tensor) -> Tensor:
        """From differences; of columns of two values from products."""
        return self.between(rows, self.ready(others))

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """From the rows."""
        return self.gram(rows, others)

    def ready(self, seen: Tensor) -> _Others:
        """Rows that know which of their columns have two values."""
        return _Others(seen)

    def met(self, rows: Tensor, others: _Others) -> Tensor:
        """Distances."""
        return others.distances(rows)

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Absolute differences."""
        return ((known - row) / unit).to(dtype).abs()
