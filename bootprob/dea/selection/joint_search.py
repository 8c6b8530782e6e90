"""The best p outputs for all units, with any of several choices of inputs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from bootprob.dea.panel import Panel
from bootprob.dea.selection.bounded import INFEASIBLE, BoundedEfficiencies, Evaluator
from bootprob.dea.selection.bounds import PairBounds
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.results import JointSelection, names_of
from bootprob.dea.selection.rules import InfeasibleSelectionError, SelectionRules
from bootprob.dea.selection.search import OutputSearch
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.exceptions import BootprobError, DataError
from bootprob.optimization.search_result import Found

__all__ = ["InputChoice", "JointSearch", "input_choices"]

_MOST_CHOICES = 1000


class InputChoice:
    """Inputs that are the same for all units, by position, and the efficiencies under them."""

    def __init__(self, inputs: tuple[int, ...], evaluator: Evaluator) -> None:
        self.inputs, self.evaluator = inputs, evaluator
        self._pairs: PairBounds | None = None

    def pairs(self, deadline: float) -> PairBounds:
        """Bounds by pairs of outputs, the same for all numbers of outputs."""
        if self._pairs is None or not len(self._pairs.pairs):  # time did not suffice before
            self._pairs = PairBounds(self.evaluator, deadline)
        return self._pairs


def input_choices(panel: Panel, n_inputs: int, bounds: WeightBounds) -> tuple[InputChoice, ...]:
    """All choices of p̃ inputs of which every unit uses some.

    Parameters
    ----------
    n_inputs : int
        p̃.

    Raises
    ------
    InfeasibleSelectionError
        There is none.
    DataError
        There are more than 1,000.
    PanelError
        A unit uses nothing at all.
    """
    panel.require_activity(outputs=False)
    n_choices = comb(panel.n_inputs, n_inputs)
    if n_choices > _MOST_CHOICES:
        raise DataError(
            f"There are {n_choices:,} ways to choose {n_inputs} of {panel.n_inputs} inputs, more "
            f"than {_MOST_CHOICES:,}; leave inputs out, or choose more or fewer."
        )
    found = []
    for inputs in combinations(range(panel.n_inputs), n_inputs):
        part = panel.take(inputs=inputs)
        if part.inputs.any(axis=1).all():
            free = not bounds.bounded.any()
            evaluator = SubsetEfficiencies(part) if free else BoundedEfficiencies(part, bounds)
            found.append(InputChoice(inputs, evaluator))
    if not found:
        raise InfeasibleSelectionError(
            f"Whichever {n_inputs} inputs are chosen, some unit uses none of them, and has no "
            "efficiency. Choose more inputs."
        )
    return tuple(found)


class JointSearch:
    """An `OutputSearch`, with the same arguments, for each choice of inputs; the best counts."""

    def __init__(
        self,
        choices: Sequence[InputChoice],
        objective: EfficiencyObjective,
        rules: SelectionRules,
        size: int,
        *,
        deadline: float,
        started: float,
    ) -> None:
        self.choices, self.objective, self.rules, self.size = choices, objective, rules, size
        self._deadline, self._started = deadline, started
        self.searches = [
            OutputSearch(
                choice.evaluator, objective, rules, size, deadline=deadline, started=started
            )
            for choice in choices
        ]

    @property
    def best(self) -> int:
        """Number of the choice of inputs that is the best so far."""
        return int(np.argmax([search.merit for search in self.searches]))

    @property
    def chosen(self) -> tuple[int, ...]:
        """The best outputs so far."""
        return self.searches[self.best].chosen

    @property
    def merit(self) -> float:
        """Their objective, more is better."""
        return self.searches[self.best].merit

    @property
    def feasible(self) -> bool:
        """Whether all units have weights within their bounds under them."""
        return self.merit > self._none

    @property
    def bound(self) -> float:
        """No selection has a greater merit."""
        return max(search.bound for search in self.searches)

    def bounded_by(self, limit: float) -> None:
        """Take note that no selection has a merit greater than `limit`."""
        for search in self.searches:
            search.bound = max(search.merit, min(search.bound, limit))

    def offer(self, chosen: Iterable[int]) -> None:
        """Take p allowed outputs where they are better, with each choice of inputs."""
        chosen = tuple(chosen)
        for search in self.searches:
            search.offer(chosen)

    def offer_nested(self, orders: Sequence[Sequence[int]] | None = None) -> None:
        """Take the nested selections: `orders` where they are known for each choice of inputs."""
        for number, search in enumerate(self.searches):
            search.offer(search.nested() if orders is None else orders[number])

    def extend(self, smaller: tuple[int, ...]) -> None:
        """Try what one output more makes of p − 1."""
        for search in self.searches:
            more = search.best_addition(smaller)
            if more is not None and search.offer((*smaller, more)):
                search.exchange()

    def exchange(self) -> bool:
        """Exchange one output for another while that helps; return whether time sufficed."""
        return all(search.exchange() for search in self.searches)

    def exhaust(self, deadline: float | None = None) -> bool:
        """Evaluate or exclude every selection, the most promising inputs first.

        Returns whether time sufficed, to another deadline if one is given.
        """
        proven = True
        for number in np.argsort([-search.bound for search in self.searches], kind="stable"):
            search = self.searches[number]
            search.floor = self.merit
            proven &= search.exhaust(self.choices[number].pairs, deadline=deadline)
        return proven

    def result(
        self, panel: Panel, proven: bool, *, heuristic: bool, tolerance: float
    ) -> JointSelection:
        """What was found.

        Parameters
        ----------
        proven : bool
            Whether nothing is better.
        heuristic : bool
            Whether nobody tried to prove it.
        tolerance : float
            Merits and bounds that differ less are the same.

        Raises
        ------
        InfeasibleSelectionError
            There is no selection with weights within their bounds.
        BootprobError
            None was found.
        """
        if not self.feasible:
            raise self._nothing_found(proven)
        value, best = self.objective.value, self.searches[self.best]
        efficiencies = best.evaluator.of(best.chosen)
        merit = self.objective.merit(efficiencies)
        proven = proven or self.bound <= merit + tolerance
        inputs = self.choices[self.best].inputs
        return JointSelection(
            features=best.chosen, objective=value(merit),
            bound=value(merit if proven else max(self.bound, merit)),
            status="optimal" if proven else "heuristic" if heuristic else "time limit",
            seconds=time.perf_counter() - self._started,
            path=tuple(replace(found, objective=value(found.objective)) for found in self._path()),
            n_evaluated=sum(search.n_evaluated for search in self.searches),
            outputs=names_of(panel, best.chosen), efficiencies=efficiencies, units=panel.units,
            inputs=tuple(panel.input_names[i] for i in inputs), input_positions=inputs,
            objective_name=self.objective.name,
        )  # fmt: skip

    @property
    def _none(self) -> float:
        n = self.choices[0].evaluator.outputs.shape[1]
        return self.objective.merit(np.full(n, INFEASIBLE))

    def _path(self) -> list[Found]:
        path: list[Found] = []
        every = [found for search in self.searches for found in search.path]
        for found in sorted(every, key=lambda found: found.seconds):
            if found.objective > (path[-1].objective if path else self._none):
                path.append(found)
        return path

    def _nothing_found(self, proven: bool) -> BootprobError:
        if proven:
            return InfeasibleSelectionError(
                f"No {self.size} outputs that keep the rules have, for every unit, weights within "
                "their bounds. Widen the bounds or choose another number."
            )
        return BootprobError(
            f"No {self.size} outputs with weights within their bounds for every unit were found. "
            'Raise time_limit, use method="exact" or "program", or widen the bounds.'
        )
