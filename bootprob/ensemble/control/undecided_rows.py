"""Two thresholds, and rows between them that are left undecided, so that rates hold of the others.

What one threshold cannot keep, two can: below the lower one a row is decided negative, above the
upper one positive. An undecided row counts as no mistake: "tpr" is then the share of the positives
that are not decided negative, "tnr" that of the negatives that are not decided positive; "ppv" and
"npv" are of the rows that are decided so. The pair is that with the fewest rows between.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bootprob.ensemble.control.predictive_values import (
    Candidates,
    Chosen,
    is_predictive,
    unattainable,
)
from bootprob.ensemble.control.thresholds import (
    LeftOut,
    furthest_threshold,
    needed_shares,
    score_threshold,
)
from bootprob.exceptions import UnattainableRateError
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["thresholds_of_all"]


def thresholds_of_all(scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]) -> Chosen:
    """The two thresholds with the fewest rows between with which all rates hold.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Out-of-bag scores; larger for ``classes_[1]``.
    rows : LeftOut
        Those with scores.
    floors : sequence of RateFloor
        One on "decided", and others.

    Raises
    ------
    UnattainableRateError
        Too few rows could be decided, or one of the other rates cannot be kept at all.
    """
    asked = {floor.rate: floor for floor in floors}
    predictive = [floor for floor in floors if is_predictive(floor)]
    lowest = furthest_threshold(scores, rows, asked["tnr"]) if "tnr" in asked else -np.inf
    highest = furthest_threshold(scores, rows, asked["tpr"]) if "tpr" in asked else np.inf
    held = {f.rate: Candidates.of(scores, rows, f, predictive) for f in predictive}
    uppers = lowers = None
    if "ppv" in asked:
        uppers = _accepted(held["ppv"], asked["ppv"], held["ppv"].thresholds >= lowest)
    if "npv" in asked:
        lowers = _accepted(held["npv"], asked["npv"], held["npv"].thresholds <= highest)
    if not predictive and lowest <= highest:  # one threshold keeps both
        of_classes = [asked[rate] for rate in ("tpr", "tnr") if rate in asked]
        decision = score_threshold(scores, rows, of_classes)
        pairs = [(decision, decision)]
    else:
        pairs = _pairs(lowers, uppers, lowest, highest)
    if not pairs:
        raise UnattainableRateError(
            f"No two thresholds were found that keep ppv ≥ {asked['ppv'].at_least:g} and npv ≥ "
            f"{asked['npv'].at_least:g}; lower one of the two.",
            rate="npv",
            wanted=asked["npv"].at_least,
            attainable=None,
        )
    known = (rows.weight > 0) & np.isfinite(scores)
    values, weight = scores[known], rows.weight[known]

    def between(pair: tuple[float, float]) -> float:
        inside = (values > pair[0]) & (values <= pair[1])
        return float(weight[inside].sum() / weight.sum())

    lower, upper = min(pairs, key=lambda pair: (between(pair), abs(np.clip(0.0, *pair))))
    reached = 1 - between((lower, upper))
    shares = needed_shares([floor for floor in floors if not is_predictive(floor)], rows)
    if reached < shares["decided"] - 1e-12:
        raise _too_few_decided(floors, reached, shares["decided"])
    for floor in predictive:
        own, at = held[floor.rate], upper if floor.rate == "ppv" else lower
        # Of rows of one score some candidates may have no chance left, and are NaN.
        shares[floor.rate] = float(np.nanmax(own.needed(floor)[own.thresholds == at]))
    return Chosen(float(np.clip(0.0, lower, upper)), shares, (lower, upper))


def _accepted(candidates: Candidates, floor: RateFloor, allowed: Bools) -> Floats:
    """Thresholds with which a predictive value holds; an error if there are none."""

    def holding(asked: Sequence[RateFloor]) -> Bools:
        return allowed & np.isfinite(candidates.needed(asked[0]))

    found = holding([floor])
    if not found.any():
        raise unattainable([floor], [floor], holding)
    return candidates.thresholds[found]


def _pairs(
    lowers: Floats | None, uppers: Floats | None, lowest: float, highest: float
) -> list[tuple[float, float]]:
    """Lower and upper thresholds; None where any on the allowed side will do."""
    if lowers is None and uppers is None:
        return [(highest, lowest)]
    if lowers is None:
        assert uppers is not None
        return [(min(highest, upper), upper) for upper in uppers.tolist()]
    if uppers is None:
        return [(lower, max(lowest, lower)) for lower in lowers.tolist()]
    return [(a, b) for a in lowers.tolist() for b in uppers.tolist() if a <= b]


def _too_few_decided(
    floors: Sequence[RateFloor], reached: float, needed: float
) -> UnattainableRateError:
    decided = next(floor for floor in floors if floor.rate == "decided")
    others = " and ".join(
        f"{floor.rate} ≥ {floor.at_least:g}" for floor in floors if floor is not decided
    )
    sure = "" if decided.confidence is None else f" with confidence {decided.confidence:g}"
    attainable = max(0.0, reached - (needed - decided.at_least))
    return UnattainableRateError(
        f"decided ≥ {decided.at_least:g} cannot be promised{sure} beside {others}: "
        f"{reached:.3f} of the rows at hand could be decided, and {needed:.3f} is needed, so that "
        f"decided ≥ {np.floor(attainable * 1000) / 1000:g} could be had. Lower one of the rates, "
        "or give the model more to learn from.",
        rate="decided",
        wanted=decided.at_least,
        attainable=attainable,
    )
