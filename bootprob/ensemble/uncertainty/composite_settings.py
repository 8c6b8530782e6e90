"""Settings of a composite posterior: their kinds, which are near one, and which carry weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from bootprob.ensemble.uncertainty.composite_model import CURVED, Kernel, Setting
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.link_tails import levels_off
from bootprob.ensemble.uncertainty.steepness import EVEN

__all__ = [
    "LEAST_WEIGHT",
    "is_even",
    "kernels_of",
    "kind_of",
    "scaled",
    "summed",
    "with_most",
    "with_weight",
]

_MOST_CURVED = 24
_MOST_STRAIGHT = 16
_MOST_LEVELLED = 40  # of links with levels on either side
LEAST_WEIGHT = 0.001  # of a setting that is kept, by all of its evidence


def kind_of(setting: Setting) -> tuple[bool, bool]:
    """Whether it has a kernel, and a rest."""
    return bool(setting.kernel), bool(setting.rest.kernel)


def is_even(setting: Setting) -> bool:
    """Whether its logit grows with no column."""
    return setting.steepness == EVEN


def kernels_of(ranked: Iterable[tuple[float, Setting]]) -> list[Kernel]:
    """The kernels of settings, each once, in their order."""
    return list(dict.fromkeys(s.kernel for _, s in ranked if s.kernel))


def with_weight(evidence: Mapping[Setting, float]) -> list[Setting]:
    """Those that carry weight, best first."""
    found = with_most(evidence)
    weight = np.exp([evidence[each] - evidence[found[0]] for each in found])
    kept = weight > LEAST_WEIGHT * weight.sum()
    return [each for each, counts in zip(found, kept, strict=True) if counts]


def summed(setting: Setting, curves: Sequence[tuple[Curve, float]]) -> Setting:
    """The same with these curves and their σ, in the one order of a sum."""
    ordered = sorted(curves, key=lambda each: (bool(each[0].columns), *each))
    kernel, scales = zip(*ordered, strict=True) if ordered else ((), ())
    return replace(setting, kernel=kernel, scales=scales)


def with_most(evidence: Mapping[Setting, float], times: int = 1) -> list[Setting]:
    """Those of each kind with the largest evidence, so many times what is kept; best first."""
    every = sorted(evidence, key=lambda each: -evidence[each])
    levelled = [each for each in every if levels_off(each.tails)][: times * _MOST_LEVELLED]
    others = [each for each in every if not levels_off(each.tails)]
    straight = [each for each in others if not each.curves][: times * _MOST_STRAIGHT]
    curved = [each for each in others if each.curves][: times * _MOST_CURVED]
    return sorted((*straight, *curved, *levelled), key=lambda each: -evidence[each])


def scaled(setting: Setting) -> list[Setting]:
    """With other σ of the curves: of one all, of a sum all by a factor, and each."""
    now = setting.scales
    if not now:
        return [setting]
    if len(now) == 1:
        return [replace(setting, scales=(float(scale),)) for scale in CURVED]
    found = [tuple(scale * factor for scale in now) for factor in (0.5, 1.0, 2.0)]
    for k, factor in product(range(len(now)), (0.5, 2.0)):
        found.append((*now[:k], now[k] * factor, *now[k + 1 :]))
    least, most = CURVED[0], CURVED[-1]
    return [replace(setting, scales=s) for s in found if least <= min(s) and max(s) <= most]
