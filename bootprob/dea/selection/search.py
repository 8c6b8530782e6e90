"""The best p outputs for all units: nested, by exchanges, and by branch and bound."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from bootprob.dea.selection.bounded import Evaluator
from bootprob.dea.selection.bounds import PairBounds, efficiency_ceiling
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.rules import SelectionRules
from bootprob.optimization.search_result import Found
from bootprob.runtime.arrays import Integers

__all__ = ["OutputSearch", "nested_selections"]


_MARGIN = 1e-10  # what is gained less is rounding


class OutputSearch:
    """A search for the best p outputs, and what it has found so far.

    Parameters
    ----------
    size : int
        p.
    deadline : float
        On the clock of `time.perf_counter`.
    started : float
        When the seconds of the path began.

    Attributes
    ----------
    evaluator, objective, rules, size
        As given.
    chosen : tuple of int
        The best so far, ascending; empty before there is one.
    merit : float
        Its objective, more is better; −inf before there is one.
    bound : float
        No p outputs have a greater merit.
    floor : float
        Merit that others have reached: less is of no interest to `exhaust`, and `bound` not below.
    path : list of Found
        Every selection that was the best in its time, with its merit.
    n_evaluated : int
    """

    def __init__(
        self,
        evaluator: Evaluator,
        objective: EfficiencyObjective,
        rules: SelectionRules,
        size: int,
        *,
        deadline: float = math.inf,
        started: float | None = None,
    ) -> None:
        self._started = time.perf_counter() if started is None else started
        self.evaluator, self.objective, self.rules = evaluator, objective, rules
        self.size, self._deadline = size, deadline
        self._bounds: PairBounds | None = None
        self.chosen: tuple[int, ...] = ()
        self.merit, self.path, self.n_evaluated = -math.inf, list[Found](), 0
        self.floor = -math.inf
        self._ceiling = efficiency_ceiling(evaluator)
        self.bound = objective.merit(self._ceiling)

    def nested(self) -> list[int]:
        """The nested selection of Pastor et al., see `nested_selections`."""
        return nested_selections(
            self.evaluator, self.objective, self.rules, self.size, deadline=self._deadline
        )

    def offer(self, chosen: Iterable[int]) -> bool:
        """Take an allowed selection of p outputs if it is better; return whether it is."""
        chosen = tuple(sorted(chosen))
        self.n_evaluated += 1
        merit = self.objective.merit(self.evaluator.quick(chosen))
        if merit <= self.merit + _MARGIN:
            return False
        self.chosen, self.merit = chosen, merit
        self.path.append(Found(time.perf_counter() - self._started, merit, chosen))
        self.bound = max(self.bound, merit)
        return True

    def exchange(self) -> bool:
        """Exchange one output for another while that helps; return whether time sufficed."""
        improved = True
        while improved and self.chosen:
            improved = False
            for out in self.chosen:
                rest = tuple(j for j in self.chosen if j != out)
                if time.perf_counter() > self._deadline:
                    return False
                best = self.best_addition(rest)
                if best is not None and self.offer((*rest, best)):
                    improved = True
                    break
        return True

    def best_addition(self, rest: tuple[int, ...]) -> int | None:
        """The output with which `rest`, of p − 1, is best, if better than the best so far."""
        candidates = [
            j
            for j in range(len(self.evaluator.outputs))
            if j not in rest and self.rules.allows((*rest, j))
        ]
        self.n_evaluated += len(candidates)
        return self.evaluator.best_addition(
            rest, candidates, self.objective, self._ceiling, self.merit, self._deadline
        )

    @property
    def _reached(self) -> float:
        return max(self.merit, self.floor)

    @property
    def _enough(self) -> float:
        """Bound below which nothing is worth a look."""
        return self._reached + _MARGIN

    def exhaust(
        self,
        pairs: Callable[[float], PairBounds] | None = None,
        *,
        deadline: float | None = None,
    ) -> bool:
        """Evaluate or exclude every selection; return whether time sufficed.

        Best first, over the outputs from the best alone to the worst; the last two are
        found by compiled loops. `pairs` says where the bounds by pairs come from, given a
        deadline: those of another search will do.
        """
        self._deadline = self._deadline if deadline is None else deadline
        m = len(self.evaluator.outputs)
        self.bound = max(self._reached, self.bound)
        if self.bound <= self._enough:
            return True
        if self.size == 1:
            for j in range(m):
                if time.perf_counter() > self._deadline:
                    return False
                if self.rules.allows((j,)):
                    self.offer((j,))
            self.bound = self._reached
            return True
        if self._bounds is None:
            make = pairs or partial(PairBounds, self.evaluator)
            self._bounds = make(self._deadline)
        alone = list[float]()
        for j in range(m):
            if time.perf_counter() > self._deadline:
                return False
            alone.append(self.objective.merit(self.evaluator.quick((j,))))
        order = np.argsort(np.negative(alone), kind="stable")
        serial = itertools.count()
        waiting = [(-self._node_bound((), order), next(serial), (), order)]
        while waiting:
            bound, _, chosen, candidates = waiting[0]
            if -bound <= self._enough:
                break
            if time.perf_counter() > self._deadline:
                self.bound = min(self.bound, max(self._reached, -bound))
                return False
            heapq.heappop(waiting)
            if len(chosen) == self.size - 2:
                if not self._scan(chosen, candidates):
                    self.bound = min(self.bound, max(self._reached, -bound))
                    return False
                continue
            for place, j in enumerate(candidates.tolist()):
                later = candidates[place + 1 :]
                later = later[~self.rules.clashes[j, later]]
                if len(chosen) + 1 + len(later) < self.size:
                    continue
                child = (*chosen, j)
                limit = min(-bound, self._node_bound(child, later))
                if limit > self._enough:
                    heapq.heappush(waiting, (-limit, next(serial), child, later))
                if time.perf_counter() > self._deadline:
                    self.bound = min(self.bound, max(self._reached, -bound))
                    return False
        self.bound = min(self.bound, self._reached)
        return True

    def _node_bound(self, chosen: tuple[int, ...], candidates: Integers) -> float:
        if self._bounds is None or len(chosen) + len(candidates) < self.size:
            return math.inf
        return self._bounds.of_node(self.objective, chosen, candidates, self.size, self._ceiling)

    def _scan(self, chosen: tuple[int, ...], candidates: Integers) -> bool:
        """Add two of the candidates to a prefix; return whether time sufficed."""
        assert self._bounds is not None
        starts = np.arange(len(candidates))
        # A linear program for each unit takes so long that time is to be watched more closely.
        quick = self.evaluator.compiled and len(self.evaluator.inputs) == 1 and self.size < 8
        at_once = len(starts) if quick else 1
        for start in range(0, len(starts), at_once):
            if time.perf_counter() > self._deadline:
                return False
            found, evaluated = self.evaluator.best_pairs(
                chosen, candidates, starts[start : start + at_once], self._bounds.pairs,
                self._ceiling, self.objective, self._enough, self.rules,
            )  # fmt: skip
            self.n_evaluated += evaluated
            for pair in found:
                if time.perf_counter() > self._deadline:
                    return False
                self.offer((*chosen, *pair))
        return True


def nested_selections(
    evaluator: Evaluator,
    objective: EfficiencyObjective,
    rules: SelectionRules,
    size: int,
    *,
    deadline: float = math.inf,
) -> list[int]:
    """Add the best output to those chosen before, of those with which p outputs keep the rules.

    J. T. Pastor, J. L. Ruiz, I. Sirvent, "A statistical test for nested radial DEA models",
    2002, as in section 5.3.1 of the thesis. The order is that of choice; without rules, the
    first q are the nested selection of q outputs. When time is over (on the clock of
    `time.perf_counter`), the rest is any that keeps the rules; `InfeasibleSelectionError` if no
    `size` = p outputs do.
    """
    some = rules.require(size)
    chosen: list[int] = []
    while len(chosen) < size:
        merits: list[tuple[float, float, int]] = []
        for j in range(len(evaluator.outputs)):
            if j not in chosen and time.perf_counter() <= deadline:
                efficiencies = evaluator.quick((*chosen, j))
                # Ranks are often equal, most of all at 0: then the mean decides.
                merits.append((-objective.merit(efficiencies), -efficiencies.mean(), j))
        if time.perf_counter() > deadline:
            full = rules.completion(chosen, size) or some
            return [*chosen, *(j for j in full if j not in chosen)][:size]
        for _, _, j in sorted(merits):
            if rules.trivial or rules.completion((*chosen, j), size) is not None:
                chosen.append(j)
                break
    return chosen
