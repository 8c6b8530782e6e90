"""A first solution within an M₁ of (2.7), where the one at hand is not, or none is at hand."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from bootprob.constrained.big_m import AnchorBounds, within
from bootprob.constrained.convex_model import build_model, solve_kept
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.constrained.reduction import Reduction, reduce_problem
from bootprob.exceptions import BootprobError, DataError
from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
from bootprob.runtime.arrays import Bools

__all__ = ["ALLOWED", "allowed_start", "first_start"]


ALLOWED = 1e-6
"""By how much of M₁ an anchor may be below ``1 − M₁``: what solvers leave of it."""
_FEASIBLE = 2  # HiGHS's kSolutionStatusFeasible
_WIDE = 1e4  # M₁ where none is given: solvers keep z to 1e-6


def allowed_start(
    problem: ConstrainedProblem, start: Solution, big_m: float, solver: str, deadline: float
) -> Solution:
    """A solution in which no anchor is wrong by more than M₁: the start itself, if it is one.

    Else the best one that keeps the same anchors, else the best one that keeps anchors which a
    mixed-integer solver found to be possible.

    Parameters
    ----------
    start : Solution
        Meets the requirements.
    big_m : float
        M₁, positive.
    solver : {"SCIP", "HIGHS", "GUROBI"}
    deadline : float
        On the clock of `time.perf_counter`.

    Raises
    ------
    DataError
        No hyperplane meets the requirements within M₁.
    BootprobError
        The solver neither found one nor proved that in time.
    """
    lowest = 1 - big_m - ALLOWED * big_m
    if problem.margins(start.coef, start.intercept).min(initial=np.inf) >= lowest:
        return start
    unit = start.objective if start.objective > 0 else 1.0
    reduction = reduce_problem(problem, unit, every_anchor=True)
    inward = reduction.inward(start.coef, start.intercept)
    kept = reduction.problem.margins(*inward) >= 1 - 1e-6
    found = _within(problem, reduction, kept, big_m, solver, deadline)
    if found is None:
        raise _not_found(big_m)
    return replace(found, lower_bound=start.lower_bound, seconds=start.seconds)


def first_start(
    problem: ConstrainedProblem, big_m: float | None, solver: str, deadline: float
) -> Solution | None:
    """A solution by a mixed-integer solver, where no search found one; None if it finds none.

    The rest is as for `allowed_start`; without M₁ it is 10,000.
    """
    reduction = reduce_problem(problem, 1.0, every_anchor=True)
    try:
        return _within(problem, reduction, None, big_m or _WIDE, solver, deadline)
    except DataError:
        if big_m is not None:
            raise
        return None  # which proves nothing beyond 10,000


def _within(
    problem: ConstrainedProblem,
    reduction: Reduction,
    kept: Bools | None,
    big_m: float,
    solver: str,
    deadline: float,
) -> Solution | None:
    """The best solution that keeps some anchors of the reduced problem, or others that can be."""
    reduced, lowest = reduction.problem, 1 - big_m - ALLOWED * big_m
    free = np.zeros(len(reduced.anchor_y), dtype=bool)
    known = within(reduced, AnchorBounds(np.full(len(free), np.inf), free, free), big_m)
    if kept is None:
        kept = _possible(reduced, known, big_m, solver, deadline)
    for _ in range(2):
        found = None if kept is None else solve_kept(reduced, kept & ~known.wrong, known.floor)
        if found is not None:
            coef, intercept = reduction.outward(*found)
            margins = problem.margins(coef, intercept)
            right = margins >= 1 - 1e-9
            if margins.min() >= lowest and not problem.shortfall(right).any():
                objective = problem.objective(coef, intercept)
                return Solution(coef, intercept, objective, 0.0, right, "heuristic", 0.0)
        kept = _possible(reduced, known, big_m, solver, deadline)
    return None


def _possible(
    reduced: ConstrainedProblem, known: AnchorBounds, big_m: float, solver: str, deadline: float
) -> Bools | None:
    """Anchors that can be kept within M₁, or None where time was up."""
    left = deadline - time.perf_counter()
    if left <= 0:
        return None
    cp = load_cvxpy()

    model = build_model(reduced, known, boolean=True)
    search = cp.Problem(cp.Minimize(0), model.constraints)
    limits: dict[str, dict[str, Any]] = {
        "SCIP": {"scip_params": {"limits/time": left}},
        "HIGHS": {"time_limit": left},
        "GUROBI": {"TimeLimit": left},
    }
    with quiet_about_accuracy():
        try:
            search.solve(solver=solver, **limits[solver])
        except cp.SolverError:
            return None
    if search.status == cp.INFEASIBLE:
        raise DataError(
            f"big_m is {big_m:g}, and no machine keeps the rates with y f(x) ≥ {1 - big_m:g} at "
            "every anchor, as (2.7) then asks; raise big_m, or leave it out."
        )
    info = search.solver_stats.extra_stats
    if solver == "HIGHS" and model.free.any() and info.primal_solution_status != _FEASIBLE:
        return None  # the values would be garbage
    if model.coef.value is None:
        return None
    return model.chosen(known)


def _not_found(big_m: float) -> BootprobError:
    return BootprobError(
        f"big_m is {big_m:g}, and no machine with y f(x) ≥ {1 - big_m:g} at every anchor, as (2.7) "
        "then asks, was found in time; raise time_limit or big_m, or leave big_m out."
    )
