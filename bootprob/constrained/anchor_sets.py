"""Which anchors are to be right: chosen by their margins, so that the requirements are met."""

from __future__ import annotations

import numpy as np

from bootprob.constrained.problem import ConstrainedProblem
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["choose_anchors", "indispensable", "reached_at_thresholds", "shifted_margins"]


_ROUNDING = 1e-9


def choose_anchors(problem: ConstrainedProblem, margins: Floats) -> Bools:
    """Take the anchors of the highest margins until every requirement is met, (B, n_anchors) both.

    Requirements on one class come first; one on both then fills up with whatever is left. With
    unequal weights, anchors that turn out not to be needed are given up again, lowest first.
    Margins are −inf for anchors that must not be taken, +inf for those that must; where −inf
    leaves too few, the requirements stay unmet (`ConstrainedProblem.shortfall`).
    """
    weight = problem.anchor_weight
    kept = np.isposinf(margins)
    open_ = ~np.isneginf(margins)
    for requirement in sorted(problem.requirements, key=lambda r: r.members.sum()):
        order = np.argsort(-margins, axis=1, kind="stable")
        free = requirement.members & ~kept & open_
        have = (weight * (kept & requirement.members)).sum(axis=1)
        gain = np.take_along_axis(free * weight, order, axis=1)
        before = have[:, None] + np.cumsum(gain, axis=1) - gain
        wanted = requirement.required * (1 - _ROUNDING)
        taken = np.take_along_axis(free, order, axis=1) & (before < wanted)
        chosen = np.zeros_like(kept)
        np.put_along_axis(chosen, order, taken, axis=1)
        kept |= chosen
    if np.ptp(weight) > 0 or len(problem.requirements) > 1:
        for row, values in zip(kept, margins, strict=True):
            _give_up_superfluous(problem, row, values)
    return kept


def _give_up_superfluous(problem: ConstrainedProblem, kept: Bools, margins: Floats) -> None:
    """Drop anchors in place, lowest margin first, as long as no requirement misses them."""
    weight = problem.anchor_weight
    members = np.array([r.members for r in problem.requirements])
    spare = members @ (weight * kept)
    spare -= np.array([r.required for r in problem.requirements]) * (1 - _ROUNDING)
    for j in np.argsort(margins, kind="stable"):
        cost = members[:, j] * weight[j]
        if kept[j] and not np.isposinf(margins[j]) and (spare[members[:, j]] >= weight[j]).all():
            kept[j] = False
            spare -= cost


def indispensable(problem: ConstrainedProblem) -> Bools:
    """Anchors that every solution has to keep, shape (n_anchors,).

    Without such an anchor even all the others together would not meet a requirement.
    """
    weight = problem.anchor_weight
    needed = np.zeros(len(weight), dtype=bool)
    for requirement in problem.requirements:
        spare = weight[requirement.members].sum() - requirement.required
        needed |= requirement.members & (weight > spare + _ROUNDING * max(requirement.required, 1))
    return needed


def reached_at_thresholds(problem: ConstrainedProblem, scores: Floats) -> tuple[Floats, Floats]:
    """What every threshold on a score would make of the requirements.

    Parameters
    ----------
    scores : ndarray, shape (n_anchors,)
        Without intercept.

    Returns
    -------
    between : ndarray, shape (k, 2)
        The scores that a threshold lies between: any two neighbours that are not equal up to
        rounding, and −∞ and ∞ beyond them; an anchor is positive above.
    reached : ndarray, shape (n_requirements, k)
        Weight of the members that are right.
    """
    order = np.argsort(scores)
    apart = np.diff(scores[order]) > _ROUNDING * max(1.0, float(np.abs(scores).max()))
    place = np.empty(len(scores), dtype=np.intp)
    place[order] = np.concatenate([[0], np.cumsum(apart)])
    values = scores[order]
    lower = np.concatenate([[-np.inf], values[:-1][apart], values[-1:]])
    upper = np.concatenate([values[:1], values[1:][apart], [np.inf]])
    between = np.column_stack([lower, upper])
    n_values = len(between) - 1
    positive = problem.anchor_y > 0
    reached = np.empty((len(problem.requirements), len(between)))
    for row, requirement in zip(reached, problem.requirements, strict=True):
        weight = problem.anchor_weight * requirement.members
        of_positives = np.bincount(place, weight * positive, n_values)
        of_negatives = np.bincount(place, weight * ~positive, n_values)
        # Threshold k lies above the k lowest values.
        above = np.concatenate([np.cumsum(of_positives[::-1])[::-1], [0.0]])
        below = np.concatenate([[0.0], np.cumsum(of_negatives)])
        row[:] = above + below
    return between, reached


def shifted_margins(problem: ConstrainedProblem, margins: Floats, intercept: float) -> Floats:
    """Margins after the least shift of the intercept that brings the requirements closest.

    It goes to the middle between two anchors' scores, or 1 beyond them all. Margins have the
    shape (n_anchors,), those given are at the intercept given.
    """
    score = problem.anchor_y * margins - intercept
    between, reached = reached_at_thresholds(problem, score)
    between[0, 0], between[-1, 1] = between[0, 1] - 2, between[-1, 0] + 2
    thresholds = between.mean(axis=1)
    required = np.array([r.required for r in problem.requirements])
    lack = np.maximum(required[:, None] * (1 - _ROUNDING) - reached, 0).sum(axis=0)
    closest = np.flatnonzero(lack <= lack.min() + _ROUNDING * required.sum())
    threshold = thresholds[closest[np.abs(thresholds[closest] + intercept).argmin()]]
    return problem.anchor_y * (score - threshold)
