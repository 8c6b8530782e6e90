"""Metrics of probabilities, for the rows as they are and for rows that are drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.metrics.reliability import resampling_parts
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "METRICS",
    "ROW_LOSSES",
    "SHARE_OF",
    "check_both_classes",
    "metrics_of",
    "resampled_weights",
    "row_log_loss",
]


METRICS = {
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
        "Share of all rows whose class is predicted correctly.",
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
"""Name of each metric -> label and description, in the order of every table."""


def row_log_loss(y: Floats, p: Floats) -> Floats:
    """``−log(probability given to what happened)`` of each row, shape (n,).

    Probabilities are kept off 0 and 1 by the precision of numbers, as in scikit-learn.
    """
    tiny = np.finfo(np.float64).eps
    return -np.log(np.clip(np.where(y == 1, p, 1 - p), tiny, 1 - tiny))


ROW_LOSSES: Mapping[str, Callable[..., Floats]] = {
    "brier_score": lambda y, p: np.square(y - p),
    "log_loss": row_log_loss,
}
"""Metrics that are means over rows, and what of."""

SHARE_OF: Mapping[str, Callable[[Floats], NDArray[np.bool_]]] = {
    "accuracy": lambda y: y >= 0,
    "sensitivity": lambda y: y == 1,
    "specificity": lambda y: y == 0,
}
"""Metrics that are shares of right decisions, and of which rows."""


def check_both_classes(y: Floats) -> None:
    """Refuse rows of one class by a DataError."""
    if y.min() == y.max():
        raise DataError(
            "The rows with a probability are all of one class; metrics need both. If they come "
            "from out-of-bag rows, train with more bootstrap samples."
        )


def metrics_of(
    y: Floats,
    p: Floats,
    decided: NDArray[np.bool_],
    ranks: Floats,
    members: Floats,
    w: Floats,
) -> dict[str, Floats]:
    """All metrics for every row of a matrix of row weights at once.

    Parameters
    ----------
    y : ndarray, shape (n,)
        0 or 1.
    p : ndarray, shape (n,)
        Probabilities.
    decided : ndarray of bool, shape (n,)
        Whether each row is decided positive.
    ranks : ndarray, shape (n,)
        What orders the rows for the AUC.
    members : ndarray, shape (n, bins)
        Which bin of the calibration error each row is in, 0 or 1.
    w : ndarray, shape (b, n)
        Weights with both classes in every row.

    Returns
    -------
    dict of str to ndarray, shape (b,)
        The keys of `METRICS`.
    """
    hit = decided == (y == 1)
    losses = [loss(y, p) for loss in ROW_LOSSES.values()]
    # Not from the sums of all rows: beside large weights of one class the other's would be lost.
    shares = [hit, y, 1 - y, y * hit, (1 - y) * hit]
    sums = w @ np.column_stack([np.ones(len(y)), *shares, *losses])
    total, hits, positive, negative, positive_hits, negative_hits = sums.T[:6]
    return {
        **dict(zip(ROW_LOSSES, sums.T[6:] / total, strict=True)),
        "calibration_error": np.abs(w @ (members * (y - p)[:, None])).sum(1) / total,
        "accuracy": hits / total,
        "sensitivity": positive_hits / positive,
        "specificity": negative_hits / negative,
        "auc": _auc(y, ranks, w),
    }


def resampled_weights(
    y: Floats, weights: Floats, seed: int, groups: Groups | None = None
) -> Iterator[Floats]:
    """Row weights of 1,000 bootstrap resamples that hold both classes, in parts (b, n).

    Each row, or group of rows, is drawn with equal chance and carries its weight along; a resample
    that lacks a class is drawn again.
    """
    rng = np.random.default_rng(seed)
    codes = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n = int(codes.max()) + 1
    of_group = np.bincount(codes)
    positives = np.bincount(codes, y)
    for size in resampling_parts(len(y)):
        counts = np.empty((size, n))
        todo = np.arange(size)
        while todo.size:
            drawn = rng.integers(n, size=(todo.size, n)) + n * np.arange(todo.size)[:, None]
            counts[todo] = np.bincount(drawn.ravel(), minlength=todo.size * n).reshape(-1, n)
            positive, total = counts[todo] @ positives, counts[todo] @ of_group
            todo = todo[(positive == 0) | (positive == total)]
        yield (counts if groups is None else counts[:, codes]) * weights


def _auc(y: Floats, ranks: Floats, w: Floats) -> Floats:
    """Area under the ROC curve for every row of `w`: ties count one half."""
    order = np.argsort(ranks)
    starts = np.flatnonzero(np.diff(ranks[order], prepend=-np.inf))
    positive = np.add.reduceat((w * y)[:, order], starts, axis=1)
    negative = np.add.reduceat((w * (1 - y))[:, order], starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    return (positive * below).sum(1) / (positive.sum(1) * negative.sum(1))
