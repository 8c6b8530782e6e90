"""The constrained support vector machine without a mixed-integer solver.

Given which anchors are to be right, the rest is convex (`FixedAnchors`); given a hyperplane, the
anchors of the highest margins are the natural ones. The two take turns from several starts, and the
best result is improved by swaps of anchors.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from bootprob.constrained.anchor_sets import (
    choose_anchors,
    indispensable,
    shifted_margins,
)
from bootprob.constrained.attainable import Visited, unattainable
from bootprob.constrained.directions import search_directions
from bootprob.constrained.fixed_anchors import FixedAnchors, Hyperplanes
from bootprob.constrained.multipliers import heaviest_anchors
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["settle", "solve_heuristic"]


_SOFT_COSTS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)  # of anchors in the starts, × the median cost
_ROUNDS = 50
_SWAPPED = 2  # ends of the alternation that are improved
_DROPS = 12  # anchors kept that a round of swaps tries to give up
_FOLLOWED = 4  # best candidates of a round that alternation goes on from
_ADDS = 4  # anchors that it tries in the place of each
_PROGRESS = 1e-7  # relative
_PROVEN = 1e-6  # gap from which a solution counts as optimal
_SCREENED = 1e-4  # tolerance for what is only compared
_POLISHED = 1e-9


def solve_heuristic(
    problem: ConstrainedProblem, *, time_limit: float = 300.0, verbose: bool = False
) -> Solution:
    """Find a good hyperplane that meets the requirements, and a lower bound.

    1. Starts: machines with the anchors as further training rows of various costs.
    2. Alternation, all starts at once: keep the anchors of the highest margins that meet the
       requirements, train with those kept, and again until they stay the same. Where no start ends
       in such a choice, the search goes on from directions that a random climb finds.
    3. Swaps, from the two best ends: give up an anchor with a large multiplier, see which anchors
       then come closest to being right, and train with each of them in its place; all candidates
       of a round at once.

    The lower bound is that of the machine that keeps only what every solution has to keep; if
    that meets the requirements, it is optimal.

    Parameters
    ----------
    time_limit : float, default 300.0
        Seconds after which no further round is begun.
    verbose : bool, default False
        Report each round on standard error.

    Returns
    -------
    Solution
        Status "optimal" where the bound proves it, else "heuristic".

    Raises
    ------
    UnattainableRateError
        No hyperplane was found that meets the requirements; names the best rates that were.
    """
    search = _Search(problem, time_limit, verbose)
    found = search.run()
    if found is None:
        raise unattainable(problem, search.visited, search.try_another)
    return found


def settle(
    problem: ConstrainedProblem,
    margins: Floats,
    intercept: float,
    *,
    time_limit: float = 300.0,
    verbose: bool = False,
) -> Solution | None:
    """Alternate from one hyperplane alone, that of a problem much like this one.

    `margins` (n_anchors,) are those of its anchors, at the intercept given; the rest is as for
    `solve_heuristic`. None where the requirements were not met.
    """
    search = _Search(problem, time_limit, verbose)
    if not problem.requirements:
        return search.run()
    moved = shifted_margins(problem, margins, intercept)
    return search.run(choose_anchors(problem, np.stack([margins, moved])), improve=False)


class _Search:
    """State of one search: hyperplanes found, the best of them and the clock."""

    def __init__(self, problem: ConstrainedProblem, time_limit: float, verbose: bool) -> None:
        self.problem = problem
        self.machines = FixedAnchors(problem)
        self.started = time.perf_counter()
        self.deadline = self.started + time_limit
        self.verbose = verbose
        self.visited: Visited = []  # margins and intercepts

    def run(self, starts: Bools | None = None, *, improve: bool = True) -> Solution | None:
        needed = indispensable(self.problem)[None]
        least = self.machines.solve(needed, tol=_POLISHED)
        self.visited.append((least.margins, least.intercept))
        lower_bound = max(float(least.lower_bound[0]), 0.0)
        if np.isfinite(least.objective[0]) and self._meets(least.margins[0]):
            return self._solution(least, lower_bound)
        kept, found = self._alternate(self._starts() if starts is None else starts)
        if improve and not np.isfinite(found.objective).any():
            margins = np.concatenate([m for m, _ in self.visited])
            directions = search_directions(self.problem, margins)
            if len(directions):
                kept, found = self._alternate(choose_anchors(self.problem, directions))
        best = found.best()
        if not np.isfinite(found.objective[best]):
            return None
        chosen, solved = kept[best], found.take(np.array([best]))
        if improve:
            _, first = np.unique(kept, axis=0, return_index=True)
            order = first[np.argsort(found.objective[first], kind="stable")][:_SWAPPED]
            for start in order[np.isfinite(found.objective[order])]:
                ending, machine = self._swap(kept[start], found.take(np.array([start])))
                if machine.objective[0] < solved.objective[0]:
                    chosen, solved = ending, machine
        polished = self.machines.solve(chosen[None], tol=_POLISHED)
        better = polished.objective[0] <= solved.objective[0]
        return self._solution(polished if better else solved, lower_bound)

    def try_another(self, problem: ConstrainedProblem) -> Visited:
        """Hyperplanes visited for a problem with other requirements."""
        left = self.deadline - time.perf_counter()
        if left <= 0:
            return []
        search = _Search(problem, left, self.verbose)
        search.run(improve=False)
        return search.visited

    def _starts(self) -> Bools:
        """Choices of anchors to start from."""
        problem = self.problem
        of_requirements = np.any([r.members for r in problem.requirements], axis=0)
        soft = np.median(problem.cost) * problem.anchor_weight / problem.anchor_weight.mean()
        classes = [
            of_requirements & (problem.anchor_y > 0),
            of_requirements & (problem.anchor_y < 0),
        ]
        chosen = [members for members in classes if members.any()]
        if len(chosen) == 2:
            chosen.insert(0, of_requirements)
        rows = [np.concatenate([problem.cost, np.zeros(len(soft))])]
        rows += [
            np.concatenate([problem.cost, times * soft * members])
            for members in chosen
            for times in _SOFT_COSTS[1:]
        ]
        found = self.machines.train(np.array(rows))
        self.visited.append((found.margins, found.intercept))
        moved = np.array(
            [
                shifted_margins(problem, *each)
                for each in zip(found.margins, found.intercept, strict=True)
            ]
        )
        return choose_anchors(problem, np.concatenate([found.margins, moved]))

    def _alternate(self, kept: Bools) -> tuple[Bools, Hyperplanes]:
        """Let machines and choices of anchors take turns until nothing changes."""
        kept = np.unique(kept, axis=0)
        found = self.machines.solve(kept)
        active = np.arange(len(kept))
        for _ in range(_ROUNDS):
            self.visited.append((found.margins[active], found.intercept[active]))
            new = choose_anchors(self.problem, found.margins[active])
            changed = (new != kept[active]).any(axis=1)
            active, new = active[changed], new[changed]
            if len(active) == 0 or time.perf_counter() > self.deadline:
                break
            again = self.machines.solve(new)
            before = found.objective[active]
            # What was never right may move on without progress, within the rounds.
            with np.errstate(invalid="ignore"):
                better = again.objective < before * (1 - _PROGRESS)
            better |= ~np.isfinite(before)
            into = active[better]
            kept[into] = new[better]
            found.put(into, again.take(np.flatnonzero(better)))
            active = into
        self._report("alternation", found.objective.min())
        return kept, found

    def _swap(self, kept: Bools, found: Hyperplanes) -> tuple[Bools, Hyperplanes]:
        """Exchange anchors as long as that lowers the objective."""
        for _ in range(_ROUNDS):
            candidates = self._candidates(kept, found)
            if len(candidates) == 0 or time.perf_counter() > self.deadline:
                break
            tried = self.machines.solve(candidates, tol=_SCREENED)
            order = np.argsort(tried.objective)[:_FOLLOWED]
            if tried.objective[order[0]] >= found.objective[0] * (1 - _PROGRESS):
                break
            order = order[np.isfinite(tried.objective[order])]
            ends, machines = self._alternate(candidates[order])
            best = machines.best()
            kept, found = ends[best], machines.take(np.array([best]))
            self._report("swap", found.objective[0])
        return kept, found

    def _candidates(self, kept: Bools, found: Hyperplanes) -> Bools:
        """Choices of anchors that differ by a swap, shape (at most drops · adds, n_anchors)."""
        problem = self.problem
        dropped = heaviest_anchors(problem, found.coef[0], float(found.intercept[0]), kept)[:_DROPS]
        dropped = dropped[~indispensable(problem)[dropped]]
        if len(dropped) == 0:
            return np.zeros((0, len(kept)), dtype=bool)
        without = np.repeat(kept[None], len(dropped), axis=0)
        without[np.arange(len(dropped)), dropped] = False
        relaxed = self.machines.solve(without, tol=_SCREENED)
        candidates = []
        for drop, rest, margins in zip(dropped, without, relaxed.margins, strict=True):
            wish = np.where(rest, np.inf, margins)
            wish[drop] = -np.inf
            outside = np.argsort(-np.where(rest, -np.inf, wish))[:_ADDS]
            for add in outside[np.isfinite(wish[outside])]:
                forced = wish.copy()
                forced[add] = np.inf
                candidates.append(forced)
        if not candidates:
            return np.zeros((0, len(kept)), dtype=bool)
        chosen = np.unique(choose_anchors(problem, np.array(candidates)), axis=0)
        return chosen[[not problem.shortfall(each).any() for each in chosen]]

    def _meets(self, margins: Floats) -> bool:
        return not self.problem.shortfall(margins >= 1 - _PROVEN).any()

    def _solution(self, found: Hyperplanes, lower_bound: float) -> Solution:
        coef, intercept = found.coef[0], float(found.intercept[0])
        objective = self.problem.objective(coef, intercept)
        lower_bound = min(lower_bound, objective)
        proven = objective - lower_bound <= _PROVEN * objective
        return Solution(
            coef=coef,
            intercept=intercept,
            objective=objective,
            lower_bound=lower_bound,
            kept=self.problem.margins(coef, intercept) >= 1 - _PROVEN,
            status="optimal" if proven else "heuristic",
            seconds=time.perf_counter() - self.started,
        )

    def _report(self, what: str, objective: float) -> None:
        if self.verbose:
            seconds = time.perf_counter() - self.started
            sys.stderr.write(
                f"{what}: objective {objective:.6g}, {self.machines.n_solved} machines, "
                f"{seconds:.1f} s\n"
            )
