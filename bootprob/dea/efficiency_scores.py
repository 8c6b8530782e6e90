"""Efficiencies by data envelopment analysis: all units, both sides, proved."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from bootprob.dea.efficiency_certificate import certify
from bootprob.dea.efficiency_program import (
    Orientation,
    Program,
    Returns,
    check_options,
    check_range,
    unit_program,
)
from bootprob.dea.efficiency_result import EfficiencyResult
from bootprob.dea.efficiency_solvers import Solver, make_solver
from bootprob.dea.panel import Panel
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    from bootprob.dea.panel_tables import Table

__all__ = ["as_panel", "efficiency"]

_INACCURATE = 1e-6
_ROOMS = (0.0, 1e-9, 1e-8)  # a score as good as can be leaves none for rounding


def efficiency(
    inputs: Panel | Table,
    outputs: Table | None = None,
    *,
    returns: Returns = "constant",
    orientation: Orientation = "input",
    super_efficiency: bool = False,
    slacks: bool = True,
) -> EfficiencyResult:
    """Efficiency of every unit, measured against all of them.

    Input orientation, thesis (1.1) to (1.5), DEA(k) of chapter 1, with ω = 0 for constant returns:
    max β'y + ω so that α'x = 1, β'y_j + ω ≤ α'x_j for all units j, α, β ≥ 0; its dual is min θ
    so that Σλx ≤ θx, Σλy ≥ y, λ ≥ 0. Output orientation: min α'x - ω, β'y = 1; max φ, Σλx ≤ x,
    Σλy ≥ φy. Variable returns add Σλ = 1, non-increasing Σλ ≤ 1, non-decreasing Σλ ≥ 1.

    Each unit's program is scaled by the unit's own amounts and started from the basis of the unit
    before, where highspy is installed; else SciPy solves it from nothing.

    Parameters
    ----------
    inputs : Panel, or array-like (K, N), DataFrame or Series
    outputs : array-like (K, M), DataFrame or Series, optional
        Only without a panel.
    returns : {"constant", "variable", "non-increasing", "non-decreasing"}, default "constant"
        To scale.
    orientation : {"input", "output"}, default "input"
    super_efficiency : bool, default False
        Measure every unit against the others only (Andersen and Petersen 1993), which tells
        efficient units apart. It may not exist; the status is then "infeasible".
    slacks : bool, default True
        Solve the second phase, for the largest slacks. Without it targets keep to the score alone.

    Returns
    -------
    EfficiencyResult

    Raises
    ------
    PanelError
        The data cannot be used: see `Panel.of`; or a unit's amount is above zero and less than
        1e-12 of the largest; or all its inputs are zero (all outputs: output orientation only).
    DataError
        An option is unknown.

    Warns
    -----
    ConvergenceWarning
        Some units are not solved to 1e-6; the result's `status` and `certificate` say which.

    Examples
    --------
    >>> result = efficiency([2, 4, 5], [2, 2, 5], returns="variable")
    >>> result.scores.round(3).tolist()
    [1.0, 0.5, 1.0]
    >>> result.peers["2"]
    {'1': 1.0}
    """
    panel = as_panel(inputs, outputs)
    check_options(returns, orientation)
    check_range(panel)
    panel.require_activity(outputs=orientation == "output")
    K, N, M = panel.n_units, panel.n_inputs, panel.n_outputs
    found = _Columns(K, N, M)
    solver = make_solver()
    for unit in range(K):
        program = unit_program(
            panel.inputs, panel.outputs, panel.inputs[unit], panel.outputs[unit],
            returns, orientation, unit if super_efficiency else None,
        )  # fmt: skip
        _solve_unit(found, unit, program, panel, solver, orientation, slacks)
    if not slacks:
        found.input_slacks[:] = found.output_slacks[:] = np.nan
    certificate = certify(
        panel, returns, orientation, super_efficiency, found.scores, found.lambdas,
        found.input_weights, found.output_weights, found.intercepts,
    )  # fmt: skip
    for bad in np.flatnonzero(certificate.worst > _INACCURATE):
        found.status[bad] = "inaccurate"
    _warn(panel, found.status)
    return EfficiencyResult(
        panel, returns, orientation, super_efficiency, found.scores, tuple(found.status),
        found.lambdas, found.input_slacks, found.output_slacks,
        found.lambdas @ panel.inputs, found.lambdas @ panel.outputs,
        found.input_weights, found.output_weights, found.intercepts, certificate,
    )  # fmt: skip


def as_panel(inputs: Panel | Table, outputs: Table | None) -> Panel:
    """The panel given, or one made of inputs and outputs.

    Raises
    ------
    DataError
        A panel and outputs are given, or neither.
    """
    if isinstance(inputs, Panel):
        if outputs is not None:
            raise DataError("A panel has its outputs; leave `outputs` out.")
        return inputs
    if outputs is None:
        raise DataError("outputs is missing; give inputs and outputs, or one Panel.")
    return Panel.of(inputs, outputs)


class _Columns:
    """Results while they are being filled in."""

    def __init__(self, K: int, N: int, M: int) -> None:
        def empty(*shape: int) -> np.ndarray:
            return np.full(shape, np.nan)

        self.status = ["not solved"] * K
        self.scores, self.intercepts = empty(K), empty(K)
        self.lambdas = empty(K, K)
        self.input_slacks, self.input_weights = empty(K, N), empty(K, N)
        self.output_slacks, self.output_weights = empty(K, M), empty(K, M)


def _solve_unit(
    found: _Columns,
    unit: int,
    program: Program,
    panel: Panel,
    solver: Solver,
    orientation: Orientation,
    slacks: bool,
) -> None:
    first = solver.solve(program)
    found.status[unit] = first.status
    if first.status != "optimal":
        return
    X, Y, (N, M) = panel.inputs, panel.outputs, (panel.n_inputs, panel.n_outputs)
    x, y = X[unit], Y[unit]
    score, values = first.values[-1] + 0.0, first.values  # no -0.0
    if slacks:
        scale_x, scale_y = (np.where(top > 0, top, 1.0) for top in (X.max(axis=0), Y.max(axis=0)))
        worth = (Y / scale_y).sum(axis=1) - (X / scale_x).sum(axis=1)
        for room in _ROOMS:
            second = solver.solve(program.with_most_slack(score, worth, room))
            if second.status == "optimal":
                values = second.values
                break
        else:
            found.status[unit] = "inaccurate"
    lambdas = np.maximum(values[:-1], 0.0) / program.column_unit
    duals = first.row_duals
    contracted, expanded = (score, 1.0) if orientation == "input" else (1.0, score)
    less = contracted * x - lambdas @ X
    more = lambdas @ Y - expanded * y
    found.scores[unit], found.lambdas[unit] = score, lambdas
    found.input_slacks[unit], found.output_slacks[unit] = np.maximum(less, 0), np.maximum(more, 0)
    found.input_weights[unit] = np.maximum(-duals[:N], 0.0) / program.input_unit
    found.output_weights[unit] = np.maximum(duals[N : N + M], 0.0) / program.output_unit
    found.intercepts[unit] = duals[-1] if len(duals) > N + M else 0.0


def _warn(panel: Panel, status: list[str]) -> None:
    bad = [
        unit
        for unit, one in zip(panel.units, status, strict=True)
        if one in ("inaccurate", "not solved")
    ]
    if bad:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{len(bad)} of {panel.n_units} units are not solved to {_INACCURATE:g}, {bad[0]!r} "
            "first; see status and certificate. Amounts of more similar size, or fewer columns, "
            "help.",
            ConvergenceWarning,
            stacklevel=3,
        )
