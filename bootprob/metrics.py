"""How good the probabilities are, measured on rows that took no part in training.

Every number comes with a percentile bootstrap interval over rows: the rows are drawn again with
replacement, the model is left as it is. The interval says how far the number could move with
another set of test rows of this size, not with another training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    recall_score,
    roc_auc_score,
)

from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.reliability import (
    ReliabilityCurve,
    calibration_error,
    calibration_error_by_chance,
    check_rows,
    equal_mass_bins,
    reliability_curve,
    resampling_parts,
    wilson_interval,
)

if TYPE_CHECKING:
    from bootprob.estimator import BootstrapSVC

__all__ = [
    "Metric",
    "ReliabilityCurve",
    "calibration_error",
    "calibration_error_by_chance",
    "log_loss_difference",
    "out_of_bag_caveat",
    "out_of_bag_metrics",
    "probability_metrics",
    "reliability_curve",
]

Floats = NDArray[np.float64]

# name -> (label, description); the order is that of every table.
_MEANING = {
    "brier_score": (
        "Brier score",
        "Mean squared distance between the probability and what happened (0 or 1). Lower is "
        "better: 0 is perfect, 0.25 is what a coin gives.",
    ),
    "log_loss": (
        "Log-loss",
        "Mean of −log(probability given to what happened). Lower is better: 0 is perfect, 0.69 "
        "is what a coin gives. Confident mistakes cost most.",
    ),
    "calibration_error": (
        "Calibration error",
        "Mean distance between the probability stated and the frequency observed, over ten bins "
        "that hold equally many rows. Lower is better.",
    ),
    "accuracy": (
        "Accuracy",
        "Share of all rows whose class is predicted correctly, at a probability of one half.",
    ),
    "sensitivity": (
        "Sensitivity",
        "Share of the positive rows that are predicted positive (true positive rate).",
    ),
    "specificity": (
        "Specificity",
        "Share of the negative rows that are predicted negative (true negative rate).",
    ),
    "auc": (
        "AUC",
        "Chance that a positive row is given a higher probability than a negative one (area "
        "under the ROC curve): 1 is perfect, 0.5 is what a coin gives.",
    ),
}


@dataclass(frozen=True)
class Metric:
    """One number about a model, with its interval.

    Attributes
    ----------
    name : str
        Key, such as ``"brier_score"``.
    label : str
        Name for a reader, such as ``"Brier score"``.
    value : float
    lower, upper : float
        Percentile bootstrap interval over rows.
    description : str
        What the number means, for a reader who is not a statistician.
    n_rows : int
        Rows the number was computed from.
    n_left_out : int
        Rows without an out-of-bag probability, left out.
    """

    name: str
    label: str
    value: float
    lower: float
    upper: float
    description: str
    n_rows: int
    n_left_out: int = 0


def out_of_bag_metrics(
    model: BootstrapSVC, level: float = 0.95, seed: int = 0
) -> dict[str, Metric]:
    """Metrics of the probabilities that `predict_proba` gives, from out-of-bag rows only.

    A row counts with the probability that those replicates give it which did not see it in
    training. Rows that were in every bootstrap sample have none; they are left out and counted
    in `Metric.n_left_out`.

    The calibrator was fitted to the same rows. The two parameters of a sigmoid make log-loss,
    Brier score and calibration error optimistic by a little (order 1/n). An isotonic calibration
    has as many parameters as it has steps and flatters all of these numbers much more, with a
    few hundred rows by as much as models commonly differ; judge an isotonic model on rows of its
    own. `out_of_bag_caveat` says so to readers.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    level : float, default 0.95
        Nominal coverage of the intervals, in (0, 1).
    seed : int, default 0
        Seed of the resampling; models fitted to the same rows are resampled alike.

    Returns
    -------
    dict of str to Metric
        Keys ``brier_score``, ``log_loss``, ``calibration_error``, ``accuracy``, ``sensitivity``,
        ``specificity``, ``auc``.

    Raises
    ------
    DataError
        If the rows that were out of bag are all of one class.
    """
    p = np.asarray(model.oob_proba_)[:, 1]
    return probability_metrics(model.y_, p, model.sample_weight_, level=level, seed=seed)


def out_of_bag_caveat(model: BootstrapSVC) -> str | None:
    """What a reader must know to take `out_of_bag_metrics` of a model for what they are.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted or not.

    Returns
    -------
    str or None
        Sentences on isotonic and Venn–Abers calibration; None where there is nothing to warn of.
    """
    kind = getattr(model, "calibration_", model.calibration)
    if kind not in ("isotonic", "venn-abers"):
        return None
    return (
        f"The {kind} calibration was fitted to the very rows that these numbers are measured on, "
        "and bends to them far more than a sigmoid with its two parameters. They look better than "
        "they are, log-loss, Brier score and calibration error above all, and the more so the "
        "fewer the rows. Judge such a model on rows of its own."
    )


def probability_metrics(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Metric]:
    """Metrics of any probabilities, as `out_of_bag_metrics` gives them for a model.

    Intervals are percentile bootstrap intervals over rows (1,000 resamples, each row drawn with
    equal chance and carrying its weight along; a resample that lacks a class is drawn again). The
    bins of the calibration error stay those of the full data. As resampling adds noise to a mean
    of distances, its interval lies too high rather than too low; it is widened where needed so
    that it contains the estimate. Where accuracy, sensitivity or specificity is exactly 0 or 1,
    resampling cannot move it, and Wilson's interval takes its place; an AUC of exactly 1 keeps an
    interval without width.

    Parameters
    ----------
    y : array-like, shape (n,)
        1 for the positive class, 0 for the negative one.
    p : array-like, shape (n,)
        Probability of the positive class; rows with NaN are left out and counted. The class
        predicted is the positive one where ``p > 0.5``.
    weights : array-like, shape (n,), optional
        Row weights; rows of weight 0 are as good as absent.
    level : float, default 0.95
        Nominal coverage of the intervals.
    seed : int, default 0
        Seed of the resampling.

    Returns
    -------
    dict of str to Metric

    Raises
    ------
    DataError
        For labels other than 0 and 1, probabilities outside [0, 1], weights below 0, a level
        outside (0, 1), or a class without rows.
    """
    check_level(level)
    y, p, weights, n_left_out = check_rows(y, p, weights)
    _check_both_classes(y)
    predicted = p > 0.5
    values = {
        "brier_score": brier_score_loss(y, p, sample_weight=weights),
        "log_loss": log_loss(y, p, sample_weight=weights, labels=[0, 1]),
        "calibration_error": calibration_error(y, p, weights),
        "accuracy": accuracy_score(y, predicted, sample_weight=weights),
        "sensitivity": recall_score(y, predicted, sample_weight=weights),
        "specificity": recall_score(y, predicted, sample_weight=weights, pos_label=0),
        "auc": roc_auc_score(y, p, sample_weight=weights),
    }
    shares = {"accuracy": y >= 0, "sensitivity": y == 1, "specificity": y == 0}
    members = equal_mass_bins(p, weights, 10)
    parts = [_resampled(y, p, members, w) for w in _resampled_weights(y, weights, seed)]
    metrics = {}
    for name, (label, description) in _MEANING.items():
        value = float(values[name])
        lower, upper = _percentiles(np.concatenate([part[name] for part in parts]), level)
        if name == "calibration_error":
            lower, upper = min(lower, value), max(upper, value)
        elif name in shares and value in (0.0, 1.0):
            w = weights[shares[name]]
            lower, upper = wilson_interval(
                np.array([value]), np.array([w.sum() ** 2 / (w**2).sum()]), level
            )[0]
        metrics[name] = Metric(name, label, value, lower, upper, description, len(y), n_left_out)
    return metrics


def log_loss_difference(
    y: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Metric:
    """Log-loss of `p` less that of `q` on the same rows; below 0 where `p` is the better one.

    The interval is the percentile bootstrap over rows, both losses taken from the same resample,
    so it is much narrower than the intervals of the two losses suggest.

    Parameters
    ----------
    y, p, q, weights, level, seed
        As in `probability_metrics`; rows where either probability is NaN are left out.

    Returns
    -------
    Metric
    """
    check_level(level)
    p, q = np.array(p, dtype=float), np.array(q, dtype=float)
    p[np.isnan(q)] = np.nan
    q[np.isnan(p)] = np.nan
    _, q, _, _ = check_rows(y, q, weights)
    y, p, weights, n_left_out = check_rows(y, p, weights)
    _check_both_classes(y)
    difference = _row_log_loss(y, p) - _row_log_loss(y, q)
    resampled = [w @ difference / w.sum(1) for w in _resampled_weights(y, weights, seed)]
    lower, upper = _percentiles(np.concatenate(resampled), level)
    return Metric(
        "log_loss_difference",
        "Difference in log-loss",
        float(np.average(difference, weights=weights)),
        lower,
        upper,
        "Log-loss of the first model less that of the second, on the same rows.",
        len(y),
        n_left_out,
    )


def _check_both_classes(y: Floats) -> None:
    if y.min() == y.max():
        raise DataError(
            "The rows with a probability are all of one class; metrics need both. If they come "
            "from out-of-bag rows, train with more bootstrap samples."
        )


def _row_log_loss(y: Floats, p: Floats) -> Floats:
    tiny = np.finfo(np.float64).eps  # where sklearn.metrics.log_loss clips
    return -np.log(np.clip(np.where(y == 1, p, 1 - p), tiny, 1 - tiny))


def _resampled_weights(y: Floats, weights: Floats, seed: int) -> Iterator[Floats]:
    """Row weights of bootstrap resamples that hold both classes, in parts (b, n)."""
    rng = np.random.default_rng(seed)
    n = len(y)
    for size in resampling_parts(n):
        counts = np.empty((size, n))
        todo = np.arange(size)
        while todo.size:
            drawn = rng.integers(n, size=(todo.size, n)) + n * np.arange(todo.size)[:, None]
            counts[todo] = np.bincount(drawn.ravel(), minlength=todo.size * n).reshape(-1, n)
            positive = counts[todo] @ y
            todo = todo[(positive == 0) | (positive == n)]
        yield counts * weights


def _resampled(y: Floats, p: Floats, members: Floats, w: Floats) -> dict[str, Floats]:
    """All metrics for every row of the weight matrix `w` (b, n) at once."""
    hit = (p > 0.5) == (y == 1)
    per_row = [np.ones(len(y)), (p - y) ** 2, _row_log_loss(y, p), hit, y, y * hit, (1 - y) * hit]
    sums = w @ np.column_stack(per_row)
    total, squares, losses, hits, positive, positive_hits, negative_hits = sums.T
    return {
        "brier_score": squares / total,
        "log_loss": losses / total,
        "calibration_error": np.abs(w @ (members * (y - p)[:, None])).sum(1) / total,
        "accuracy": hits / total,
        "sensitivity": positive_hits / positive,
        "specificity": negative_hits / (total - positive),
        "auc": _auc(y, p, w),
    }


def _auc(y: Floats, p: Floats, w: Floats) -> Floats:
    """Area under the ROC curve for every row of `w`: ties count one half."""
    order = np.argsort(p)
    starts = np.flatnonzero(np.diff(p[order], prepend=-1.0))
    positive = np.add.reduceat((w * y)[:, order], starts, axis=1)
    negative = np.add.reduceat((w * (1 - y))[:, order], starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    return (positive * below).sum(1) / (positive.sum(1) * negative.sum(1))


def _percentiles(values: Floats, level: float) -> tuple[float, float]:
    lower, upper = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)
