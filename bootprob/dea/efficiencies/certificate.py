"""Proof of efficiency scores, by weak duality, from λ and weights alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bootprob.dea.efficiencies.program import Orientation, Returns
from bootprob.dea.panel import Panel

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof of each score, computed from λ and the weights as returned, not said by a solver.

    NaN where there is no score.

    Attributes
    ----------
    primal : ndarray (K,)
        Objective of the envelopment side, θ or φ.
    dual : ndarray (K,)
        Objective of the multiplier side: β'y + ω, or α'x - ω.
    gap : ndarray (K,)
        Their distance, relative to the primal objective where that is above 1.
    primal_residual : ndarray (K,)
        Largest violation of Σλx ≤ θx, Σλy ≥ φy and of the bounds on Σλ, in parts of the unit's own
        amount (times its score where that is above 1), or of the column's largest where the amount
        is zero.
    dual_residual : ndarray (K,)
        Largest violation of β'y + ω ≤ α'x over the units, after each is scaled so that its
        largest amount is the evaluated unit's own; of the normalisation; and of the sign of ω.

    Examples
    --------
    >>> from bootprob.dea import efficiency
    >>> proof = efficiency([2, 4, 4], [[2], [4], [2]]).certificate
    >>> proof.primal.round(3).tolist(), proof.dual.round(3).tolist()
    ([1.0, 1.0, 0.5], [1.0, 1.0, 0.5])
    >>> bool(proof.worst.max() < 1e-6)  # both sides agree, so neither can be improved
    True
    """

    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray
    primal_residual: np.ndarray
    dual_residual: np.ndarray

    @property
    def worst(self) -> np.ndarray:
        """Largest of gap and residuals, for each unit; (K,)."""
        return np.max((self.gap, self.primal_residual, self.dual_residual), axis=0)


def certify(
    panel: Panel,
    returns: Returns,
    orientation: Orientation,
    super_efficiency: bool,
    scores: np.ndarray,
    lambdas: np.ndarray,
    input_weights: np.ndarray,
    output_weights: np.ndarray,
    intercepts: np.ndarray,
) -> Certificate:
    """Check both sides of every unit's program in the data as given.

    Parameters
    ----------
    returns, orientation : str
    super_efficiency : bool
        λ of the unit itself must be zero, and its own row of the multiplier side does not hold.
    scores, intercepts : ndarray (K,)
    lambdas : ndarray (K, K)
    input_weights, output_weights : ndarray (K, N) and (K, M)
    """
    X, Y = panel.inputs, panel.outputs
    units = [_own_units(table) for table in (X, Y)]
    contracted, expanded = (
        (scores[:, None], 1.0) if orientation == "input" else (1.0, scores[:, None])
    )
    surplus = lambdas.sum(axis=1) - 1.0
    none = np.zeros_like(surplus)
    primal_residual = np.max(
        (
            ((lambdas @ X - contracted * X) / units[0] / np.maximum(contracted, 1.0)).max(axis=1),
            ((expanded * Y - lambdas @ Y) / units[1] / np.maximum(expanded, 1.0)).max(axis=1),
            -lambdas.min(axis=1),
            surplus if returns in ("variable", "non-increasing") else none,
            -surplus if returns in ("variable", "non-decreasing") else none,
            np.diag(lambdas) if super_efficiency else none,
        ),
        axis=0,
    )
    used, made = (input_weights * X).sum(axis=1), (output_weights * Y).sum(axis=1)
    dual = made + intercepts if orientation == "input" else used - intercepts
    excess = output_weights @ Y.T + intercepts[:, None] - input_weights @ X.T
    if super_efficiency:
        np.fill_diagonal(excess, 0.0)
    size = np.full_like(excess, 0.0 if returns == "constant" else 1.0)
    for table, unit in zip((X, Y), units, strict=True):
        for column, own in zip(table.T, unit.T, strict=True):
            np.maximum(size, column[None, :] / own[:, None], out=size)
    dual_residual = np.max(
        (
            (excess / size).max(axis=1),
            np.abs((used if orientation == "input" else made) - 1.0),
            -input_weights.min(axis=1) * units[0].max(axis=1),
            -output_weights.min(axis=1) * units[1].max(axis=1),
            np.abs(intercepts) if returns == "constant" else none,
            intercepts if returns == "non-increasing" else none,
            -intercepts if returns == "non-decreasing" else none,
        ),
        axis=0,
    )
    gap = np.abs(scores - dual) / np.maximum(np.abs(scores), 1.0)
    return Certificate(
        scores.copy(), dual, gap, np.maximum(primal_residual, 0), np.maximum(dual_residual, 0)
    )


def _own_units(table: np.ndarray) -> np.ndarray:
    """What violations are measured in: the unit's amount, else the column's largest, else 1."""
    largest = table.max(axis=0)
    return np.where(table > 0, table, np.where(largest > 0, largest, 1.0))
