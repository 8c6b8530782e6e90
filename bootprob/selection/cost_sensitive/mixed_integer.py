"""Problem (P1) as a mixed-integer linear program, through CVXPY, from a known solution."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.exceptions import DataError
from bootprob.optimization.solvers import (
    choose_solver,
    load_cvxpy,
    quiet_about_accuracy,
)
from bootprob.optimization.started import started_highs, started_scip
from bootprob.selection.cost_sensitive.problem import RateProblem, SeparatingHyperplane
from bootprob.selection.feature_costs import FeatureCosts

__all__ = ["choose_linear_solver", "solve_mixed_integer"]

_USUAL = 100.0  # M₂ and M₃ of the thesis
_ROUNDING = 1e-6  # to which the solvers keep constraints and bounds


@dataclass(frozen=True)
class _Model:
    problem: Any
    coef: Any
    intercept: Any
    right: Any
    chosen: Any


def choose_linear_solver(solver: str | None) -> str:
    """SCIP where it is installed, else HiGHS, or the one that is asked for; or `DataError`."""
    name = choose_solver(solver)
    if name == "GUROBI":
        raise DataError("solver is 'GUROBI'; give 'SCIP', 'HIGHS' or None.")
    return name


def solve_mixed_integer(
    problem: RateProblem,
    costs: FeatureCosts,
    start: SeparatingHyperplane,
    *,
    bound: float,
    least_size: int,
    deadline: float,
    solver: str | None = None,
    verbose: bool = False,
) -> tuple[SeparatingHyperplane | None, float]:
    """Improve a solution of (P1), and bound what any can cost.

    Parameters
    ----------
    start : SeparatingHyperplane
        Meets the constraints.
    bound : float
        What every solution costs at least.
    least_size : int
        Number of columns that every cheaper solution has at least.
    deadline : float
        On the clock of `time.perf_counter`.
    solver : {"SCIP", "HIGHS"}, optional
    verbose : bool
        Whether the solver prints its progress.

    Returns
    -------
    found : SeparatingHyperplane or None
        Checked from its own scores; None if nothing cheaper was found.
    bound : float
        Of (P1) with the M₂ and M₃ given. Where one of them is infinite, the program is solved
        with a finite one in its place, which proves nothing about the problem without: the bound
        is then the one that was given.
    """
    name = choose_linear_solver(solver)
    paid = costs.total(start.features)
    model = _model(problem, costs, start, bound, least_size)
    left = float(np.clip(deadline - time.perf_counter(), 0.01, 1e9))
    found_bound = _solved(model, name, left, verbose)
    finite = np.isfinite(problem.big_m) and np.isfinite(problem.max_coefficient)
    if finite:
        bound = max(bound, min(found_bound - _ROUNDING * max(paid, 1.0), paid))
    if model.chosen.value is None:
        return None, bound
    features = tuple(np.flatnonzero(model.chosen.value > 0.5).tolist())
    if not features or costs.total(features) >= paid:
        return None, bound
    hyperplane = problem.hyperplane(features, model.coef.value[list(features)])
    return hyperplane or problem.keeping(features, model.right.value > 0.5), bound


def _model(
    problem: RateProblem,
    costs: FeatureCosts,
    start: SeparatingHyperplane,
    bound: float,
    least_size: int,
) -> _Model:
    cp = load_cvxpy()

    n, p = problem.X.shape
    sign = np.where(problem.positive, 1.0, -1.0)
    features = list(start.features)
    scores = problem.X[:, features] @ start.coef + start.intercept
    big_m, max_coefficient = problem.big_m, problem.max_coefficient
    if np.isinf(big_m):
        big_m = max(_USUAL, 2 * float((1 - sign * scores).max()))
    if np.isinf(max_coefficient):
        max_coefficient = max(_USUAL, 2 * float(np.abs(start.coef).max()))
    coef, intercept = cp.Variable(p), cp.Variable()
    right, chosen = cp.Variable(n, boolean=True), cp.Variable(p, boolean=True)
    total = costs.own @ chosen
    constraints = [
        cp.multiply(sign, problem.X @ coef + intercept) >= 1 - big_m * (1 - right),
        problem.positive.astype(float) @ right >= problem.needed_positive,
        (~problem.positive).astype(float) @ right >= problem.needed_negative,
        coef <= max_coefficient * chosen,
        -coef <= max_coefficient * chosen,
        cp.sum(chosen) >= min(least_size, len(features)),
    ]
    chosen.value = np.isin(np.arange(p), features).astype(float)
    if costs.groups:
        paid = cp.Variable(len(costs.groups))
        for h, (members, _) in enumerate(costs.groups):
            constraints.append(paid[h] >= chosen[np.flatnonzero(members)])
        total = total + np.array([cost for _, cost in costs.groups]) @ paid
        constraints += [paid >= 0, paid <= 1]
        paid.value = np.array([float(members[features].any()) for members, _ in costs.groups])
    constraints.append(total >= bound * (1 - 1e-9))
    coef.value = np.zeros(p)
    coef.value[features] = start.coef
    intercept.value = start.intercept
    right.value = start.kept.astype(float)
    return _Model(cp.Problem(cp.Minimize(total), constraints), coef, intercept, right, chosen)


def _solved(model: _Model, name: str, seconds: float, verbose: bool) -> float:
    """Solve in place; the bound. The values are cleared where the solver has none."""
    cp = load_cvxpy()

    with quiet_about_accuracy():
        if name == "SCIP":
            scip = started_scip()
            try:
                model.problem.solve(
                    solver=scip, verbose=verbose, scip_params={"limits/time": seconds}
                )
            except cp.SolverError:
                if scip.model is None:
                    raise
                model.chosen.value = None
            status = scip.model.getStatus()
            if status == "userinterrupt":
                raise KeyboardInterrupt
            if status == "infeasible":  # by rounding: the start is feasible
                model.chosen.value = None
                return -np.inf
            return float(scip.model.getDualbound())
        try:
            model.problem.solve(
                solver=started_highs(), verbose=verbose, time_limit=seconds, mip_rel_gap=_ROUNDING
            )
        except cp.SolverError:  # it gave up
            model.chosen.value = None
            return -np.inf
    info = model.problem.solver_stats.extra_stats
    if info.primal_solution_status != 2:  # the values would be garbage
        model.chosen.value = None
    return float(info.mip_dual_bound)
