"""The mixed-integer program behind the Pareto front, through CVXPY.

Margin as in `pareto_margin`, binary z of (12) for each column that costs anything, and the
precedence (13) of products folded into it: all coefficients of the products that need a column
together are at most z of that column (L1; the whole of ‖A‖ is at most 1), or each of them is (L∞).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bootprob.exceptions import DataError
from bootprob.optimization.solvers import choose_solver, load_cvxpy, quiet_about_accuracy
from bootprob.optimization.started import started_scip
from bootprob.runtime.arrays import Bools
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto.margin import MarginProblem

__all__ = ["MarginCostProgram", "Solved", "check_solver"]


_RELATIVE_GAP = 1e-7
_ABSOLUTE_GAP = 1e-8  # of objectives that are about 1
_INTEGRALITY = 1e-8  # a column paid by so little less than 1 is paid
_FEASIBLE = 2  # HiGHS's kSolutionStatusFeasible


def check_solver(solver: str) -> str:
    """Name of the solver; `DataError` if it is not installed, or CVXPY is not."""
    try:
        return choose_solver(solver)
    except DataError as error:
        message = str(error).replace("This method", "ParetoSVC")
        raise DataError(message) from None


@dataclass(frozen=True)
class Solved:
    """What a solver came back with.

    Attributes
    ----------
    paid : ndarray of bool, shape (p,), or None
        Columns with z = 1, and the free ones; None if it has found no solution.
    bound : float
        No solution has a larger objective.
    proven : bool
        Whether the solver says that its solution is the best.
    """

    paid: Bools | None
    bound: float
    proven: bool


class MarginCostProgram:
    """``max w_m θ / unit − w_c cost / total`` subject to ``cost ≤ cap``, for any weights and cap.

    Parameters
    ----------
    needs : ndarray of bool, shape (N, p)
        Which columns each feature is of.
    unit : float
        Of margins; positive.
    solver : {"HIGHS", "SCIP"}

    Attributes
    ----------
    free : ndarray of bool, shape (p,)
        Columns that cost nothing.
    total : float
        What all columns cost together.
    """

    def __init__(
        self,
        problem: MarginProblem,
        needs: Bools,
        costs: FeatureCosts,
        unit: float,
        solver: str,
    ) -> None:
        self.free = free_columns(costs)
        self.total = costs.total(range(needs.shape[1]))
        self._unit, self._solver = unit, solver
        self._priced = np.flatnonzero(~self.free)
        self._build(problem, needs, costs)

    def _build(self, problem: MarginProblem, needs: Bools, costs: FeatureCosts) -> None:
        cp = load_cvxpy()
        matrix, right = problem.at_most
        lower, upper = problem.limits.T
        low, high = np.isfinite(lower), np.isfinite(upper)
        values = cp.Variable(len(problem.gains))
        self._paid = cp.Variable(len(self._priced), boolean=True)
        coefficients, columns = self._precedence(problem, needs)
        parts = values[: 2 * problem.n_coefficients]
        constraints = [
            matrix @ values <= right,
            values[low] >= lower[low],
            values[high] <= upper[high],
            coefficients @ parts <= columns @ self._paid,
        ]
        cost = (costs.own[self._priced] / self.total) @ self._paid
        for members, shared in costs.groups:
            if shared > 0 and members.any():
                once = cp.Variable()  # at least every z of the group, hence 1 or 0 where it counts
                constraints.append(once >= self._paid[np.flatnonzero(members[self._priced])])
                constraints.append(once >= 0)
                cost = cost + (shared / self.total) * once
        self._of_margin = cp.Parameter(nonneg=True)
        self._of_cost = cp.Parameter(nonneg=True)
        self._cap = cp.Parameter()
        margin = (problem.gains / self._unit) @ values
        objective = cp.Maximize(self._of_margin * margin - self._of_cost * cost)
        self._program = cp.Problem(objective, [*constraints, cost <= self._cap])

    def _precedence(
        self, problem: MarginProblem, needs: Bools
    ) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Matrices of (13): ``first @ coefficients ≤ second @ z``."""
        uses = sparse.csr_array(needs[:, self._priced].T.astype(float))
        every = sparse.hstack([uses] * (2 * problem.n_blocks)).tocsr()
        if problem.norm == "l1":
            return every, sparse.eye_array(len(self._priced)).tocsr()
        column, coefficient = every.nonzero()
        rows = np.arange(len(column))
        ones = np.ones(len(column))
        return (
            sparse.csr_array((ones, (rows, coefficient)), shape=(len(rows), every.shape[1])),
            sparse.csr_array((ones, (rows, column)), shape=(len(rows), len(self._priced))),
        )

    def largest_margin(self, cap: float, deadline: float) -> Solved:
        """(27) for columns that cost `cap` or less, with margins as the objective and its bound.

        The deadline is on the clock of `time.perf_counter`.
        """
        self._of_margin.value, self._of_cost.value = 1.0, 0.0
        self._cap.value = cap / self.total
        solved = self._solve(deadline)
        return Solved(solved.paid, solved.bound * self._unit, solved.proven)

    def best_compromise(
        self, of_margin: float, of_cost: float, cap: float, deadline: float
    ) -> Solved:
        """(30): the largest ``of_margin · θ − of_cost · cost``, with that as the objective.

        The rest is as for `largest_margin`.
        """
        weights = np.array([of_margin * self._unit, of_cost * self.total])
        size = weights.sum()
        self._of_margin.value, self._of_cost.value = weights / size
        self._cap.value = cap / self.total
        solved = self._solve(deadline)
        return Solved(solved.paid, solved.bound * size, solved.proven)

    def _solve(self, deadline: float) -> Solved:
        seconds = deadline - time.perf_counter()
        if seconds <= 0:
            return Solved(None, np.inf, False)
        with quiet_about_accuracy():
            if self._solver == "SCIP":
                bound, found, proven = self._solve_by_scip(seconds)
            else:
                bound, found, proven = self._solve_by_highs(seconds)
        if not found or self._paid.value is None:
            return Solved(None, bound, False)
        paid = self.free.copy()
        paid[self._priced] = self._paid.value > 0.5
        return Solved(paid, bound, proven)

    def _solve_by_highs(self, seconds: float) -> tuple[float, bool, bool]:
        """Bound; whether there is a solution (out of time, CVXPY takes rubbish for one); proven."""
        options = {} if np.isinf(seconds) else {"time_limit": seconds}
        self._program.solve(
            solver="HIGHS",
            mip_rel_gap=_RELATIVE_GAP,
            mip_abs_gap=_ABSOLUTE_GAP,
            mip_feasibility_tolerance=_INTEGRALITY,
            **options,
        )
        told = self._program.solver_stats.extra_stats
        found = told.primal_solution_status == _FEASIBLE
        return -float(told.mip_dual_bound), found, self._program.status == "optimal"

    def _solve_by_scip(self, seconds: float) -> tuple[float, bool, bool]:
        options: dict[str, Any] = {
            "limits/gap": _RELATIVE_GAP,
            "limits/absgap": _ABSOLUTE_GAP,
            "numerics/feastol": _INTEGRALITY,
        }
        if np.isfinite(seconds):
            options["limits/time"] = seconds
        cp = load_cvxpy()
        solver = started_scip()  # which also keeps its model after a failure
        try:
            self._program.solve(solver=solver, scip_params=options)
            found = True
        except cp.SolverError:
            if solver.model is None:
                raise
            found = False
        status = solver.model.getStatus()
        if status == "userinterrupt":
            raise KeyboardInterrupt
        # Where the gap asked for is reached, CVXPY says the same as out of time.
        return -float(solver.model.getDualbound()), found, status in ("optimal", "gaplimit")


def free_columns(costs: FeatureCosts) -> Bools:
    """Columns that cost nothing, by themselves or with others, shape (p,)."""
    free = costs.own == 0
    for members, shared in costs.groups:
        if shared > 0:
            free &= ~members
    return free
