"""The RBF kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["Rbf", "median_gamma", "scale_gamma", "spaced_rows"]

_MEDIAN_ROWS = 1000  # rows whose pairwise distances the median rule looks at


def scale_gamma(X: ArrayLike) -> float:
    """γ by scikit-learn's rule "scale": 1 / (p · variance of all entries of X).

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows as the kernel sees them.
    """
    X = np.asarray(X, dtype=np.float64)
    variance = X.var()
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def median_gamma(X: ArrayLike) -> float:
    """γ by the "sigest" rule: 1 / median of the squared distances between rows.

    Caputo, Sim, Furesjö, Smola, "Appearance-based object recognition using SVMs: which kernel
    should I use?", NIPS workshop 2002. At most 1,000 rows, evenly spaced, are looked at;
    distances of 0 (duplicated rows) are left out.

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows as the kernel sees them.
    """
    distances = torch.pdist(torch.from_numpy(spaced_rows(X))).square()
    distances = distances[distances > 0]
    return 1.0 / float(distances.median()) if len(distances) else 1.0


def spaced_rows(X: ArrayLike) -> NDArray[np.float64]:
    """At most 1,000 rows of X (n, p), evenly spaced, about their mean."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}; it must be two-dimensional.")
    picked = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_ROWS)).astype(int))
    return X[picked] - X[picked].mean(axis=0)


@dataclass(frozen=True, eq=False)
class Rbf(KernelFunction):
    """``k(x, z) = exp(−γ ‖x − z‖²)``."""

    gamma: Tensor

    name: ClassVar[str] = "rbf"
    parameters: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {
        "scale": scale_gamma,
        "median": median_gamma,
    }
    ignores_offset: ClassVar[bool] = True
    has_unit_diagonal: ClassVar[bool] = True
    has_terms: ClassVar[bool] = True

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """By ``‖x − z‖² = ‖x‖² − 2 ⟨x, z⟩ + ‖z‖²``: rows are best near 0."""
        squares = rows.square().sum(-1).unsqueeze(-1) + others.square().sum(-1).unsqueeze(-2)
        distances = products.mul_(-2).add_(squares).clamp_min_(0).unsqueeze(-3)
        gammas = self.gamma
        if distances.dtype != torch.float64:
            # Squares beyond float32 make ∞ − ∞ of what is simply far apart.
            largest = torch.finfo(distances.dtype).max
            distances = distances.nan_to_num_(nan=largest, posinf=largest)
            gammas = gammas.clamp_max(largest)
        gammas = gammas.to(distances.dtype)
        if len(gammas) == 1:
            return distances.mul_(-gammas[0]).exp_()
        return (-gammas[:, None, None] * distances).exp_()  # in place: 1 + G matrices at the peak

    def matrix(
        self,
        rows: NDArray[np.float64],
        known: NDArray[np.float64],
        support: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """From differences: rows may lie far from 0 and close to each other."""
        return np.exp(-self.gamma.item() * cdist(rows, known, "sqeuclidean"))

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Squared differences; rows may lie far from 0 and close to each other."""
        return ((known - row) / unit).to(dtype).square()

    def of_sums(self, sums: Tensor, gamma: float) -> Tensor:
        """From squared distances."""
        return (-gamma * sums).exp_()

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """``dk / dγ = −‖x − z‖² k = k log k / γ``."""
        return torch.special.xlogy(gram, gram).div_(gamma)
