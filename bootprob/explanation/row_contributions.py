"""What each column contributes to the probability of a row: Shapley values with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t

from bootprob.exceptions import DataError
from bootprob.explanation.answers import Explained
from bootprob.explanation.coalitions import Coalitions
from bootprob.intervals.levels import check_level
from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar
from bootprob.runtime.whole_numbers import checked_whole

if TYPE_CHECKING:
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["Contributions", "contributions", "divided"]

_ROWS = 1_000  # that are looked at for each row explained, unless the columns are many
_MOST_ROWS = 8_000
_LEAST_PAIRS = 4
_BACKGROUND = 16  # rows


@dataclass(frozen=True)
class Contributions:
    """Contributions of q columns to the log-odds of a class of m rows.

    Attributes
    ----------
    columns : list of str
        Their names.
    contribution : ndarray, shape (m, q)
        Log-odds that the column adds. With `base` they sum to the log-odds of `probability`.
    interval : ndarray, shape (m, q, 2)
        Bounds of each contribution to the true log-odds.
    base : float
        Mean log-odds of the background.
    probability : ndarray, shape (m,)
        As `predict_proba` gives it.
    error : ndarray, shape (m, q)
        Standard error of `contribution` that comes from drawing orders; 0 where all coalitions
        were looked at. The interval allows for it.
    label : label
        The class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import contributions
    >>> found = contributions(model, X[:1])
    >>> log_odds = found.base + found.contribution.sum(axis=1)  # nothing is left over
    >>> bool(np.allclose(1 / (1 + np.exp(-log_odds)), found.probability))
    True
    """

    columns: list[str]
    contribution: Floats
    interval: Floats
    base: float
    probability: Floats
    error: Floats
    label: Any = None

    def to_frame(self) -> pd.DataFrame:
        """A line for each row and column, those that contribute most first.

        Returns
        -------
        DataFrame
            Columns row (from 0), probability, column, contribution, lower and upper.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> from bootprob.explanation import contributions
        >>> contributions(model, X[:2]).to_frame().columns.tolist()
        ['row', 'probability', 'column', 'contribution', 'lower', 'upper']
        """
        m, q = self.contribution.shape
        order = np.argsort(-np.abs(self.contribution), axis=1, kind="stable")
        row = np.repeat(np.arange(m), q)
        at = row, order.ravel()
        return pd.DataFrame(
            {
                "row": row,
                "probability": self.probability[row],
                "column": np.array(self.columns, dtype=object)[at[1]],
                "contribution": self.contribution[at],
                "lower": self.interval[at][:, 0],
                "upper": self.interval[at][:, 1],
            }
        )


def contributions(
    model: BootstrapSVC | BootstrapClassifier | TableModel,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    level: float = 0.95,
    n_orders: int | None = None,
    label: Any = None,
    seed: int = 0,
    progress: bool = False,
) -> Contributions:
    """Divide the log-odds of rows among the columns, with intervals.

    Shapley values: what a column adds to the log-odds, on average over the orders in which columns
    of the row may take the place of those of a background row
    (`bootprob.explanation.coalitions.Coalitions`). Exact where columns are few, or do not interact;
    else a mean over random orders.

    The intervals are of the posterior with ``kernel="auto"``, joint over all rows looked at, and
    cover as those of the probability do. With other kernels they are percentiles of the
    bootstrap replicates, which know nothing of the bias of curved machines. Around classifiers they
    are those of the posterior beside them; of columns that these alone look at, and of one that was
    fitted before, percentiles.

    Of several classes the log-odds of one are against all others, and intervals are those of the
    pairs of classes, to first order (`bootprob.explanation.class_log_odds`).

    Parameters
    ----------
    model : BootstrapSVC, BootstrapClassifier or TableModel
        Fitted, calibrated.
    X : array_like or data frame, shape (m, columns)
        As for `predict_proba`.
    background : array_like or data frame, optional
        Rows to compare with, of which up to 16 are drawn; default training rows that the model
        keeps, or of linear machines with a sigmoid the mean of all of them, which is exact.
    level : float, default 0.95
        Of each interval by itself.
    n_orders : int, optional
        Random orders, half of them those reversed; default what looks at 1,000 rows or more for
        each row explained. As many as make all background rows count alike, each with two of these
        pairs or more; with fewer, fewer of these rows are used, as with more than 124 columns.
    label : label, optional
        The class whose log-odds are divided; of two by default ``classes_[1]``, of several it has
        to be said.
    seed : int, default 0
        Of the draws.
    progress : bool, default False
        Whether to show a bar.

    Returns
    -------
    Contributions

    Raises
    ------
    DataError
        The model has no calibration or a precomputed kernel; several classes, and no `label`, or
        not this one; no rows to compare with, and none are given; more than 999 columns; or
        `n_orders` is below 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.explanation import contributions
    >>> found = contributions(model, X[:2])
    >>> found.to_frame().shape  # a line for each row and column
    (8, 6)
    """
    level = check_level(level)
    if n_orders is not None:
        n_orders = checked_whole("n_orders", n_orders, 4)
    seed = checked_whole("seed", seed, 0)
    explained, named = Explained.of_class(model, label)
    rows, others = explained.matrix(X), explained.compared_with(background, _BACKGROUND, seed)
    found = divided(explained, rows, others, level, n_orders=n_orders, seed=seed, progress=progress)
    return replace(found, label=named)


def divided(
    explained: Explained,
    rows: Floats,
    others: Floats,
    level: float,
    *,
    n_orders: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Contributions:
    """Contributions to the log-odds of rows (m, p) beside others (k, p), of the matrix.

    Parameters and errors are those of `contributions`.
    """
    q = len(explained.columns)
    n_pairs = max(_LEAST_PAIRS, _ROWS // (2 * q + 2)) if n_orders is None else n_orders // 2
    most = _MOST_ROWS // (2 * q + 2)
    if most < _LEAST_PAIRS:
        raise DataError(
            f"{q:,} columns are too many to be explained one by one; fit fewer, such as the first "
            "components of these."
        )
    others = others[: (most if n_orders is None else n_pairs) // 2]
    n_pairs = max(2, -(-n_pairs // len(others))) * len(others)
    made = Coalitions.of(q, len(others), n_pairs, np.random.default_rng(seed))
    answers = []
    with progress_bar("Explaining", len(rows), shown=progress) as advance:
        for row in rows:
            answers.append(_of_row(explained, row, others, made, level))
            advance(1)
    value, interval, error = (np.stack(each) for each in zip(*answers, strict=True))
    base = explained.log_odds(others).mean()
    return Contributions(
        list(explained.columns), value, interval, float(base), explained.probability(rows), error
    )


def _of_row(
    explained: Explained, row: Floats, background: Floats, made: Coalitions, level: float
) -> tuple[Floats, Floats, Floats]:
    between = made.between(row, background, list(explained.columns.values()))
    log_odds = explained.log_odds(between)
    value, error = made.mixing @ log_odds, made.error(log_odds)
    bounds = explained.intervals(between, made.mixing, level)
    of_classifiers = [not len(explained.features(name)) for name in explained.columns]
    if any(of_classifiers):  # the posterior knows nothing of them
        mixing = made.mixing[of_classifiers]
        bounds[of_classifiers] = explained.of_replicates(between, mixing, level)
    drawn = t.ppf((1 + level) / 2, made.degrees_of_freedom) * error
    lower = np.hypot(np.minimum(bounds[:, 0] - value, 0), drawn)
    upper = np.hypot(np.maximum(bounds[:, 1] - value, 0), drawn)
    return value, np.stack([value - lower, value + upper], axis=1), error
