"""Linear programs of many units in a row: HiGHS started from the last basis, else SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np

from bootprob.dea.efficiencies.program import Program

__all__ = ["HotHighs", "Linprog", "Raw", "Solver", "make_solver"]

_TOLERANCE = 1e-9
_SMALLEST = 1e-12  # entries that HiGHS may drop; its least


@dataclass(frozen=True)
class Raw:
    """What a solver says, unchecked.

    Attributes
    ----------
    status : {"optimal", "infeasible", "not solved"}
    values : ndarray (K + 1,)
        Of the program's columns; NaN unless optimal.
    row_duals : ndarray (rows,)
        Change of the cost by one more of the row's bound; NaN unless optimal.
    """

    status: Literal["optimal", "infeasible", "not solved"]
    values: np.ndarray
    row_duals: np.ndarray

    @classmethod
    def none(cls, status: Literal["infeasible", "not solved"], program: Program) -> Raw:
        """Without a solution."""
        columns, rows = program.matrix.shape
        return cls(status, np.full(columns, np.nan), np.full(rows, np.nan))


class Solver(Protocol):
    """Solves one program after the other."""

    def solve(self, program: Program) -> Raw:
        """Solve one."""
        ...


def make_solver() -> Solver:
    """HiGHS through highspy where it is installed, else through SciPy, which starts anew."""
    return Linprog() if find_spec("highspy") is None else HotHighs()


class HotHighs:
    """Simplex of HiGHS, each program started from the basis of the one before."""

    def __init__(self) -> None:
        import highspy

        self._module: Any = highspy
        self._highs = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
            ("small_matrix_value", _SMALLEST),
        ):
            self._highs.setOptionValue(option, value)
        self._basis: Any = None
        self._shape: tuple[int, ...] = ()

    def solve(self, program: Program) -> Raw:
        """Solve one; where that leads nowhere, once more without a basis, then by `Linprog`.

        Without presolve HiGHS sometimes gives up on a program that has no solution.
        """
        if program.matrix.shape != self._shape:
            self._basis, self._shape = None, program.matrix.shape
        started = self._basis is not None
        found = self._run(program)
        if found.status == "not solved" and started:
            self._basis = None
            found = self._run(program)
        return Linprog().solve(program) if found.status == "not solved" else found

    def _run(self, program: Program) -> Raw:
        columns, rows = program.matrix.shape
        column, row = np.nonzero(program.matrix)
        self._highs.passModel(
            columns, rows, len(row), int(self._module.MatrixFormat.kColwise),
            int(self._module.ObjSense.kMinimize), 0.0,
            program.cost, program.lower, program.upper, program.row_lower, program.row_upper,
            np.searchsorted(column, np.arange(columns)).astype(np.int32), row.astype(np.int32),
            program.matrix[column, row], np.zeros(columns, dtype=np.int32),
        )  # fmt: skip
        if self._basis is not None:
            self._highs.setBasis(self._basis)
        self._highs.run()
        status, known = self._highs.getModelStatus(), self._module.HighsModelStatus
        self._basis = None
        if status == known.kInfeasible:
            return Raw.none("infeasible", program)
        if status != known.kOptimal:
            return Raw.none("not solved", program)
        self._basis = self._copied_basis()
        solution = self._highs.getSolution()
        return Raw("optimal", np.array(solution.col_value), np.array(solution.row_dual))

    def _copied_basis(self) -> Any:
        """A copy: passing a model empties HiGHS's own."""
        own, basis = self._highs.getBasis(), self._module.HighsBasis()
        basis.col_status, basis.row_status, basis.valid = own.col_status, own.row_status, True
        return basis


class Linprog:
    """HiGHS as it comes with SciPy, each program solved from nothing."""

    def solve(self, program: Program) -> Raw:
        """Solve one."""
        from scipy import optimize

        linprog: Any = optimize.linprog  # its stubs know no arrays as bounds
        equal = program.row_lower == program.row_upper
        below = np.isfinite(program.row_upper) & ~equal
        above = np.isfinite(program.row_lower) & ~equal
        rows = program.matrix.T
        found = linprog(
            program.cost,
            A_ub=np.vstack((rows[below], -rows[above])),
            b_ub=np.append(program.row_upper[below], -program.row_lower[above]),
            A_eq=rows[equal] if equal.any() else None,
            b_eq=program.row_upper[equal] if equal.any() else None,
            bounds=np.column_stack((program.lower, program.upper)),
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        if found.status:
            return Raw.none("infeasible" if found.status == 2 else "not solved", program)
        duals = np.zeros(len(rows))
        duals[below] = found.ineqlin.marginals[: below.sum()]
        duals[above] -= found.ineqlin.marginals[below.sum() :]
        duals[equal] = found.eqlin.marginals if equal.any() else 0.0
        return Raw("optimal", found.x, duals)
