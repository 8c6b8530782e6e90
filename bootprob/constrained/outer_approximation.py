"""The exact solve by HiGHS, which knows no quadratic terms where variables are integer.

``½ w_i²`` is replaced by the largest of its tangents, which gives a mixed-integer linear problem
whose optimum is a lower bound. The choice of anchors that it comes back with is solved as a
quadratic problem, tangents are added where w was, and so on until the bounds meet.
"""

from __future__ import annotations

import time

import numpy as np

from bootprob.constrained.big_m import AnchorBounds
from bootprob.constrained.convex_model import build_model, solve_kept
from bootprob.constrained.mixed_integer import Found
from bootprob.constrained.problem import ConstrainedProblem
from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
from bootprob.optimization.started import started_highs
from bootprob.runtime.arrays import Floats

__all__ = ["solve_by_outer_approximation"]


_TANGENTS = 9  # a column, to begin with
_MUCH_BETTER = 0.5  # objective; the start has 1
_STUCK = 1e-6  # error of the tangents from which more of them cannot help


def solve_by_outer_approximation(
    problem: ConstrainedProblem,
    known: AnchorBounds,
    start: tuple[Floats, float],
    box: tuple[Floats, Floats],
    *,
    deadline: float,
    gap: float,
    verbose: bool = False,
) -> Found:
    """Alternate between HiGHS and a quadratic problem; the arguments are those of SCIP."""
    cp = load_cvxpy()

    model = build_model(problem, known, boolean=True)
    energy = cp.Variable(problem.X.shape[1])
    objective = cp.sum(energy) + problem.cost @ model.slack
    free = bool(model.free.any())
    fixed = [*model.constraints, model.coef >= box[0], model.coef <= box[1]]
    points = [*np.linspace(*box, _TANGENTS), start[0]]
    best, bound = (problem.objective(*start), *start), 0.0
    # HiGHS keeps its constraints to 1e-6. From a solution much better than the start, the caller
    # has to begin again, in units in which that is little.
    while best[0] * (1 - gap) > bound and best[0] > _MUCH_BETTER:
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        tangents = [energy >= cp.multiply(at, model.coef) - at**2 / 2 for at in points]
        master = cp.Problem(cp.Minimize(objective), [*fixed, *tangents])
        model.start_at(problem, best[1], best[2])
        energy.value = best[1] ** 2 / 2
        # As long as the tangents are coarse, a coarse bound is as good.
        tolerance = max(gap / 2, (best[0] - bound) / best[0] / 4)
        with quiet_about_accuracy():
            try:
                master.solve(
                    solver=started_highs(),
                    verbose=verbose,
                    time_limit=left,
                    mip_rel_gap=tolerance,
                    mip_abs_gap=0.0,
                )
            except cp.SolverError:  # it gave up; what is known by now stays true
                break
        if master.status == cp.INFEASIBLE:  # up to rounding nothing is better than the start
            bound = np.inf
            break
        info = master.solver_stats.extra_stats
        linear = info.objective_function_value  # where all anchors are known
        before, bound = bound, max(bound, float(info.mip_dual_bound if free else linear))
        if info.primal_solution_status != 2:  # the values would be garbage
            break
        coef, kept = model.coef.value, model.chosen(known)
        points.append(coef)
        exact = None if problem.shortfall(kept).any() else solve_kept(problem, kept, known.floor)
        if exact is not None:
            points.append(exact[0])
            best = min(best, (problem.objective(*exact), *exact), key=lambda found: found[0])
        if bound <= before and energy.value.sum() >= coef @ coef / 2 - _STUCK:
            break
    return Found(best[1], best[2], problem.margins(*best[1:]) >= 1 - 1e-9, bound)
