"""A good direction in some columns: support vector machines on rows that can be kept."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob.selection.cost_sensitive.problem import RateProblem, SeparatingHyperplane

__all__ = ["Direction", "Directions"]


# Cost of a positive's slack over that of a negative's, and C, in a quick look and a thorough one.
_QUICK = ((0.3, 1.0), (1.0, 1.0), (3.0, 1.0))
_RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
_THOROUGH = (*((ratio, 1.0) for ratio in _RATIOS), (1.0, 100.0))
_ROUNDS = {False: 2, True: 6}  # of training without the rows given up
_ANGLES = 24  # of a screened plane


@dataclass(frozen=True)
class Direction:
    """The best direction known in some columns.

    Attributes
    ----------
    coef : ndarray, shape (k,)
    scores : ndarray, shape (n,)
        Of all rows, with a standard deviation of 1; 0 where nothing was found.
    lacking : int
        Rows that the rates lack.
    gap : float
        How far apart the classes are held, in the units of the scores; negative if not.
    """

    coef: Floats
    scores: Floats
    lacking: int
    gap: float

    def better_than(self, other: Direction | None) -> bool:
        """Whether fewer rows are lacking, or the classes are further apart."""
        return other is None or (self.lacking, -self.gap) < (other.lacking, -other.gap)


class Directions:
    """Looks for directions, and remembers them."""

    def __init__(self, problem: RateProblem) -> None:
        self.problem = problem
        self.n_fitted = 0
        self._known: dict[tuple[tuple[int, ...], bool], Direction] = {}

    def none(self) -> Direction:
        """Of no column."""
        scores = np.zeros(len(self.problem.X))
        lacking, gap = self.problem.lacking(scores)
        return Direction(np.zeros(0), scores, int(lacking), float(gap))

    def find(self, features: tuple[int, ...], *, thorough: bool = False) -> Direction:
        """Train machines of several class weights, then again without the rows given up.

        Rows that are furthest on the wrong side are given up, as many as the rates allow, and the
        machine is trained on the others (a trimmed hinge loss), as long as that helps.

        Parameters
        ----------
        features : tuple of int
            Ascending.
        thorough : bool
            More weights, more rounds.
        """
        key = features, thorough
        if key in self._known:
            return self._known[key]
        if not features:
            return self.none()
        X, best = self.problem.X[:, list(features)], None
        for ratio, C in _THOROUGH if thorough else _QUICK:
            weight = C * np.where(self.problem.positive, ratio, 1.0)
            now = self._trained(X, weight)
            for _ in range(_ROUNDS[thorough]):
                best = now if now.better_than(best) else best
                before, now = now, self._trained(X, weight * self.keepable(now.scores))
                if not now.better_than(before):
                    break
            best = now if now.better_than(best) else best
        assert best is not None
        return self.offer(features, best.coef, thorough=thorough)

    def offer(
        self, features: tuple[int, ...], coef: Floats, *, thorough: bool = False
    ) -> Direction:
        """Remember a direction if it is the best of these columns; the best of them."""
        found = self._direction(self.problem.X[:, list(features)], coef)
        for depth in (thorough, True):
            known = self._known.get((features, depth))
            if found.better_than(known):
                self._known[features, depth] = found
        return self._known[features, thorough]

    def hyperplane(self, features: tuple[int, ...]) -> SeparatingHyperplane | None:
        """A hyperplane that meets the constraints, after a quick look and then a thorough one."""
        for thorough in (False, True):
            found = self.find(features, thorough=thorough)
            if found.gap > 0:
                hyperplane = self.problem.hyperplane(features, found.coef)
                if hyperplane is not None:
                    return hyperplane
        if self.problem.needs_all:
            return self.problem.keeping(features, np.ones(len(self.problem.X), dtype=bool))
        return None

    def screen(self, scores: Floats, candidates: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """What a column more could do for a direction: the best of some angles of their plane.

        Scores (n,) are those of the direction. Returns what is lacking and the gap for each
        of the m candidates, columns.
        """
        angles = np.linspace(-math.pi / 2, math.pi / 2, _ANGLES + 1)
        lacking, gap = np.empty(len(candidates)), np.empty(len(candidates))
        for block in row_blocks(len(candidates), len(scores) * len(angles)):
            columns = self.problem.X[:, candidates[block]]
            turned = np.cos(angles) * scores[:, None, None] + np.sin(angles) * columns[..., None]
            rows, apart = self.problem.lacking(turned)
            # The smallest of (rows lacking, −gap): gaps are below 1e3 standard deviations.
            best = np.argmin(1e3 * rows - np.clip(apart, -499, 499), axis=1)[:, None]
            lacking[block] = np.take_along_axis(rows, best, axis=1)[:, 0]
            gap[block] = np.take_along_axis(apart, best, axis=1)[:, 0]
        return lacking, gap

    def keepable(self, scores: Floats) -> Bools:
        """The rows of each class that are furthest on their side, as many as needed."""
        top, bottom = self.problem.ends(scores)
        return np.where(self.problem.positive, scores >= top, scores <= bottom)

    def _trained(self, X: Floats, weight: Floats) -> Direction:
        self.n_fitted += 1
        rows = weight > 0
        machine = LinearSVC(dual=X.shape[1] > len(X), tol=1e-3, max_iter=200, random_state=0)
        with warnings.catch_warnings():  # what it gives is looked at, converged or not
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X[rows], self.problem.positive[rows], sample_weight=weight[rows])
        return self._direction(X, machine.coef_[0])

    def _direction(self, X: Floats, coef: Floats) -> Direction:
        scores = X @ coef
        spread = float(scores.std())
        if not spread > 0:
            none = self.none()
            return Direction(np.zeros(X.shape[1]), none.scores, none.lacking, none.gap)
        lacking, gap = self.problem.lacking(scores / spread)
        return Direction(coef / spread, scores / spread, int(lacking), float(gap))
