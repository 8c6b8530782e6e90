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

from bootprob.runtime.arrays import Floats

__all__ = ["AlignmentPairs", "NormalisedPairs", "sigest_gamma"]


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
        """Pair rows (n, p), standardised as in (25), that are positive or not (n,)."""
        psi = np.where(positive, 1 / positive.sum(), -1 / (~positive).sum())
        first, second = _pairs(positive)
        squares = _squares(X, first, second)
        (weight,), kept = _merged(squares, 2 * psi[first] * psi[second])
        if kept is not None:
            order = np.argsort(weight < 0, kind="stable")
            order = order[weight[order] != 0]  # pairs of both signs may cancel
            squares, weight = squares[:, kept[order]], weight[order]
        return cls(squares, weight, float(np.square(psi).sum()))

    @staticmethod
    def bytes_of_rows(n: int, p: int) -> int:
        """What `of_rows` and then `factors` take for n rows of p columns, at most."""
        return n * (n - 1) // 2 * 8 * (2 * p + 8)

    def factors(self, gamma: float) -> Floats:
        """``exp(−γ squares)``, what a column multiplies each pair's term by, shape (p, N)."""
        return np.exp(-gamma * self.squares)

    def alignment(self, gamma: float, support: NDArray[np.bool_]) -> float:
        """Objective (27) of a subset of the columns, `support` of shape (p,)."""
        exponents = -gamma * self.squares[support].sum(axis=0)
        return self.constant + float(self.weight @ np.exp(exponents))


@dataclass(frozen=True)
class NormalisedPairs:
    """The alignment (22) as sums over pairs of rows, of which equal ones are one.

    ``A(S) = (1 + Σ_k weight_k E_k) / √(n + Σ_k count_k E_k²)`` with
    ``E_k = exp(−γ Σ_{j ∈ S} squares_jk)``: the cosine of the kernel and ``y yᵀ``, from 0 to 1.

    Attributes
    ----------
    squares : ndarray, shape (p, N)
        Squared difference of each pair of rows in each column.
    weight : ndarray, shape (N,)
        ``2 y_i y_h / n``, summed over pairs whose differences are the same; positive ones first.
    count : ndarray, shape (N,)
        2 for each of those pairs: above and below the diagonal.
    n : int
        Rows.
    """

    squares: Floats
    weight: Floats
    count: Floats
    n: int

    @classmethod
    def of_rows(cls, X: Floats, positive: NDArray[np.bool_]) -> Self:
        """Pair rows (n, p), standardised as in (25), that are positive or not (n,)."""
        y = np.where(positive, 1.0, -1.0)
        first, second = _pairs(positive)
        squares = _squares(X, first, second)
        once = np.full(len(first), 2.0)
        (weight, count), kept = _merged(squares, once * y[first] * y[second] / len(X), once)
        if kept is not None:
            order = np.argsort(weight <= 0, kind="stable")
            squares, weight, count = squares[:, kept[order]], weight[order], count[order]
        return cls(squares, weight, count, len(X))

    def factors(self, gamma: float) -> Floats:
        """``exp(−γ squares)``, what a column multiplies each pair's term by, shape (p, N)."""
        return np.exp(-gamma * self.squares)

    def alignment(self, gamma: float, support: NDArray[np.bool_]) -> float:
        """(22) of a subset of the columns, `support` of shape (p,)."""
        terms = np.exp(-gamma * self.squares[support].sum(axis=0))
        return float((1 + self.weight @ terms) / np.sqrt(self.n + self.count @ np.square(terms)))


def sigest_gamma(X: Floats, n_features: int) -> float:
    """γ̂ of (54): one over the median squared distance, scaled to θ = `n_features` of p columns.

    The rows (n, p) are standardised.
    """
    median = float(np.median(pdist(X, "sqeuclidean")))
    return X.shape[1] / (n_features * median) if median > 0 else 1.0


def _pairs(positive: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of rows, those of one class first."""
    first, second = np.triu_indices(len(positive), 1)
    order = np.argsort(positive[first] != positive[second], kind="stable")
    return first[order], second[order]


def _squares(X: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Squared difference of pairs in each column, shape (p, N)."""
    squares = np.empty((X.shape[1], len(first)))
    for column, square in zip(X.T, squares, strict=True):
        np.subtract(column[first], column[second], out=square)
        np.square(square, out=square)
    return squares


def _merged(squares: Floats, *sums: Floats) -> tuple[list[Floats], NDArray[np.intp] | None]:
    """Pairs with equal differences as one: their sums, and a pair of each; None if all differ.

    Rows of few levels differ in few ways. Rounding keeps together what differs by rounding. Pairs
    are told apart by a sum of their squares with random factors; should two different pairs have
    the same sum, nothing is merged.
    """
    key = np.zeros(squares.shape[1])
    random = np.random.default_rng(0).uniform(1, 2, len(squares))
    for factor, square in zip(random, squares, strict=True):
        key += factor * square.round(12)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return list(sums), None
    if any(np.ptp(square.round(12) - square[first].round(12)[group]) for square in squares):
        return list(sums), None
    return [np.bincount(group, each).astype(np.float64) for each in sums], first
