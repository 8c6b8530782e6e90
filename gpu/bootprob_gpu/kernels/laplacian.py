"""The Laplacian kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.rbf import spaced_rows

__all__ = ["Laplacian", "laplacian_median_gamma", "laplacian_scale_gamma"]


def laplacian_scale_gamma(X: ArrayLike) -> float:
    """γ by the rule "scale": 1 / (p · mean absolute deviation of all entries of X (n, p)).

    What scikit-learn's rule for RBF kernels is to squares, to absolute values.
    """
    X = np.asarray(X, dtype=np.float64)
    deviation = np.abs(X - X.mean()).mean()
    return 1.0 / (X.shape[1] * float(deviation)) if deviation > 0 else 1.0


def laplacian_median_gamma(X: ArrayLike) -> float:
    """γ by the "sigest" rule: 1 / median of the L1 distances between rows of X (n, p).

    As `bootprob_gpu.median_gamma`: at most 1,000 rows are looked at, distances of 0 left out.
    """
    distances = torch.pdist(torch.from_numpy(spaced_rows(X)), p=1)
    distances = distances[distances > 0]
    return 1.0 / float(distances.median()) if len(distances) else 1.0


@dataclass(frozen=True, eq=False)
class Laplacian(KernelFunction):
    """``k(x, z) = exp(−γ ‖x − z‖₁)``, as `sklearn.metrics.pairwise.laplacian_kernel`."""

    gamma: Tensor

    name: ClassVar[str] = "laplacian"
    parameters: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {
        "scale": laplacian_scale_gamma,
        "median": laplacian_median_gamma,
    }
    ignores_offset: ClassVar[bool] = True
    has_unit_diagonal: ClassVar[bool] = True
    has_terms: ClassVar[bool] = True
    term_degree: ClassVar[int] = 1
    needs_products: ClassVar[bool] = False

    def gram(self, rows: Tensor, others: Tensor) -> Tensor:
        """From differences."""
        distances = torch.cdist(rows, others, p=1).unsqueeze(-3)
        # Beyond its precision, 0 · ∞ would make a NaN of what is simply near or far.
        largest = torch.finfo(distances.dtype).max
        distances.clamp_max_(largest)
        gammas = self.gamma.clamp_max(largest).to(distances.dtype)
        if len(gammas) == 1:
            return distances.mul_(-gammas[0]).exp_()
        return (-gammas[:, None, None] * distances).exp_()

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """From the rows."""
        return self.gram(rows, others)

    def matrix(
        self,
        rows: NDArray[np.float64],
        known: NDArray[np.float64],
        support: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """Without torch, as for RBF kernels."""
        return np.exp(-self.gamma.item() * cdist(rows, known, "cityblock"))

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Absolute differences."""
        return ((known - row) / unit).to(dtype).abs()

    def of_sums(self, sums: Tensor, gamma: float) -> Tensor:
        """From L1 distances."""
        return (-gamma * sums).exp_()

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """``dk / dγ = −‖x − z‖₁ k = k log k / γ``."""
        return torch.special.xlogy(gram, gram).div_(gamma)
