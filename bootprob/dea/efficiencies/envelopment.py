"""Envelopment side of one unit after the other: λ, slacks, and weights where those are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bootprob.dea.efficiencies.program import Orientation, Program, Returns, unit_program
from bootprob.dea.efficiencies.solvers import Raw, make_solver
from bootprob.dea.panel import Panel

__all__ = ["EnvelopmentSide", "Vertex"]

Status = Literal["optimal", "infeasible", "inaccurate", "not solved"]

_ROOMS = (0.0, 1e-9, 1e-8)  # a score as good as can be leaves none for rounding


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of one unit's program.

    Attributes
    ----------
    status : {"optimal", "infeasible", "inaccurate", "not solved"}
        "inaccurate": the second phase was not solved.
    score : float
        NaN unless there is a solution, as is all that follows.
    lambdas : ndarray (K,)
    input_weights, output_weights : ndarray (N,) and (M,)
    intercept : float
        The multiplier side of the very program that was solved.
    """

    status: Status
    score: float
    lambdas: np.ndarray
    input_weights: np.ndarray
    output_weights: np.ndarray
    intercept: float


class EnvelopmentSide:
    """Programs of a panel's units.

    Parameters
    ----------
    returns, orientation : str
    super_efficiency : bool
        No unit is its own peer.
    slacks : bool
        Of the solutions with the best score take one with the most slack.
    """

    def __init__(
        self,
        panel: Panel,
        returns: Returns,
        orientation: Orientation,
        super_efficiency: bool,
        slacks: bool,
    ) -> None:
        self._panel, self._returns, self._orientation = panel, returns, orientation
        self._super_efficiency, self._slacks = super_efficiency, slacks
        self._solver = make_solver()
        X, Y = panel.inputs, panel.outputs
        top_x, top_y = (np.where(top > 0, top, 1.0) for top in (X.max(axis=0), Y.max(axis=0)))
        self._worth = (Y / top_y).sum(axis=1) - (X / top_x).sum(axis=1)

    def solve(self, unit: int, peers: np.ndarray | None = None) -> Vertex:
        """Solve one unit's program.

        `peers` are the only units with λ; default all (but the unit itself, for
        super-efficiency).
        """
        X, Y = self._panel.inputs, self._panel.outputs
        (K, N), M = X.shape, Y.shape[1]
        excluded = unit if self._super_efficiency and peers is None else None
        among = np.arange(K) if peers is None else peers
        program = unit_program(
            X[among], Y[among], X[unit], Y[unit], self._returns, self._orientation, excluded
        )
        first = self._solver.solve(program)
        score, last = first.values[-1] + 0.0, first  # no -0.0
        status: Status = first.status
        if status == "optimal" and self._slacks:
            second = self._with_most_slack(program, score, self._worth[among])
            if second is None:
                status = "inaccurate"
            else:
                last = second
        lambdas = np.full(K, np.nan if np.isnan(score) else 0.0)
        lambdas[among] = np.maximum(last.values[:-1], 0.0) / program.column_unit
        duals = first.row_duals
        return Vertex(
            status, score, lambdas,
            np.maximum(-duals[:N], 0.0) / program.input_unit,
            np.maximum(duals[N : N + M], 0.0) / program.output_unit,
            duals[-1] if len(duals) > N + M else 0.0 * score,
        )  # fmt: skip

    def _with_most_slack(self, program: Program, score: float, worth: np.ndarray) -> Raw | None:
        for room in _ROOMS:
            found = self._solver.solve(program.with_most_slack(score, worth, room))
            if found.status == "optimal":
                return found
        return None
