"""The program of one unit: for given inputs and outputs, and with their choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bootprob.dea.panel import Panel
from bootprob.dea.selection.rules import SelectionRules
from bootprob.dea.selection.selection_program import SelectionModel, SelectionProgram, Weights
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
        self._unit, self._size = unit, evaluator.unit_scale[unit]
        self._input_scale = np.ones(panel.n_inputs)
        self._input_scale[evaluator.used] = evaluator.input_scale
        self._output_scale = evaluator.output_scale
        self._program = SelectionProgram(evaluator, WeightBounds.of(panel, weight_bounds))

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
        inputs = tuple(range(len(self._input_scale)))
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
    ) -> tuple[Any, SelectionModel]:
        """FSDEA(k) as a problem of CVXPY, whose minimum is minus the efficiency, and its model.

        `size` and `n_inputs` are p and p̃; `start` holds inputs and outputs.
        """
        from bootprob.optimization.solvers import load_cvxpy  # loads torch

        cp = load_cvxpy()
        program, unit = self._program, self._unit
        model = program.model([unit], size, n_inputs, rules)
        if start is not None:
            model.start_at(program.weights([unit], *start), *start)
        loss = -cp.sum(model.efficiency)
        return cp.Problem(cp.Minimize(loss), model.constraints), model

    def _solve(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Weights | None:
        return self._program.of_unit(self._unit, inputs, outputs, self._program.most)
