"""The constrained problem of thesis chapter 2 solved to a proven gap, from a known solution."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bootprob.constrained.allowed_start import ALLOWED, allowed_start
from bootprob.constrained.big_m import closed_form_bounds, probed_bounds, within
from bootprob.constrained.convex_model import solve_kept, solve_relaxation, stretched
from bootprob.constrained.mixed_integer import Found, solve_by_gurobi, solve_by_scip
from bootprob.constrained.outer_approximation import solve_by_outer_approximation
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.constrained.reduction import Reduction, reduce_problem
from bootprob.exceptions import DataError
from bootprob.optimization.solvers import choose_solver
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["choose_solver", "solve_exact"]


_ON_MARGIN = 1e-6  # what a start may lack of y f = 1
_ROUNDING = 1e-9
_TOLERANCE = 1e-6  # to which the solvers keep their constraints, relative to the objective
_PROBING = 0.2  # share of the time for sharpening the bounds on the anchors

_SOLVERS: dict[str, Callable[..., Found]] = {
    "SCIP": solve_by_scip,
    "HIGHS": solve_by_outer_approximation,
    "GUROBI": solve_by_gurobi,
}


def solve_exact(
    problem: ConstrainedProblem,
    start: Solution,
    *,
    solver: str | None = None,
    big_m: float | None = None,
    time_limit: float = 300.0,
    gap: float = 1e-4,
    verbose: bool = False,
) -> Solution:
    """Improve a solution, and prove how good it is, by mixed-integer optimisation through CVXPY.

    Parameters
    ----------
    start : Solution
        A solution of it, such as the heuristic's. The result is never worse, but for a start that
        a given M₁ excludes.
    solver : {"SCIP", "HIGHS", "GUROBI"}, optional
        SCIP and Gurobi branch and bound on the quadratic problem; HiGHS, which cannot, on linear
        ones that come closer and closer to it. By default SCIP where it is installed, else HiGHS;
        Gurobi (the user's, with a licence for the size) only when asked for.
    big_m : float, optional
        M₁ of thesis (2.7), for all anchors of J, whether or not a rate counts them; 100 there. It
        cuts off every hyperplane for which some anchor is wrong by more, ``y f(x) < 1 − M₁``,
        perhaps the best ones: the result (to ``1e-6 · M₁``), its `lower_bound` and its status are
        of the problem thus restricted. By default each anchor counted has its own, so large that
        nothing better than the start is cut off and hardly larger.
    time_limit : float, default 300.0
        Seconds. Building the models is counted, but not interrupted.
    gap : float, default 1e-4
        Gap, ``(objective − lower_bound) / objective``, at which a solution counts as optimal; 1e-5
        or more, since the solvers keep their constraints to 1e-6.
    verbose : bool, default False
        Whether the solver prints its progress.

    Returns
    -------
    Solution
        Its margins and its objective are those of its coefficients, and its requirements have been
        checked with them. Status "optimal" where the gap was reached, else "time_limit".

    Raises
    ------
    DataError
        The start does not meet the requirements; a parameter is out of range; the solver is not
        installed or refuses the problem; no hyperplane keeps the rates within `big_m`.
    BootprobError
        The start is not within `big_m`, and nothing that is was found in time.
    """
    begun = time.perf_counter()
    name = choose_solver(solver)
    _check(problem, start, big_m, time_limit, gap)
    deadline = begun + time_limit
    if big_m is not None:
        start = allowed_start(problem, start, big_m, name, deadline)
    search = _Search(problem, start, gap, big_m)
    if not search.finished(deadline):
        search.polish_start()
    worse = np.inf
    # Once more from a much better solution: tolerances are relative to what a run starts from.
    while not search.finished(deadline) and search.best.objective < worse * (1 - gap):
        worse = search.best.objective
        search.run(_SOLVERS[name], deadline, verbose)
    return search.result(time.perf_counter() - begun)


class _Search:
    """The best solution and the highest bound so far, in the units of the problem."""

    def __init__(
        self, problem: ConstrainedProblem, start: Solution, gap: float, big_m: float | None
    ) -> None:
        self.problem, self.gap, self.big_m = problem, gap, big_m
        self.floor = -np.inf if big_m is None else 1 - big_m
        self.best = start
        self.bound = max(start.lower_bound, 0.0)
        kept = problem.margins(start.coef, start.intercept) >= 1 - _ON_MARGIN
        inside = stretched(problem, start.coef, start.intercept, kept)
        assert inside is not None  # the margins are 1 − 1e-6 at least
        self.inside = inside  # where nothing is left to rounding
        # A constant classifier: the optimum wherever it is one.
        for intercept in (-1.0, 1.0):
            self.offer(np.zeros_like(start.coef), intercept)

    def offer(self, coef: Floats, intercept: float) -> None:
        """Take a hyperplane if it is better and, looked at afresh, meets the requirements."""
        margins = self.problem.margins(coef, intercept)
        kept = margins >= 1 - _ROUNDING
        objective = self.problem.objective(coef, intercept)
        if self.problem.shortfall(kept).any() or not objective < self.best.objective:
            return
        if self.big_m is not None and margins.min() < self.floor - ALLOWED * self.big_m:
            return
        self.best = replace(
            self.best, coef=coef, intercept=float(intercept), objective=objective, kept=kept
        )
        self.inside = (coef, float(intercept))

    def finished(self, deadline: float) -> bool:
        """Whether the gap is reached or the time is up."""
        proven = self.best.objective - self.bound <= self.gap * self.best.objective
        return proven or time.perf_counter() >= deadline

    def polish_start(self) -> None:
        """The best hyperplane that keeps what the start keeps."""
        reduction = self._reduce()
        margins = reduction.problem.margins(*reduction.inward(*self.inside))
        self._polish(reduction, margins >= 1 - _ROUNDING)

    def _reduce(self) -> Reduction:
        unit = self.problem.objective(*self.inside)
        return reduce_problem(self.problem, unit, every_anchor=self.big_m is not None)

    def _polish(self, reduction: Reduction, kept: Bools) -> None:
        polished = solve_kept(reduction.problem, kept, self.floor)
        if polished is not None:
            self.offer(*reduction.outward(*polished))

    def run(self, solver: Callable[..., Found], deadline: float, verbose: bool) -> None:
        """Bounds on the anchors, the relaxation, then branch and bound."""
        reduction = self._reduce()
        unit, reduced, start = reduction.unit, reduction.problem, reduction.inward(*self.inside)
        known = closed_form_bounds(reduced)
        if self.big_m is not None:
            known = within(reduced, known, self.big_m)
        until = time.perf_counter() + _PROBING * (deadline - time.perf_counter())
        known = probed_bounds(
            reduced, known, reduced.margins(*start) >= 1 - _ROUNDING, min(until, deadline)
        )
        relaxed = solve_relaxation(reduced, known)
        reach = np.full(reduced.X.shape[1], np.sqrt(2.0))
        centre = np.zeros_like(reach)
        if relaxed is not None:
            self.bound = max(self.bound, min(relaxed[0] * unit, self.best.objective))
            # The objective grows by ½ ‖w − w₀‖² at least from the optimum of the relaxation.
            reach[:] = np.sqrt(2 * max(1 - relaxed[0], 0.0)) + 1e-4
            centre = relaxed[1]
        if self.finished(deadline):
            return
        found = solver(
            reduced,
            known,
            start,
            (centre - reach, centre + reach),
            deadline=deadline,
            gap=self.gap / 2,
            verbose=verbose,
        )
        if found.coef is not None and found.intercept is not None:
            self.offer(*reduction.outward(found.coef, found.intercept))
        if found.kept is not None:
            self._polish(reduction, found.kept)
        self.bound = max(self.bound, (min(found.bound, 1.0) - _TOLERANCE) * unit)

    def result(self, seconds: float) -> Solution:
        bound = min(self.bound, self.best.objective)
        proven = self.best.objective - bound <= self.gap * self.best.objective
        return replace(
            self.best,
            lower_bound=bound,
            status="optimal" if proven else "time_limit",
            seconds=seconds,
        )


def _check(
    problem: ConstrainedProblem, start: Solution, big_m: Any, time_limit: Any, gap: Any
) -> None:
    options = [("time_limit", time_limit, 0.0), ("gap", gap, 1e-5)]
    if big_m is not None:
        options.append(("big_m", big_m, 0.0))
    for what, value, least in options:
        if not isinstance(value, int | float | np.number) or not least <= value < np.inf:
            raise DataError(f"{what} is {value!r}; give a finite number, {least:g} or more.")
    margins = problem.margins(start.coef, start.intercept)
    lacking = problem.shortfall(margins >= 1 - _ON_MARGIN)
    for requirement, lacks in zip(problem.requirements, lacking, strict=True):
        if lacks > 0:
            raise DataError(
                f"The start does not keep {requirement.name}: of the weight "
                f"{requirement.required:g} that has to be right, {lacks:g} is not. Start from a "
                "solution that does, as the heuristic gives it."
            )
