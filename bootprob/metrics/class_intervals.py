"""How good probabilities of several classes are, with intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.logits import CLOSEST
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.bounds import bca_or_student, unseen_share
from bootprob.metrics.intervals import MetricInterval
from bootprob.metrics.measured_rows import ROUNDING, MeasuredRows
from bootprob.metrics.metrics import resampled_weights
from bootprob.metrics.row_weights import without_unit
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["METRICS_OF_CLASSES", "class_metric_intervals", "row_losses"]

METRICS_OF_CLASSES = {
    "log_loss": (
        "Log-loss",
        "Mean of −log(probability given to the true class). Lower is better: 0 is perfect, and "
        "the logarithm of the number of classes is what a guess gives. Confident mistakes cost "
        "most.",
    ),
    "brier_score": (
        "Brier score",
        "Sum over the classes of the squared distance between the probability and what happened "
        "(0 or 1), mean over the rows: 0 is perfect, 2 the worst.",
    ),
    "accuracy": ("Accuracy", "Share of all rows whose class is predicted correctly."),
}
"""Name of each metric -> label and description, in the order of every table."""


def row_losses(codes: NDArray[np.integer], probability: Floats) -> dict[str, Floats]:
    """Log-loss and Brier score (``Σ_k (p_k − [y = k])²``) of each row, shape (n,)."""
    rows = np.arange(len(codes))
    of_own = probability[rows, codes]
    squares = np.square(probability).sum(axis=1) - 2 * of_own + 1
    return {"log_loss": -np.log(of_own.clip(CLOSEST)), "brier_score": squares}


def class_metric_intervals(
    codes: NDArray[np.integer],
    probability: Floats,
    weight: Floats | None = None,
    level: float = 0.95,
    *,
    decided: NDArray[np.integer] | None = None,
    groups: Groups | None = None,
    seed: int = 0,
) -> dict[str, MetricInterval]:
    """Intervals for the performance of class probabilities, from rows that were not trained on.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        True classes, as columns of `probability`; of two classes at least.
    probability : ndarray, shape (n, K)
        Rows with NaN are left out and counted.
    weight : ndarray, shape (n,), optional
        Row weights; rows of weight 0 are as good as absent.
    level : float, default 0.95
    decided : ndarray of int, shape (n,), optional
        The class that each row is given; by default the most probable one.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together; whole groups are drawn, and what takes their place where few
        differ counts groups instead of rows.
    seed : int, default 0
        Of the resampling.

    Returns
    -------
    dict of str to MetricInterval
        Keys of `METRICS_OF_CLASSES`, by the rules of `bootprob.metrics.metric_intervals`. Accuracy
        has Clopper and Pearson's interval (with the effective number of rows), or BCa's of groups
        where enough of these hold a mistake; losses have BCa's of 1,000 resamples. Where a class is
        decided without a mistake, their upper bounds hold what the mistakes would cost that so many
        rows cannot exclude.

    Raises
    ------
    DataError
        For a level outside (0, 1), weights that are too far apart
        (`bootprob.metrics.row_weights.without_unit`), or rows of one class alone.
    """
    level = check_level(level)
    weight = np.ones(len(codes)) if weight is None else weight
    decided = probability.argmax(axis=1) if decided is None else decided
    used = weight > 0
    known = np.isfinite(probability).all(axis=1) & used
    n_left_out = int((used & ~known).sum())
    codes, probability = codes[known], probability[known]
    weight, decided = weight[known], decided[known]
    groups = None if groups is None else np.unique(groups[known], return_inverse=True)[1]
    if len(np.unique(codes)) < 2:
        raise DataError(
            "The rows with a probability are all of one class; metrics need more. If they come "
            "from out-of-bag rows, train with more bootstrap samples."
        )
    weight = without_unit(weight)
    losses, right = row_losses(codes, probability), (decided == codes).astype(np.float64)
    found: dict[str, tuple[float, float, float, str]] = {}
    frequent = (codes == np.bincount(codes).argmax()).astype(np.float64)
    values = np.stack([*losses.values(), right], axis=1)
    parts = [
        w @ values / w.sum(axis=1, keepdims=True)
        for w in resampled_weights(frequent, weight, seed, groups)
    ]
    *of_losses, of_accuracy = np.concatenate(parts).T
    n_units = effective_rows(weight, groups)
    for loss, replicates in zip(losses, of_losses, strict=True):
        value = float(np.average(losses[loss], weights=weight))
        if np.ptp(replicates) <= ROUNDING:
            found[loss] = value, *_all_alike(loss, value, codes, probability, n_units, level)
            continue
        influence = sums_of_groups(weight * (losses[loss] - value), groups)
        lower, upper, kind = bca_or_student(value, replicates, influence, level, n_units)
        upper += _unseen_mistakes(loss, codes, probability, weight, decided, groups, level)
        upper = min(upper, 2.0) if loss == "brier_score" else upper
        found[loss] = value, max(min(lower, value), 0.0), max(upper, value), kind
    # Whether a row is right is a matter of two classes.
    of_two = MeasuredRows(right, right, weight, right >= 0, right, level, groups)
    accuracy = float(np.average(right, weights=weight))
    lower, upper, method = of_two.interval("accuracy", accuracy, of_accuracy, "auto")
    found["accuracy"] = accuracy, min(lower, accuracy), max(upper, accuracy), method
    return {
        name: MetricInterval(
            name, *said, *found[name][:3], level, found[name][3], len(codes), n_left_out
        )
        for name, said in METRICS_OF_CLASSES.items()
    }


def _all_alike(
    loss: str,
    value: float,
    codes: NDArray[np.integer],
    probability: Floats,
    n_rows: float,
    level: float,
) -> tuple[float, float, str]:
    """Bounds of a loss that is the same in all rows; rows of another kind may be unseen."""
    K, share = probability.shape[1], unseen_share(n_rows, level)
    of_labels = (row_losses(np.full(len(codes), k), probability)[loss] for k in range(K))
    # As sure as n rows can make: Laplace's rule of succession.
    surest = 2.0 if loss == "brier_score" else float(np.log(n_rows + K))
    worst = max(max(float(each.max()) for each in of_labels), surest)
    return (1 - share) * value, (1 - share) * value + share * worst, "unseen"


def _unseen_mistakes(
    loss: str,
    codes: NDArray[np.integer],
    probability: Floats,
    weight: Floats,
    decided: NDArray[np.integer],
    groups: Groups | None,
    level: float,
) -> float:
    """What a loss could gain by mistakes in classes that show none.

    So many as the rows of these classes cannot exclude, each as costly as a row of the worst of
    them would be with the probabilities of the rows that are decided otherwise.
    """
    unmistaken, costs = np.zeros(len(codes), dtype=bool), [0.0]
    for label in np.unique(codes):
        own, otherwise = codes == label, decided != label
        if otherwise[own].any():
            continue
        unmistaken |= own
        mine = row_losses(codes[own], probability[own])[loss]
        here = float(np.average(mine, weights=weight[own]))
        if not otherwise.any():  # as dear as a guess
            K = probability.shape[1]
            costs.append(float(np.log(K) if loss == "log_loss" else 1 - 1 / K) - here)
            continue
        theirs = row_losses(np.full(otherwise.sum(), label), probability[otherwise])[loss]
        costs.append(float(np.average(theirs, weights=weight[otherwise])) - here)
    if not unmistaken.any():
        return 0.0
    n_rows = effective_rows(weight[unmistaken], None if groups is None else groups[unmistaken])
    share = weight[unmistaken].sum() / weight.sum()
    return float(unseen_share(n_rows, level) * share * max(costs))
