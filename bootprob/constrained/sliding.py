"""The sliding-β strategy, the thesis's simplest comparison."""

from __future__ import annotations

import time

import numpy as np

from bootprob.constrained.anchor_sets import reached_at_thresholds
from bootprob.constrained.fixed_anchors import FixedAnchors
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.exceptions import UnattainableRateError

__all__ = ["slide", "solve_plain", "solve_sliding"]

_TOLERANCE = 1e-9
_PAST = 1e-6  # of the largest score: more than rounding makes of one


def solve_plain(problem: ConstrainedProblem) -> Solution:
    """Train the machine without requirements, SVM(C₊, C₋).

    `kept` of the solution is what is right, score 0 being wrong.
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
    """Slide the machine without requirements, see `slide`; `lower_bound` is that machine's."""
    return slide(problem, solve_plain(problem))


def slide(problem: ConstrainedProblem, plain: Solution) -> Solution:
    """Move a machine's intercept until the requirements are met.

    Thesis 2.3.1 and Algorithm 1, line 9. An anchor is right where ``y f(x) > 0``: that is what the
    rates (2.1) count, and this strategy has no margin to keep. The intercept moves no further
    than it must: past an anchor's score by a millionth of the largest one, or half of the way to
    the next.

    Returns
    -------
    Solution
        `kept` are the anchors that are right.

    Raises
    ------
    UnattainableRateError
        No threshold on this machine's score meets all requirements.
    """
    if not problem.shortfall(plain.kept).any():
        return plain
    scores = problem.anchors @ plain.coef
    between, reached = reached_at_thresholds(problem, scores)
    required = np.array([r.required for r in problem.requirements])
    met = (reached >= required[:, None] * (1 - _TOLERANCE)).all(axis=0)
    if not met.any():
        raise _unattainable(problem, plain)
    lower, upper = between[met].T
    past = np.minimum(_PAST * max(1.0, float(np.abs(scores).max())), (upper - lower) / 2)
    nearest = np.clip(-plain.intercept, lower + past, upper - past)
    intercept = -float(nearest[np.abs(nearest + plain.intercept).argmin()])
    return Solution(
        coef=plain.coef,
        intercept=intercept,
        objective=problem.objective(plain.coef, intercept),
        lower_bound=plain.lower_bound,
        kept=problem.margins(plain.coef, intercept) > 0,
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
