"""Links that level off: of labels some of which are wrong, or missed, whatever the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import LEVELS
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Tails, levels_off
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["asked_for", "level_off"]

_WORTH_A_LOOK = 4.0  # of the log-likelihood
_BEHIND = 7.0  # of the logarithm of the evidence: a thousandth
_LIKELY = 4.0  # of the same: links whose neighbours are looked at


def level_off(stage: Stage, straight: Found) -> None:
    """Look at links that level off, beside the best and a straight one, where labels ask for one.

    Few labels do not tell them from links of other tails, so none is looked at unless they clearly
    do. What jumps between plateaus levels off without a link: beside curves that may jump none is
    looked at, which would be too sure of where.
    """
    others = [tails for tails in stage.links() if not levels_off(tails)]
    reached = max((stage.best(tails).evidence for tails in others), default=-np.inf)
    if _levelled(stage):  # as fewer rows had it
        _spread(stage, reached)
    else:
        starts = (
            stage.add(replace(each.setting, tails=LOGIT), each.found.sites)
            for each in (stage.best(), straight)
            if not any(curve.rough for curve in each.setting.curves)
        )
        for start in dict.fromkeys(starts):
            gain, tails = asked_for(
                _left_out(stage, start),
                stage.data.label.cpu().numpy() > 0.5,
                stage.data.weight.cpu().numpy(),
            )
            if gain > _WORTH_A_LOOK:
                _add(stage, {tails: start})
                _spread(stage, reached)


def _left_out(stage: Stage, start: Found) -> Floats:
    """What the link bends of each row, without its label."""
    mean, steepness = start.found.left_out_mean, stage.steepness(start.setting)
    found = mean if steepness is None else steepness * mean
    return found.cpu().numpy()


def _spread(stage: Stage, reached: float) -> None:
    """To the neighbours of all that are likely, as long as the best of them is possible.

    The best alone, with few labels, is the one that they flatter most.
    """
    while (best := _best(stage)).evidence > reached - _BEHIND:
        tried = stage.links()
        likely = map(stage.best, _levelled(stage))
        near = {
            tails: each
            for each in likely
            if each.evidence > best.evidence - _LIKELY
            for tails in _neighbours(each.setting.tails)
            if tails not in tried
        }
        if not near:
            break
        _add(stage, near)


def _add(stage: Stage, near: Mapping[Tails, Found]) -> None:
    """The same as some with other links, and the best with each of these."""
    settings = [replace(each.setting, tails=tails) for tails, each in near.items()]
    sites = [each.found.sites for each in near.values()]
    found = stage.add_each(zip(settings, sites, strict=True))
    settled = [each for each in found if each.found.settled]
    stage.climb_each((each, [k for k in [each.setting.kernel] if k]) for each in settled)


def _best(stage: Stage) -> Found:
    return max(map(stage.best, _levelled(stage)), key=lambda each: each.evidence)


def _levelled(stage: Stage) -> list[Tails]:
    return [tails for tails in stage.links() if levels_off(tails)]


def _neighbours(tails: Tails) -> list[Tails]:
    steps = [
        range(max(0, at - 1), min(at + 2, len(LEVELS)))
        for at in (LEVELS.index(level) for level in tails[2:])
    ]
    return [(0.0, 0.0, LEVELS[i], LEVELS[j]) for i, j in product(*steps) if i or j]


def asked_for(logit: Floats, positive: Bools, weight: Floats) -> tuple[float, Tails]:
    """The link that levels off which labels would have, given logits that did not see them.

    Parameters
    ----------
    logit : ndarray, shape (n,)
        Each without the row's own label.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        How often each row counts.

    Returns
    -------
    gain : float
        Of the log-likelihood, by levelling off besides another slope and intercept.
    tails : Tails
        The nearest that is tried.
    """

    def lost(found: Floats) -> float:
        intercept, slope, short, over = found
        probability = over + (1 - short - over) * expit(intercept + slope * logit)
        told = np.where(positive, probability, 1 - probability)
        return float(-weight @ np.log(np.maximum(told, np.finfo(float).tiny)))

    anything, nothing, some = (None, None), (0.0, 0.0), (0.0, LEVELS[-1])
    straight = minimize(lost, [0.0, 1.0, 0.0, 0.0], bounds=[anything, anything, nothing, nothing])
    start = [*straight.x[:2], LEVELS[1], LEVELS[1]]
    levelled = minimize(lost, start, bounds=[anything, anything, some, some])
    short, over = (min(LEVELS, key=lambda each: abs(each - at)) for at in levelled.x[2:])
    if not (short or over):
        return 0.0, LOGIT
    return float(straight.fun - levelled.fun), (0.0, 0.0, short, over)
