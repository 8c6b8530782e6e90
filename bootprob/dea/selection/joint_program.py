"""Scaled data of OSDEA(p) as a mixed-integer program, its big M, and weights to start from.

The big M of (5.20) is ``E({o}) / y_o`` for each unit: no weight of output o is larger, because the
weights of the others may be dropped. With one input that is ``1 / max_j r_jo`` in ``γ = β x``. That
of (5.6) is ``1 / x_i``, and for an input that a unit does not use, what makes the constraints of
all units that use it slack.
"""

from __future__ import annotations

import numpy as np

from bootprob.dea.efficiencies.weights_program import best_weights
from bootprob.dea.panel import Panel
from bootprob.dea.selection.subsets import SubsetEfficiencies, UnitWeights
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.runtime.arrays import Floats

__all__ = ["JointProgram"]


class JointProgram:
    """Inputs and outputs of all units, scaled, and bounds of their weights.

    Attributes
    ----------
    inputs, outputs : ndarray, shape (K, N) and (K, M)
    lower : ndarray, shape (K, M)
        L.
    most : ndarray, shape (K, M)
        U or what no weight of an optimum exceeds; L where a unit does not produce: its weight adds
        nothing.
    most_inputs : ndarray, shape (K, N)
    """

    def __init__(self, panel: Panel, bounds: WeightBounds) -> None:
        free = SubsetEfficiencies(panel)
        self.inputs = np.zeros((panel.n_units, panel.n_inputs))
        self.inputs[:, free.used] = free.inputs.T
        self.outputs = free.outputs.T
        self.lower, upper = bounds.scaled(free)
        self.most = bounds.reached(free)
        self._upper = np.where(self.outputs > 0, upper, self.lower)

    @property
    def most_inputs(self) -> Floats:
        """M of (5.6), shape (K, N)."""
        produced = self.most @ self.outputs.T  # βᵀ y_j at most, for unit k and each j
        most = np.zeros_like(self.inputs)
        for i, amounts in enumerate(self.inputs.T):
            used = amounts > 0
            if used.any():
                most[:, i] = (produced[:, used] / amounts[used]).max(axis=1)
                most[used, i] = 1 / amounts[used]
        return most

    def weights(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> UnitWeights:
        """Weights of all inputs and outputs that are best for those chosen; 0 for the others.

        For those chosen all units have weights within their bounds.
        """
        used, made = list(inputs), list(outputs)
        found = UnitWeights(
            np.zeros(len(self.inputs)), np.zeros_like(self.inputs), np.zeros_like(self.outputs)
        )
        for unit in range(len(self.inputs)):
            solved = best_weights(
                self.inputs[:, used], self.outputs[:, made], unit,
                (self.lower[unit, made], self._upper[unit, made]),
            )  # fmt: skip
            assert solved is not None
            found.efficiencies[unit], found.inputs[unit, used], found.outputs[unit, made] = solved
        found.outputs[:] = np.minimum(found.outputs, self.most)
        found.inputs[:] = np.minimum(found.inputs, self.most_inputs)
        return found
