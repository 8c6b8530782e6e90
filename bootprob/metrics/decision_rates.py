"""Rates of right decisions in each class, with exact intervals, and the curve they lie on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.intervals.shares import effective_rows, exact_interval
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "ClassRate",
    "TradeOff",
    "decision_rates",
    "predictive_values",
    "rates_between",
    "trade_off",
]


_POINTS = 200  # of a curve: more than can be told apart in a figure


@dataclass(frozen=True)
class ClassRate:
    """Share of the rows of one class, or of those decided alike, that are decided rightly.

    Attributes
    ----------
    value : float
    lower, upper : float
        Exact binomial interval of Clopper and Pearson, in it the effective number of rows where
        rows have weights or groups.
    n_rows : int
        Rows of the class, or decided so.
    n_right : int
        Rows of them that are decided rightly, whatever their weights.
    """

    value: float
    lower: float
    upper: float
    n_rows: int
    n_right: int


@dataclass(frozen=True)
class TradeOff:
    """What one class gains and the other loses as the threshold moves down.

    Attributes
    ----------
    sensitivity : ndarray, shape (k,)
        Share of the positives decided positive, from 0 to 1.
    specificity : ndarray, shape (k,)
        Share of the negatives decided negative, from 1 to 0.
    """

    sensitivity: Floats
    specificity: Floats


def decision_rates(
    positive: NDArray[np.bool_],
    decided: NDArray[np.bool_],
    weight: Floats,
    level: float,
    groups: Groups | None = None,
) -> dict[str, ClassRate]:
    """True positive and true negative rate of decisions.

    Parameters
    ----------
    positive : ndarray of bool, shape (n,)
        True classes.
    decided : ndarray of bool, shape (n,)
        Decisions.
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are as good as absent. Each class has some.
    level : float
        Level of the intervals.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together; a group tells as much as one row.

    Returns
    -------
    dict
        "tpr" and "tnr" to `ClassRate`.
    """
    return {
        name: _rate(members & (weight > 0), decided == positive, weight, level, groups)
        for name, members in (("tpr", positive), ("tnr", ~positive))
    }


def predictive_values(
    positive: NDArray[np.bool_],
    decided: NDArray[np.bool_],
    weight: Floats,
    level: float,
    groups: Groups | None = None,
) -> dict[str, ClassRate | None]:
    """Share of the rows decided positive, and of those decided negative, that are.

    Parameters
    ----------
    positive, decided, weight, level, groups
        As for `decision_rates`.

    Returns
    -------
    dict
        "ppv" and "npv" to `ClassRate`; None where no row is decided so.
    """
    found: dict[str, ClassRate | None] = {}
    for name, members in (("ppv", decided), ("npv", ~decided)):
        own = members & (weight > 0)
        found[name] = None
        if own.any():
            found[name] = _rate(own, decided == positive, weight, level, groups)
    return found


def rates_between(
    positive: NDArray[np.bool_],
    probability: Floats,
    between: Sequence[float],
    weight: Floats,
    level: float,
    groups: Groups | None = None,
) -> dict[str, ClassRate | None]:
    """All rates of decisions that may leave rows undecided.

    Parameters
    ----------
    positive, weight, level, groups
        As for `decision_rates`.
    probability : ndarray, shape (n,)
    between : (float, float)
        Probability up to which a row is decided negative, and above which positive; an undecided
        row is no mistake in its class.

    Returns
    -------
    dict
        "tpr", "tnr", "ppv", "npv" and "decided", the share of the rows that are, to `ClassRate`;
        None where no row is decided so.
    """
    lower, upper = between
    above_lower, above_upper = probability > lower, probability > upper
    known = weight, level, groups
    of_lower, of_upper = (
        {**decision_rates(positive, above, *known), **predictive_values(positive, above, *known)}
        for above in (above_lower, above_upper)
    )
    decided = _rate(weight > 0, above_upper | ~above_lower, *known)
    return {
        "tpr": of_lower["tpr"],
        "tnr": of_upper["tnr"],
        "ppv": of_upper["ppv"],
        "npv": of_lower["npv"],
        "decided": decided,
    }


def _rate(
    members: NDArray[np.bool_],
    right: NDArray[np.bool_],
    weight: Floats,
    level: float,
    groups: Groups | None,
) -> ClassRate:
    """Weighted share of some rows that are right."""
    mass = weight[members]
    value = float(np.average(right[members], weights=mass))
    n_rows = effective_rows(mass, None if groups is None else groups[members])
    lower, upper = exact_interval(value, n_rows, level)
    return ClassRate(value, lower, upper, len(mass), int(right[members].sum()))


def trade_off(positive: NDArray[np.bool_], scores: Floats, weight: Floats) -> TradeOff:
    """Sensitivity and specificity of all thresholds on a score (the ROC curve), thinned.

    Parameters
    ----------
    positive : ndarray of bool, shape (n,)
    scores : ndarray, shape (n,)
        Larger for positives; NaN leaves a row out.
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are left out.
    """
    from sklearn.metrics import roc_curve  # heavy

    seen = np.isfinite(scores) & (weight > 0)
    false_alarms, found, _ = roc_curve(
        positive[seen], scores[seen], sample_weight=weight[seen], drop_intermediate=True
    )
    kept = _evenly(false_alarms, found)
    return TradeOff(sensitivity=found[kept], specificity=1 - false_alarms[kept])


def _evenly(x: Floats, y: Floats) -> NDArray[Any]:
    """Positions of a curve's points with about equal steps between, the ends among them."""
    if len(x) <= _POINTS:
        return np.arange(len(x))
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    at = np.searchsorted(way, np.linspace(0, way[-1], _POINTS) - 1e-12)
    return np.unique(np.append(at, [0, len(x) - 1]))
