"""How good probabilities are, as a mean over rows: a number for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bootprob.metrics.metrics import ROW_LOSSES
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["METRICS", "Judged", "Metric"]


@dataclass(frozen=True)
class Judged:
    """Rows of known class with their probabilities.

    Attributes
    ----------
    positive : ndarray of bool, shape (m,)
    weight : ndarray, shape (m,)
        Of mean 1.
    probability, rank : ndarray, shape (m,)
        Of the positive class; what orders the rows.
    """

    positive: Bools
    weight: Floats
    probability: Floats
    rank: Floats


@dataclass(frozen=True)
class Metric:
    """What a mean over rows measures.

    Attributes
    ----------
    label : str
    values : callable
        From rows, and those that they are ranked among, to a number each, (m,), whose mean is the
        metric of the rows where these are the same.
    better : {-1, 1}
        Whether more is better.
    """

    label: str
    values: Callable[[Judged, Judged], Floats]
    better: int = -1


def _of_loss(name: str) -> Callable[[Judged, Judged], Floats]:
    def values(rows: Judged, among: Judged) -> Floats:
        loss = ROW_LOSSES[name](rows.positive, rows.probability)
        middle = np.average(
            ROW_LOSSES[name](among.positive, among.probability), weights=rows.weight
        )
        found: Floats = middle + rows.weight * (loss - middle)
        return found

    return values


def _of_auc(rows: Judged, among: Judged) -> Floats:
    """A row's share of the AUC: how many of the other class it is on the right side of.

    The structural components of E. DeLong, D. DeLong, D. Clarke-Pearson, Biometrics 44 (1988)
    837–845, such that their mean over all rows is the AUC.
    """
    found, weight = np.empty(len(rows.rank)), rows.weight
    for own in (True, False):
        members, others = rows.positive == own, among.positive != own
        order = np.argsort(among.rank[others], kind="stable")
        known = among.rank[others][order]
        reached = np.concatenate([[0.0], np.cumsum(among.weight[others][order])])
        ends = (np.searchsorted(known, rows.rank[members], side) for side in ("left", "right"))
        below = sum(reached[end] for end in ends) / (2 * reached[-1])
        found[members] = below if own else 1 - below
    auc = np.average(found[rows.positive], weights=weight[rows.positive])
    for members in (rows.positive, ~rows.positive):
        of_class = weight[members] * (len(found) / weight[members].sum())
        found[members] = auc + of_class * (found[members] - auc)
    return found


METRICS: Mapping[str, Metric] = {
    "log_loss": Metric("log-loss", _of_loss("log_loss")),
    "brier_score": Metric("Brier score", _of_loss("brier_score")),
    "auc": Metric("AUC", _of_auc, better=1),
}
"""By their names in `bootprob.metrics`."""
