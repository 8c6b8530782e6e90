"""The RBF kernel, and rules for its γ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bootprob_gpu.kernels.exponential import Exponential, inverse_median, spaced_rows

__all__ = ["Rbf", "median_gamma", "scale_gamma"]


def scale_gamma(X: ArrayLike) -> float:
    """γ by scikit-learn's rule "scale": 1 / (p · variance of all entries of X).

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows as the kernel sees them.

    Examples
    --------
    >>> from bootprob_gpu import scale_gamma
    >>> float(scale_gamma([[-1.0, 1.0], [1.0, -1.0]]))  # two columns of variance 1
    0.5
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

    Examples
    --------
    >>> from bootprob_gpu import median_gamma
    >>> median_gamma([[0.0], [1.0], [3.0]])  # squared distances 1, 4 and 9
    0.25
    """
    return inverse_median(torch.pdist(spaced_rows(X)).square())


def _squares(rows: Tensor) -> Tensor:
    return (rows * rows).sum(-1)


def _distances(products: Tensor, rows: Tensor, squares: Tensor) -> Tensor:
    sums = _squares(rows).unsqueeze(-1) + squares.unsqueeze(-2)
    return products.mul_(-2).add_(sums).clamp_min_(0)


@dataclass(frozen=True, eq=False)
class Rbf(Exponential):
    """``k(x, z) = exp(−γ ‖x − z‖²)``."""

    name: ClassVar[str] = "rbf"
    metric: ClassVar = "sqeuclidean"
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {
        "scale": scale_gamma,
        "median": median_gamma,
    }

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """By ``‖x − z‖² = ‖x‖² − 2 ⟨x, z⟩ + ‖z‖²``: rows are best near 0."""
        return self.of_distances(_distances(products, rows, _squares(others)))

    def ready(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and their squared norms."""
        return seen, _squares(seen)

    def met(self, rows: Tensor, others: tuple[Tensor, Tensor]) -> Tensor:
        """Distances."""
        known, squares = others
        return _distances(rows @ known.mT, rows, squares)

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """Squared differences; rows may lie far from 0 and close to each other."""
        return ((known - row) / unit).to(dtype).square()
