"""How good probabilities are, with intervals: Brier score, AUC, true positive rate and so on.

What is covered is the performance of this one fitted model on new rows of the same population.
The rows are drawn again with their probabilities as they are, 1,000 times, both classes together
(new rows come with a random number of positives too). docs/metric_intervals.md has the formulas
and the coverage measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.bounds import bca_or_student, calibration_error_interval
from bootprob.metrics.measured_rows import MeasuredRows
from bootprob.metrics.metrics import (
    METRICS,
    check_both_classes,
    metrics_of,
    resampled_weights,
    row_log_loss,
)
from bootprob.metrics.reliability import (
    check_rows,
    equal_mass_bins,
    groups_of_rows,
    kept_decisions,
    kept_numbers,
    numbers_of_rows,
)
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import sums_of_groups
from bootprob.runtime.whole_numbers import checked_whole

__all__ = ["MetricInterval", "log_loss_difference", "metric_intervals"]

Method = Literal["auto", "bca", "percentile", "basic"]

_N_BINS = 10


@dataclass(frozen=True)
class MetricInterval:
    """One number about a model on new rows, with its confidence interval.

    Attributes
    ----------
    name : str
        Key, such as ``"brier_score"``.
    label : str
        Name for a reader, such as ``"Brier score"``.
    description : str
        What the number means, for a reader who is not a statistician.
    value, lower, upper : float
        The interval contains the value and, but for differences, always has a width.
    level : float
        Nominal confidence.
    method : str
        Where the bounds come from: "bca", "percentile", "basic"; "exact" (Clopper and Pearson),
        "score" (Newcombe, for the AUC; the score test, for the calibration intercept of a
        subgroup), "deviation" (for the calibration error), "sandwich" (for `calibration_line`), or
        "unseen", where all rows agree and only what they could not show can differ; "student", of
        fewer than five rows or groups.
    n_rows : int
        Rows the number was computed from.
    n_left_out : int
        Rows without a probability, left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> accuracy = model.metric_intervals()["accuracy"]
    >>> accuracy.label, accuracy.level, accuracy.n_rows
    ('Accuracy', 0.95, 100)
    >>> accuracy.lower <= accuracy.value <= accuracy.upper
    True
    """

    name: str
    label: str
    description: str
    value: float
    lower: float
    upper: float
    level: float
    method: str
    n_rows: int
    n_left_out: int = 0


def metric_intervals(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    method: Method = "auto",
    *,
    decided: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> dict[str, MetricInterval]:
    """Intervals for the performance of probabilities, from rows that took no part in training.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one; rows of both.
    p : array_like, shape (n,)
        Probability of the positive class; rows with NaN are left out and counted.
    weights : array_like, shape (n,), optional
        Row weights, which rows carry along when they are drawn; rows of weight 0 are as good as
        absent.
    level : float, default 0.95
        Nominal confidence.
    method : {"auto", "bca", "percentile", "basic"}, default "auto"
        - "auto": Clopper and Pearson's interval for accuracy, sensitivity and specificity (with
          Kish's effective number of rows under weights), BCa for Brier score, log-loss and AUC,
          expanded where rows or groups are few (`bootprob.metrics.bounds.expanded_level`), and
          Student's of fewer than five, beyond whose best and worst no resample reaches.
          Where fewer than five rows of a class are misordered, the AUC has Newcombe's score
          interval; where a class is decided without a mistake, the upper bounds of Brier score
          and log-loss hold what the mistakes would cost that this many rows cannot exclude.
        - "bca", "percentile", "basic": the bootstrap interval of that name, B. Efron, R.
          Tibshirani, An Introduction to the Bootstrap (1993), for all of them. Where it has no
          width, that of "auto" takes its place.

        The bootstrap is not consistent for the calibration error, a mean of absolute values that
        is biased upwards: it has an interval of its own with every method.
    decided : array_like of bool, shape (n,), optional
        Whether each row is decided positive; by default where ``p > 0.5``.
    ranks : array_like, shape (n,), optional
        What orders the rows for the AUC, where that is not `p`; of cross-fitted probabilities
        the AUC is too low, because each was moved away from the row's own label.
    groups : array_like, shape (n,), optional
        Which rows belong together, such as those of one subject: whole groups are drawn, and what
        takes their place where few differ counts groups instead of rows.
    seed : int, default 0
        Seed of the resampling.

    Returns
    -------
    dict of str to MetricInterval
        Keys ``brier_score``, ``log_loss``, ``calibration_error``, ``accuracy``, ``sensitivity``
        (TPR), ``specificity`` (TNR), ``auc``.

    Raises
    ------
    DataError
        For labels other than 0 and 1, probabilities outside [0, 1], weights below 0, or more than
        1e150 times as large as another that is not 0 (their unit does not count), ranks that
        are not finite, a level outside (0, 1), an unknown method, or a class without rows.

    Examples
    --------
    >>> from bootprob.metrics import metric_intervals
    >>> found = metric_intervals(y=[0, 0, 1, 1, 1, 0], p=[0.1, 0.4, 0.8, 0.6, 0.9, 0.2])
    >>> found["accuracy"].value, round(found["accuracy"].lower, 3)
    (1.0, 0.541)
    """
    level, seed = check_level(level), checked_whole("seed", seed, 0)
    if method not in get_args(Method):
        raise DataError(f"method is {method!r}; give 'auto', 'bca', 'percentile' or 'basic'.")
    given_p, given_weights = p, weights
    y, p, weights, n_left_out = check_rows(y, p, weights)
    check_both_classes(y)
    order, positive = p, p > 0.5
    if ranks is not None:
        order = kept_numbers("ranks", ranks, given_p, given_weights)
    if decided is not None:
        positive = kept_decisions(decided, given_p, given_weights)
    codes = groups_of_rows(groups, given_p, given_weights)
    rows = MeasuredRows(y, p, weights, positive, order, level, codes)
    members = equal_mass_bins(p, weights, _N_BINS)

    def values_with(w: Floats) -> dict[str, Floats]:
        return metrics_of(y, p, positive, order, members, w)

    parts = [values_with(w) for w in resampled_weights(y, weights, seed, codes)]
    values = values_with(weights[None])
    intervals = {}
    for name, (label, description) in METRICS.items():
        value = float(values[name][0])
        replicates = np.concatenate([part[name] for part in parts])
        if name == "calibration_error":
            used = "deviation"
            lower, upper = calibration_error_interval(
                value, y, p, weights, members, level, seed, codes
            )
        else:
            lower, upper, used = rows.interval(name, value, replicates, method)
        # The value may be a hair outside, where all replicates are the same but for rounding.
        lower, upper = min(lower, value), max(upper, value)
        intervals[name] = MetricInterval(
            name, label, description, value, lower, upper, level, used, len(y), n_left_out
        )
    return intervals


def log_loss_difference(
    y: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    *,
    groups: ArrayLike | None = None,
) -> MetricInterval:
    """Log-loss of `p` less that of `q` on the same rows; below 0 where `p` is the better one.

    BCa over rows, both losses taken from the same resample, so it is much narrower than the
    intervals of the two losses suggest. It has no width where the losses of all rows differ by
    the same.

    Parameters
    ----------
    y, p, q, weights, level, groups
        As in `metric_intervals`; rows where either probability is NaN are left out.

    Returns
    -------
    MetricInterval

    Raises
    ------
    DataError
        As `metric_intervals` does.
    """
    level = check_level(level)
    p, q = numbers_of_rows("p", p).copy(), numbers_of_rows("q", q).copy()
    if p.shape != q.shape:
        raise DataError(f"p and q must be of one length, got the shapes {p.shape} and {q.shape}.")
    p[np.isnan(q)] = np.nan
    q[np.isnan(p)] = np.nan
    codes = groups_of_rows(groups, p, weights)
    _, q, _, _ = check_rows(y, q, weights, "q")
    y, p, weights, n_left_out = check_rows(y, p, weights)
    check_both_classes(y)
    difference = row_log_loss(y, p) - row_log_loss(y, q)
    value = float(np.average(difference, weights=weights))
    resampled = [w @ difference / w.sum(1) for w in resampled_weights(y, weights, 0, codes)]
    influence = sums_of_groups(weights * (difference - value), codes)
    n_units = effective_rows(weights, codes)
    lower, upper, used = bca_or_student(value, np.concatenate(resampled), influence, level, n_units)
    return MetricInterval(
        "log_loss_difference",
        "Difference in log-loss",
        "Log-loss of the first model less that of the second, on the same rows.",
        value,
        min(lower, value),
        max(upper, value),
        level,
        used,
        len(y),
        n_left_out,
    )
