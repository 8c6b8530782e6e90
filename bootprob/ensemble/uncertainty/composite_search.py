"""Which scales, kernels and links labels leave possible, found by the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bootprob.ensemble.uncertainty.column_sets import likely_sets
from bootprob.ensemble.uncertainty.composite_columns import Found
from bootprob.ensemble.uncertainty.composite_model import NOTHING, Kernel, Setting
from bootprob.ensemble.uncertainty.composite_settings import (
    LEAST_WEIGHT,
    is_even,
    kernels_of,
    with_most,
)
from bootprob.ensemble.uncertainty.composite_stage import NEAR, RISE, Stage
from bootprob.ensemble.uncertainty.levelled_links import level_off
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Tails, levels_off
from bootprob.ensemble.uncertainty.steep_logits import vary_steepness

__all__ = ["again", "outline", "search", "some"]

_MOST_EXAMINED = 24
_MOST_NEAR = 10  # kernels that more rows may make possible
_MOST_NEAR_OF_LARGE = 6
_OTHER_WIDTHS = 3  # of a curve, its own among them
_IMPOSSIBLE = 7.0  # logarithm of the evidence behind the best: a thousandth
_MORE = 3  # times as many as are kept, of what is known roughly
_AS_LIKELY, _MOST_WITH_RESTS = 4.0, 3  # the same of kernels that get a rest, and how many do


def search(stage: Stage) -> tuple[list[Found], list[Kernel]]:
    """Find what the labels leave possible, best first; and kernels that more may make possible."""
    straight = stage.straight()
    _, possible = stage.climb(straight, [(each,) for each in stage.model.curved])
    kernels = _with_few_columns(stage, straight, possible)
    leader, kernels = stage.climb(stage.best(), kernels)
    with_tails = [replace(straight.setting, tails=tails) for tails in stage.model.tails]
    bases = stage.add_each((each, straight.found.sites) for each in with_tails)
    stage.climb_each((base, ()) for base in bases)
    _add_links(stage, leader, stage.model.tails)
    vary_steepness(stage, [stage.best(), straight])
    reached = leader.evidence
    while stage.best().evidence > reached + RISE:
        base = stage.best()
        reached = base.evidence
        leader, kernels = stage.climb(base, kernels)
        _add_links(stage, leader, (LOGIT, *stage.model.tails))
    level_off(stage, straight)
    return _possible(stage, kernels)


def again(
    stage: Stage, before: Sequence[Found], near: Sequence[Kernel]
) -> tuple[list[Found], list[Kernel]]:
    """The same with more rows, near what was possible with fewer."""
    sites = stage.begin(replace(before[0].setting, rest=NOTHING)).found.sites
    stage.add_each((replace(each.setting, rest=NOTHING), sites) for each in before[1:])
    tails = before[0].setting.tails  # curves are looked for beside one that does not level off
    first = replace(before[0].setting, kernel=(), scales=(), rest=NOTHING)
    first = replace(first, tails=LOGIT if levels_off(tails) else tails)
    straight, _ = stage.climb(stage.add(first, sites), [])
    few = _with_few_columns(stage, straight, [])
    vary_steepness(stage, [stage.best(), straight])
    level_off(stage, straight)
    return _possible(stage, dict.fromkeys([*near, *few]))


def outline(stage: Stage) -> tuple[list[Found], list[Kernel]]:
    """Find where to look with more rows: the best with the logit, and with another link."""
    straight = stage.straight()
    _, possible = stage.climb(straight, [(each,) for each in stage.model.curved])
    kernels = _with_few_columns(stage, straight, possible)
    leader = stage.best()
    _add_links(stage, leader, stage.model.tails)
    vary_steepness(stage, [leader, straight])
    level_off(stage, straight)
    others = [stage.best(tails) for tails in stage.links() if tails != LOGIT]
    near = list(dict.fromkeys([leader.setting.kernel, *kernels]))
    found = [leader, max(others, key=lambda each: each.evidence)]
    # Of more rows these may be the best: steep logits, and sums of curves in few columns.
    found += stage.best_of_each(is_even).values()
    if (few := stage.best_of_few()) is not None:
        found.append(few)
    return list(dict.fromkeys(found)), near[:_MOST_NEAR_OF_LARGE]


def some(
    stage: Stage, before: Sequence[Found], near: Sequence[Kernel]
) -> tuple[list[Found], list[Kernel]]:
    """The same with more rows, and no more factors than can be afforded.

    Of too many, without a kernel that may be `near`, those alone that were possible before.
    """
    sites = stage.begin(before[0].setting).found.sites
    most = max(1, min(stage.affordable(before[0]), _MOST_EXAMINED))
    stage.add_each((each.setting, sites) for each in before[1:most])
    if not near:
        return stage.likely(), []
    straight = _straight(stage, stage.best())
    for base in dict.fromkeys([straight, stage.best_of_few() or straight]):
        stage.grown(base)
    if not is_even(stage.best().setting):
        vary_steepness(stage, [stage.best()])
    best = stage.best()
    kernels = (), best.setting.kernel, *_of_other_widths(stage, best.setting.kernel), *near
    ranked = stage.ranked(best, dict.fromkeys(kernels))
    _examine(stage, {best: ranked[:most]}, best.evidence + np.log(LEAST_WEIGHT))
    return stage.likely(), kernels_of(ranked)[:_MOST_NEAR_OF_LARGE]


def _straight(stage: Stage, base: Found) -> Found:
    """The best without a curve, begun with both linear parts and with each of them alone."""
    scale = max(base.setting.linear)
    without = replace(base.setting, kernel=(), scales=())
    every = (base.setting.linear, (scale, 0.0), (0.0, scale))
    possible = [linear for linear in every if linear in stage.model.linear(())]
    stage.add_each((replace(without, linear=each), base.found.sites) for each in possible)
    return stage.climb(stage.best(straight=True), [])[0]


def _of_other_widths(stage: Stage, kernel: Kernel) -> list[Kernel]:
    """The same but for one curve in few columns, which is smoother or less so.

    More rows tell which, and as long as they do not, the interval must not be sure of it.
    """
    found = []
    for k, curve in enumerate(kernel):
        every = stage.model.among(curve.columns, stage.model.of_columns) if curve.columns else []
        alike = [each for each in every if (each.family, each.view) == (curve.family, curve.view)]
        alike.sort(key=lambda each: abs(np.log(each.gamma / curve.gamma)) if curve.gamma else 0.0)
        found += [(*kernel[:k], other, *kernel[k + 1 :]) for other in alike[1:_OTHER_WIDTHS]]
    return found


def _with_few_columns(stage: Stage, straight: Found, kernels: Sequence[Kernel]) -> list[Kernel]:
    """Look at curves in few columns and their sums; kernels that are not far from the best."""
    few = _of_few_columns(stage, straight)
    leader, kernels = stage.climb(stage.best(), [*kernels, *few])
    for base in dict.fromkeys([straight, leader]):
        stage.grown(base)
    return kernels


def _of_few_columns(stage: Stage, straight: Found) -> list[Kernel]:
    """Curves in the columns that bend the logit, those with the largest evidence."""
    if not stage.model.of_columns:
        return []
    additions, model = stage.additions(straight), stage.model
    sets = likely_sets(
        additions.statistics,
        additions.triples,
        lambda sets: [each.log_odds for each in additions.of_sets(sets)],
    )
    every = [each for which in sets for each in model.among(which, model.of_columns)]
    found = additions.best_each(every)
    found.sort(key=lambda each: -each.log_odds)
    kept = [each.curve for each in found if each.log_odds > found[0].log_odds - NEAR]
    return [(curve,) for curve in kept[:_MOST_NEAR]]


def _possible(stage: Stage, kernels: Iterable[Kernel]) -> tuple[list[Found], list[Kernel]]:
    """All that may count, by what ranks them around the best of each link."""
    best, least = stage.best(), stage.best().evidence + np.log(LEAST_WEIGHT)
    near = {
        base: [(), base.setting.kernel]
        for base in (*map(stage.best, stage.links()), *stage.best_of_each(is_even).values())
        if base.evidence > best.evidence - _IMPOSSIBLE
    }
    near[best] += kernels
    ranked = dict(zip(near, stage.ranked_each(near.items()), strict=True))
    close = kernels_of((v, s) for v, s in ranked[best] if v > best.evidence - NEAR)
    _examine(stage, {base: found[:_MOST_EXAMINED] for base, found in ranked.items()}, least)
    _add_rests(stage, least)
    return stage.likely(), close[:_MOST_NEAR]


def _add_rests(stage: Stage, least: float) -> None:
    """What may be there besides, with the best; with others where that makes the best likelier.

    Without, they would be less likely than it for want of a rest and for no other reason.
    """

    def examine(bases: Iterable[Found], behind: float) -> None:
        near = [base for base in bases if base.evidence > without.evidence - behind]
        _examine(stage, {base: stage.with_rests(base) for base in near}, least)

    without, *others = stage.best_of_each_kernel()
    of_each = stage.best_of_each(lambda each: (bool(each.curves), is_even(each)))
    first = dict.fromkeys([without, *(each for (bent, _), each in of_each.items() if not bent)])
    examine(first, _IMPOSSIBLE)
    if stage.best().setting.rest.kernel:
        examine([each for each in others if each not in first][:_MOST_WITH_RESTS], _AS_LIKELY)


def _examine(
    stage: Stage, ranked: Mapping[Found, Iterable[tuple[float, Setting]]], least: float
) -> None:
    """Condition on the labels where that may be likely, by what is known beside others."""
    starts = {
        setting: (value, base.found.sites)
        for base, settings in ranked.items()
        for value, setting in settings
        if value > least
    }
    likeliest = with_most({setting: value for setting, (value, _) in starts.items()}, _MORE)
    stage.add_each((each, starts[each][1]) for each in likeliest)


def _add_links(stage: Stage, base: Found, links: Iterable[Tails]) -> None:
    stage.add_each((replace(base.setting, tails=tails), base.found.sites) for tails in links)
