"""OSDEA(p) and FSDEA(k) as mixed-integer programs of scaled data, and their big M.

The big M of (5.20) is ``E({o}) / y_o`` for each unit: no weight of output o is larger, because the
weights of the others may be dropped. With one input that is ``1 / max_j r_jo`` in ``γ = β x``. That
of (5.6) is ``1 / x_i``, and for an input that a unit does not use, what makes the constraints of
all units that use it slack. M' of (5.30) is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.dea.efficiencies.weights_program import best_weights
from bootprob.dea.selection.rules import SelectionRules
from bootprob.dea.selection.subsets import SubsetEfficiencies, UnitWeights
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.runtime.arrays import Floats

__all__ = ["SelectionModel", "SelectionProgram"]

Chosen = tuple[int, ...]
Weights = tuple[float, Floats, Floats]


@dataclass(frozen=True)
class SelectionModel:
    """Variables of CVXPY for k units, and what constrains them.

    Attributes
    ----------
    alpha, beta : cvxpy.Variable, shape (k, N) and (k, M)
    z, z_inputs : cvxpy.Variable, shape (M,) and (N,)
        Which outputs and inputs are chosen; no `z_inputs` where all are.
    efficiency : cvxpy.Expression, shape (k,)
    constraints : list of cvxpy.Constraint
    """

    alpha: Any
    beta: Any
    z: Any
    z_inputs: Any
    efficiency: Any
    constraints: list[Any]

    def start_at(self, known: UnitWeights, inputs: Chosen, outputs: Chosen) -> None:
        """Give the variables the values of a selection and its weights."""
        self.alpha.value, self.beta.value = known.inputs, known.outputs
        for z, chosen in ((self.z, outputs), (self.z_inputs, inputs)):
            if z is not None:
                z.value = np.isin(np.arange(z.size), chosen).astype(float)

    def chosen(self) -> tuple[Chosen, Chosen]:
        """Outputs and inputs of the solution."""
        every = np.ones(self.alpha.shape[1])
        inputs = every if self.z_inputs is None else self.z_inputs.value
        outputs, used = (np.flatnonzero(z > 0.5).tolist() for z in (self.z.value, inputs))
        return tuple(outputs), tuple(used)


class SelectionProgram:
    """Inputs and outputs of all units, scaled, and bounds of their weights.

    Attributes
    ----------
    inputs, outputs : ndarray, shape (K, N) and (K, M)
    lower : ndarray, shape (K, M)
        L.
    most : ndarray, shape (K, M)
        U or what no weight of an optimum exceeds; L where a unit does not produce: its weight adds
        nothing.
    """

    def __init__(self, evaluator: SubsetEfficiencies, bounds: WeightBounds) -> None:
        self.inputs = np.zeros((evaluator.outputs.shape[1], evaluator.used.size))
        self.inputs[:, evaluator.used] = evaluator.inputs.T
        self.outputs = evaluator.outputs.T
        self.lower, upper = bounds.scaled(evaluator)
        self.most = bounds.reached(evaluator)
        self._upper = np.where(self.outputs > 0, upper, self.lower)

    def most_inputs(self, units: Sequence[int]) -> Floats:
        """M of (5.6) for these units, shape (k, N)."""
        chosen = list(units)
        produced = self.most[chosen] @ self.outputs.T  # βᵀ y_j at most, for each unit j
        most = np.zeros((len(chosen), self.inputs.shape[1]))
        for i, amounts in enumerate(self.inputs.T):
            used, own = amounts > 0, amounts[chosen]
            if used.any():
                most[:, i] = (produced[:, used] / amounts[used]).max(axis=1)
                most[own > 0, i] = 1 / own[own > 0]
        return most

    def of_unit(self, unit: int, inputs: Chosen, outputs: Chosen, most: Floats) -> Weights | None:
        """Efficiency, α and β of a unit under inputs and outputs, with β (K, M) at most that.

        None where it uses nothing of them, or no weights are within their bounds.
        """
        used, made = list(inputs), list(outputs)
        if not self.inputs[unit, used].any():
            return None
        bounds = self.lower[unit, made], most[unit, made]
        return best_weights(self.inputs[:, used], self.outputs[:, made], unit, bounds)

    def model(
        self, units: Sequence[int], size: int, n_inputs: int, rules: SelectionRules
    ) -> SelectionModel:
        """A choice of `size` outputs and `n_inputs` inputs for all these units."""
        from bootprob.optimization.solvers import load_cvxpy  # loads torch

        cp = load_cvxpy()
        chosen = list(units)
        inputs, outputs, lower = self.inputs[chosen], self.outputs[chosen], self.lower[chosen]
        (k, m), n = outputs.shape, inputs.shape[1]
        alpha, beta = cp.Variable((k, n), nonneg=True), cp.Variable((k, m), nonneg=True)
        z = cp.Variable(m, boolean=True)
        every = np.ones((k, 1))
        chosen_outputs = every @ cp.reshape(z, (1, m), order="C")
        constraints = [
            beta @ self.outputs.T <= alpha @ self.inputs.T,
            cp.sum(cp.multiply(alpha, inputs), axis=1) == 1,
            beta <= cp.multiply(self.most[chosen], chosen_outputs),
            cp.sum(z) == size,
            *rules.program(z),
        ]
        if lower.any():
            constraints.append(beta >= cp.multiply(lower, chosen_outputs))
        z_inputs = None
        if n_inputs < n:
            z_inputs = cp.Variable(n, boolean=True)
            chosen_inputs = every @ cp.reshape(z_inputs, (1, n), order="C")
            constraints += [
                alpha <= cp.multiply(self.most_inputs(chosen), chosen_inputs),
                cp.sum(z_inputs) == n_inputs,
            ]
        efficiency = cp.sum(cp.multiply(beta, outputs), axis=1)
        return SelectionModel(alpha, beta, z, z_inputs, efficiency, constraints)

    def weights(self, units: Sequence[int], inputs: Chosen, outputs: Chosen) -> UnitWeights:
        """Weights of all inputs and outputs that are best for those chosen; 0 for the others.

        For those chosen these units have weights within their bounds.
        """
        k = len(units)
        found = UnitWeights(
            np.zeros(k), np.zeros((k, self.inputs.shape[1])), np.zeros((k, self.outputs.shape[1]))
        )
        for row, unit in enumerate(units):
            solved = self.of_unit(unit, inputs, outputs, self._upper)
            assert solved is not None
            found.efficiencies[row], found.inputs[row, inputs], found.outputs[row, outputs] = solved
        found.outputs[:] = np.minimum(found.outputs, self.most[list(units)])
        found.inputs[:] = np.minimum(found.inputs, self.most_inputs(units))
        return found
