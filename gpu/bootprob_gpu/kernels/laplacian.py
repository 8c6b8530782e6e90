"""The Laplacian kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def _distances(rows: Tensor, others: Tensor) -> Tensor:
    """L1 distances (..., m, n).

    A column in which the others are a or b adds ``|x − a|`` or ``|x − b|``, which is linear in
    which of the two they are: many such columns are a matrix product. It rounds: equal rows may be
    1e-15 apart. Few distances are not worth a second thread, which on busy cores is waited for.
    """
    tables = rows.dim() == others.dim() == 2 and others.numel() > 0
    if tables and rows.is_cpu and rows.numel() * len(others) <= _FEW_DIFFERENCES:
        few = cdist(rows.numpy(), others.numpy(), "cityblock")
        return torch.from_numpy(few).to(rows.dtype)
    if tables and len(rows) >= _MANY:
        low, high = torch.aminmax(others, dim=0)
        upper = others == high
        two = (upper | (others == low)).all(0)
        if two.count_nonzero() >= _MANY:
            of, low, high = rows[:, two], low[two], high[two]
            from_low = (of - low).abs()
            found = ((of - high).abs_() - from_low) @ upper[:, two].to(of.dtype).mT
            found += from_low.sum(1, keepdim=True)
            if not two.all():
                found += torch.cdist(rows[:, ~two], others[:, ~two], p=1)
            return found.clamp_min_(0)
    return torch.cdist(rows, others, p=1)


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
        return self.of_distances(_distances(rows, others))

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """From the rows."""
        return self.gram(rows, others)

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Absolute differences."""
        return ((known - row) / unit).to(dtype).abs()
