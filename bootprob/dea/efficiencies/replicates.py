"""Scores of the same units against many reference sets, one after the other."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from bootprob.dea.efficiencies.program import Orientation, Returns, unit_program
from bootprob.dea.efficiencies.solvers import make_solver
from bootprob.dea.panel import Panel

__all__ = ["ReferenceScores"]

_AGREE = 1e-7


class ReferenceScores:
    """Scores of a panel's units against reference sets of as many units.

    With highspy each set is passed to HiGHS once, and from unit to unit only one column and a few
    bounds change. That is scaled for the set and not for each unit; where it does not repeat the
    panel's own scores to 1e-7, and without highspy, every unit's program is solved by itself.

    Parameters
    ----------
    returns, orientation : str
    scores : ndarray (K,)
        Of the panel itself.
    """

    def __init__(
        self, panel: Panel, returns: Returns, orientation: Orientation, scores: np.ndarray
    ) -> None:
        self._panel, self._returns, self._orientation = panel, returns, orientation
        self._solver = make_solver()
        self._shared = None if find_spec("highspy") is None else _SharedHighs(returns, orientation)
        if self._shared is not None:
            repeated = self.against(panel.inputs, panel.outputs)
            if not (np.abs(repeated - scores) <= _AGREE * np.maximum(scores, 1.0)).all():
                self._shared = None

    def against(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Score (K,) of every unit of the panel against units (X, Y); NaN where none was found."""
        panel = self._panel
        found = np.full(panel.n_units, np.nan)
        if self._shared is not None:
            found = self._shared.scores(X, Y, panel.inputs, panel.outputs)
        for unit in np.flatnonzero(np.isnan(found)):
            program = unit_program(
                X, Y, panel.inputs[unit], panel.outputs[unit], self._returns, self._orientation
            )
            found[unit] = self._solver.solve(program).values[-1]
        return found


class _SharedHighs:
    """One HiGHS model for all units of a reference set."""

    def __init__(self, returns: Returns, orientation: Orientation) -> None:
        import highspy

        self._module: Any = highspy
        self._returns, self._orientation = returns, orientation
        self._highs = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("primal_feasibility_tolerance", 1e-9),
            ("dual_feasibility_tolerance", 1e-9),
            ("small_matrix_value", 1e-12),
        ):
            self._highs.setOptionValue(option, value)

    def scores(self, X: np.ndarray, Y: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Scores of (x, y); NaN where HiGHS finds none."""
        N, M = X.shape[1], Y.shape[1]
        tops = [np.where(table.max(axis=0) > 0, table.max(axis=0), 1.0) for table in (X, Y)]
        X, x, Y, y = X / tops[0], x / tops[0], Y / tops[1], y / tops[1]
        self._pass(X, Y, np.arange(N) if self._orientation == "input" else N + np.arange(M))
        size = x.max(axis=1) if self._orientation == "input" else y.max(axis=1)
        x, y = x / size[:, None], y / size[:, None]
        limits = {
            "variable": (1.0, 1.0), "non-increasing": (-np.inf, 1.0),
            "non-decreasing": (1.0, np.inf),
        }.get(self._returns)  # fmt: skip
        optimal = self._module.HighsModelStatus.kOptimal
        highs, last = self._highs, len(X)
        found = np.full(len(x), np.nan)
        for unit, (uses, makes, own) in enumerate(
            zip(x.tolist(), y.tolist(), size.tolist(), strict=True)
        ):
            inward = self._orientation == "input"
            for row, amount in enumerate(uses):
                if inward:
                    highs.changeCoeff(row, last, -amount)
                else:
                    highs.changeRowBounds(row, -np.inf, amount)
            for row, amount in enumerate(makes, start=N):
                if inward:
                    highs.changeRowBounds(row, amount, np.inf)
                else:
                    highs.changeCoeff(row, last, -amount)
            if limits is not None:
                highs.changeRowBounds(N + M, limits[0] / own, limits[1] / own)
            highs.run()
            if highs.getModelStatus() == optimal:
                found[unit] = abs(highs.getInfo().objective_function_value)
        return found

    def _pass(self, X: np.ndarray, Y: np.ndarray, scored: np.ndarray) -> None:
        K, N, M = len(X), X.shape[1], Y.shape[1]
        parts = (X, Y) if self._returns == "constant" else (X, Y, np.ones((K, 1)))
        table = np.hstack(parts)
        table = np.vstack((table / table.max(axis=1, keepdims=True), np.zeros(table.shape[1])))
        table[-1, scored] = -1.0  # stands in for what is set for each unit
        column, row = np.nonzero(table)
        cost = np.zeros(K + 1)
        cost[-1] = 1.0 if self._orientation == "input" else -1.0
        lower, upper = np.full(table.shape[1], -np.inf), np.full(table.shape[1], np.inf)
        upper[:N], lower[N : N + M] = 0.0, 0.0
        self._highs.passModel(
            K + 1, table.shape[1], len(row), int(self._module.MatrixFormat.kColwise),
            int(self._module.ObjSense.kMinimize), 0.0,
            cost, np.zeros(K + 1), np.full(K + 1, np.inf), lower, upper,
            np.searchsorted(column, np.arange(K + 1)).astype(np.int32), row.astype(np.int32),
            table[column, row], np.zeros(K + 1, dtype=np.int32),
        )  # fmt: skip
