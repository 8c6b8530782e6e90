"""Efficiencies of all units where the weights of the outputs have bounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from bootprob.dea.efficiencies.weights_program import best_weights
from bootprob.dea.panel import Panel
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.rules import SelectionRules
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.runtime.arrays import Floats, Integers

__all__ = ["INFEASIBLE", "BoundedEfficiencies", "Evaluator"]


INFEASIBLE = -1e6
"""Of all units, where some unit has no weights within the bounds: worse than any efficiency, and
finite, so that weights of 0 and sums of pairs leave it what it is."""

_ROUNDING = 1e-9  # relative, of bounds that free weights keep
_KEPT = 4096  # selections whose efficiencies are kept


class BoundedEfficiencies:
    """As `SubsetEfficiencies`, with bounds on the weights of chosen outputs, (5.7′).

    With one input only units whose best weights break a bound need a linear program. With bounds
    below, more outputs may be less efficient than fewer, or allow no weights at all.

    Attributes
    ----------
    inputs : ndarray, shape (N, K)
    outputs : ndarray, shape (M, K)
        Scaled as those of `SubsetEfficiencies`.
    lower, upper : ndarray, shape (K, M)
        For the scaled data.
    """

    compiled = False

    def __init__(self, panel: Panel, bounds: WeightBounds) -> None:
        self._free = SubsetEfficiencies(panel)
        self.used, self.inputs, self.outputs = (
            self._free.used, self._free.inputs, self._free.outputs
        )  # fmt: skip
        self.lower, self.upper = bounds.scaled(self._free)
        self._bounded = bounds.bounded
        self._kept = lru_cache(maxsize=_KEPT)(self._solve)

    def quick(self, chosen: Sequence[int]) -> Floats:
        """As `of`."""
        return self._kept(tuple(sorted(chosen))).copy()

    def of(self, chosen: Sequence[int]) -> Floats:
        """Efficiencies, those of HiGHS where bounds count; `INFEASIBLE` where a unit has none."""
        return self.quick(chosen)

    def most(self) -> Floats:
        """Efficiencies that those under no selection exceed, shape (K,): all, with weights ≤ U."""
        return self._most.copy()

    @cached_property
    def _most(self) -> Floats:
        everything = tuple(range(len(self.outputs)))
        return self._efficiencies(everything, np.zeros_like(self.lower))

    def fill_pairs(self, first: int, pairs: Floats, deadline: float) -> bool:
        """As `SubsetEfficiencies.fill_pairs`; returns whether time sufficed for all."""
        pairs[first, first] = self.quick((first,))
        for other in range(first + 1, len(self.outputs)):
            if time.perf_counter() > deadline:
                return False
            pairs[first, other] = pairs[other, first] = self.quick((first, other))
        return True

    def best_addition(
        self,
        rest: tuple[int, ...],
        candidates: Sequence[int],
        objective: EfficiencyObjective,
        ceiling: Floats,
        enough: float,
        deadline: float,
    ) -> int | None:
        """As `SubsetEfficiencies.best_addition`."""
        best = None
        for j in candidates:
            if time.perf_counter() > deadline:
                break
            merit = objective.merit(self.quick((*rest, j)))
            if merit > enough:
                best, enough = j, merit
        return best

    def best_pairs(
        self,
        chosen: tuple[int, ...],
        candidates: Integers,
        firsts: Integers,
        pairs: Floats,
        ceiling: Floats,
        objective: EfficiencyObjective,
        enough: float,
        rules: SelectionRules,
    ) -> tuple[list[tuple[int, int]], int]:
        """As `SubsetEfficiencies.best_pairs`, by bounds alone."""
        found = []
        for first in firsts.tolist():
            for second in range(first + 1, len(candidates)):
                pair = (int(candidates[first]), int(candidates[second]))
                every = [*chosen, *pair]
                if not rules.allows(every):
                    continue
                bound = ceiling
                if len(pairs):
                    inside = pairs[np.ix_(every, every)]
                    alone = inside[range(len(every)), range(len(every))].sum(axis=0)
                    sums = (inside.sum(axis=(0, 1)) - alone) / 2 / (len(every) - 1)
                    bound = np.minimum(ceiling, sums)
                if objective.merit(bound) > enough:
                    found.append(pair)
        return found, 0

    def _solve(self, chosen: tuple[int, ...]) -> Floats:
        if not self._bounded[list(chosen)].any():
            return self._free.of(chosen)
        return self._efficiencies(chosen, self.lower)

    def _efficiencies(self, chosen: tuple[int, ...], lower: Floats) -> Floats:
        inside = list(chosen)
        least, most = lower[:, inside], self.upper[:, inside]
        efficiencies = np.empty(self.outputs.shape[1])
        wanting = np.ones(len(efficiencies), dtype=bool)
        if len(self.inputs) == 1:
            free = self._free.weights(chosen)
            efficiencies[:] = np.minimum(free.efficiencies, 1.0)
            slack = _ROUNDING * np.maximum(free.outputs, 1.0)
            kept = (free.outputs >= least - slack) & (free.outputs <= most + slack)
            wanting = np.asarray(~kept.all(axis=1))
        for unit in np.flatnonzero(wanting):
            solved = best_weights(
                self.inputs.T, self.outputs[inside].T, int(unit), (least[unit], most[unit])
            )
            if solved is None:
                return np.full_like(efficiencies, INFEASIBLE)
            efficiencies[unit] = solved[0]
        return efficiencies


Evaluator = SubsetEfficiencies | BoundedEfficiencies
