"""The program of one unit: for given inputs and outputs, and with their choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bootprob.dea.efficiencies.weights_program import best_weights
from bootprob.dea.panel import Panel
from bootprob.dea.selection.rules import SelectionRules
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.runtime.arrays import Floats

__all__ = ["UnitProgram"]


class UnitProgram:
    """(DEA(k)) with bounds on the weights of the outputs, on scaled data.

    `unit` is a position, and `weight_bounds` are in the units of the data, see
    `WeightBounds.of`, which may refuse them.
    """

    def __init__(
        self,
        panel: Panel,
        evaluator: SubsetEfficiencies,
        unit: int,
        weight_bounds: Mapping[int | str, Any] | None,
    ) -> None:
        n = panel.n_units
        self._unit, self._size = unit, evaluator.unit_scale[unit]
        self._inputs, self._outputs = np.zeros((panel.n_inputs, n)), evaluator.outputs
        self._inputs[evaluator.used] = evaluator.inputs
        self._input_scale = np.ones(panel.n_inputs)
        self._input_scale[evaluator.used] = evaluator.input_scale
        self._output_scale = evaluator.output_scale
        bounds = WeightBounds.of(panel, weight_bounds)
        self._lower, self._upper = (ends[unit] for ends in bounds.scaled(evaluator))
        self._most = bounds.reached(evaluator)[unit]

    def efficiency(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> float | None:
        """Of the unit under inputs and outputs; None if no weights are within their bounds."""
        solved = self._solve(inputs, outputs)
        return None if solved is None else solved[0]

    def weights(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
        """α and β in the units of the data, for inputs and outputs that have some."""
        solved = self._solve(inputs, outputs)
        assert solved is not None
        _, alpha, beta = solved
        return (
            alpha / (self._input_scale[list(inputs)] * self._size),
            beta / (self._output_scale[list(outputs)] * self._size),
        )

    def drop_inputs(self, outputs: tuple[int, ...], left: int) -> tuple[int, ...]:
        """Drop the input without which the unit is most efficient, until `left` remain."""
        inputs = tuple(range(len(self._inputs)))
        while len(inputs) > left:
            rests = [tuple(i for i in inputs if i != out) for out in inputs]
            values = [self.efficiency(rest, outputs) for rest in rests]
            inputs = rests[int(np.argmax([-1.0 if v is None else v for v in values]))]
        return inputs

    def mixed_integer(
        self,
        size: int,
        n_inputs: int,
        rules: SelectionRules,
        start: tuple[tuple[int, ...], tuple[int, ...]] | None,
    ) -> tuple[Any, Any, Any]:
        """FSDEA(k) as a problem of CVXPY, whose minimum is minus the efficiency.

        `size` and `n_inputs` are p and p̃; `start` holds inputs and outputs. Returns the
        problem, and the variables z of the outputs and of the inputs.
        """
        from bootprob.optimization.solvers import load_cvxpy  # loads torch

        cp = load_cvxpy()

        n, m = self._inputs.shape[0], self._outputs.shape[0]
        alpha, beta = cp.Variable(n, nonneg=True), cp.Variable(m, nonneg=True)
        z, z_inputs = cp.Variable(m, boolean=True), cp.Variable(n, boolean=True)
        constraints = [
            self._outputs.T @ beta <= self._inputs.T @ alpha,
            self._inputs[:, self._unit] @ alpha == 1,
            beta <= cp.multiply(self._most, z),
            beta >= cp.multiply(self._lower, z),
            cp.sum(z) == size,
            alpha <= cp.multiply(self._most_input_weight(), z_inputs),
            cp.sum(z_inputs) == n_inputs,
            *rules.program(z),
        ]
        if start is not None:
            used, chosen = list(start[0]), list(start[1])
            solved = self._solve(*start)
            assert solved is not None
            _, own_alpha, own_beta = solved
            alpha.value, beta.value = np.zeros(n), np.zeros(m)
            z.value, z_inputs.value = np.zeros(m), np.zeros(n)
            alpha.value[used], beta.value[chosen] = own_alpha, own_beta
            z.value[chosen], z_inputs.value[used] = 1.0, 1.0
            alpha.value = np.minimum(alpha.value, self._most_input_weight())
            beta.value = np.minimum(beta.value, self._most)
        loss = -(self._outputs[:, self._unit] @ beta)
        return cp.Problem(cp.Minimize(loss), constraints), z, z_inputs

    def _most_input_weight(self) -> Floats:
        own = self._inputs[:, self._unit]
        produced = self._most @ self._outputs  # βᵀ y at most, of each unit
        most = np.zeros(len(own))
        for i, row in enumerate(self._inputs):
            if own[i] > 0:
                most[i] = 1 / own[i]
            elif row.any():
                most[i] = (produced[row > 0] / row[row > 0]).max()
        return most

    def _solve(
        self, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> tuple[float, Floats, Floats] | None:
        x, y = self._inputs[list(inputs)].T, self._outputs[list(outputs)].T
        if not x[self._unit].any():
            return None
        inside = list(outputs)
        return best_weights(x, y, self._unit, (self._lower[inside], self._most[inside]))
