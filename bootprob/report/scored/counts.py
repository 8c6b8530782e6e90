"""What a report needs of scored rows, counted batch by batch: memory does not grow with rows."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.costs.matrix import CostMatrix
from bootprob.encoding.columns import level_text
from bootprob.report.scored.table import ScoredBatch
from bootprob.runtime.arrays import Floats

__all__ = ["ASK", "EDGES", "SHOWN_EDGES", "ScoredCounts", "Sums", "count_in", "quantiles"]

Counts = NDArray[np.int64]

ASK = 2
"""The decision to ask, beside 0 and 1."""


def _edges() -> Floats:
    """Narrow bins: 1/10,000 wide, and near 0 and 1, where rare classes are, by 1.2 % each."""
    near = np.logspace(-9, -2, 1400, endpoint=False)
    return np.concatenate([[0.0], near, np.arange(100, 9901) / 10_000, 1 - near[::-1], [1.0]])


EDGES = _edges()
"""Edges of the bins that probabilities and widths are counted in, shape (12603,)."""

SHOWN_EDGES = np.arange(21) / 20
"""Edges of the bins of figures and tables, which are among `EDGES`."""

_N_FINE, _N_SHOWN = len(EDGES) - 1, len(SHOWN_EDGES) - 1


def count_in(values: Floats) -> NDArray[np.intp]:
    """Bin of `EDGES` that each value of [0, 1] is in; a value on an edge is in the bin above."""
    return (np.searchsorted(EDGES, values, side="right") - 1).clip(0, _N_FINE - 1)


def quantiles(counts: Counts | Floats, shares: Floats) -> Floats:
    """Quantiles of what was counted in the bins of `EDGES`, evenly spread within a bin.

    Parameters
    ----------
    counts : ndarray, shape (n_bins,)
        Not all 0.
    shares : ndarray, shape (k,)
        Between 0 and 1.
    """
    reached = np.cumsum(counts)
    wanted = np.clip(shares * reached[-1], np.finfo(float).tiny, reached[-1])
    bin_ = np.searchsorted(reached, wanted)  # the first that reaches it, which is not empty
    inside = (wanted - (reached[bin_] - counts[bin_])) / counts[bin_]
    return EDGES[bin_] + inside * np.diff(EDGES)[bin_]


@dataclass
class Sums:
    """Rows that were decided alike, and all that expected costs depend on.

    Attributes
    ----------
    n_rows : int
    probability, lower, upper : float
        Sums of the probabilities and of the ends of their intervals.
    variance : float
        Sum of p (1 − p).
    """

    n_rows: int = 0
    probability: float = 0.0
    lower: float = 0.0
    upper: float = 0.0
    variance: float = 0.0

    def add(self, batch: ScoredBatch, rows: NDArray[np.bool_]) -> None:
        """Add some rows of a batch."""
        p = batch.probability[rows]
        self.n_rows += len(p)
        self.probability += float(p.sum())
        self.lower += float(batch.lower[rows].sum())
        self.upper += float(batch.upper[rows].sum())
        self.variance += float((p * (1 - p)).sum())


@dataclass
class ScoredCounts:
    """Counts of a scored table; `add` takes one batch after the other.

    Parameters
    ----------
    costs : CostMatrix
        For all rows alike; their threshold decides the rows of a table that has none of its own.
    at_most : int
        Undecided rows that are kept for a list: those with most to lose.
    reference : ndarray, shape (k,), optional
        Rising values among which the probabilities are counted, see `cells`.

    Attributes
    ----------
    n_rows, n_without : int
        All rows, and those without a probability.
    by_decision : dict of bool to Sums
        Rows by the threshold that decided them.
    by_cost : dict of int to Sums
        Rows by the decision of least expected cost: negative, positive, or to ask (`ASK`).
    by_threshold : dict of bool to Sums
        Rows by the threshold of the costs alone.
    decided_above : tuple of float
        The lowest and the highest threshold that decided a row.
    by_label : dict of int to Sums
        Rows by the position of their label.
    asked : dict of int to Sums or None
        Of these, the rows about which a person is to be asked; None where the table does not say.
    left_undecided : int or None
        Rows that the model leaves undecided; None where the table does not say.
    above : dict of int to int
        Rows of each label with a probability above the threshold that decided them.
    undecided : dict of bool to int
        Rows whose interval reaches to the other side of the threshold, by decision.
    widths : ndarray of int, shape (20, n_bins)
        Widths of intervals by the bin of `SHOWN_EDGES` that the probability is in.
    probabilities : ndarray of int, shape (n_bins,)
    width_sum : float
    cells : ndarray of int, shape (2 k + 1,)
        Rows below the first value of `reference`, equal to it, between it and the next, and so on.
    """

    costs: CostMatrix
    at_most: int = 50
    reference: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.n_rows = self.n_without = 0
        self.by_decision = {False: Sums(), True: Sums()}
        self.by_cost = {0: Sums(), 1: Sums(), ASK: Sums()}
        self.by_threshold = {False: Sums(), True: Sums()}
        self.asked: dict[int, Sums] | None = None
        self.left_undecided: int | None = None
        self.decided_above = (np.inf, -np.inf)
        self.by_label: dict[int, Sums] = {}
        self.above: dict[int, int] = {}
        self.undecided = {False: 0, True: 0}
        self.probabilities = np.zeros(_N_FINE, dtype=np.int64)
        self.widths = np.zeros((_N_SHOWN, _N_FINE), dtype=np.int64)
        self.width_sum = 0.0
        self.cells = np.zeros(2 * len(self.reference) + 1, dtype=np.int64)
        self._listed: list[tuple[float, int, dict[str, Any]]] = []

    @property
    def n_scored(self) -> int:
        """Rows with a probability."""
        return self.n_rows - self.n_without

    def add(self, batch: ScoredBatch) -> None:
        """Count the rows of one batch."""
        p = batch.probability
        self.n_rows += batch.n_rows
        self.n_without += batch.n_rows - len(p)
        threshold = batch.threshold
        if threshold is None:
            threshold = np.full(len(p), self.costs.threshold)
        lowest, highest = self.decided_above
        self.decided_above = (threshold.min(initial=lowest), threshold.max(initial=highest))
        positive = p > threshold
        for decision in (False, True):
            self.by_decision[decision].add(batch, positive == decision)
            self.by_threshold[decision].add(batch, (p > self.costs.threshold) == decision)
        asks = self.costs.decide(p).ask
        least = np.where(False if asks is None else asks, ASK, p > self.costs.threshold)
        for choice, sums in self.by_cost.items():
            sums.add(batch, least == choice)
        for label in np.unique(batch.label).tolist():
            rows = batch.label == label
            self.by_label.setdefault(label, Sums()).add(batch, rows)
            self.above[label] = self.above.get(label, 0) + int(positive[rows].sum())
            if batch.ask is not None:
                self.asked = {} if self.asked is None else self.asked
                self.asked.setdefault(label, Sums()).add(batch, rows & batch.ask)
        if batch.undecided is not None:
            self.left_undecided = (self.left_undecided or 0) + int(batch.undecided.sum())
        self._count(p, batch.upper - batch.lower)
        # As in `bootprob.costs.matrix.Decisions.stable`.
        open_ = (batch.lower <= threshold) & (batch.upper > threshold)
        for decision in self.undecided:
            self.undecided[decision] += int((open_ & (positive == decision)).sum())
        self._list(batch, threshold, positive, open_)

    def listed(self) -> list[dict[str, Any]]:
        """The undecided rows with most to lose, the worst first."""
        return [row for *_, row in sorted(self._listed, key=lambda item: (-item[0], -item[1]))]

    def _count(self, p: Floats, width: Floats) -> None:
        self.probabilities += np.bincount(count_in(p), minlength=_N_FINE)
        shown = (np.searchsorted(SHOWN_EDGES, p, side="right") - 1).clip(0, _N_SHOWN - 1)
        flat = np.bincount(shown * _N_FINE + count_in(width), minlength=self.widths.size)
        self.widths += flat.reshape(self.widths.shape)
        self.width_sum += float(width.sum())
        left = np.searchsorted(self.reference, p, side="left")
        right = np.searchsorted(self.reference, p, side="right")
        self.cells += np.bincount(left + right, minlength=len(self.cells))

    def _list(
        self,
        batch: ScoredBatch,
        threshold: Floats,
        positive: NDArray[np.bool_],
        open_: NDArray[np.bool_],
    ) -> None:
        reach = np.where(positive, threshold - batch.lower, batch.upper - threshold)
        candidates = np.flatnonzero(open_)
        if len(candidates) > self.at_most:
            kept = np.argsort(-reach[candidates], kind="stable")[: self.at_most]
            candidates = candidates[kept]
        for i in candidates.tolist():
            row = int(batch.row[i])
            # Of equals the first in the table; the number also keeps the heap from comparing dicts.
            key = (float(reach[i]), -row)
            if len(self._listed) == self.at_most and key <= self._listed[0][:2]:
                continue
            entry: dict[str, Any] = {"row": row}
            if batch.id is not None:
                value = batch.id[i].as_py()
                entry["id"] = None if value is None else level_text(value)
            entry |= {
                "probability": float(batch.probability[i]),
                "lower": float(batch.lower[i]),
                "upper": float(batch.upper[i]),
                "positive": bool(positive[i]),
                "reach": key[0],
            }
            push = heapq.heappush if len(self._listed) < self.at_most else heapq.heapreplace
            push(self._listed, (*key, entry))
