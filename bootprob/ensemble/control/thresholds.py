"""Thresholds of scores as order statistics: how a rate is made to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import UnattainableRateError
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "LeftOut",
    "allowed_between",
    "conflict",
    "furthest_threshold",
    "highest_threshold",
    "needed_shares",
    "score_threshold",
]


_BELOW = 1e-6  # of the spread: how far below the lowest score a threshold is put


@dataclass(frozen=True)
class LeftOut:
    """Training rows that some replicate left out, with what is known of them.

    Attributes
    ----------
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights; 0 for rows that do not count.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together.
    """

    positive: NDArray[np.bool_]
    weight: Floats
    groups: Groups | None = None

    def effective(self, members: NDArray[np.bool_]) -> float:
        """How many independent rows some of them are worth, at least."""
        counted = members & (self.weight > 0)
        groups = None if self.groups is None else self.groups[counted]
        return effective_rows(self.weight[counted], groups)


def needed_shares(floors: Sequence[RateFloor], rows: LeftOut) -> dict[str, float]:
    """Share of the rows of each class that has to be right, for each rate.

    Raises
    ------
    UnattainableRateError
        There are too few rows for the confidence asked for.
    """
    return {
        floor.rate: floor.required_share(rows.effective(floor.members(rows.positive)))
        for floor in floors
    }


def score_threshold(scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]) -> float:
    """Threshold on a score: 0 if the rates hold with it, else next to the score that asks for more.

    That is halfway from it to the next of its class, or as far as another rate lets.

    The true positive rate of a threshold at the m-th highest of the scores of n positives exceeds
    a number with the probability that the binomial bound on m of n gives, whatever their
    distribution: the threshold is an order statistic.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Out-of-bag scores; larger for ``classes_[1]``.
    rows : LeftOut
        Those with scores.
    floors : sequence of RateFloor
        On "tpr", "tnr" or both.

    Raises
    ------
    UnattainableRateError
        No threshold keeps both rates.
    """
    limits = _limits(scores, rows, floors)
    if limits.least <= 0 < limits.most:
        return 0.0
    return float(np.clip(0.0, limits.lowest, limits.highest))


def allowed_between(
    scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]
) -> tuple[float, float]:
    """Lowest and highest threshold with which the rates hold, each halfway to the next score.

    Parameters and errors are those of `score_threshold`.
    """
    limits = _limits(scores, rows, floors)
    return limits.lowest, limits.highest


def furthest_threshold(scores: Floats, rows: LeftOut, floor: RateFloor) -> float:
    """The threshold that keeps one rate and, of one side, decides most rows.

    Halfway from the score that asks for most to the next of any class. Parameters and errors are
    those of `score_threshold`.
    """
    known, members = rows.weight > 0, floor.members(rows.positive)
    side = 1.0 if floor.rate == "tpr" else -1.0
    counted = known & members
    share = needed_shares([floor], rows)[floor.rate]
    last = _last_right(side * scores[counted], rows.weight[counted], share)
    return side * _below(last, side * scores[known])


class _Limits(NamedTuple):
    """Thresholds from `least` on and below `most` keep the rates; the others are well inside."""

    least: float
    most: float
    lowest: float
    highest: float


def _limits(scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]) -> _Limits:
    shares = needed_shares(floors, rows)
    least, most = -np.inf, np.inf
    lowest, highest = least, most
    for floor in floors:
        members = floor.members(rows.positive) & (rows.weight > 0)
        values, weight = scores[members], rows.weight[members]
        if floor.rate == "tpr":
            most = _last_right(values, weight, shares["tpr"])
            highest = _below(most, values)
        else:
            least = -_last_right(-values, weight, shares["tnr"])
            lowest = -_below(-least, -values)
    if least >= most:
        right = rows.positive & (scores > least)
        best = rows.weight[right].sum() / rows.weight[rows.positive].sum()
        raise conflict(floors, best)
    if lowest > highest:  # a score of the other class is nearer than the next of the own
        middle = (least + most) / 2
        lowest = highest = middle if middle < most else least
    return _Limits(least, most, lowest, highest)


def highest_threshold(values: Floats, weight: Floats, share: float) -> float:
    """Highest threshold that values of a share of the weight exceed: halfway to the next.

    Parameters
    ----------
    values, weight : ndarray, shape (m,)
    share : float
        In (0, 1].
    """
    return _below(_last_right(values, weight, share), values)


def _last_right(values: Floats, weight: Floats, share: float) -> float:
    """The lowest of the highest values that have a share of the weight."""
    order = np.argsort(-values, kind="stable")
    mass = np.cumsum(weight[order])
    k = int(np.searchsorted(mass, share * mass[-1] * (1 - 1e-12)))
    return float(values[order[min(k, len(order) - 1)]])


def _below(last: float, values: Floats) -> float:
    """Halfway to the next value below; of the lowest a little below."""
    lower = values[values < last]
    if lower.size:
        return float((last + lower.max()) / 2)
    return float(last - _BELOW * max(np.ptp(values), abs(last), 1e-12))


def conflict(floors: Sequence[RateFloor], attainable: float) -> UnattainableRateError:
    """Make the error that says that two rates cannot be had together.

    Parameters
    ----------
    floors : sequence of RateFloor
        On "tpr" and "tnr".
    attainable : float
        True positive rate with the other rate kept.
    """
    tpr, tnr = (next(f for f in floors if f.rate == rate) for rate in ("tpr", "tnr"))
    sure = "" if tpr.confidence is None else f" with confidence {tpr.confidence:g}"
    return UnattainableRateError(
        f"No threshold keeps both tpr ≥ {tpr.at_least:g} and tnr ≥ {tnr.at_least:g}{sure}: with "
        f"the tnr kept, {attainable:.3f} of the positives are right out of bag. Lower one of the "
        'rates, let rows be left undecided ("decided" among the rates), or give the model more to '
        "learn from.",
        rate="tpr",
        wanted=tpr.at_least,
        attainable=attainable,
    )
