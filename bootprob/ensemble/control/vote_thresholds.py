"""Thresholds of the scores that vote, for every model of the grid, thesis 3.2.2 (Ctrl1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bootprob.ensemble.control.thresholds import LeftOut, conflict, highest_threshold, needed_shares
from bootprob.ensemble.scoring.out_of_bag import WeighedReplicates
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["oob_votes", "vote_thresholds"]


_HELD_SCORES = 2**24  # rows × models up to which out-of-bag scores are held, not made again


def vote_thresholds(
    machines: WeighedReplicates, rows: LeftOut, floors: Sequence[RateFloor]
) -> Floats:
    """Thresholds of the scores that vote, for each model of the grid, shape (R,).

    For each value of C the threshold is the closest to 0 with which the share of rows that has
    to be right has a majority of its out-of-bag votes. Where the weighted vote of all values of C
    then falls short, a larger share is asked of each, as little larger as does.

    Parameters
    ----------
    machines : WeighedReplicates
    rows : LeftOut
    floors : sequence of RateFloor
        On "tpr", "tnr" or both.

    Raises
    ------
    UnattainableRateError
        No thresholds were found that keep both rates.
    """
    shares = needed_shares(floors, rows)
    watched = [_Watched(machines, rows, floor) for floor in floors]
    thresholds = np.zeros(len(machines.weights))
    reached: dict[str, float] = {}
    for moved in watched:  # to keep one rate may be to keep both
        thresholds = moved.thresholds(shares[moved.rate])
        reached = {other.rate: other.share_right(thresholds) for other in watched}
        if all(reached[rate] >= share - 1e-12 for rate, share in shares.items()):
            return thresholds
    raise conflict(floors, reached["tpr"])


def oob_votes(machines: WeighedReplicates, thresholds: Floats) -> Floats:
    """Weighted share of out-of-bag votes, thesis (3.4), about thresholds; shape (n,), or NaN.

    Parameters
    ----------
    machines : WeighedReplicates
    thresholds : ndarray, shape (R,)
    """
    parts = [
        _weighted_votes(scores, outside, machines.weights, thresholds)
        for scores, outside in _scores_left_out(machines)
    ]
    return np.concatenate(parts)


class _Watched:
    """Rows of the class of one rate; they are seen as positives, by scores that may be mirrored."""

    def __init__(self, machines: WeighedReplicates, rows: LeftOut, floor: RateFloor) -> None:
        self.rate = floor.rate
        self._sign = 1.0 if floor.rate == "tpr" else -1.0
        members = np.flatnonzero(floor.members(rows.positive) & (rows.weight > 0))
        self._weight, self._weights = rows.weight[members], machines.weights
        own = machines.taking(members)

        def scores() -> Iterator[tuple[Floats, Bools]]:
            yield from _scores_left_out(own)

        size = own.counts.size * len(own.weights)
        held = list(scores()) if size <= _HELD_SCORES else None
        self._scores: Callable[[], Any] = scores if held is None else lambda: held
        parts = [_majority(self._sign * part, outside) for part, outside in self._scores()]
        self._majority = np.concatenate(parts)  # (m, R)

    def share_right(self, thresholds: Floats) -> float:
        """Weighted share of the rows that the weighted out-of-bag vote gets right."""
        parts = [
            _weighted_votes(scores, outside, self._weights, thresholds)
            for scores, outside in self._scores()
        ]
        votes = np.concatenate(parts)
        right = votes > 0.5 if self._sign > 0 else votes <= 0.5
        return float(np.average(right, weights=self._weight))

    def thresholds(self, share: float) -> Floats:
        """Move every threshold as little as makes the weighted vote right for this share."""
        n = len(self._weight)
        low, high = min(int(np.floor(share * n)), n - 1), n  # high is enough, low is not known
        first = self._at(share)
        if self.share_right(first) >= share - 1e-12:
            return first
        while high - low > 1:
            middle = (low + high) // 2
            if self.share_right(self._at(middle / n)) >= share - 1e-12:
                high = middle
            else:
                low = middle
        return self._at(high / n)

    def _at(self, share: float) -> Floats:
        highest = [highest_threshold(values, self._weight, share) for values in self._majority.T]
        return self._sign * np.minimum(highest, 0.0)


def _scores_left_out(machines: WeighedReplicates) -> Iterator[tuple[Floats, Bools]]:
    """Scores (rows, R, B) of rows in blocks, and which replicates left each out, (rows, B)."""
    start = 0
    for scores in machines.of_models():
        taken = slice(start, start + len(scores))
        start = taken.stop
        yield scores, machines.counts[:, taken].T == 0


def _majority(scores: Floats, outside: Bools) -> Floats:
    """Highest score that more than half of a row's out-of-bag scores reach, (rows, R).

    A threshold below it has the majority of the row's votes.
    """
    found = np.empty(scores.shape[:2])
    for rows in row_blocks(len(scores), scores[0].size):
        ordered = np.sort(np.where(outside[rows, None], scores[rows], -np.inf), axis=2)
        at = ordered.shape[2] - 1 - outside[rows].sum(axis=1) // 2
        found[rows] = np.take_along_axis(ordered, at[:, None, None], axis=2)[..., 0]
    return found


def _weighted_votes(scores: Floats, outside: Bools, weights: Floats, thresholds: Floats) -> Floats:
    votes = np.zeros(len(scores))
    for r in np.flatnonzero(weights):
        votes += weights[r] * ((scores[:, r] > thresholds[r]) & outside).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return votes / outside.sum(axis=1)
