"""Thresholds of scores as order statistics: how a rate is made to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Threshold on a score, the closest to 0 with which the rates hold.

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
    lowest, highest = allowed_between(scores, rows, floors)
    return float(np.clip(0.0, lowest, highest))


def allowed_between(
    scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]
) -> tuple[float, float]:
    """Lowest and highest threshold with which the rates hold; parameters as there.

    Raises
    ------
    UnattainableRateError
        No threshold keeps both rates.
    """
    shares = needed_shares(floors, rows)
    highest, lowest = np.inf, -np.inf
    for floor in floors:
        members = floor.members(rows.positive) & (rows.weight > 0)
        values, weight = scores[members], rows.weight[members]
        if floor.rate == "tpr":
            highest = highest_threshold(values, weight, shares["tpr"])
        else:
            lowest = -highest_threshold(-values, weight, shares["tnr"])
    if lowest > highest:
        right = rows.positive & (scores > lowest)
        best = rows.weight[right].sum() / rows.weight[rows.positive].sum()
        raise conflict(floors, best)
    return lowest, highest


def highest_threshold(values: Floats, weight: Floats, share: float) -> float:
    """Highest threshold that values of a share of the weight exceed: halfway to the next.

    Parameters
    ----------
    values, weight : ndarray, shape (m,)
    share : float
        In (0, 1].
    """
    order = np.argsort(-values, kind="stable")
    mass = np.cumsum(weight[order])
    k = int(np.searchsorted(mass, share * mass[-1] * (1 - 1e-12)))
    last = values[order[min(k, len(order) - 1)]]
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
