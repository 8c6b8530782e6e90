"""The Laplacian kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bootprob_gpu.kernels.exponential import Exponential, inverse_median, spaced_rows

__all__ = ["Laplacian", "laplacian_median_gamma", "laplacian_scale_gamma"]


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
        """From differences."""
        return self.of_distances(torch.cdist(rows, others, p=1))

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """From the rows."""
        return self.gram(rows, others)

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Absolute differences."""
        return ((known - row) / unit).to(dtype).abs()
