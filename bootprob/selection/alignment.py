"""Kernel–target alignment of subsets of columns: the distance of the class centroids.

R. Tamura, Y. Takano, R. Miyashiro, "Feature subset selection for kernel SVM classification via
mixed-integer optimization", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

__all__ = ["AlignmentPairs", "sigest_gamma"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AlignmentPairs:
    """The alignment (27) as a sum over pairs of rows, of which equal ones are one.

    ``f(S) = constant + Σ_k weight_k exp(−γ Σ_{j ∈ S} squares_jk)``

    Attributes
    ----------
    squares : ndarray, shape (p, N)
        Squared difference of each pair of rows in each column.
    weight : ndarray, shape (N,)
        ``2 ψ_i ψ_h``, with ``ψ_i = y_i / |N(y_i)|`` of (23), summed over pairs whose differences
        are the same; positive ones first.
    constant : float
        ``Σ_i ψ_i²``: every row with itself.
    """

    squares: Floats
    weight: Floats
    constant: float

    @classmethod
    def of_rows(cls, X: Floats, positive: NDArray[np.bool_]) -> Self:
        """Pair rows.

        Parameters
        ----------
        X : ndarray, shape (n, p)
            Standardised as in (25).
        positive : ndarray of bool, shape (n,)
        """
        psi = np.where(positive, 1 / positive.sum(), -1 / (~positive).sum())
        first, second = np.triu_indices(len(X), 1)
        differing = positive[first] != positive[second]
        order = np.argsort(differing, kind="stable")
        first, second = first[order], second[order]
        weight = 2 * psi[first] * psi[second]
        squares = np.empty((X.shape[1], len(weight)))
        for column, square in zip(X.T, squares, strict=True):
            np.subtract(column[first], column[second], out=square)
            np.square(square, out=square)
        squares, weight = _merged(squares, weight)
        return cls(squares, weight, float(np.square(psi).sum()))

    @staticmethod
    def bytes_of_rows(n: int, p: int) -> int:
        """What `of_rows` and then `factors` take for n rows of p columns, at most."""
        return n * (n - 1) // 2 * 8 * (2 * p + 8)

    def factors(self, gamma: float) -> Floats:
        """``exp(−γ squares)``, what a column multiplies each pair's term by, shape (p, N)."""
        return np.exp(-gamma * self.squares)

    def alignment(self, gamma: float, support: NDArray[np.bool_]) -> float:
        """Objective (27) of a subset of the columns.

        Parameters
        ----------
        gamma : float
        support : ndarray of bool, shape (p,)
        """
        exponents = -gamma * self.squares[support].sum(axis=0)
        return self.constant + float(self.weight @ np.exp(exponents))


def sigest_gamma(X: Floats, n_features: int) -> float:
    """γ̂ of (54): one over the median squared distance, scaled to `n_features` of the p columns.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Standardised rows.
    n_features : int
        θ, the number of columns that are to be chosen.
    """
    median = float(np.median(pdist(X, "sqeuclidean")))
    return X.shape[1] / (n_features * median) if median > 0 else 1.0


def _merged(squares: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Pairs with equal differences as one; those of positive weight first.

    Rows of few levels differ in few ways. Rounding keeps together what differs by rounding. Pairs
    are told apart by a sum of their squares with random factors; should two different pairs have
    the same sum, nothing is merged.
    """
    key = np.zeros(len(weight))
    random = np.random.default_rng(0).uniform(1, 2, len(squares))
    for factor, square in zip(random, squares, strict=True):
        key += factor * square.round(12)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(weight):
        return squares, weight
    if any(np.ptp(square.round(12) - square[first].round(12)[group]) for square in squares):
        return squares, weight
    total = np.bincount(group, weight)
    order = np.argsort(total < 0, kind="stable")
    order = order[total[order] != 0]  # pairs of both signs may cancel
    return squares[:, first[order]], total[order]
