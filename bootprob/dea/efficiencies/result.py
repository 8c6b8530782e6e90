"""Efficiencies of all units with what supports them and what proves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bootprob.dea.efficiencies.certificate import Certificate
from bootprob.dea.efficiencies.program import Orientation, Returns
from bootprob.dea.panel import Panel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EfficiencyResult"]

_ONE = 1e-6  # within it a score is one, and a slack or a share of a peer is none


@dataclass(frozen=True, eq=False)
class EfficiencyResult:
    """Efficiencies of K units.

    Where several solutions have the same score, peers and slacks are those of a vertex with the
    most slack, and weights are from the inside of all that are best.

    Attributes
    ----------
    panel : Panel
        The units with what they use and make.
    returns, orientation : str
        As `efficiency` was asked.
    super_efficiency : bool
        Whether each unit was measured against the others only.
    scores : ndarray (K,)
        Input orientation: θ, at most 1, the part of the inputs that would do. Output orientation:
        φ, at least 1, how many times the outputs that could be had. Super-efficiency has no such
        limit; NaN where it does not exist.
    status : tuple of str
        "optimal"; "infeasible": without the unit itself no combination of the others reaches its
        outputs (or keeps to its inputs); "inaccurate": the certificate shows more than 1e-6;
        "not solved".
    lambdas : ndarray (K, K)
        Row: the combination of units that the unit is compared with.
    input_slacks, output_slacks : ndarray (K, N) and (K, M)
        What is still too much or too little at the score, in the data's units; NaN where they
        were not asked for. Of all solutions with that score those with the largest sum of slacks,
        each divided by the largest amount of its column.
    input_targets, output_targets : ndarray (K, N) and (K, M)
        Σλx and Σλy.
    input_weights, output_weights : ndarray (K, N) and (K, M)
        α and β of the multiplier side. Input orientation: α'x = 1 for the unit itself; output
        orientation: β'y = 1.
    intercepts : ndarray (K,)
        ω: zero for constant returns, free for variable, not above zero for non-increasing, not
        below for non-decreasing returns.
    certificate : Certificate
        Proof of each score.

    Examples
    --------
    >>> from bootprob.dea import efficiency
    >>> result = efficiency([2, 4, 4], [[2], [4], [2]])  # the third uses twice what it needs
    >>> result.scores.round(3).tolist(), result.efficient.tolist()
    ([1.0, 1.0, 0.5], [True, True, False])
    >>> result.input_targets[2].round(3).tolist()
    [2.0]
    """

    panel: Panel
    returns: Returns
    orientation: Orientation
    super_efficiency: bool
    scores: np.ndarray
    status: tuple[str, ...]
    lambdas: np.ndarray
    input_slacks: np.ndarray
    output_slacks: np.ndarray
    input_targets: np.ndarray
    output_targets: np.ndarray
    input_weights: np.ndarray
    output_weights: np.ndarray
    intercepts: np.ndarray
    certificate: Certificate

    @property
    def efficient(self) -> np.ndarray:
        """Whether no proportional improvement is left; (K,) bool.

        The score is 1 within 1e-6; of super-efficiencies, it is better than that, or infeasible.
        """
        if not self.super_efficiency:
            return np.abs(self.scores - 1.0) <= _ONE
        infeasible = np.array([status == "infeasible" for status in self.status])
        with np.errstate(invalid="ignore"):
            better = (
                self.scores >= 1.0 - _ONE
                if self.orientation == "input"
                else self.scores <= 1.0 + _ONE
            )
        return infeasible | better

    @property
    def fully_efficient(self) -> np.ndarray:
        """Whether no improvement at all is left: efficient, and without slack; (K,) bool.

        Slacks below 1e-6 of their column's largest amount are none.
        """
        slack = np.hstack((self.input_slacks, self.output_slacks))
        largest = np.hstack((self.panel.inputs.max(axis=0), self.panel.outputs.max(axis=0)))
        return self.efficient & (slack <= _ONE * np.where(largest > 0, largest, 1.0)).all(axis=1)

    @property
    def peers(self) -> dict[str, dict[str, float]]:
        """For each unit the units that it is compared with, and their λ, the largest first.

        Left out are those whose part in Σλx and Σλy is below 1e-6 in every input and output.
        """
        found: dict[str, dict[str, float]] = {}
        amounts = np.hstack((self.panel.inputs, self.panel.outputs))
        for unit, row in zip(self.panel.units, self.lambdas, strict=True):
            found[unit] = {}
            if np.isnan(row).any():
                continue
            total = row @ amounts
            share = (row[:, None] * amounts / np.where(total > 0, total, 1.0)).max(axis=1)
            for peer in sorted(np.flatnonzero(share > _ONE), key=lambda peer: -row[peer]):
                found[unit][self.panel.units[peer]] = float(row[peer])
        return found

    def to_frame(self) -> pd.DataFrame:
        """One row for each unit, one column for each result.

        Returns
        -------
        DataFrame
            score, status, peers (names, the largest λ first), then for every input and output
            "slack of ...", "target of ..." and "weight of ...", then intercept and the
            certificate's gap, primal and dual residual.

        Examples
        --------
        >>> from bootprob.dea import Panel, efficiency
        >>> panel = Panel.of([2, 5], [[2], [4]], units=["A", "B"])
        >>> efficiency(panel).to_frame()[["score", "status", "peers"]].round(3)
              score   status peers
        unit
        A       1.0  optimal     A
        B       0.8  optimal     A
        """
        import pandas as pd

        names = self.panel.input_names + self.panel.output_names
        columns: dict[str, object] = {
            "score": self.scores,
            "status": list(self.status),
            "peers": [", ".join(peers) for peers in self.peers.values()],
        }
        for what, left, right in (
            ("slack", self.input_slacks, self.output_slacks),
            ("target", self.input_targets, self.output_targets),
            ("weight", self.input_weights, self.output_weights),
        ):
            for name, column in zip(names, np.hstack((left, right)).T, strict=True):
                columns[f"{what} of {name}"] = column
        columns["intercept"] = self.intercepts
        columns["gap"] = self.certificate.gap
        columns["primal residual"] = self.certificate.primal_residual
        columns["dual residual"] = self.certificate.dual_residual
        return pd.DataFrame(columns, index=pd.Index(self.panel.units, name="unit"))

    def lambdas_frame(self) -> pd.DataFrame:
        """The λ: evaluated units in rows, those they are compared with in columns.

        Examples
        --------
        >>> from bootprob.dea import Panel, efficiency
        >>> panel = Panel.of([2, 5], [[2], [4]], units=["A", "B"])
        >>> efficiency(panel).lambdas_frame().round(3)  # B is compared with twice A
        peer    A    B
        unit
        A     1.0  0.0
        B     2.0  0.0
        """
        import pandas as pd

        units = list(self.panel.units)
        return pd.DataFrame(
            self.lambdas, index=pd.Index(units, name="unit"), columns=pd.Index(units, name="peer")
        )
