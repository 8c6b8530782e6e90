"""Intervals for how good probabilities are: Brier score, AUC, true positive rate and so on.

What is covered is the performance of this one fitted model on new rows of the same population.
The rows are drawn again with their probabilities as they are, 1,000 times, both classes together
(new rows come with a random number of positives too). docs/metric_intervals.md has the formulas
and the coverage measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.decision_rates import exact_interval
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.metric_bounds import (
    auc_score_interval,
    bca,
    calibration_error_interval,
    concordance,
    unseen_share,
)
from bootprob.metrics import (
    _MEANING,
    _check_both_classes,
    _percentiles,
    _resampled,
    _resampled_weights,
    _row_log_loss,
)
from bootprob.rates import effective_rows
from bootprob.reliability import check_rows, equal_mass_bins

if TYPE_CHECKING:
    from bootprob.predictions import FittedEnsemble

__all__ = ["MetricInterval", "metric_intervals", "out_of_bag_intervals"]

Floats = NDArray[np.float64]
Method = Literal["auto", "bca", "percentile", "basic"]

# Which rows a share is a share of.
_SHARE_OF: dict[str, Callable[[Floats], NDArray[np.bool_]]] = {
    "accuracy": lambda y: y >= 0,
    "sensitivity": lambda y: y == 1,
    "specificity": lambda y: y == 0,
}
_LOSSES: dict[str, Callable[..., Floats]] = {
    "brier_score": lambda y, p: np.square(y - p),
    "log_loss": _row_log_loss,
}
_N_BINS = 10
# Misordered rows of a class from which the bootstrap knows how the AUC varies.
_ENOUGH_MISORDERED = 5
_ROUNDING = 1e-9


@dataclass(frozen=True)
class MetricInterval:
    """One number about a model on new rows, with its confidence interval.

    Attributes
    ----------
    name : str
        Key, such as ``"brier_score"``.
    label : str
        Name for a reader, such as ``"Brier score"``.
    estimate, lower, upper : float
        The interval always has a width, and contains the estimate.
    level : float
        Nominal confidence.
    method : str
        Where the bounds come from: "bca", "percentile", "basic"; "exact" (Clopper and Pearson),
        "score" (Newcombe, for the AUC), "deviation" (for the calibration error), or "unseen",
        where all rows agree and only what they could not show can differ.
    n_rows, n_left_out : int
        Rows measured on, and rows without a probability.
    """

    name: str
    label: str
    estimate: float
    lower: float
    upper: float
    level: float
    method: str
    n_rows: int
    n_left_out: int = 0


def out_of_bag_intervals(
    model: FittedEnsemble, level: float = 0.95, method: Method = "auto", *, seed: int = 0
) -> dict[str, MetricInterval]:
    """Intervals for the performance of a fitted model on new rows, from its out-of-bag rows.

    A row counts with the probability that the replicates give it which did not see it; no rows
    have to be held back. That the probability comes from about a third of the replicates, and
    that the calibrator saw the label, is not in the intervals. With a sigmoid they covered as
    often as those of held-out rows, but for up to four points less where nearly all of 200 rows
    were certain (docs/metric_intervals.md). Calibrators that bend more to the rows that they are
    fitted to flatter themselves: see `bootprob.metrics.out_of_bag_caveat`.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    level, method, seed
        As in `metric_intervals`.

    Returns
    -------
    dict of str to MetricInterval

    Raises
    ------
    DataError
        If the rows that were out of bag are all of one class, or as in `metric_intervals`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.metric_intervals import out_of_bag_intervals
    >>> model = BootstrapSVC(n_bootstraps=50, random_state=0)
    >>> auc = out_of_bag_intervals(model.fit(*load_breast_cancer(return_X_y=True)))["auc"]
    >>> bool(0.97 < auc.lower < auc.estimate < auc.upper <= 1)
    True
    """
    probability = np.asarray(model.oob_proba_)[:, 1]
    return metric_intervals(model.y_, probability, model.sample_weight_, level, method, seed=seed)


def metric_intervals(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    method: Method = "auto",
    *,
    seed: int = 0,
) -> dict[str, MetricInterval]:
    """Intervals for the performance of probabilities, from rows that took no part in training.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one; rows of both.
    p : array_like, shape (n,)
        Probability of the positive class; rows with NaN are left out and counted. A row is
        decided positive where ``p > 0.5``.
    weights : array_like, shape (n,), optional
        Row weights, which rows carry along when they are drawn; rows of weight 0 are as good as
        absent.
    level : float, default 0.95
        Nominal confidence.
    method : {"auto", "bca", "percentile", "basic"}, default "auto"
        - "auto": Clopper and Pearson's interval for accuracy, sensitivity and specificity (with
          Kish's effective number of rows under weights), BCa for Brier score, log-loss and AUC.
          Where fewer than five rows of a class are misordered, the AUC has Newcombe's score
          interval; where a class is decided without a mistake, the upper bounds of Brier score
          and log-loss hold what the mistakes would cost that this many rows cannot exclude.
        - "bca", "percentile", "basic": the bootstrap interval of that name, B. Efron, R.
          Tibshirani, An Introduction to the Bootstrap (1993), for all of them. Where it has no
          width, that of "auto" takes its place.

        The bootstrap is not consistent for the calibration error, a mean of absolute values that
        is biased upwards: it has an interval of its own with every method.
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
        For labels other than 0 and 1, probabilities outside [0, 1], weights below 0, a level
        outside (0, 1), an unknown method, or a class without rows.
    """
    level = check_level(level)
    if method not in get_args(Method):
        raise DataError(f"method is {method!r}; give 'auto', 'bca', 'percentile' or 'basic'.")
    y, p, weights, n_left_out = check_rows(y, p, weights)
    _check_both_classes(y)
    rows = _Rows(y, p, weights, level)
    members = equal_mass_bins(p, weights, _N_BINS)
    parts = [_resampled(y, p, members, w) for w in _resampled_weights(y, weights, seed)]
    values = _resampled(y, p, members, weights[None])
    intervals = {}
    for name, (label, _) in _MEANING.items():
        estimate = float(values[name][0])
        replicates = np.concatenate([part[name] for part in parts])
        if name == "calibration_error":
            used = "deviation"
            lower, upper = calibration_error_interval(estimate, y, p, weights, members, level, seed)
        else:
            lower, upper, used = rows.interval(name, estimate, replicates, method)
        # The estimate may be a hair outside, where all replicates are the same but for rounding.
        lower, upper = min(lower, estimate), max(upper, estimate)
        intervals[name] = MetricInterval(
            name, label, estimate, lower, upper, level, used, len(y), n_left_out
        )
    return intervals


@dataclass(frozen=True)
class _Rows:
    """Labels, probabilities and weights, checked, and the level asked for."""

    y: Floats
    p: Floats
    weights: Floats
    level: float

    def interval(
        self, name: str, estimate: float, replicates: Floats, method: str
    ) -> tuple[float, float, str]:
        """Bounds of a metric other than the calibration error, and where they come from."""
        if method != "auto":
            lower, upper = self._resampled(name, estimate, replicates, method)
            if upper - lower > _ROUNDING:
                return lower, upper, method
        if name == "auc":
            if self._few_misordered(estimate) or np.ptp(replicates) <= _ROUNDING:
                n_positive = effective_rows(self.weights[self.y == 1])
                n_negative = effective_rows(self.weights[self.y == 0])
                bounds = auc_score_interval(estimate, n_positive, n_negative, self.level)
                return *bounds, "score"
        elif name in _SHARE_OF:
            n_rows = effective_rows(self.weights[_SHARE_OF[name](self.y)])
            return *exact_interval(min(estimate, 1.0), n_rows, self.level), "exact"
        elif np.ptp(replicates) <= _ROUNDING:
            return *self._all_alike(name, estimate), "unseen"
        lower, upper = self._resampled(name, estimate, replicates, "bca")
        if name in _LOSSES:
            upper += sum(self._unseen_mistakes(name, label) for label in (0, 1))
        return lower, upper, "bca"

    def _resampled(
        self, name: str, estimate: float, replicates: Floats, method: str
    ) -> tuple[float, float]:
        """Bootstrap interval, cut where no metric can be."""
        if method == "bca":
            lower, upper = bca(estimate, replicates, self._influence(name, estimate), self.level)
        else:
            lower, upper = _percentiles(replicates, self.level)
        if method == "basic":
            lower, upper = 2 * estimate - upper, 2 * estimate - lower
        return max(lower, 0.0), upper if name == "log_loss" else min(upper, 1.0)

    def _influence(self, name: str, estimate: float) -> Floats:
        """What a little more weight on each row adds to a metric, in any unit, shape (n,)."""
        y, p, weights = self.y, self.p, self.weights
        if name == "auc":
            mass = np.where(y == 1, weights @ y, weights @ (1 - y))
            return weights * (concordance(y, p, weights) - estimate) / mass
        if name in _LOSSES:
            return weights * (_LOSSES[name](y, p) - estimate)
        return weights * _SHARE_OF[name](y) * (((p > 0.5) == y) - estimate)

    def _few_misordered(self, auc: float) -> bool:
        """Whether a class has too few rows that are not on the right side of all of the other."""
        right = concordance(self.y, self.p, self.weights)
        off = (right if auc > 0.5 else 1 - right) < 1 - _ROUNDING
        return min(np.sum(off & (self.y == label)) for label in (0, 1)) < _ENOUGH_MISORDERED

    def _all_alike(self, name: str, estimate: float) -> tuple[float, float]:
        """Bounds of a loss that is the same in all rows; rows of another kind may be unseen."""
        n_rows = effective_rows(self.weights)
        share = unseen_share(n_rows, self.level)
        worst = max(_LOSSES[name](1 - self.y, self.p).max(), estimate)
        # As sure as n rows can make: Laplace's rule of succession.
        worst = max(worst, 1.0 if name == "brier_score" else float(np.log(n_rows + 2)))
        return (1 - share) * estimate, (1 - share) * estimate + share * worst

    def _unseen_mistakes(self, name: str, label: int) -> float:
        """What a loss could gain by mistakes in a class that shows none.

        So many as this many rows cannot exclude, each as costly as a row of the class would be
        with the probability of a row that is decided otherwise.
        """
        rows, decided = self.y == label, self.p > 0.5
        if (decided[rows] != label).any():
            return 0.0
        loss, otherwise = _LOSSES[name], decided != label
        p, weights = (self.p[otherwise], self.weights[otherwise]) if otherwise.any() else (0.5, 1.0)
        cost = np.average(loss(np.full(np.shape(p), label), p), weights=weights)
        cost -= np.average(loss(self.y[rows], self.p[rows]), weights=self.weights[rows])
        share = unseen_share(effective_rows(self.weights[rows]), self.level)
        return float(share * cost * self.weights[rows].sum() / self.weights.sum())
