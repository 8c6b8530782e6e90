"""Products of columns up to a degree, on one scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.preparation.standardization import center_and_scale
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["Monomials"]


_AT_MOST = 10_000
_CONSTANT = 1e-9  # spread that is rounding, beside values of order 1


@dataclass(frozen=True)
class Monomials:
    """Features φ: products of standardised columns, formula (5), standardised in turn.

    Attributes
    ----------
    terms : tuple of tuple of int
        Columns that each product is of, one as often as its power; N of them. Products that are
        constant over the rows are not among them.
    column_center, column_scale : ndarray, shape (p,)
    center, scale : ndarray, shape (N,)
        Of the products of standardised columns.
    """

    terms: tuple[tuple[int, ...], ...]
    column_center: Floats
    column_scale: Floats
    center: Floats
    scale: Floats

    @classmethod
    def of_rows(cls, X: Floats, degree: int) -> Self:
        """Find the products that differ between rows, and their scale.

        Parameters
        ----------
        X : ndarray, shape (n, p)
        degree : int
            g, the largest degree.

        Raises
        ------
        DataError
            There are too many of them, or a column's numbers are so large that their squares
            overflow.
        """
        p = X.shape[1]
        count = math.comb(p + degree, degree) - 1
        if count > _AT_MOST:
            raise DataError(
                f"{p} columns have {count:,} products up to degree {degree}, more than {_AT_MOST:,}"
                "; lower the degree or leave columns out."
            )
        column_center, column_scale = center_and_scale(X, np.ones(len(X)))
        Z = (X - column_center) / column_scale
        terms = [
            term
            for power in range(1, degree + 1)
            for term in combinations_with_replacement(range(p), power)
        ]
        values = _products(Z, terms)
        center, scale = values.mean(axis=0), values.std(axis=0)
        differs = scale > _CONSTANT * np.maximum(1.0, np.abs(values).max(axis=0))
        kept = tuple(term for term, keep in zip(terms, differs, strict=True) if keep)
        return cls(kept, column_center, column_scale, center[differs], scale[differs])

    @property
    def needs(self) -> Bools:
        """Which columns each product is of, shape (N, p): its precedence."""
        needs = np.zeros((len(self.terms), len(self.column_center)), dtype=bool)
        for k, term in enumerate(self.terms):
            needs[k, list(term)] = True
        return needs

    def values(self, X: Floats, which: NDArray[np.intp] | None = None) -> Floats:
        """φ of rows (m, p), shape (m, N), or (m, k) for those wanted (`which`, by their places).

        Only the columns of the products that are wanted are looked at.
        """
        places = np.arange(len(self.terms)) if which is None else which
        Z = (X - self.column_center) / self.column_scale
        products = _products(Z, [self.terms[k] for k in places])
        return (products - self.center[places]) / self.scale[places]


def _products(Z: Floats, terms: list[tuple[int, ...]]) -> Floats:
    values = np.empty((len(Z), len(terms)))
    for k, term in enumerate(terms):
        values[:, k] = Z[:, term].prod(axis=1)
    return values
