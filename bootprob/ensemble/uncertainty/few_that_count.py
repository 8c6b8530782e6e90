"""Whether few of the straight columns count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import INCLUSIONS, STRAIGHT, Setting
from bootprob.ensemble.uncertainty.composite_stage import LEAST_WEIGHT, Stage

__all__ = ["leave_out"]

_START = INCLUSIONS[1], 1


def leave_out(stage: Stage) -> None:
    """Look at the likely settings where few straight columns count, if the labels leave that.

    How few, and how many steps of the grid their σ is larger, is found beside the best, and beside
    the best without a curve.
    """
    dense = [each for each in stage.likely() if stage.model.may_be_few(each.setting)]
    least = stage.best().evidence + np.log(LEAST_WEIGHT)
    for base in dict.fromkeys([stage.best(), stage.best(straight=True)]):
        if not stage.model.may_be_few(base.setting):
            continue
        leader, few = _climb(stage, base)
        gain = leader.evidence - base.evidence
        for each in dense:
            alike = bool(each.setting.curves) == bool(base.setting.curves)
            if alike and each.evidence + gain > least:
                stage.add(_where(each.setting, *few), each.found.sites)


def _climb(stage: Stage, base: Found) -> tuple[Found, tuple[float, int]]:
    """To the inclusion and the steps that have the largest evidence, from the likeliest ones."""
    known: dict[tuple[float, int], Found] = {}
    best, near = _START, [_START]
    while near:
        for few in near:
            known[few] = stage.add(_where(base.setting, *few), base.found.sites)
        best = max(known, key=lambda few: known[few].evidence)
        near = [few for few in _neighbours(*best) if few not in known]
    return known[best], best


def _neighbours(inclusion: float, steps: int) -> list[tuple[float, int]]:
    at = INCLUSIONS.index(inclusion)
    others = INCLUSIONS[max(at - 1, 0) : at + 2]
    beside = [(inclusion, more) for more in (steps - 1, steps + 1) if 0 <= more < len(STRAIGHT)]
    return [*beside, *((other, steps) for other in others if other != inclusion)]


def _where(setting: Setting, inclusion: float, steps: int) -> Setting:
    """The same where so many of the straight columns count, with a σ of so many steps more."""
    last = len(STRAIGHT) - 1
    first, second = (
        STRAIGHT[min(STRAIGHT.index(deviation) + steps, last)] if deviation else 0.0
        for deviation in setting.linear
    )
    return replace(setting, linear=(first, second), inclusion=inclusion)
