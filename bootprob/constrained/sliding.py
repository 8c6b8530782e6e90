"""The sliding-β strategy, the thesis's simplest comparison."""

from __future__ import annotations

import time

import numpy as np

from bootprob.constrained.anchor_sets import reached_at_thresholds, shifted_margins
from bootprob.constrained.fixed_anchors import FixedAnchors
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.exceptions import UnattainableRateError

__all__ = ["solve_plain", "solve_sliding"]

_TOLERANCE = 1e-9


def solve_plain(problem: ConstrainedProblem) -> Solution:
    """Train the machine without requirements, SVM(C₊, C₋).

    Parameters
    ----------
    problem : ConstrainedProblem
        Its requirements are not looked at; `kept` of the solution is what is right, score 0 being
        wrong.
    """
    started = time.perf_counter()
    machines = FixedAnchors(problem)
    found = machines.solve(np.zeros((1, len(problem.anchors)), dtype=bool), tol=_TOLERANCE)
    return Solution(
        coef=found.coef[0],
        intercept=float(found.intercept[0]),
        objective=float(found.objective[0]),
        lower_bound=float(np.clip(found.lower_bound[0], 0, found.objective[0])),
        kept=found.margins[0] > _TOLERANCE,
        status="optimal",
        seconds=time.perf_counter() - started,
    )


def solve_sliding(problem: ConstrainedProblem) -> Solution:
    """Train the machine without requirements, and move its intercept until they are met.

    Thesis 2.3.1 and Algorithm 1, line 9. An anchor is right where ``y f(x) > 0``: that is what the
    rates (2.1) count, and this strategy has no margin to keep. The intercept moves no further
    than it must, to midway between two anchors' scores.

    Parameters
    ----------
    problem : ConstrainedProblem

    Returns
    -------
    Solution
        `kept` are the anchors that are right; `lower_bound` is that of the plain machine.

    Raises
    ------
    UnattainableRateError
        No threshold on this machine's score meets all requirements.
    """
    plain = solve_plain(problem)
    if not problem.shortfall(plain.kept).any():
        return plain
    margins = problem.margins(plain.coef, plain.intercept)
    moved = shifted_margins(problem, margins, plain.intercept)
    right = moved > 0
    if problem.shortfall(right).any():
        raise _unattainable(problem, plain)
    intercept = plain.intercept + float(np.mean(problem.anchor_y * (moved - margins)))
    return Solution(
        coef=plain.coef,
        intercept=intercept,
        objective=problem.objective(plain.coef, intercept),
        lower_bound=plain.lower_bound,
        kept=right,
        status="heuristic",
        seconds=plain.seconds,
    )


def _unattainable(problem: ConstrainedProblem, plain: Solution) -> UnattainableRateError:
    _, reached = reached_at_thresholds(problem, problem.anchors @ plain.coef)
    total = np.array([problem.anchor_weight[r.members].sum() for r in problem.requirements])
    required = np.array([r.required for r in problem.requirements])
    names = [r.name for r in problem.requirements]
    met = reached >= (required * (1 - _TOLERANCE))[:, None]
    best = []
    for k in range(len(names)):
        allowed = np.delete(met, k, axis=0).all(axis=0)
        best.append(reached[k, allowed].max() / total[k] if allowed.any() else None)
    asked = " and ".join(f"{n} ≥ {s:.4g}" for n, s in zip(names, required / total, strict=True))
    had = [f"{n} {b:.4g}" for n, b in zip(names, best, strict=True) if b is not None]
    others = "with the others kept, the best is " if len(names) > 1 else "the best is "
    named = next((k for k, each in enumerate(best) if each is not None), 0)
    attainable = best[named]
    return UnattainableRateError(
        f"No intercept of the plain machine gives {asked} over the anchors"
        + (f"; {others}" + ", or ".join(had) if had else "")
        + ". To go on, lower a rate, drop one, or use method='heuristic', which turns the "
        "hyperplane too.",
        rate=names[named],
        wanted=float(required[named] / total[named]),
        attainable=None if attainable is None else float(attainable),
    )
