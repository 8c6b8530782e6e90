"""All Pareto points of margin and cost, by the ε-constraint or the two-phase method."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import BootprobError
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto_front import ParetoPoint, undominated
from bootprob.selection.pareto_margin import MarginProblem, Rule
from bootprob.selection.pareto_program import MarginCostProgram, Solved, free_columns
from bootprob.selection.results import Found

__all__ = ["ParetoSearch"]

Bools = NDArray[np.bool_]

_STEP = 1e-6  # of the cost of all columns; costs that differ by less are one
_TOLERANCE = 1e-6  # of the largest margin; margins that differ by less are one
_ROUNDING = 1e-9  # margins of features with variance 1 that are none
_WRONG = 1e-3  # of the largest margin; a solver's tolerance explains no larger difference
_NOTHING = 1e-9  # of the largest coefficient


class ParetoSearch:
    """A search and what it has found so far.

    Parameters
    ----------
    problem : MarginProblem
    needs : ndarray of bool, shape (N, p)
        Which columns each feature is of.
    costs : FeatureCosts
    budget : float, optional
        Points that cost more are not looked for.
    solver : {"HIGHS", "SCIP"}
    time_limit : float, optional
        Seconds.
    tell : callable, optional
        Called with the share of the range of costs that was searched since it last was.

    Attributes
    ----------
    found : list of ParetoPoint
        Some of them dominated.
    path : list of Found
    n_programs : int
        Mixed-integer programs solved.
    complete : bool
        False once the time is over.
    """

    def __init__(
        self,
        problem: MarginProblem,
        needs: Bools,
        costs: FeatureCosts,
        *,
        budget: float | None = None,
        solver: str = "HIGHS",
        time_limit: float | None = None,
        tell: Callable[[float], None] = lambda share: None,
    ) -> None:
        self._started = time.perf_counter()
        self._deadline = self._started + (math.inf if time_limit is None else time_limit)
        self._problem, self._needs, self._costs = problem, needs, costs
        self._tell = tell
        self.found: list[ParetoPoint] = []
        self.path: list[Found] = []
        self.n_programs, self.complete = 0, True
        self._step = _STEP * costs.total(range(needs.shape[1]))
        # The largest margin is a linear program, and gives the mixed-integer ones their unit.
        everything = np.ones(needs.shape[1], dtype=bool)
        self._unit = problem.best_rule(self._allowed(everything)).margin
        self._unit = self._unit if self._unit > _ROUNDING else 0.0
        self._solver = solver
        self._least = self._keep(self._point(free_columns(costs)))
        self._most = self._largest(everything, math.inf if budget is None else budget)

    @cached_property
    def _program(self) -> MarginCostProgram:
        return MarginCostProgram(self._problem, self._needs, self._costs, self._unit, self._solver)

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.perf_counter() - self._started

    @property
    def largest_margin(self) -> float:
        """Of all columns, whatever they cost; 0 where no rule is better than none."""
        return self._unit

    @property
    def tolerance(self) -> float:
        """Margins that differ by less are one."""
        return _TOLERANCE * self._unit

    @property
    def points(self) -> list[ParetoPoint]:
        """Those found that no other one dominates."""
        return undominated(self.found, self.tolerance)

    def epsilon_constraint(self) -> None:
        """Find all points: the largest margin for less than the last point costs, and again."""
        self._descend(self._least, self._most)

    def two_phase(self, *, supported_only: bool) -> None:
        """Find the supported points by weights, then, unless told not to, those between them."""
        self._supported()
        if supported_only:
            return
        points = self.points
        for lower, upper in pairwise(points):
            self._descend(lower, upper)

    def _largest(self, everything: Bools, budget: float) -> ParetoPoint:
        """The point of the largest margin within the budget."""
        if self._unit <= 0:
            return self._least
        best = self._point(everything)
        if best.cost <= budget:
            return self._keep(best)
        return self._next(budget, self._least) or self._least

    def _descend(self, lower: ParetoPoint, upper: ParetoPoint) -> None:
        """Find the points between two by (27), each time for less than the last one costs.

        (31) asks for less by the smallest positive cost there is, which leaves out points where
        exchanging columns saves less than that.
        """
        span = max(self._most.cost - self._least.cost, self._step)
        last = upper
        while self.complete and last.cost - self._step > lower.cost:
            point = self._next(last.cost - self._step, lower)
            self._tell((last.cost - (lower if point is None else point).cost) / span)
            if point is None:
                return
            last = point

    def _next(self, cap: float, lower: ParetoPoint) -> ParetoPoint | None:
        """Point of the largest margin for at most `cap`, if it is larger than that of `lower`."""
        solved = self._program.largest_margin(cap, self._deadline)
        point = self._solution(solved, lambda cost: solved.bound)
        if point is None or point.margin <= lower.margin + self.tolerance:
            return None
        if point.cost > cap + self._step / 2:
            raise BootprobError(
                f"The solver was to spend {cap:.6g} at most and spent {point.cost:.6g}."
            )
        return self._keep(point)

    def _supported(self) -> None:
        """Find the best points for all weights, between two known ones at a time."""
        between = [(self._least, self._most)]
        while between and self.complete:
            lower, upper = between.pop()
            gained, paid = upper.margin - lower.margin, upper.cost - lower.cost
            if gained <= self.tolerance or paid <= self._step:
                continue
            # Both ends are equally good with these; the paper prints λ₁ and λ₂ the other way round.
            solved = self._program.best_compromise(paid, gained, self._deadline)
            point = self._solution(solved, partial(_bound, solved.bound, paid, gained))
            if point is None:
                continue
            more = paid * (point.margin - lower.margin) - gained * (point.cost - lower.cost)
            if more > paid * self.tolerance:
                self._keep(point)
                between += [(lower, point), (point, upper)]

    def _solution(self, solved: Solved, bound: Callable[[float], float]) -> ParetoPoint | None:
        """The best rule of the columns that a program pays; `bound` is of margins, by cost."""
        self.n_programs += 1
        self.complete &= solved.proven
        if solved.paid is None:
            return None
        point = self._point(solved.paid, "optimal" if solved.proven else "time limit")
        most = bound(point.cost)
        if solved.proven and most > point.margin + _WRONG * max(self._unit, _WRONG):
            raise BootprobError(
                f"The solver said that a margin of {most:.6g} is reached, and with its columns it "
                f"is {point.margin:.6g}. Try the other solver."
            )
        return replace(point, bound=max(point.margin, most))

    def _point(self, columns: Bools, status: str = "optimal") -> ParetoPoint:
        """The largest margin of some columns, with those of them that it takes."""
        allowed = self._allowed(columns)
        rule = self._problem.best_rule(allowed)
        needed = self._needed(rule)
        if needed.sum() < columns.sum():
            # What is left out may have had coefficients that are rounding.
            rule = self._problem.best_rule(self._allowed(needed))
        if rule.margin <= _TOLERANCE * self._unit:
            needed = np.zeros_like(columns)
            rule = self._problem.best_rule(self._allowed(needed))
        features = tuple(np.flatnonzero(needed).tolist())
        cost = self._costs.total(features)
        return ParetoPoint(cost, rule.margin, rule.margin, features, rule, status, self.seconds)

    def _allowed(self, columns: Bools) -> Bools:
        """Features of these columns only, shape (N,)."""
        return self._needs[:, ~columns].sum(axis=1) == 0

    def _needed(self, rule: Rule) -> Bools:
        """Columns of the features with a coefficient, shape (p,)."""
        size = np.abs(rule.coef).max(axis=0, initial=0.0)
        used = size > _NOTHING * max(size.max(initial=0.0), _NOTHING)
        return np.asarray(self._needs[used].any(axis=0))

    def _keep(self, point: ParetoPoint) -> ParetoPoint:
        self.found.append(point)
        self.path.append(Found(point.seconds, point.margin, point.features))
        return point


def _bound(objective: float, of_margin: float, of_cost: float, cost: float) -> float:
    """Largest margin at a cost, where no point has a larger objective (30)."""
    return (objective + of_cost * cost) / of_margin
