"""What can be had where the rates asked for cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bootprob.constrained.anchor_sets import reached_at_thresholds
from bootprob.constrained.problem import ConstrainedProblem
from bootprob.exceptions import UnattainableRateError
from bootprob.runtime.arrays import Floats

__all__ = ["Visited", "unattainable"]

Visited = list[tuple[Floats, Floats]]

_RAISED_TRIALS = 8  # at most, for each rate
_ROUNDING = 1e-7


def unattainable(
    problem: ConstrainedProblem, visited: Visited, search: Callable[[ConstrainedProblem], Visited]
) -> UnattainableRateError:
    """Make an error that says how high each rate can be while the others are kept.

    Parameters
    ----------
    visited : list of (margins, intercepts)
        Margins (b, n_anchors) and intercepts (b,) of hyperplanes that were tried.
    search : callable
        Tries hyperplanes for another problem; empty when time is up.
    """
    best = [_best_attainable(problem, k, visited, search) for k in range(len(problem.requirements))]
    wanted = [r.required / problem.anchor_weight[r.members].sum() for r in problem.requirements]
    names = [r.name for r in problem.requirements]
    asked = " and ".join(f"{n} ≥ {w:.4g}" for n, w in zip(names, wanted, strict=True))
    had = [f"{n} {b:.4g}" for n, b in zip(names, best, strict=True) if b is not None]
    if len(names) == 1:
        message = f"No hyperplane was found with {asked} over the anchors"
        message += f"; the best found is {had[0]}" if had else ""
    else:
        message = f"No hyperplane was found with {asked} over the anchors at once"
        message += (
            "; with the others kept, the best found is " + ", or ".join(had)
            if had
            else ("; nor without any one of them")
        )
    named = next((k for k, each in enumerate(best) if each is not None), 0)
    return UnattainableRateError(
        f"{message} (a search, not a proof). To go on, lower a rate, drop one, or use "
        "kernel='rbf' with a larger gamma.",
        rate=names[named],
        wanted=wanted[named],
        attainable=best[named],
    )


def _best_attainable(
    problem: ConstrainedProblem,
    k: int,
    visited: Visited,
    search: Callable[[ConstrainedProblem], Visited],
) -> float | None:
    """Best share found for requirement k with the others kept; None if they cannot be kept.

    What was visited gives a first value; then a little more is asked for, as long as it is found.
    """
    requirement, weight = problem.requirements[k], problem.anchor_weight
    others = np.array([r.required * (1 - _ROUNDING) for r in problem.requirements])
    others[k] = 0.0

    def best_of(hyperplanes: Visited) -> float:
        best = -1.0
        for margins, intercepts in hyperplanes:
            for each, intercept in zip(margins, intercepts, strict=True):
                score = problem.anchor_y * each - intercept
                _, reached = reached_at_thresholds(problem, score)
                allowed = (reached >= others[:, None]).all(axis=0)
                best = max(best, float(reached[k, allowed].max(initial=-1.0)))
        return best

    best = best_of(visited)
    step = weight[requirement.members].min()
    for _ in range(_RAISED_TRIALS):
        aim = max(best, 0.0) + step
        if aim >= requirement.required * (1 - _ROUNDING):
            break
        best = max(best, best_of(search(problem.requiring(k, aim))))
        if best < aim * (1 - _ROUNDING):
            break
    return float(best / weight[requirement.members].sum()) if best >= 0 else None
