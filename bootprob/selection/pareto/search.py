"""All Pareto points of margin and cost, by the ε-constraint or the two-phase method."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from bootprob.exceptions import BootprobError
from bootprob.optimization.search_result import Found
from bootprob.runtime.arrays import Bools
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto.front import ParetoPoint, undominated
from bootprob.selection.pareto.margin import MarginProblem, Rule
from bootprob.selection.pareto.program import MarginCostProgram, Solved, free_columns
from bootprob.selection.pareto.ranges import CostLevels, CostRange, least_useful_left_out, merged

__all__ = ["ParetoSearch"]


_STEP = 1e-6  # of the cost of all columns; costs that differ by less are one
_TOLERANCE = 1e-6  # of the largest margin; margins that differ by less are one
_ROUNDING = 1e-9  # margins of features with variance 1 that are none
_WRONG = 1e-3  # of the largest margin; a solver's tolerance explains no larger difference
_NOTHING = 1e-9  # of the largest coefficient
_RUNGS = 40  # rules without a program, spread over the costs
_SPREAD = 1 / 4  # of all time, for them
_SHARE = 1 / 2  # of the time left, for one program
_LEAST_SHARE = 1 / 16  # of all time, for one program


class ParetoSearch:
    """A search and what it has found so far.

    Parameters
    ----------
    needs : ndarray of bool, shape (N, p)
        Which columns each feature is of.
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
        self.n_programs = 0
        self._bounds: list[Callable[[float], float]] = []  # of margins, by cost
        self._open: list[CostRange] = []
        self._step = _STEP * costs.total(range(needs.shape[1]))
        self._levels = CostLevels(costs, self._step)
        # The largest margin is a linear program, and gives the mixed-integer ones their unit.
        everything = np.ones(needs.shape[1], dtype=bool)
        self._unit = problem.best_rule(self._allowed(everything)).margin
        self._unit = self._unit if self._unit > _ROUNDING else 0.0
        self._solver = solver
        self._least = self._keep(self._point(free_columns(costs)))
        self._most = self._point(everything)
        self._top = self._most.cost if budget is None else min(self._most.cost, budget)
        if self._top == self._most.cost:
            self._keep(self._most)
            self._top = self._levels.below(self._top)

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
        """Those found that no other one dominates, with the least bound known at their costs."""
        return undominated([self._bounded(point) for point in self.found], self.tolerance)

    @property
    def unproven(self) -> tuple[tuple[float, float], ...]:
        """Costs, above the first number and up to the second, at which rules may be missing.

        At all others the points are the front.
        """
        return merged(self._open, self._step)

    def epsilon_constraint(self) -> None:
        """Find all points: the largest margin for less than the last point costs, and again.

        From both ends of the costs: where time does not suffice, it is the middle that stays open.
        """
        self._spread()
        self._close(self._wide([self._everything]))

    def two_phase(self, *, supported_only: bool) -> None:
        """Find the supported points by weights, then, unless told not to, those between them."""
        self._spread()
        dearest = self._dearest()
        points, proven = ([], False) if dearest is None else self._supported(dearest)
        if supported_only:
            self._open += [] if proven else self._wide([self._everything])
            return
        between = [
            CostRange(lower.cost, self._levels.below(upper.cost), lower.margin)
            for lower, upper in pairwise(points)
        ]
        self._close(self._wide([self._everything] if dearest is None else between))

    @property
    def _everything(self) -> CostRange:
        return CostRange(self._least.cost, self._top, self._least.margin)

    def _wide(self, ranges: list[CostRange]) -> list[CostRange]:
        """Those in which a cost has room."""
        return [each for each in ranges if each.high > each.low + self._step / 2]

    def _spread(self) -> None:
        """Find rules of all costs without a program: from a dearer one's most useful columns.

        Each time in the middle of the widest gap between two of them, hence soon everywhere.
        """
        lower, upper = self._least, self._most
        gaps, deadline = [(lower, upper)], self._share(_SPREAD)
        for _ in range(_RUNGS):
            if not gaps or time.perf_counter() > deadline:
                return
            lower, upper = _widest(gaps)
            cap = self._levels.up_to(min((lower.cost + upper.cost) / 2, self._top))
            gains = self._problem.contributions(upper.rule) @ self._needs
            columns = least_useful_left_out(upper.features, gains, self._costs, cap)
            point = replace(self._point(columns, "heuristic"), bound=math.inf)
            if lower.cost + self._step < point.cost < upper.cost - self._step:
                self._keep(point)
                gaps += [(lower, point), (point, upper)]

    def _close(self, ranges: list[CostRange]) -> None:
        """Find the points in ranges of cost, by (27), from the cheap and from the dear end.

        The end on which less time was spent is next. In one range that is left, the cheap end
        begins with the rules that are cheapest; otherwise each takes the largest margin for less
        than the last point costs. (31) asks for less by the smallest positive cost there is, which
        leaves out points where exchanging columns saves less than that.
        """
        for share in (_SHARE, 1.0):  # what was too hard for its share gets what is left
            spent = [0.0, 0.0]
            while ranges and time.perf_counter() < self._deadline:
                dear = spent[1] < spent[0]
                began = time.perf_counter()
                here = ranges.pop(-1 if dear else 0)
                cap = here.high
                if not dear and not ranges:
                    cap = here.cheapest(self.found, self.tolerance)
                left = self._closed_to(here, cap, share)
                ranges = [*ranges, *left] if dear else [*left, *ranges]
                spent[dear] += time.perf_counter() - began
            ranges = sorted([*ranges, *self._open], key=lambda each: each.low)
            self._open = []
        self._open = ranges

    def _closed_to(self, here: CostRange, cap: float, share: float) -> list[CostRange]:
        """Find the point of the largest margin that costs `cap` at most; what is left of a range.

        Where the program ran out of its time, the rest below the best rule known is looked at.
        """
        point, proven = self._best_up_to(cap, share)
        margin, done = here.margin, here.low  # of costs up to the cap, those above `done`
        if point is not None and point.margin > margin + self.tolerance:
            margin, done = self._keep(point).margin, self._levels.below(point.cost)
        if not proven:
            known = CostRange(here.low, cap, here.margin).inside(self.found, self.tolerance)
            done = self._levels.below(known[-1]) if known else here.low
            self._open.append(CostRange(done, cap, here.margin))
        self._tell((cap - done) / (self._top - self._least.cost))
        rest = [CostRange(here.low, done, here.margin), CostRange(cap, here.high, margin)]
        return self._wide(rest)

    def _best_up_to(self, cap: float, share: float) -> tuple[ParetoPoint | None, bool]:
        """The largest margin for at most `cap`, and whether that is proven."""
        solved = self._program.largest_margin(cap, self._share(share))
        end = cap + self._step / 2
        self._bounds.append(lambda cost: solved.bound if cost <= end else math.inf)
        point = self._solution(solved, lambda cost: solved.bound)
        if point is not None and point.cost > end:
            raise BootprobError(
                f"The solver was to spend {cap:.6g} at most and spent {point.cost:.6g}."
            )
        return point, solved.proven

    def _share(self, share: float) -> float:
        """When a share of the time left is over: what is hard leaves time for others."""
        now = time.perf_counter()
        if math.isinf(self._deadline):
            return self._deadline
        least = _LEAST_SHARE * (self._deadline - self._started)
        return min(self._deadline, now + max(share * (self._deadline - now), least))

    def _dearest(self) -> ParetoPoint | None:
        """The point of the largest margin within the budget; None if time does not suffice."""
        if self._most in self.found:
            return self._most
        point, proven = self._best_up_to(self._top, _SHARE)
        if point is None or not proven:
            return None
        return self._keep(point) if point.margin > self._least.margin else self._least

    def _supported(self, dearest: ParetoPoint) -> tuple[list[ParetoPoint], bool]:
        """The best points for all weights, by cost, and whether time sufficed for all of them."""
        points, gaps, proven = [self._least, dearest], [(self._least, dearest)], True
        while gaps:
            lower, upper = _widest(gaps)
            gained, paid = upper.margin - lower.margin, upper.cost - lower.cost
            if gained <= self.tolerance or paid <= self._step:
                continue
            # Both ends are equally good with these; the paper prints λ₁ and λ₂ the other way round.
            cap = dearest.cost + self._step / 2
            solved = self._program.best_compromise(paid, gained, cap, self._share(_SHARE))
            bound = partial(_bound, solved.bound, paid, gained)
            self._bounds.append(bound)
            point = self._solution(solved, bound)
            proven &= solved.proven
            if point is None:
                continue
            more = paid * (point.margin - lower.margin) - gained * (point.cost - lower.cost)
            if more > paid * self.tolerance:
                self._keep(point)
                if solved.proven:
                    points.append(point)
                    gaps += [(lower, point), (point, upper)]
        return sorted(points, key=lambda point: point.cost), proven

    def _solution(self, solved: Solved, bound: Callable[[float], float]) -> ParetoPoint | None:
        """The best rule of the columns that a program pays; `bound` is of margins, by cost."""
        self.n_programs += 1
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

    def _bounded(self, point: ParetoPoint) -> ParetoPoint:
        """A point with what all programs together say of its cost."""
        bound = min([point.bound, self._unit, *(each(point.cost) for each in self._bounds)])
        bound = max(point.margin, bound)
        proven = point.status == "optimal" or bound <= point.margin + self.tolerance
        return replace(point, bound=float(bound), status="optimal" if proven else point.status)

    def _keep(self, point: ParetoPoint) -> ParetoPoint:
        self.found.append(point)
        self.path.append(Found(point.seconds, point.margin, point.features))
        return point


def _widest(gaps: list[tuple[ParetoPoint, ParetoPoint]]) -> tuple[ParetoPoint, ParetoPoint]:
    """Take the two points that are furthest apart in cost out of a list of neighbours."""
    widths = [upper.cost - lower.cost for lower, upper in gaps]
    return gaps.pop(int(np.argmax(widths)))


def _bound(objective: float, of_margin: float, of_cost: float, cost: float) -> float:
    """Largest margin at a cost, where no point has a larger objective (30)."""
    return (objective + of_cost * cost) / of_margin
