"""CVXPY's interfaces to SCIP and HiGHS, with the start that they ignore (as of CVXPY 1.9).

The solvers made here, to be passed to ``Problem.solve(solver=...)``, start from the values of the
variables of the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["started_highs", "started_scip"]


def started_scip() -> Any:
    """Make a SCIP that is started.

    The values of the auxiliary variables of second-order cones follow from the others. A start
    that is complete is offered to SCIP as it is, else SCIP is asked to complete it.

    Returns
    -------
    cvxpy.reductions.solvers.conic_solvers.scip_conif.SCIP
        After a solve, also an unsuccessful one, its ``model`` is the pyscipopt model, and
        ``start_stored`` tells whether SCIP took the start; None if there was none.
    """
    from cvxpy.reductions.solvers import utilities
    from cvxpy.reductions.solvers.conic_solvers.scip_conif import SCIP
    from cvxpy.settings import EQ_DIM, LEQ_DIM, A, B

    class StartedSCIP(SCIP):
        model: Any = None
        start_stored: bool | None = None

        def name(self) -> str:
            return "STARTED_SCIP"

        def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            data, inverse = super().apply(problem)
            data["start"] = utilities.stack_vals(problem.variables, np.nan)
            return data, inverse

        def _solve(
            self, model: Any, variables: list[Any], constraints: list[Any], data: Any, dims: Any
        ) -> dict[str, Any]:
            self.model = model
            start = np.asarray(data["start"], dtype=float)
            if np.isfinite(start).any():
                cones = dims[EQ_DIM] + dims[LEQ_DIM]
                inside = np.asarray(data[B])[cones:] - data[A].tocsr()[cones:] @ start
                values = np.concatenate([start, inside])
                complete = np.isfinite(values).all() and len(values) == len(variables)
                solution = model.createSol() if complete else model.createPartialSol()
                for variable, value in zip(variables, values, strict=False):
                    if np.isfinite(value):
                        model.setSolVal(solution, variable, float(value))
                self.start_stored = bool(model.addSol(solution))
            return super()._solve(model, variables, constraints, data, dims)

    return StartedSCIP()


def started_highs() -> Any:
    """Make a HiGHS that is started; every variable must have a value, else there is no start.

    Returns
    -------
    cvxpy.reductions.solvers.conic_solvers.highs_conif.HIGHS
    """
    import highspy
    from cvxpy.reductions.solvers import utilities
    from cvxpy.reductions.solvers.conic_solvers.highs_conif import HIGHS

    class StartedHiGHS(HIGHS):
        def name(self) -> str:
            return "STARTED_HIGHS"

        def apply(self, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            data, inverse = super().apply(problem)
            data["start"] = utilities.stack_vals(problem.variables, np.nan)
            return data, inverse

        def solve_via_data(
            self,
            data: dict[str, Any],
            warm_start: bool,
            verbose: bool,
            solver_opts: dict[str, Any],
            solver_cache: dict[str, Any] | None = None,
        ) -> Any:
            # CVXPY starts HiGHS from the last solution of the same problem, which it keeps here.
            cache = {} if solver_cache is None else solver_cache
            start = np.asarray(data["start"], dtype=float)
            if np.isfinite(start).all():
                solution = highspy.HighsSolution()
                solution.col_value = start.tolist()
                last = {"model_status": "kOptimal", "solution": solution}
                cache[self.name()] = (None, data, last)
            return super().solve_via_data(data, True, verbose, solver_opts, cache)

    return StartedHiGHS()
