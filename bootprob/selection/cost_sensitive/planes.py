"""Which single columns and which pairs of columns can meet the rates: exact scans."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob.selection.cost_sensitive.problem import RateProblem

__all__ = ["PairScan", "scan_columns"]


_MERGED = 12  # decimals of standardised values that tell levels apart


def scan_columns(problem: RateProblem) -> tuple[Floats, Floats]:
    """How far apart each column alone can hold the classes, by sorting.

    Returns
    -------
    gap : ndarray, shape (p,)
        Of the better sign. A column that meets the rates has a gap of `RateProblem.least_gap` or
        more.
    sign : ndarray, shape (p,)
        −1.0 where low values are positive.
    """
    n, p = problem.X.shape
    gap, sign = np.empty(p), np.empty(p)
    for block in row_blocks(p, n):
        columns = problem.X[:, block]
        _, rising = problem.lacking(columns)
        _, falling = problem.lacking(-columns)
        gap[block] = np.maximum(rising, falling)
        sign[block] = np.where(rising >= falling, 1.0, -1.0)
    return gap, sign


class PairScan:
    """Finds for any pair of columns whether some direction meets the rates, whatever M₂ and M₃."""

    def __init__(self, problem: RateProblem) -> None:
        self._problem = problem
        self._lost = float(problem.positive.sum() - problem.needed_positive)
        self._spared = float((~problem.positive).sum() - problem.needed_negative)
        self._levels: dict[int, tuple[Floats, NDArray[np.intp]]] = {}

    def direction(self, first: int, second: int) -> Floats | None:
        """Coefficients of the two columns, or None: a proof that there are none.

        Proven up to rounding: columns that are not constant, standardised, have to hold the
        classes apart by about 1e-9 of their range.
        """
        from bootprob.selection.cost_sensitive.planes_compiled import separating_direction

        points, positives, negatives = self._points(first, second)
        above, below = positives > 0, negatives > 0
        held = points[above], positives[above]
        other = points[below], negatives[below]
        # The class with fewer points has fewer pivots; the direction then is the opposite one.
        if len(held[0]) <= len(other[0]):
            found, angle = separating_direction(*held, *other, self._lost, self._spared)
        else:
            found, angle = separating_direction(*other, *held, self._spared, self._lost)
            angle += math.pi
        return np.array([math.cos(angle), math.sin(angle)]) if found else None

    def _points(self, first: int, second: int) -> tuple[Floats, Floats, Floats]:
        """Distinct points of the plane, and how many rows of each class are in them."""
        X, positive = self._problem.X, self._problem.positive
        (own, code), (others, other_code) = self._level(first), self._level(second)
        if len(own) * len(others) > len(X):
            ones = positive.astype(float)
            return np.ascontiguousarray(X[:, [first, second]]), ones, 1 - ones
        places = code * len(others) + other_code
        size = len(own) * len(others)
        points = np.column_stack([np.repeat(own, len(others)), np.tile(others, len(own))])
        return (
            points,
            np.bincount(places[positive], minlength=size).astype(float),
            np.bincount(places[~positive], minlength=size).astype(float),
        )

    def _level(self, column: int) -> tuple[Floats, NDArray[np.intp]]:
        if column not in self._levels:
            values = self._problem.X[:, column].round(_MERGED)
            levels, code = np.unique(values, return_inverse=True)
            self._levels[column] = levels, code
        return self._levels[column]
