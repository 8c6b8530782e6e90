"""Hyperplanes that put enough rows of both classes on their sides: the constraints of (P1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from bootprob.runtime.arrays import Bools, Floats

__all__ = ["LEAST_GAP", "RateProblem", "SeparatingHyperplane"]


LEAST_GAP = 1e-6
"""Classes that are no further apart than this, for ``max |w_k| = 1``, are not apart: rounding."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class SeparatingHyperplane:
    """A hyperplane ``w·x + β`` with ``y f(x) ≥ 1`` on enough rows of each class.

    Attributes
    ----------
    features : tuple of int
        Columns that it may use, ascending.
    coef : ndarray, shape (len(features),)
        w on these columns.
    kept : ndarray of bool, shape (n,)
        Rows with ``y f(x) ≥ 1``, up to rounding.
    """

    features: tuple[int, ...]
    coef: Floats
    intercept: float
    kept: Bools


@dataclass(frozen=True)
class RateProblem:
    """The constraints of (P1), thesis chapter 4, but for which columns may be used.

    ::

        y_i (w·x_i + β) ≥ 1 − M₂ (1 − z_i),   |w_k| ≤ M₃,   z_i ∈ {0, 1},
        Σ₊ z_i ≥ needed_positive,   Σ₋ z_i ≥ needed_negative

    Attributes
    ----------
    X : ndarray, shape (n, p)
        Standardised rows.
    positive : ndarray of bool, shape (n,)
    needed_positive, needed_negative : int
        Rows of each class that have to be right, 1 or more.
    big_m : float
        M₂, 2 or more; inf: rows that are given up may be wrong by whatever it is.
    max_coefficient : float
        M₃; inf for no limit. A direction with ``max |w_k| = 1`` then has to hold the classes
        apart by `LEAST_GAP`, else by ``2 / M₃``.
    """

    X: Floats
    positive: Bools
    needed_positive: int
    needed_negative: int
    big_m: float = np.inf
    max_coefficient: float = np.inf

    @property
    def limited(self) -> bool:
        """Whether M₂ or M₃ excludes hyperplanes."""
        return bool(np.isfinite(self.big_m) or np.isfinite(self.max_coefficient))

    @property
    def needs_all(self) -> bool:
        """Whether every row has to be right, so that a linear program decides for any columns."""
        needed = self.needed_positive + self.needed_negative
        return needed == len(self.positive)

    @property
    def least_gap(self) -> float:
        """How far apart a direction with ``max |w_k| = 1`` has to hold the classes."""
        return max(2 / self.max_coefficient, LEAST_GAP)

    def ends(self, scores: Floats) -> tuple[Floats, Floats]:
        """The lowest score of the best positives needed, the highest of the best negatives.

        Both have the shape (...) for scores (n, ...); the classes are apart where the first
        is above.
        """
        above, below = scores[self.positive], scores[~self.positive]
        place = len(above) - self.needed_positive
        top = np.partition(above, place, axis=0)[place]
        bottom = np.partition(below, self.needed_negative - 1, axis=0)[self.needed_negative - 1]
        return top, bottom

    def lacking(self, scores: Floats) -> tuple[NDArray[np.intp], Floats]:
        """How many rows a direction lacks, and how far apart it holds the classes.

        Scores have the shape (n, ...), both answers (...). The threshold is where enough
        positives are right, or where enough negatives are; the better of both counts. The
        gap is in the units of the scores, and negative where rows are lacking.
        """
        top, bottom = self.ends(scores)
        right_negatives = (scores[~self.positive] <= top - LEAST_GAP).sum(axis=0)
        right_positives = (scores[self.positive] >= bottom + LEAST_GAP).sum(axis=0)
        rows = np.minimum(
            self.needed_negative - right_negatives, self.needed_positive - right_positives
        )
        return np.maximum(rows, 0), top - bottom

    def hyperplane(
        self, features: tuple[int, ...], direction: Floats
    ) -> SeparatingHyperplane | None:
        """The hyperplane of a direction (len(features),), if it meets the constraints.

        It is checked from its scores. Where M₂ or M₃ is what excludes it, a linear program
        looks for another one that keeps the same rows.
        """
        largest = np.abs(direction).max(initial=0.0)
        if not (np.isfinite(largest) and largest > 0):
            return None
        direction = direction / largest
        scores = self.X[:, list(features)] @ direction
        top, bottom = (float(end) for end in self.ends(scores))
        if top - bottom <= LEAST_GAP:
            return None
        factor = 2 / (top - bottom)
        found = self._checked(features, factor * direction, -factor * (top + bottom) / 2)
        if found is None and self.limited:
            kept = np.where(self.positive, scores >= top, scores <= bottom)
            return self.keeping(features, kept)
        return found

    def keeping(self, features: tuple[int, ...], kept: Bools) -> SeparatingHyperplane | None:
        """A hyperplane that keeps these rows (n,), the others least wrong, |w_k| ≤ M₃."""
        sign = np.where(self.positive, 1.0, -1.0)
        rows = sign[:, None] * np.column_stack([self.X[:, list(features)], np.ones(len(sign))])
        size = len(features)
        # Variables: w, β and how far below 1 the worst row is, t ≥ 0.
        constraints = np.column_stack([-rows, np.where(kept, 0.0, -1.0)])
        limit = None if np.isinf(self.max_coefficient) else self.max_coefficient
        bounds = [(None if limit is None else -limit, limit)] * size + [(None, None), (0, None)]
        cost = np.append(np.zeros(size + 1), 1.0)
        solved = linprog(cost, A_ub=constraints, b_ub=np.full(len(sign), -1.0), bounds=bounds)
        if solved.x is None:
            return None
        coef, intercept = solved.x[:size], float(solved.x[size])
        least = float((rows[kept] @ solved.x[: size + 1]).min(initial=1.0))
        if 1 - 1e-6 < least < 1:  # the solver keeps its constraints to 1e-7
            coef, intercept = coef / least, intercept / least
        return self._checked(features, coef, intercept)

    def _checked(
        self, features: tuple[int, ...], coef: Floats, intercept: float
    ) -> SeparatingHyperplane | None:
        scores = self.X[:, list(features)] @ coef + intercept
        margins = np.where(self.positive, scores, -scores)
        kept = margins >= 1 - _ROUNDING - 1e-12 * np.abs(coef).sum()
        enough = (
            kept[self.positive].sum() >= self.needed_positive
            and kept[~self.positive].sum() >= self.needed_negative
        )
        within = np.abs(coef).max() <= self.max_coefficient * (
            1 + 1e-6
        ) and 1 - margins.min() <= self.big_m * (1 + 1e-6)
        return SeparatingHyperplane(features, coef, intercept, kept) if enough and within else None
