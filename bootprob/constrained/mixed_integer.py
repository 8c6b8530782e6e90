"""The exact solve by solvers of mixed-integer quadratic problems: SCIP and Gurobi."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bootprob.constrained.big_m import AnchorBounds
from bootprob.constrained.convex_model import Model, build_model
from bootprob.constrained.problem import ConstrainedProblem
from bootprob.exceptions import DataError
from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
from bootprob.optimization.started import started_scip
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["Found", "solve_by_gurobi", "solve_by_scip"]


# They solve nonlinear problems to find solutions. The start is good, and they take longer than the
# proof: 28 of 30 s on the Wisconsin instance.
_IDLE = ("mpec", "subnlp", "nlpdiving", "multistart")


@dataclass(frozen=True)
class Found:
    """What a solver came back with.

    Attributes
    ----------
    coef, intercept : ndarray of shape (p,) and float, or None
        Its best solution, unchecked; None if it has none.
    kept : ndarray of bool, shape (n_anchors,), or None
        The anchors with z = 1 in that solution.
    bound : float
        No solution better than the start has a lower objective; −inf if nothing is known, +inf if
        there is none.
    """

    coef: Floats | None
    intercept: float | None
    kept: Bools | None
    bound: float


def solve_by_scip(
    problem: ConstrainedProblem,
    known: AnchorBounds,
    start: tuple[Floats, float],
    box: tuple[Floats, Floats],
    *,
    deadline: float,
    gap: float,
    verbose: bool = False,
    parameters: dict[str, Any] | None = None,
) -> Found:
    """Branch and bound on the second-order cone model, started.

    Parameters
    ----------
    problem : ConstrainedProblem
        Reduced, so that the objective of the start is 1.
    start : tuple of ndarray and float
        w and b.
    box : tuple of ndarray
        Least and greatest w of the solutions as good as the start.
    deadline : float
        On the clock of `time.perf_counter`.
    gap : float
        Relative gap to stop at.
    verbose : bool
        Whether the solver prints its progress.
    parameters : dict, optional
        More of SCIP's parameters.
    """
    cp = load_cvxpy()

    model = build_model(problem, known, boolean=True)
    # ½ ‖w‖² ≤ energy, written out so that every variable of the model has a value to start from.
    energy = cp.Variable()
    cone = cp.SOC(energy + 0.5, cp.hstack([model.coef, energy - 0.5]))
    mixed = cp.Problem(
        cp.Minimize(energy + problem.cost @ model.slack),
        [*model.constraints, cone, model.coef >= box[0], model.coef <= box[1]],
    )
    model.start_at(problem, *start)
    energy.value = float(start[0] @ start[0]) / 2
    solver = started_scip()
    options = {
        "limits/time": max(deadline - time.perf_counter(), 0.0),
        "limits/gap": gap,
        **{f"heuristics/{name}/freq": -1 for name in _IDLE},
        **(parameters or {}),
    }
    with quiet_about_accuracy():
        try:
            mixed.solve(solver=solver, verbose=verbose, scip_params=options)
        except cp.SolverError:
            if solver.model is None:
                raise
    status = solver.model.getStatus()
    if status == "userinterrupt":
        raise KeyboardInterrupt
    bound = np.inf if status == "infeasible" else float(solver.model.getDualbound())
    return _found(model, known, mixed, bound)


def solve_by_gurobi(
    problem: ConstrainedProblem,
    known: AnchorBounds,
    start: tuple[Floats, float],
    box: tuple[Floats, Floats],
    *,
    deadline: float,
    gap: float,
    verbose: bool = False,
) -> Found:
    """Branch and bound on the quadratic model, started; the arguments are those of SCIP.

    `DataError` where the licence does not allow a problem of this size, or there is none.
    """
    cp = load_cvxpy()
    gurobipy = import_module("gurobipy")

    model = build_model(problem, known, boolean=True)
    objective = cp.sum_squares(model.coef) / 2 + problem.cost @ model.slack
    mixed = cp.Problem(
        cp.Minimize(objective),
        [*model.constraints, model.coef >= box[0], model.coef <= box[1]],
    )
    model.start_at(problem, *start)
    options = {"TimeLimit": max(deadline - time.perf_counter(), 0.0), "MIPGap": gap}
    with quiet_about_accuracy():
        try:
            mixed.solve(solver=cp.GUROBI, warm_start=True, verbose=verbose, **options)
        except (cp.SolverError, gurobipy.GurobiError) as error:
            size = mixed.size_metrics
            raise DataError(
                f"Gurobi gave up a problem of {size.num_scalar_variables} variables and "
                f"{size.num_scalar_leq_constr} constraints ({error}). The licence that comes with "
                "gurobipy is for 2,000 of either, and for 200 variables where a term is quadratic: "
                "set up a full one, or use solver='SCIP'."
            ) from error
    if mixed.status == cp.INFEASIBLE:
        return Found(None, None, None, np.inf)
    return _found(model, known, mixed, float(mixed.solver_stats.extra_stats.ObjBound))


def _found(model: Model, known: AnchorBounds, mixed: Any, bound: float) -> Found:
    coef, intercept = model.coef.value, model.intercept.value
    if mixed.status not in ("optimal", "optimal_inaccurate", "user_limit") or coef is None:
        return Found(None, None, None, bound)
    return Found(coef, float(intercept), model.chosen(known), bound)
