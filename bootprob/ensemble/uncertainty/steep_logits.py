"""Columns with which all of the logit grows, where labels ask for one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_settings import is_even
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.steepness import EVEN, RATES, THRESHOLDS, Steepness, growth

__all__ = ["of_other_rates", "vary_steepness"]

_MOST_COLUMNS = 3
_LEAST_STATISTIC = 4.0  # a squared score statistic
_SHAPES = range(1 + len(THRESHOLDS))
_LIKELY = 4.0  # behind in the logarithm of the evidence: rates whose neighbours are looked at
_POSSIBLE = 8.0  # the same with other settings: those that are tried with likely ones
_MORE = 1.0  # that the evidence of one may gain than that of the best


def vary_steepness(stage: Stage, bases: Iterable[Found]) -> None:
    """Look at columns with which all of the logit grows, beside each of some posteriors."""
    for base in dict.fromkeys(bases):
        found = _likely_rates(stage, base)
        steepest = max(found.values(), key=lambda each: each.evidence)
        if not is_even(steepest.setting):
            stage.climb(steepest, [k for k in [steepest.setting.kernel] if k])


def of_other_rates(stage: Stage) -> None:
    """Look at the likely settings with other rates too, or the best one would seem too sure."""
    likely = [each for each in stage.likely() if not is_even(each.setting)]
    if not likely:
        return
    base = likely[0]
    alike = [each for each in likely if each.setting.steepness == base.setting.steepness]
    alike = alike[: stage.affordable(base)]
    every = stage.best_of_each(lambda each: each.steepness).values()
    least = base.evidence - _POSSIBLE
    possible = [each.setting.steepness for each in every if each.evidence > least]
    for steepness, found in _likely_rates(stage, base, possible).items():
        gain = found.evidence - base.evidence + _MORE
        others = [(replace(each.setting, steepness=steepness), each) for each in alike]
        stage.add_each(
            (setting, each.found.sites)
            for setting, each in others
            if stage.would_be_likely(setting, each.evidence + gain)
        )


def _likely_rates(
    stage: Stage, base: Found, possible: Sequence[Steepness] = ()
) -> dict[Steepness, Found]:
    """The same with rates and shapes that are likely, from those next to its own on."""
    known = {base.setting.steepness: base}
    near = [*(_neighbours(base.setting.steepness) or _asked_for(stage, base)), *possible]
    while near:
        settings = [replace(base.setting, steepness=each) for each in near]
        found = stage.add_each((each, base.found.sites) for each in settings)
        known.update(zip(near, found, strict=True))
        best = max(known.values(), key=lambda each: each.evidence)
        likely = [each for each, one in known.items() if one.evidence > best.evidence - _LIKELY]
        every = dict.fromkeys(more for each in likely for more in _neighbours(each))
        near = [each for each in every if each not in known]
    return known


def _asked_for(stage: Stage, base: Found) -> list[Steepness]:
    """Columns by the score statistics of their rates at 0, with the rates that these ask for."""
    additions = stage.additions(base)
    logits = additions.logits.unsqueeze(1)
    terms = (growth(stage.scores, shape) * logits for shape in _SHAPES)
    scores, information = map(torch.stack, zip(*map(additions.scores_of, terms), strict=True))
    statistics, rates = scores.square() / information, scores / information
    columns = statistics.amax(0).argsort(descending=True)[:_MOST_COLUMNS].tolist()
    return [
        Steepness(column, _nearest(float(rates[shape, column])), shape)
        for column in columns
        for shape in (0, 1 + int(statistics[1:, column].argmax()))
        if statistics[shape, column] > _LEAST_STATISTIC
    ]


def _nearest(rate: float) -> float:
    return min(RATES, key=lambda each: abs(each - rate))


def _neighbours(steepness: Steepness) -> list[Steepness]:
    """Of a rate the next ones, and other shapes; of the smallest none at all."""
    if steepness == EVEN:
        return []
    at = RATES.index(steepness.rate)
    others = [steepness._replace(rate=rate) for rate in RATES[max(at - 1, 0) : at + 2]]
    others += [steepness._replace(shape=shape) for shape in _SHAPES]
    return [each if each.rate * steepness.rate > 0 else EVEN for each in others]
