"""Efficiencies by data envelopment analysis: all units, both sides, proved."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from bootprob.dea.efficiencies.certificate import Certificate, certify
from bootprob.dea.efficiencies.envelopment import EnvelopmentSide, Vertex
from bootprob.dea.efficiencies.program import (
    Orientation,
    Returns,
    check_options,
    check_range,
)
from bootprob.dea.efficiencies.result import EfficiencyResult
from bootprob.dea.panel import Panel
from bootprob.exceptions import DataError

if TYPE_CHECKING:
    from bootprob.dea.efficiencies.batched import Proposals
    from bootprob.dea.panel_tables import Table

__all__ = ["as_panel", "efficiency"]

_INACCURATE = 1e-6
_AGREE = 1e-9
_DOUBTFUL = 1e-8  # of the batch; HiGHS may do better


def efficiency(
    inputs: Panel | Table,
    outputs: Table | None = None,
    *,
    returns: Returns = "constant",
    orientation: Orientation = "input",
    super_efficiency: bool = False,
    slacks: bool = True,
    device: str = "auto",
) -> EfficiencyResult:
    """Efficiency of every unit, measured against all of them.

    Input orientation, thesis (1.1) to (1.5), DEA(k) of chapter 1, with ω = 0 for constant returns:
    max β'y + ω so that α'x = 1, β'y_j + ω ≤ α'x_j for all units j, α, β ≥ 0; its dual is min θ
    so that Σλx ≤ θx, Σλy ≥ y, λ ≥ 0. Output orientation: min α'x - ω, β'y = 1; max φ, Σλx ≤ x,
    Σλy ≥ φy. Variable returns add Σλ = 1, non-increasing Σλ ≤ 1, non-decreasing Σλ ≥ 1.

    The multiplier side of all units is solved in one batch by an interior point. Peers and slacks
    are a vertex of the envelopment side, by HiGHS, among the few units that those weights allow;
    that is scaled by the unit's own amounts. Where the two do not prove one another to 1e-9, as
    with inputs of zero, HiGHS solves the unit's whole program: from the basis of the program
    before, where highspy is installed, else from nothing.

    Parameters
    ----------
    inputs : Panel, or array-like (K, N), DataFrame or Series
        The units; or what each of them uses.
    outputs : array-like (K, M), DataFrame or Series, optional
        Only without a panel.
    returns : {"constant", "variable", "non-increasing", "non-decreasing"}, default "constant"
        To scale.
    orientation : {"input", "output"}, default "input"
        Whether inputs are contracted or outputs expanded.
    super_efficiency : bool, default False
        Measure every unit against the others only (Andersen and Petersen 1993), which tells
        efficient units apart. It may not exist; the status is then "infeasible".
    slacks : bool, default True
        Solve the second phase, for the largest slacks. Without it targets keep to the score alone.
    device : str, default "auto"
        Of the batch: "cpu", "cuda", or CUDA where there is one.

    Returns
    -------
    EfficiencyResult

    Raises
    ------
    PanelError
        The data cannot be used: see `Panel.of`; or a unit's amount is above zero and less than
        1e-12 of the largest; or all its inputs are zero, or all its outputs (of a panel of some of
        its outputs in output orientation only).
    DataError
        An option is unknown.
    InputError
        There is no such device.

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
    known = _proposals(panel, returns, orientation, super_efficiency, device)
    side = EnvelopmentSide(panel, returns, orientation, super_efficiency, slacks)
    found = _Columns(panel, orientation)
    whole = [unit for unit in range(panel.n_units) if not found.set_proved(unit, known, side)]
    for unit in whole:
        found.set_vertex(unit, side.solve(unit))
    certificate = found.certified(returns, super_efficiency)
    doubtful = np.setdiff1d(np.flatnonzero(certificate.worst > _DOUBTFUL), whole)
    if len(doubtful):
        for unit in doubtful:
            found.set_vertex(unit, side.solve(unit))
        certificate = found.certified(returns, super_efficiency)
    if not slacks:
        found.input_slacks[:] = found.output_slacks[:] = np.nan
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
    """The panel given, or one made of inputs and outputs; `DataError` for both, or neither."""
    if isinstance(inputs, Panel):
        if outputs is not None:
            raise DataError("A panel has its outputs; leave `outputs` out.")
        return inputs
    if outputs is None:
        raise DataError("outputs is missing; give inputs and outputs, or one Panel.")
    return Panel.of(inputs, outputs)


def _proposals(
    panel: Panel, returns: Returns, orientation: Orientation, super_efficiency: bool, device: str
) -> Proposals:
    from bootprob.dea.efficiencies.batched import propose
    from bootprob_gpu import resolve_device  # torch takes its time

    return propose(panel, returns, orientation, super_efficiency, resolve_device(device))


class _Columns:
    """Results while they are being filled in."""

    def __init__(self, panel: Panel, orientation: Orientation) -> None:
        def empty(*shape: int) -> np.ndarray:
            return np.full(shape, np.nan)

        K, N, M = panel.n_units, panel.n_inputs, panel.n_outputs
        self._panel, self._orientation = panel, orientation
        self.status = ["not solved"] * K
        self.scores, self.intercepts = empty(K), empty(K)
        self.lambdas = empty(K, K)
        self.input_slacks, self.input_weights = empty(K, N), empty(K, N)
        self.output_slacks, self.output_weights = empty(K, M), empty(K, M)

    def set_proved(self, unit: int, known: Proposals, side: EnvelopmentSide) -> bool:
        """Weights as proposed, with a vertex among the units near their hyperplane.

        False, and nothing is set, if there is none, or if it has another score.
        """
        peers = np.flatnonzero(known.near[unit])
        if known.extreme[unit]:
            self.status[unit], self.scores[unit] = "optimal", 1.0
            self.lambdas[unit] = 0.0
            self.lambdas[unit, unit] = 1.0
            self.input_slacks[unit] = self.output_slacks[unit] = 0.0
        elif not (known.solved[unit] and len(peers)):
            return False
        else:
            vertex = side.solve(unit, peers)
            off = abs(vertex.score - known.scores[unit])
            if vertex.status != "optimal" or off > _AGREE * max(vertex.score, 1.0):
                return False
            self.set_vertex(unit, vertex)
        self._set_weights(unit, known)
        return True

    def set_vertex(self, unit: int, vertex: Vertex) -> None:
        """A vertex with its own weights."""
        score, lambdas = vertex.score, vertex.lambdas
        x, y = self._panel.inputs[unit], self._panel.outputs[unit]
        contracted, expanded = (score, 1.0) if self._orientation == "input" else (1.0, score)
        less = contracted * x - lambdas @ self._panel.inputs
        more = lambdas @ self._panel.outputs - expanded * y
        self.status[unit], self.scores[unit], self.lambdas[unit] = vertex.status, score, lambdas
        self.input_slacks[unit] = np.maximum(less, 0)
        self.output_slacks[unit] = np.maximum(more, 0)
        self._set_weights(unit, vertex)

    def certified(self, returns: Returns, super_efficiency: bool) -> Certificate:
        """Proof of what there is."""
        return certify(
            self._panel, returns, self._orientation, super_efficiency, self.scores, self.lambdas,
            self.input_weights, self.output_weights, self.intercepts,
        )  # fmt: skip

    def _set_weights(self, unit: int, known: Proposals | Vertex) -> None:
        if isinstance(known, Vertex):
            given = known.input_weights, known.output_weights, known.intercept
        else:
            given = (
                known.input_weights[unit], known.output_weights[unit], known.intercepts[unit]
            )  # fmt: skip
        self.input_weights[unit], self.output_weights[unit], self.intercepts[unit] = given


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
