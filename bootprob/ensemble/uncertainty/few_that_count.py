"""Whether few of the straight columns count."""

from __future__ import annotations

from dataclasses import replace

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import STRAIGHT, Setting
from bootprob.ensemble.uncertainty.composite_settings import kind_of
from bootprob.ensemble.uncertainty.composite_stage import NEAR, Stage

__all__ = ["leave_out"]

_LEAST_TRIED = 4  # settings beside one
_MORE = 1.0  # that the evidence of one may gain than that of the best of its kind


def leave_out(stage: Stage) -> None:
    """Look at the likely settings where few straight columns count, if the labels leave that.

    How few, and how many steps of the grid their σ is larger, is found beside the best with and
    without a kernel, and a rest. Tables that are too large to try some are left as they are.
    """
    dense = [each for each in stage.likely() if stage.model.may_be_few(each.setting)]
    climbed, few = [], (stage.model.inclusions[1], 1)
    for kind, base in sorted(stage.best_of_each(kind_of).items()):  # straight first
        most = stage.affordable(base)
        possible = base.evidence > stage.best().evidence - NEAR
        if possible and most >= _LEAST_TRIED and stage.model.may_be_few(base.setting):
            leader, few = _climb(stage, base, few, most)
            climbed.append((most, kind, leader.evidence - base.evidence, few))
    for most, kind, gain, few in climbed:
        alike = [each for each in dense[:most] if kind_of(each.setting) == kind]
        others = [(_where(each.setting, *few), each) for each in alike]
        stage.add_each(
            (setting, each.found.sites)
            for setting, each in others
            if stage.would_be_likely(setting, each.evidence + gain + _MORE)
        )


def _climb(
    stage: Stage, base: Found, first: tuple[float, int], most: int
) -> tuple[Found, tuple[float, int]]:
    """From an inclusion and steps to those that have the largest evidence."""
    known: dict[tuple[float, int], Found] = {}
    best, near = first, [first]
    while near and len(known) < most:
        found = stage.add_each((_where(base.setting, *few), base.found.sites) for few in near)
        known.update(zip(near, found, strict=True))
        best = max(known, key=lambda few: known[few].evidence)
        near = [few for few in _neighbours(stage.model.inclusions, *best) if few not in known]
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
