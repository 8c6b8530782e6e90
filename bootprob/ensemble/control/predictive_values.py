"""Thresholds with which a share of the rows that are decided alike is right: PPV and NPV.

Neither need rise with the threshold, so that no order statistic keeps it. Candidates are chosen
without the labels, by how many rows lie above them, and tested in turn, strict ones first (Learn
then Test: A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei, 2021,
arXiv:2110.01052). Of the m rows above a candidate, given where it lies, the right ones are
binomial: the p-value is exact. The chance α of a wrong promise goes in equal parts to a few of the
candidates, and each that holds hands what it has to the next (the fallback procedure: B. L. Wiens,
A. Dmitrienko, J. Biopharmaceutical Statistics 15 (2005) 929–942), so that with probability 1 − α
all that are found to hold do, and any may be chosen. (Strictly so of candidates that are fixed
beforehand; that ranks place them, and scores are out of bag, is why it is measured, too.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bootprob.ensemble.control.thresholds import (
    LeftOut,
    allowed_between,
    highest_threshold,
    needed_shares,
)
from bootprob.exceptions import UnattainableRateError
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Bools, Floats

__all__ = [
    "Candidates",
    "Chosen",
    "is_predictive",
    "most_needed",
    "threshold_of_all",
    "unattainable",
]

_CANDIDATES, _STARTS = 24, 4
_HALVINGS = 20
_WITHIN = 1e-3  # below what was found to be attainable


def is_predictive(floor: RateFloor) -> bool:
    """Whether a rate is a share of the rows that are decided alike."""
    return floor.rate in ("ppv", "npv")


def most_needed(floor: RateFloor, rows: LeftOut) -> float:
    """Share that would have to be right if all rows were decided alike.

    Raises
    ------
    UnattainableRateError
        All rows would be too few for the confidence.
    """
    n, tested = rows.effective(np.ones_like(rows.positive)), floor.at_level(_share_of_starts(floor))
    try:
        return tested.required_share(n)
    except UnattainableRateError:
        best, fewest = tested.attainable(n), tested.least_rows()
        more = "" if fewest is None else f"give at least {fewest} rows that are decided so, or "
        raise UnattainableRateError(
            f"{floor.rate} ≥ {floor.at_least:g} cannot be promised with confidence "
            f"{floor.confidence:g} ({floor.bound} bound) from {n:.0f} rows: were all of them "
            f"decided so, and right, that would show {floor.rate} ≥ "
            f"{np.floor(best * 1000) / 1000:g}. To go on, {more}lower the rate or the confidence.",
            rate=floor.rate,
            wanted=floor.at_least,
            attainable=best,
        ) from None


@dataclass(frozen=True)
class Chosen:
    """Where decisions fall.

    Attributes
    ----------
    threshold : float
        Of the score.
    shares : dict of str to float
        Share that had to be right for each rate.
    between : tuple of float, or None
        Lower and upper threshold of the rows that are left undecided; None where every row is
        decided.
    """

    threshold: float
    shares: dict[str, float]
    between: tuple[float, float] | None = None


def threshold_of_all(scores: Floats, rows: LeftOut, floors: Sequence[RateFloor]) -> Chosen:
    """Threshold on a score, the candidate closest to 0 with which all rates hold.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Out-of-bag scores; larger for ``classes_[1]``.
    rows : LeftOut
        Those with scores.
    floors : sequence of RateFloor
        Some of them on "ppv" or "npv".

    Raises
    ------
    UnattainableRateError
        No candidate keeps all rates; says what could be had of one of them.
    """
    predictive = [floor for floor in floors if is_predictive(floor)]
    lowest, highest = allowed_between(scores, rows, [f for f in floors if not is_predictive(f)])
    candidates = {
        floor.rate: Candidates.of(scores, rows, floor, predictive) for floor in predictive
    }
    thresholds = candidates[predictive[0].rate].thresholds
    inside = (thresholds >= lowest) & (thresholds <= highest)

    def holding(asked: Sequence[RateFloor]) -> Bools:
        held = [candidates[floor.rate].needed(floor) for floor in asked]
        return np.logical_and.reduce([inside, *(np.isfinite(each) for each in held)])

    found = np.flatnonzero(holding(predictive))
    if not found.size:
        raise unattainable(floors, predictive, holding)
    best = int(found[np.abs(thresholds[found]).argmin()])
    shares: dict[str, float] = {}
    shares |= {
        floor.rate: float(candidates[floor.rate].needed(floor)[best]) for floor in predictive
    }
    shares |= needed_shares([f for f in floors if not is_predictive(f)], rows)
    return Chosen(float(thresholds[best]), shares)


@dataclass(frozen=True)
class Candidates:
    """What is known of one rate at each candidate, from the strictest on.

    Attributes
    ----------
    thresholds : ndarray, shape (J,)
        In falling order, whatever the rate.
    order : ndarray of int, shape (J,)
        Positions of the candidates as they are tested.
    right, n_rows : ndarray, shape (J,)
        Weighted share of the rows decided so that are right, and what these are worth.
    """

    thresholds: Floats
    order: NDArray[np.intp]
    right: Floats
    n_rows: Floats

    @classmethod
    def of(
        cls, scores: Floats, rows: LeftOut, floor: RateFloor, together: Sequence[RateFloor]
    ) -> Self:
        """Count rows at candidates that serve all rates of `together`, among them the floor's."""
        known = (rows.weight > 0) & np.isfinite(scores)
        values, weight, positive = scores[known], rows.weight[known], rows.positive[known]
        groups = None if rows.groups is None else rows.groups[known]
        n = len(values)
        fewest = max(_fewest(each) for each in together)
        first = min(max(fewest / max(effective_rows(weight, groups), 1.0), 1 / n), 0.5)
        shares = expit(np.linspace(logit(first), -logit(first), _CANDIDATES))
        ones = np.ones(n)
        thresholds = np.array([highest_threshold(values, ones, share) for share in shares])
        right, worth = np.zeros(_CANDIDATES), np.zeros(_CANDIDATES)
        wanted = positive if floor.rate == "ppv" else ~positive
        for j, threshold in enumerate(thresholds):
            own = (values > threshold) == (floor.rate == "ppv")
            if own.any():
                right[j] = np.average(wanted[own], weights=weight[own])
                worth[j] = effective_rows(weight[own], None if groups is None else groups[own])
        order = np.arange(_CANDIDATES)
        return cls(thresholds, order if floor.rate == "ppv" else order[::-1], right, worth)

    def needed(self, floor: RateFloor) -> Floats:
        """Share that has to be right where it is, else NaN, shape (J,)."""
        found = np.full(len(self.order), np.nan)
        own = _share_of_starts(floor)
        handed = 0.0
        for turn, j in enumerate(self.order):
            starts = floor.confidence is None or turn % (_CANDIDATES // _STARTS) == 0
            level = handed + (own if starts else 0.0)
            handed = 0.0
            if level == 0.0 or self.n_rows[j] == 0:
                continue
            try:
                share = floor.at_level(level).required_share(self.n_rows[j])
            except UnattainableRateError:  # too few rows there
                continue
            if self.right[j] >= share - 1e-12:
                found[j], handed = share, level
        return found


def _share_of_starts(floor: RateFloor) -> float:
    """What each start may spend of the chance of a wrong promise; all without a confidence."""
    return 1.0 if floor.confidence is None else (1 - floor.confidence) / _STARTS


def _fewest(floor: RateFloor) -> int:
    """Fewest rows with which the first candidate can hold."""
    return floor.at_level(_share_of_starts(floor)).least_rows() or 1


def unattainable(
    floors: Sequence[RateFloor],
    predictive: Sequence[RateFloor],
    holding: Callable[[Sequence[RateFloor]], Bools],
) -> UnattainableRateError:
    """Make the error that says which rate could be had to what extent, the others kept.

    Parameters
    ----------
    floors : sequence of RateFloor
        All that is asked for.
    predictive : sequence of RateFloor
        Those on predictive values.
    holding : callable
        From some of these to which candidates keep them, shape (J,).
    """
    relaxed = next((f for f in predictive if not holding([f]).any()), predictive[-1])
    kept = [f for f in predictive if f is not relaxed]
    low, high = 0.0, relaxed.at_least
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        ok = holding([*kept, replace(relaxed, at_least=middle)]).any()
        low, high = (middle, high) if ok else (low, middle)
    attainable = max(low - _WITHIN, 0.0)
    others = [f"{f.rate} ≥ {f.at_least:g}" for f in floors if f is not relaxed]
    sure = "" if relaxed.confidence is None else f" with confidence {relaxed.confidence:g}"
    beside = f" and keeps {' and '.join(others)}" if others else ""
    could = f"{relaxed.rate} ≥ {np.floor(attainable * 1000) / 1000:g} could be had"
    if low == 0.0:
        could = f"no {relaxed.rate} at all could be had"
    advice = "Lower one of the rates" if others else "Lower the rate"
    if others and not any(floor.rate == "decided" for floor in floors):
        advice += ', let rows be left undecided ("decided" among the rates)'
    return UnattainableRateError(
        f"No threshold was found that shows {relaxed.rate} ≥ {relaxed.at_least:g}{sure}{beside}: "
        f"{could}. {advice}, or give the model more to learn from.",
        rate=relaxed.rate,
        wanted=relaxed.at_least,
        attainable=attainable,
    )
