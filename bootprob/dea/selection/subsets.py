"""Efficiencies of all units under constant returns, for any subset of the outputs, fast."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bootprob.dea.efficiencies.weights_program import best_weights
from bootprob.dea.panel import Panel
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.rules import SelectionRules
from bootprob.runtime.arrays import Floats, Integers

__all__ = ["SubsetEfficiencies", "UnitWeights", "load_compiled"]


_EXACT = 1e-9  # what a certificate may leave open


@dataclass(frozen=True)
class UnitWeights:
    """Efficiencies, and weights of inputs and outputs that attain them, on scaled data.

    Attributes
    ----------
    efficiencies : ndarray, shape (K,)
    inputs : ndarray, shape (K, N)
        α of each unit, with ``α x = 1``; N counts the inputs that anybody uses.
    outputs : ndarray, shape (K, p)
        β of each unit, for the chosen outputs in their order.
    """

    efficiencies: Floats
    inputs: Floats
    outputs: Floats


class SubsetEfficiencies:
    """Input-oriented efficiencies under constant returns, (DEA(k)) of the thesis, of subsets.

    With one input and ``r = y / x`` all units share the polytope ``{γ ≥ 0, R γ ≤ 1}``, whose
    vertices a simplex method of its own visits (`dea.slack_simplex_compiled`): for 182 units
    0.03 ms with 3 outputs, 3 ms with 10, where a linear program for each unit takes half a second.

    Parameters
    ----------
    panel : Panel
        Every unit uses something.

    Attributes
    ----------
    inputs : ndarray, shape (N, K)
        Scaled: ones where there is one input, else the largest of each unit is 1. Inputs that
        nobody uses are left out: they say nothing.
    outputs : ndarray, shape (M, K)
        Scaled by the unit's size, then so that the largest of each output is 1.
    output_scale : ndarray, shape (M,)
        What the outputs were divided by, besides `unit_scale`.
    input_scale : ndarray, shape (N,)
        What the inputs were divided by, besides `unit_scale`.
    unit_scale : ndarray, shape (K,)
        Inputs and outputs of a unit were divided by it, which constant returns allow.

    Raises
    ------
    PanelError
        A unit uses nothing.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> from bootprob.dea import SubsetEfficiencies
    >>> toy = Panel.of([1, 1, 1, 1], [[85, 20, 80], [95, 40, 60], [90, 60, 40], [100, 80, 20]])
    >>> SubsetEfficiencies(toy).of([0, 2]).round(3)
    array([1.   , 1.   , 0.927, 1.   ])
    """

    compiled = True

    def __init__(self, panel: Panel) -> None:
        panel.require_activity(outputs=False)
        self.used = panel.inputs.any(axis=0)
        inputs = panel.inputs[:, self.used]
        self.input_scale = inputs.max(axis=0)
        scaled = inputs / self.input_scale
        self.unit_scale = scaled.max(axis=1)
        outputs = panel.outputs / self.unit_scale[:, None]
        most = outputs.max(axis=0)
        self.output_scale = np.where(most > 0, most, 1.0)
        self.inputs = np.ascontiguousarray((scaled / self.unit_scale[:, None]).T)
        self.outputs = np.ascontiguousarray((outputs / self.output_scale).T)
        self._evenly = np.full(panel.n_units, 1 / panel.n_units)
        self._ones = np.ones(panel.n_units)

    def quick(self, chosen: Sequence[int]) -> Floats:
        """As `of`, without the check of the result.

        Parameters
        ----------
        chosen : sequence of int
            Positions of outputs.

        Returns
        -------
        ndarray, shape (K,)

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SubsetEfficiencies
        >>> evaluator = SubsetEfficiencies(toy)
        >>> bool(np.allclose(evaluator.quick([0, 2]), evaluator.of([0, 2])))
        True
        """
        efficiencies, tight = np.empty(self.outputs.shape[1]), np.empty((0, 0), dtype=np.int64)
        if not self._settle(chosen, efficiencies, tight):
            return self.of(chosen)
        return efficiencies

    def of(self, chosen: Sequence[int]) -> Floats:
        """Efficiencies, checked.

        With one input each lies between a feasible solution and a dual one less than 1e-9 apart,
        both computed anew; where they are not, and with several inputs, they are those of HiGHS.

        Parameters
        ----------
        chosen : sequence of int
            Positions of outputs.

        Returns
        -------
        ndarray, shape (K,)

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SubsetEfficiencies
        >>> evaluator = SubsetEfficiencies(toy)
        >>> evaluator.of([0]).round(3), evaluator.of([0, 2]).round(3)
        (array([1. , 0.8, 0.2]), array([1.   , 0.966, 1.   ]))
        """
        return np.minimum(self.weights(chosen).efficiencies, 1.0)

    def weights(self, chosen: Sequence[int]) -> UnitWeights:
        """Efficiencies as `of` has them, and the weights.

        Parameters
        ----------
        chosen : sequence of int
            Positions of outputs.

        Returns
        -------
        UnitWeights

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SubsetEfficiencies
        >>> found = SubsetEfficiencies(toy).weights([0, 2])
        >>> found.outputs.shape, found.efficiencies.round(3)
        ((3, 2), array([1.   , 0.966, 1.   ]))
        """
        n, p = self.outputs.shape[1], len(chosen)
        ratios = np.ascontiguousarray(self.outputs[list(chosen)].T)
        weights = UnitWeights(np.zeros(n), np.zeros((n, len(self.inputs))), np.zeros((n, p)))
        weights.inputs[:, 0] = 1.0
        open_units = np.arange(n)
        if p == 0:
            weights.inputs[:] = 0.0
            weights.inputs[np.arange(n), self.inputs.argmax(axis=0)] = 1.0  # the largest is 1
            return weights
        if len(self.inputs) == 1:
            tight = np.zeros((n, p), dtype=np.int64)
            if self._settle(chosen, np.empty(n), tight):
                weights.outputs[:], sound = _vertices(ratios, tight)
                weights.efficiencies[:] = (ratios * weights.outputs).sum(axis=1)
                open_units = np.flatnonzero(~sound)
        for unit in open_units:
            solved = best_weights(self.inputs.T, ratios, int(unit))
            assert solved is not None  # weights of 0 are feasible
            weights.efficiencies[unit], weights.inputs[unit], weights.outputs[unit] = solved
        return weights

    def most(self) -> Floats:
        """Efficiencies that those under no selection exceed, shape (K,): under all outputs.

        Returns
        -------
        ndarray, shape (K,)

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> from bootprob.dea import SubsetEfficiencies
        >>> SubsetEfficiencies(toy).most().round(3)
        array([1., 1., 1.])
        """
        return self.quick(range(len(self.outputs)))

    def fill_pairs(self, first: int, pairs: Floats, deadline: float) -> bool:
        """Efficiencies under an output, and under it and each later one, both ways.

        Parameters
        ----------
        first : int
            Position of the output.
        pairs : ndarray, shape (M, M, K)
            Where they are put; 1, a bound, where pivots ran out.
        deadline : float
            On the clock of `time.perf_counter`.

        Returns
        -------
        bool
            Whether time sufficed, before the first of them.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> import numpy as np
        >>> from bootprob.dea import SubsetEfficiencies
        >>> pairs = np.ones((3, 3, 3))
        >>> SubsetEfficiencies(toy).fill_pairs(0, pairs, deadline=np.inf)
        True
        >>> pairs[0, 2].round(3)  # under the first output and the third
        array([1.   , 0.966, 1.   ])
        """
        if time.perf_counter() > deadline:
            return False
        from bootprob.dea.selection.scan_compiled import fill_pairs  # numba loads slowly

        fill_pairs(self.inputs, self.outputs, first, pairs)
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
        """The output with which others are best, if their merit then exceeds `enough`.

        Parameters
        ----------
        rest : tuple of int
            Positions of the outputs that stay.
        candidates : sequence of int
            Positions of those to try.
        objective : EfficiencyObjective
            What is to be large.
        ceiling : ndarray, shape (K,)
            Bounds of the efficiencies.
        enough : float
            Merit to exceed.
        deadline : float
            On the clock of `time.perf_counter`; candidates that it leaves out are not tried.

        Returns
        -------
        int or None
            Position of the output; None if no candidate is good enough.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> import numpy as np
        >>> from bootprob.dea import SubsetEfficiencies
        >>> from bootprob.dea.selection.objectives import EfficiencyObjective
        >>> goal = EfficiencyObjective.of("mean", toy.units)
        >>> SubsetEfficiencies(toy).best_addition((0,), [1, 2], goal, np.ones(3), -np.inf, np.inf)
        2
        """
        from bootprob.dea.efficiencies.simplex_compiled import judge, settle_units

        code, weight, rank = objective.code, objective.weight, objective.rank
        found, none = np.empty(len(weight)), np.empty((0, 0), dtype=np.int64)
        best = None
        for j in candidates:
            if time.perf_counter() > deadline:
                break
            if settle_units(
                self.inputs, self.outputs, np.array((*rest, j), dtype=np.int64), ceiling,
                code, weight, rank, enough, found, none,
            ):  # fmt: skip
                best, enough = j, float(judge(found, code, weight, rank))
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
        """Pairs of candidates with which those chosen may exceed `enough`.

        Parameters
        ----------
        chosen : tuple of int
            Positions of the outputs that stay.
        candidates : ndarray of int, shape (c,)
            None of them clashes with those chosen.
        firsts : ndarray of int
            Positions among the candidates of the first of the two; the second comes after it.
        pairs : ndarray, shape (M, M, K) or (0, 0, 0)
            Efficiencies under pairs.
        ceiling : ndarray, shape (K,)
            Bounds of the efficiencies.
        objective : EfficiencyObjective
            What is to be large.
        enough : float
            Merit to exceed.
        rules : SelectionRules
            Rules that the selection has to keep.

        Returns
        -------
        list of (int, int)
            The best one and those whose pivots ran out, which may be better.
        int
            How many were evaluated.

        Examples
        --------
        >>> from bootprob.dea import Panel
        >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
        >>> import numpy as np
        >>> from bootprob.dea import SelectionRules, SubsetEfficiencies
        >>> from bootprob.dea.selection.objectives import EfficiencyObjective
        >>> goal, rules = EfficiencyObjective.of("mean", toy.units), SelectionRules.of(toy)
        >>> evaluator, none = SubsetEfficiencies(toy), np.empty((0, 0, 0))
        >>> all_three, firsts = np.arange(3), np.arange(2)
        >>> evaluator.best_pairs((), all_three, firsts, none, np.ones(3), goal, -np.inf, rules)
        ([(0, 2)], 3)
        """
        from bootprob.dea.selection.scan_compiled import scan_last_two

        doubts = np.empty((len(firsts) * len(candidates), 2), dtype=np.int64)
        _, first, second, evaluated, n_doubts = scan_last_two(
            self.inputs, self.outputs, np.array(chosen, dtype=np.int64), candidates,
            firsts, pairs, ceiling, objective.code, objective.weight, objective.rank,
            enough, rules.rows, rules.limits, rules.clashes, doubts,
        )  # fmt: skip
        found = [(first, second)] if first >= 0 else []
        return [*found, *map(tuple, doubts[:n_doubts].tolist())], evaluated

    def _settle(self, chosen: Sequence[int], efficiencies: Floats, tight: Integers) -> bool:
        from bootprob.dea.efficiencies.simplex_compiled import (  # numba loads slowly
            LINEAR,
            settle_units,
        )

        if not len(chosen):
            efficiencies[:] = 0.0
            return True
        return bool(
            settle_units(
                self.inputs, self.outputs, np.asarray(chosen, dtype=np.int64), self._ones,
                LINEAR, self._evenly, 1, -np.inf, efficiencies, tight,
            )
        )  # fmt: skip


@cache
def load_compiled() -> None:
    """Import what is compiled, and compile it where no process has: no time limit counts that."""
    small = SubsetEfficiencies(Panel.of([1, 1], [[1, 2], [2, 1]]))
    small.most()
    small.fill_pairs(0, np.empty((2, 2, 2)), np.inf)


def _vertices(ratios: Floats, tight: Integers) -> tuple[Floats, NDArray[np.bool_]]:
    """Vertices computed anew from what is tight at them, and whether they prove their units.

    At the optimum γ of unit k, ``G γ = h`` holds for the tight rows, γ is feasible, and r_k is a
    combination ``uᵀ G`` with ``u ≥ 0``; then ``r_k γ = u h`` is the efficiency.
    """
    n, p = ratios.shape
    bounds = np.concatenate([-np.eye(p), ratios])
    right = np.concatenate([np.zeros(p), np.ones(n)])
    rows, h = bounds[tight], right[tight]
    singular = np.abs(np.linalg.det(rows)) < 1e-200
    rows[singular] = np.eye(p)
    gamma = np.linalg.solve(rows, h[:, :, None])[:, :, 0]
    dual = np.linalg.solve(rows.transpose(0, 2, 1), ratios[:, :, None])[:, :, 0]
    sound = ~singular & (gamma.min(axis=1) >= -_EXACT) & (dual.min(axis=1) >= -_EXACT)
    gamma = np.maximum(gamma, 0.0)
    sound &= (gamma @ ratios.T).max(axis=1) <= 1 + _EXACT
    sound &= np.abs((ratios * gamma).sum(axis=1) - (dual * h).sum(axis=1)) <= _EXACT
    return gamma, sound
