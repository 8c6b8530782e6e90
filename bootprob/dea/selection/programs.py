"""OSDEA(p) as a mixed-integer program, through CVXPY, from a known selection.

For several inputs, and as a check.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bootprob.dea.panel import Panel
from bootprob.dea.selection.joint_search import JointSearch
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.selection_program import SelectionProgram
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = [
    "check_joint_solver",
    "check_linear_solver",
    "improve_by_program",
    "solve_started",
]


ROUNDING = 2e-6  # to which the solvers keep constraints and bounds


def check_linear_solver(solver: str | None) -> str:
    """HiGHS, or SCIP where it is asked for or HiGHS is not installed.

    `DataError` if what is asked for is neither, or is not installed.
    """
    from bootprob.optimization.solvers import choose_solver  # loads torch

    if solver is None:
        try:
            return choose_solver("HIGHS")
        except DataError:
            return choose_solver("SCIP")
    if isinstance(solver, str) and solver.upper() == "GUROBI":
        raise DataError(f"solver is {solver!r}; give 'HIGHS', 'SCIP' or None.")
    return choose_solver(solver)


def check_joint_solver(objective: EfficiencyObjective, solver: str | None) -> str:
    """As `check_linear_solver`; a quadratic objective needs SCIP."""
    if not objective.minimised:
        return check_linear_solver(solver)
    if solver is not None and check_linear_solver(solver) == "HIGHS":
        raise DataError("HiGHS solves no mixed-integer quadratic programs; give solver='SCIP'.")

    from bootprob.optimization.solvers import choose_solver

    return choose_solver("SCIP")


def improve_by_program(
    search: JointSearch, panel: Panel, bounds: WeightBounds, solver: str, deadline: float
) -> bool:
    """Improve a search's selection and bound by the program; return whether it is proven.

    The solver is "HIGHS" or "SCIP", the deadline on the clock of `time.perf_counter`.
    """
    if search.bound <= search.merit + ROUNDING:
        return True
    from bootprob.optimization.solvers import load_cvxpy

    cp = load_cvxpy()

    program = SelectionProgram(SubsetEfficiencies(panel), bounds)
    n_inputs = len(search.choices[0].inputs)
    model = program.model(range(panel.n_units), search.size, n_inputs, search.rules)
    known = None
    if search.feasible:
        used = search.choices[search.best].inputs
        known = program.weights(range(panel.n_units), used, search.chosen)
        model.start_at(known, used, search.chosen)
    loss, scale, more = _loss(
        search.objective, model.efficiency, None if known is None else known.efficiencies
    )
    problem = cp.Problem(cp.Minimize(loss), [*model.constraints, *more])
    left = max(deadline - time.perf_counter(), 0.01)
    bound, infeasible = solve_started(problem, model.z, solver, left)
    if model.z.value is not None:
        chosen, used = model.chosen()
        if len(chosen) == search.size and search.rules.allows(chosen):
            for choice, one in zip(search.choices, search.searches, strict=True):
                if choice.inputs == used:
                    one.offer(chosen)
    if infeasible:  # if something is known, then by rounding
        return not search.feasible
    search.bounded_by(-scale * bound + ROUNDING)
    return search.feasible and search.bound <= search.merit + 2 * ROUNDING


def solve_started(problem: Any, z: Any, solver: str, seconds: float) -> tuple[float, bool]:
    """Solve in place, from the values of the variables.

    Parameters
    ----------
    problem : cvxpy.Problem
        Minimised, without a constant term.
    z : cvxpy.Variable
        Its value is cleared where the solver has no solution.
    solver : {"HIGHS", "SCIP"}

    Returns
    -------
    bound : float
        −inf if nothing is known.
    infeasible : bool
        Whether the solver says that there is no solution.
    """
    from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
    from bootprob.optimization.started import started_highs, started_scip

    cp = load_cvxpy()
    with quiet_about_accuracy():
        if solver == "SCIP":
            scip = started_scip()
            try:
                limit = min(seconds, 1e9)
                problem.solve(solver=scip, scip_params={"limits/time": limit, "limits/gap": 0.0})
            except cp.SolverError:
                if scip.model is None:
                    raise
                z.value = None
            status = scip.model.getStatus()
            if status == "userinterrupt":
                raise KeyboardInterrupt
            if status == "infeasible":
                z.value = None
                return -np.inf, True
            return float(scip.model.getDualbound()), False
        try:
            problem.solve(
                solver=started_highs(), time_limit=min(seconds, 1e9),
                mip_rel_gap=0.0, mip_abs_gap=1e-7,
            )  # fmt: skip
        except cp.SolverError:  # it gave up
            z.value = None
            return -np.inf, False
    if problem.status in ("infeasible", "infeasible_or_unbounded"):
        z.value = None
        return -np.inf, True
    info = problem.solver_stats.extra_stats
    if info.primal_solution_status != 2:  # the values would be garbage
        z.value = None
    return float(info.mip_dual_bound), False


def _loss(
    objective: EfficiencyObjective, efficiency: Any, known: Floats | None
) -> tuple[Any, float, list[Any]]:
    """What is minimised, by how much it is to be multiplied, and constraints."""
    from bootprob.optimization.solvers import load_cvxpy

    cp = load_cvxpy()

    if objective.name in ("mean", "weighted"):
        return -(objective.weight @ efficiency), 1.0, []
    if objective.minimised:
        # ½ ‖v‖² ≤ energy, written out so that every variable has a value to start from.
        root, energy = np.sqrt(objective.weight), cp.Variable()
        if known is not None:
            energy.value = float(np.square(root * (1 - known)).sum()) / 2
        rest = cp.multiply(root, 1 - efficiency)
        return energy, 2.0, [cp.SOC(energy + 0.5, cp.hstack([rest, energy - 0.5]))]
    level = cp.Variable()
    if known is not None:
        level.value = objective.merit(known)
    if objective.rank == 1:
        return -level, 1.0, [level <= efficiency]
    # As many units as (5.26) has at or above its efficiency; (5.31) prints their complement.
    n = len(objective.weight)
    counted = cp.Variable(n, boolean=True)
    if known is not None:
        best = np.argsort(known, kind="stable")[objective.rank - 1 :]
        counted.value = np.isin(np.arange(n), best).astype(float)
    return -level, 1.0, [
        efficiency >= level - (1 - counted), cp.sum(counted) == n - objective.rank + 1, level <= 1,
    ]  # fmt: skip
