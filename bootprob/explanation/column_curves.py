"""How the probability moves with one column, the others as they are: curves with bands."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bootprob.encoding.dates import DateParts, dates_and_bad
from bootprob.exceptions import DataError
from bootprob.explanation.answers import Explained
from bootprob.intervals.levels import check_level
from bootprob.runtime.arrays import Floats
from bootprob.runtime.whole_numbers import checked_whole

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["PartialDependence", "partial_dependence"]

_BACKGROUND = 50  # rows
_MOST_ROWS, _MOST_VALUES = 3_000, 500  # that are looked at together


@dataclass(frozen=True)
class PartialDependence:
    """Log-odds of a class, averaged over background rows, by the value of a column.

    Attributes
    ----------
    column : str
        Its name.
    values : ndarray, shape (k,)
        Numbers, levels, or dates.
    log_odds : ndarray, shape (k,)
        Mean over the background rows.
    interval : ndarray, shape (k, 2)
        Of the true mean log-odds, each by itself.
    label : label
        The class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import partial_dependence
    >>> found = partial_dependence(model, 3, X[:20], n_values=5)  # petal width
    >>> found.values.shape, found.probability_interval.shape
    ((5,), (5, 2))
    >>> bool(found.log_odds[0] < found.log_odds[-1])  # wide petals speak for the second species
    True
    """

    column: str
    values: NDArray[Any]
    log_odds: Floats
    interval: Floats
    label: Any = None

    @property
    def probability(self) -> Floats:
        """Of the mean log-odds, shape (k,): that of a row in the middle."""
        found: Floats = expit(self.log_odds)
        return found

    @property
    def probability_interval(self) -> Floats:
        """The same of the bounds, shape (k, 2)."""
        found: Floats = expit(self.interval)
        return found


def partial_dependence(
    model: BootstrapSVC | BootstrapClassifier | TableModel,
    column: str | int,
    background: ArrayLike | None = None,
    *,
    values: ArrayLike | None = None,
    n_values: int = 20,
    level: float = 0.95,
    label: Any = None,
    seed: int = 0,
) -> PartialDependence:
    """Follow one column while the others stay as they are in background rows.

    The mean over the rows is of log-odds (J. Friedman, Ann. Stat. 29 (2001) 1189–1232, of the
    logistic loss), which sums of effects keep. Intervals are those of
    `bootprob.explanation.contributions`.

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted, calibrated.
    column : str or int
        Its name, or its number.
    background : array_like or data frame, optional
        Rows whose other columns are taken, of which up to 50 are drawn, of many
        values fewer; default training rows that
        the model keeps.
    values : array_like, optional
        Numbers, levels, or dates, at which to look; default all levels, or numbers (dates) at equal
        distances between the least and the largest of the background.
    n_values : int, default 20
        How many of these.
    level, label, seed
        As for `bootprob.explanation.contributions`.

    Returns
    -------
    PartialDependence

    Raises
    ------
    DataError
        As there; there is no such column or level, or classifiers alone look at the column; or
        values are no finite numbers, or no dates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import partial_dependence
    >>> curve = partial_dependence(model, 2, X[:20], n_values=5)
    >>> type(curve).__name__
    'PartialDependence'
    """
    level = check_level(level)
    n_values, seed = checked_whole("n_values", n_values, 2), checked_whole("seed", seed, 0)
    explained, named = Explained.of_class(model, label)
    every = list(explained.columns)
    if np.ndim(column):
        raise DataError(
            f"column is a name or a number, and rows come after it; got {type(column).__name__}."
        )
    name = str(column)
    if name not in every and isinstance(column, Integral) and column in range(len(every)):
        name = every[int(column)]
    if name not in every:
        raise DataError(f"There is no column {column!r}; the model has {', '.join(every[:20])}.")
    place = explained.features(name)
    if not len(place):
        raise DataError(
            f"The column {name!r} is one that the classifiers alone look at, as the model of the "
            f"interval learns nothing of it: {explained.preprocessor.dropped_[name]}; it has no "
            "curve."
        )
    rows = explained.background(background, _BACKGROUND, seed)
    levels, dates = explained.levels(name), explained.dates(name)
    shown: NDArray[Any]
    if dates is not None:
        shown = _dates(dates, rows[:, place[0]], values, n_values, name)
        features = dates.features(shown)
    elif levels is None:
        shown = np.linspace(rows[:, place].min(), rows[:, place].max(), n_values)
        if values is not None:
            shown = _numbers(values, name)
        features = shown[:, None]
    else:
        shown = np.atleast_1d(np.asarray(levels if values is None else values, dtype=object))
        unknown = [each for each in shown if each not in levels]
        if unknown or shown.ndim != 1 or not len(shown):
            raise DataError(
                f"values of {name!r} are levels of it ({', '.join(levels[:20])}), not {values!r}."
            )
        features = (shown[:, None] == np.array(levels, dtype=object)).astype(np.float64)
    if len(shown) > _MOST_VALUES:
        raise DataError(
            f"{len(shown):,} values of {name!r} are too many; give up to {_MOST_VALUES}."
        )
    rows = rows[: max(1, _MOST_ROWS // len(shown))]
    moved = np.repeat(rows[None], len(shown), axis=0)
    moved[:, :, explained.columns[name]] = explained.placed(name, features, shown)[:, None, :]
    moved = moved.reshape(-1, rows.shape[1])
    mixing = np.kron(np.eye(len(shown)), np.full(len(rows), 1 / len(rows)))
    log_odds = mixing @ explained.log_odds(moved)
    bounds = explained.intervals(moved, mixing, level)
    lower, upper = np.minimum(bounds[:, 0], log_odds), np.maximum(bounds[:, 1], log_odds)
    return PartialDependence(name, shown, log_odds, np.stack([lower, upper], axis=1), named)


def _numbers(values: ArrayLike, name: str) -> Floats:
    try:
        found = np.atleast_1d(np.asarray(values, dtype=np.float64))
        usable = found.ndim == 1 and len(found) > 0 and bool(np.isfinite(found).all())
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise DataError(f"values are {values!r}; give finite numbers for the column {name!r}.")
    return found


def _dates(
    parts: DateParts, days: Floats, values: ArrayLike | None, n_values: int, name: str
) -> NDArray[np.datetime64]:
    """Dates to look at: those given, or whole days at equal distances between those known."""
    if values is None:
        at = np.unique(np.linspace(days.min(), days.max(), n_values).round()).astype(np.int64)
        return parts.first + at.astype("timedelta64[D]")
    found, bad = dates_and_bad(pd.Series(np.atleast_1d(values)))
    if bad or np.isnat(found).any() or not len(found):
        raise DataError(f"values are {values!r}; give dates (ISO 8601) for the column {name!r}.")
    return found
