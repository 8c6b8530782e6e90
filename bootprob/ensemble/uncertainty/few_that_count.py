"""Whether few of the straight columns count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import STRAIGHT, Setting
from bootprob.ensemble.uncertainty.composite_stage import LEAST_WEIGHT, Stage

__all__ = ["leave_out"]

_WORK, _LEAST_TRIED = 4e10, 4  # rows × squared columns of settings that are tried beside one


def leave_out(stage: Stage) -> None:
    """Look at the likely settings where few straight columns count, if the labels leave that.

    How few, and how many steps of the grid their σ is larger, is found beside the best with a curve
    and the best without. Tables that are too large to try some are left as they are.
    """
    dense = [each for each in stage.likely() if stage.model.may_be_few(each.setting)]
    climbed = []
    for base in stage.best_with_and_without():
        most = int(_WORK / (len(stage.data.rows) * sum(base.columns.widths) ** 2))
        if most >= _LEAST_TRIED and stage.model.may_be_few(base.setting):
            climbed.append((most, base, *_climb(stage, base, most)))
    least = stage.likely()[0].evidence + np.log(LEAST_WEIGHT)
    for most, base, leader, few in climbed:
        gain = leader.evidence - base.evidence
        stage.add_each(
            (_where(each.setting, *few), each.found.sites)
            for each in dense[:most]
            if bool(each.setting.curves) == bool(base.setting.curves)
            if each.evidence + gain > least
        )


def _climb(stage: Stage, base: Found, most: int) -> tuple[Found, tuple[float, int]]:
    """To the inclusion and the steps that have the largest evidence, from the likeliest ones."""
    inclusions = stage.model.inclusions
    known: dict[tuple[float, int], Found] = {}
    best = inclusions[1], 1
    near = [best]
    while near and len(known) < most:
        found = stage.add_each((_where(base.setting, *few), base.found.sites) for few in near)
        known.update(zip(near, found, strict=True))
        best = max(known, key=lambda few: known[few].evidence)
        near = [few for few in _neighbours(inclusions, *best) if few not in known]
    return known[best], best


def _neighbours(
    inclusions: tuple[float, ...], inclusion: float, steps: int
) -> list[tuple[float, int]]:
    at = inclusions.index(inclusion)
    others = inclusions[max(at - 1, 0) : at + 2]
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
