"""Kernels that fall with a distance, ``exp(−γ d(x, z))``, and the median rule for their γ."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["Exponential", "inverse_median", "spaced_rows"]

_MEDIAN_ROWS = 1000  # rows whose pairwise distances the median rule looks at


def spaced_rows(X: ArrayLike) -> Tensor:
    """At most 1,000 rows of X (n, p), evenly spaced, about their mean."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}; it must be two-dimensional.")
    picked = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_ROWS)).astype(int))
    return torch.from_numpy(X[picked] - X[picked].mean(axis=0))


def inverse_median(distances: Tensor) -> float:
    """One over the median of distances; those of 0 (duplicated rows) are left out."""
    distances = distances[distances > 0]
    return 1.0 / float(distances.median()) if len(distances) else 1.0


@dataclass(frozen=True, eq=False)
class Exponential(KernelFunction):
    """``k(x, z) = exp(−γ d(x, z))``.

    Attributes
    ----------
    metric : str
        What scipy calls the distance d.
    """

    gamma: Tensor

    parameters: ClassVar[tuple[str, ...]] = ("gamma",)
    ignores_offset: ClassVar[bool] = True
    has_unit_diagonal: ClassVar[bool] = True
    has_terms: ClassVar[bool] = True
    metric: ClassVar[Literal["sqeuclidean", "cityblock"]]

    def of_distances(self, distances: Tensor) -> Tensor:
        """The kernel from distances (..., m, n), which are overwritten; (..., G, m, n)."""
        distances, gammas = self._finite(distances.unsqueeze(-3))
        if len(gammas) == 1:
            return distances.mul_(-gammas[0]).exp_()
        return (-gammas[:, None, None] * distances).exp_()  # in place: 1 + G matrices at the peak

    @abstractmethod
    def met(self, rows: Any, others: Any) -> Tensor:
        """Distances."""

    def of_met(self, met: Tensor) -> Tensor:
        """From distances."""
        distances, gammas = self._finite(met.unsqueeze(-3))
        return (-gammas[:, None, None] * distances).exp_()

    def between(self, rows: Any, others: Any) -> Tensor:
        """As `gram`."""
        return self.of_distances(self.met(rows, others))

    def _finite(self, distances: Tensor) -> tuple[Tensor, Tensor]:
        gammas = self.gamma
        if distances.dtype != torch.float64:
            # Numbers beyond float32 make ∞ − ∞, or 0 · ∞, of what is simply far apart, or near.
            largest = torch.finfo(distances.dtype).max
            distances = distances.nan_to_num_(nan=largest, posinf=largest)
            gammas = gammas.clamp_max(largest)
        return distances, gammas.to(distances.dtype)

    def matrix(
        self,
        rows: NDArray[np.float64],
        known: NDArray[np.float64],
        support: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """From differences: rows may lie far from 0 and close to each other."""
        return np.exp(-self.gamma.item() * cdist(rows, known, self.metric))

    def of_sums(self, sums: Tensor, gamma: float) -> Tensor:
        """From distances, which are sums over the columns."""
        return (-gamma * sums).exp_()

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """``dk / dγ = −d k = k log k / γ``."""
        return torch.special.xlogy(gram, gram).div_(gamma)
