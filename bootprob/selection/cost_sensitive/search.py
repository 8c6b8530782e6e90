"""Cheap columns that keep the rates, found by adding, dropping and exchanging columns."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.optimization.search_result import Found
from bootprob.runtime.arrays import Floats
from bootprob.selection.cost_sensitive.directions import Direction, Directions
from bootprob.selection.cost_sensitive.problem import RateProblem, SeparatingHyperplane
from bootprob.selection.feature_costs import FeatureCosts

__all__ = ["RateSearch"]

Features = tuple[int, ...]

_REFINED = 6  # screened columns that machines are trained with
_EXCHANGED = 4
_MARGIN = 1e-9  # relative: sums of costs are not exact


class RateSearch:
    """The cheapest columns found so far, and the moves that find cheaper ones.

    Parameters
    ----------
    deadline : float
        On the clock of `time.perf_counter`; no move is begun after it.

    Attributes
    ----------
    best : SeparatingHyperplane or None
    cost : float
        Of its columns; inf where nothing was found.
    path : list of Found
    directions : Directions
    n_evaluated : int
        Subsets that machines were trained on.
    """

    def __init__(self, problem: RateProblem, costs: FeatureCosts, deadline: float) -> None:
        self.problem, self.costs, self.deadline = problem, costs, deadline
        self.directions = Directions(problem)
        self.best: SeparatingHyperplane | None = None
        self.cost = math.inf
        self.path: list[Found] = []
        self.n_evaluated = 0
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the search was made."""
        return time.perf_counter() - self._started

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    def offer(self, found: SeparatingHyperplane | None) -> bool:
        """Take a hyperplane if its columns are cheaper, or as cheap and fewer."""
        if found is None:
            return False
        cost = self.costs.total(found.features)
        fewer = self.best is None or len(found.features) < len(self.best.features)
        if not (self.cheaper(cost) or (fewer and cost <= self.cost * (1 + _MARGIN))):
            return False
        if self.cheaper(cost):
            self.path.append(Found(self.seconds, cost, found.features))
        self.best, self.cost = found, min(cost, self.cost)
        self.path[-1] = Found(self.path[-1].seconds, self.cost, found.features)
        return True

    def cheaper(self, cost: Any) -> Any:
        """Whether a cost, or each of an array, is below the best known by more than rounding."""
        return cost < self.cost - _MARGIN * np.maximum(1.0, cost)

    def add_greedily(self, start: Iterable[int] = ()) -> None:
        """Add the column that brings most for its cost until the rates are kept, then all.

        It begins with `start`, such as the columns that cost nothing.
        """
        chosen = tuple(sorted(start))
        now = self._found(chosen)
        while True:
            if now.gap > 0 and self.offer(self.directions.hyperplane(chosen)):
                return
            if len(chosen) == self.problem.X.shape[1] or self.out_of_time:
                break
            more = self._promising(chosen, now, _REFINED)
            if not more or not self.cheaper(self.costs.total(chosen)):
                break
            found = [self._found(each) for each in more]
            paid = [self.costs.total(each) - self.costs.total(chosen) for each in more]
            gained = now.lacking - np.array([each.lacking for each in found])
            gap = np.array([each.gap for each in found])
            best = int(np.argmax(_worth(gained, gap, np.array(paid))))
            chosen, now = more[best], found[best]
        if self.best is None:
            self.offer(self.directions.hyperplane(tuple(range(self.problem.X.shape[1]))))

    def bisect(self) -> None:
        """Keep the columns of the largest coefficients only, as few as will do.

        A few machines, whatever the deadline: the way down from all columns when time is short.
        """
        if self.best is None:
            return
        order = np.argsort(-np.abs(self.best.coef), kind="stable")
        ranked = [self.best.features[k] for k in order]
        too_few, enough = 0, len(ranked)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            features = tuple(sorted(ranked[:middle]))
            self.n_evaluated += 1
            found = self.directions.hyperplane(features)
            self.offer(found)
            too_few, enough = (middle, enough) if found is None else (too_few, middle)

    def drop(self) -> bool:
        """Leave out columns, the dearest first, as long as the rates are kept."""
        improved = False
        again = self.best is not None
        while again and self.best is not None and not self.out_of_time:
            again = False
            features = self.best.features
            for column in sorted(features, key=lambda j: self._saving(features, j), reverse=True):
                rest = _without(features, column)
                if rest and not self.out_of_time and self._try(rest):
                    improved = again = True
                    break
        return improved

    def exchange(self) -> bool:
        """Leave out a column, then exchange others until the rates are kept at a lower cost.

        Returns whether something cheaper was found.
        """
        if self.best is None or len(self.best.features) < 2:
            return False
        features = self.best.features
        order = sorted(features, key=lambda j: self._saving(features, j), reverse=True)
        return any(self._repair(_without(features, column)) for column in order)

    def _repair(self, features: Features) -> bool:
        """Add or exchange columns below the best cost, as long as fewer rows are lacking."""
        now = self._found(features)
        while not self.out_of_time:
            if now.gap > 0 and self._try(features):
                return True
            moves = [
                (each, self._found(each))
                for base in (features, *(_without(features, j) for j in features))
                for each in self._promising(base, self._found(base), _EXCHANGED, cheaper=True)
                if each != features and not self.out_of_time
            ]
            if not moves:
                return False
            best, found = min(moves, key=lambda pair: (pair[1].lacking, -pair[1].gap))
            if not found.better_than(now):
                found = self.directions.find(best, thorough=True)
                if not found.better_than(now):
                    return False
            features, now = best, found
        return False

    def _promising(
        self, features: Features, now: Direction, most: int, *, cheaper: bool = False
    ) -> list[Features]:
        """These columns with one more each, the most promising by angles of a plane first."""
        others = np.setdiff1d(np.arange(self.problem.X.shape[1]), features)
        paid = self._further_cost(features)[others]
        if cheaper:
            allowed = self.cheaper(self.costs.total(features) + paid)
            others, paid = others[allowed], paid[allowed]
        if len(others) == 0:
            return []
        lacking, gap = self.directions.screen(now.scores, others)
        first = np.argsort(-_worth(now.lacking - lacking, gap, paid), kind="stable")[:most]
        return [tuple(sorted((*features, int(others[k])))) for k in first]

    def _further_cost(self, features: Features) -> Floats:
        """What each column would cost beyond these, shape (p,)."""
        further = self.costs.own.copy()
        for members, cost in self.costs.groups:
            if not members[list(features)].any():
                further += cost * members
        return further

    def _saving(self, features: Features, column: int) -> float:
        return self.costs.total(features) - self.costs.total(_without(features, column))

    def _found(self, features: Features) -> Direction:
        self.n_evaluated += 1
        return self.directions.find(features)

    def _try(self, features: Features) -> bool:
        self.n_evaluated += 1
        return self.offer(self.directions.hyperplane(features))


def _without(features: Features, column: int) -> Features:
    return tuple(j for j in features if j != column)


def _worth(gained: NDArray[Any], gap: Floats, paid: Floats) -> Floats:
    """Rows gained for a unit of cost; how far apart the classes are breaks ties."""
    gained = gained + 0.5 * (1 + np.tanh(gap))
    paid = np.maximum(paid, 1e-9)
    return np.where(gained > 0, gained / paid, gained * paid)
