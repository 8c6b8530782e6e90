"""What every bootstrap ensemble of classifiers answers, whatever its replicates are."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from bootprob.costs.decisions import Decisions
from bootprob.costs.given import cost_matrix_of, refuse_uncalibrated
from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import RuleCost
from bootprob.ensemble.conformal import prediction_sets
from bootprob.ensemble.documentation import filled, listed
from bootprob.ensemble.fitted import ensemble_of, two_classes_of, warn_of_doubts
from bootprob.ensemble.later_rows import TimedRows, measured_later, remark_of_later
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_costs, out_of_bag_intervals
from bootprob.ensemble.replicate_stability import replicate_probabilities, stability_of
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.specs import NO_CONTROL
from bootprob.ensemble.state import state_of
from bootprob.ensemble.subgroups import out_of_bag_subgroups
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.ensemble.uncertainty.probability_intervals import METHODS
from bootprob.ensemble.updates import recalibrated, watched
from bootprob.exceptions import LaterRowsWarning
from bootprob.intervals.levels import check_level
from bootprob.intervals.votes import VOTE_INTERVALS
from bootprob.metrics.intervals import Method, MetricInterval
from bootprob.metrics.prediction_stability import THRESHOLDS, Stability
from bootprob.metrics.subgroups import Subgroups
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import (
    DeviceRows,
    answered_in_kind,
    in_kind,
    on_host,
    take_rows,
)

__all__ = ["BootstrapEnsemble"]


class BootstrapEnsemble(ClassifierMixin, BaseEstimator, ABC):
    """Answers of a fitted ensemble: probabilities, intervals, scores, votes, prediction sets."""

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train the ensemble."""

    if TYPE_CHECKING:
        classes_: NDArray[Any]
        pair_ensembles_: list[Any]

    @answered_in_kind
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes of the highest probability, shape (m,); ties go to the first of ``classes_``.

        Of two classes, ``classes_[1]`` where its probability is above `decision_threshold_`: one
        half, unless a rate is controlled. Of several under control, by `decision_function`.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.predict(X[:3])
        array([1, 1, 1])
        """
        return ensemble_of(self).predict(checked_rows(self, X))

    @overload
    def predict_proba(
        self, X: ArrayLike, return_interval: Literal[False] = False, level: float = 0.95
    ) -> Floats: ...

    @overload
    def predict_proba(
        self, X: ArrayLike, return_interval: Literal[True], level: float = 0.95
    ) -> tuple[Floats, Floats]: ...

    @answered_in_kind
    def predict_proba(
        self, X: ArrayLike, return_interval: bool = False, level: float = 0.95
    ) -> Floats | tuple[Floats, Floats]:
        """Class probabilities: calibrated, or vote shares with ``calibration=None``.

        Control of a rate moves decisions (`decision_threshold_`) and not these. Vote shares it does
        move: they are counted about `vote_thresholds_`, as in the thesis.

        With several classes, those of the pairs, coupled (`coupling`).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        return_interval : bool, default False
            Whether intervals are returned too, as a `Pipeline` hands it to its last step:
            ``pipeline.predict_proba(X, return_interval=True)``.
        level : float, default 0.95
            Nominal confidence level of these.

        Returns
        -------
        probability : ndarray, shape (m, K)
            In the order of `classes_`.
        interval : ndarray, shape (m, K, 2)
            Where asked for: what `proba_interval` says.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> probability = model.predict_proba(X[:3])
        >>> probability.shape, probability.sum(axis=1).round(12).tolist()
        ((3, 2), [1.0, 1.0, 1.0])
        >>> probability, interval = model.predict_proba(X[:3], return_interval=True, level=0.9)
        >>> interval.shape
        (3, 2, 2)
        """
        ensemble, rows = ensemble_of(self), checked_rows(self, X)
        probability = ensemble.predict_proba(rows)
        if not return_interval:
            return probability
        method = ensemble.checked_method(None)
        interval = ensemble.proba_interval(rows, level, method)
        warn_of_doubts(self, method)
        return probability, interval

    @answered_in_kind
    def undecided(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Rows that are left undecided so that rates hold of the others, shape (m,).

        Where ``rates`` has "decided" those with a probability between the two of
        `undecided_between_`; `predict` gives them the class of the nearer side, for which no rate
        is promised. Elsewhere none.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Raises
        ------
        DataError
            With several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.undecided(X).any()  # no rates were asked for
        np.False_
        """
        ensemble = two_classes_of(self, "undecided rows")
        probability = ensemble.predict_proba(checked_rows(self, X))[:, 1]
        found = ensemble.undecided(probability)
        return np.zeros(len(probability), dtype=bool) if found is None else found

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of `predict`, as of every classifier of scikit-learn, on the host.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        y : array_like, shape (m,)
            Their labels.
        sample_weight : array_like, shape (m,), optional
            Their weights.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
        """
        return super().score(take_rows(self, X), on_host(y), on_host(sample_weight))

    @answered_in_kind
    def vote_proba(self, X: ArrayLike) -> Floats:
        """Weighted share of replicates that vote for each class, thesis (3.4).

        A vote is for ``classes_[1]`` where the score is above `vote_thresholds_`, which are 0
        unless a rate is controlled by them. This is the papers' estimate. It is a vote, not a
        calibrated probability: it says how stable the classification is under resampling.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, K)
            In the order of `classes_`; a score of exactly the threshold votes for
            ``classes_[0]``. With several classes the shares of the pairs, coupled.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.vote_proba(X[:1]).round(1)
        array([[1., 0.]])
        """
        return ensemble_of(self).vote_proba(checked_rows(self, X))

    @answered_in_kind
    def decision_function(self, X: ArrayLike) -> Floats:
        """Weighted mean score: over the models with `weights_`, then over the replicates.

        With several classes the logarithm of each class's odds against all others, by
        `predict_proba`, and `class_offsets_` where a rate is controlled.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m,), or (m, K) with several classes
            Larger means more likely ``classes_[1]``, or the class of the column.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> score = model.decision_function(X)
        >>> bool(score[y == 2].mean() > 0 > score[y == 1].mean())
        True
        """
        return ensemble_of(self).decision_function(checked_rows(self, X))

    @answered_in_kind
    def proba_interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        method: str | None = None,
        *,
        clip: bool = False,
    ) -> Floats:
        """Intervals for the class probabilities.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level : float, default 0.95
            Nominal confidence level.
        method : str, optional
            Default: the parameter `interval`. What each covers was measured: docs/intervals.md.

            (methods)
        clip : bool, default False
            Cut the bounds of "wald" at 0 and 1; the others never pass them.

        Returns
        -------
        ndarray, shape (m, K, 2)
            Lower and upper bound for each class; of several classes each by itself, from those of
            the pairs (`bootprob.ensemble.several_classes`).

        Raises
        ------
        DataError
            For an unknown method or level, or a method that needs a calibration without one. With
            several classes, for methods that say nothing of errors which the pairs share: those of
            votes, and "venn-abers".

        Warns
        -----
        LackOfFitWarning
            If a test found that they promise too much (`lack_of_fit_`).
        FewRowsWarning
            If so few rows seldom show whether the logit bends, and no test found that it does.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> lower, upper = model.proba_interval(X, level=0.9)[:, 1].T
        >>> probability = model.predict_proba(X)[:, 1]
        >>> bool(((lower < probability) & (probability < upper)).all())
        True
        """
        ensemble = ensemble_of(self)
        method = ensemble.checked_method(method)
        found = ensemble.proba_interval(checked_rows(self, X), level, method, clip=clip)
        warn_of_doubts(self, method)
        return found

    @answered_in_kind
    def summarize(
        self,
        X: ArrayLike,
        level: float = 0.95,
        method: str | None = None,
        *,
        score_interval: bool = True,
    ) -> dict[str, NDArray[Any]]:
        """Say everything about rows in one pass over the ensemble, or two where votes count.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level, method
            As for `proba_interval`.
        score_interval : bool, default True
            Without it linear kernels need no score of each replicate for "corrected", "normal"
            and "jackknife", and are faster by far.

        Returns
        -------
        dict
            For the positive class: "probability" (m,), "probability_interval" (m, 2), "score"
            (m,) and its basic "score_interval" (m, 2); and "label" (m,), as `predict` gives it.
            Where rows may be left undecided, "undecided" (m,).
            Of several classes "probability" (m, K), "probability_interval" (m, K, 2) and "label".

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> sorted(model.summarize(X[:3]))
        ['label', 'probability', 'probability_interval', 'score', 'score_interval']
        """
        ensemble = ensemble_of(self)
        method = ensemble.checked_method(method)
        rows = checked_rows(self, X)
        level = check_level(level)
        found = ensemble.summarize(rows, level, method, score_interval=score_interval)
        warn_of_doubts(self, method)
        return found

    def decide(self, X: ArrayLike, costs: CostMatrix | ArrayLike, level: float = 0.95) -> Decisions:
        """Yes, no, or ask a person: the decision of least expected cost for each row.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        costs : CostMatrix, array_like of shape (2, 2) or (m, 2, 2), or DataFrame
            What each outcome costs, and with ``CostMatrix(..., ask=...)`` what it costs to ask;
            arrays have true classes down and decided ones across.
        level : float, default 0.95
            Nominal confidence level of the intervals, for each row.

        Returns
        -------
        Decisions
            On the host. Its intervals are those of the probability carried over to the cost.

        Raises
        ------
        DataError
            With several classes, for vote shares, under control of a rate, or for costs that cannot
            be used.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC, CostMatrix
        >>> X, benign = load_breast_cancer(return_X_y=True)
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
        >>> model = model.fit(X[60:, :5], benign[60:] == 0)
        >>> costs = CostMatrix(false_positive=1, false_negative=20, ask=0.2)
        >>> decisions = model.decide(X[:60, :5], costs)
        >>> int(decisions.ask.sum()), int((~decisions.ask & decisions.label).sum())
        (22, 29)
        """
        two_classes_of(self, "decisions by costs")
        refuse_uncalibrated(self)
        matrix = cost_matrix_of(costs, self.classes_)
        found = self.summarize(X, level, score_interval=False)
        probability, interval = (on_host(found[f"probability{of}"]) for of in ("", "_interval"))
        return matrix.decide(probability, interval, self.classes_)

    def oob_costs(
        self, costs: CostMatrix | ArrayLike, level: float = 0.95, *, seed: int = 0
    ) -> dict[str, RuleCost]:
        """Mean cost of `decide`, and of the rules that it competes with, from out-of-bag rows.

        Every training row is decided by the replicates that did not see it, and by a calibrator
        that did not either (`bootprob.ensemble.cross_fitted_proba`). Whole groups are drawn.

        Parameters
        ----------
        costs : CostMatrix, array_like of shape (2, 2) or (n, 2, 2), or DataFrame
            As for `decide`; one for all rows, or one for each training row.
        level : float, default 0.95
            Nominal coverage of the intervals.
        seed : int, default 0
            Of the resampling.

        Returns
        -------
        dict of str to RuleCost
            As of `bootprob.costs.cost_of_rules`. Rows that were never out of bag are left out and
            counted.

        Raises
        ------
        DataError
            As `decide`, or for costs of another number of rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> rules = model.oob_costs([[0, 1], [5, 0]])
        >>> rules["least_cost"].cost < rules["all_positive"].cost
        True
        """
        two_classes_of(self, "costs of decisions")
        refuse_uncalibrated(self)
        return out_of_bag_costs(self, cost_matrix_of(costs, self.classes_), level, seed=seed)

    def oob_proba_interval(
        self, level: float = 0.95, method: str | None = None, *, clip: bool = False
    ) -> Floats:
        """Intervals for the training rows, from the replicates that did not see them.

        Parameters
        ----------
        level, method, clip
            As for `proba_interval`; "percentile", "basic" and "bca" are not to be had here.

        Returns
        -------
        ndarray, shape (n, 2, 2)
            NaN for a row without enough out-of-bag replicates.

        Raises
        ------
        DataError
            As for `proba_interval`, and with several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.oob_proba_interval(level=0.9).shape
        (100, 2, 2)
        """
        ensemble = two_classes_of(self, "out-of-bag intervals")
        return ensemble.oob_proba_interval(level, method, clip=clip)

    @answered_in_kind
    def score_interval(self, X: ArrayLike, level: float = 0.95, method: str = "basic") -> Floats:
        """Bootstrap intervals for the score.

        They describe how the score moves under resampling. An interval that excludes 0 says that
        the side of the margin is stable; it says nothing of probabilities.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level : float, default 0.95
            Nominal confidence level.
        method : {"basic", "percentile", "bca", "studentised"}, default "basic"
            "basic": thesis (3.6), ``(2 f̂ − f*_(1−α/2), 2 f̂ − f*_(α/2))``. "percentile":
            ``(f*_(α/2), f*_(1−α/2))``. "bca": percentiles moved for bias and skewness.
            "studentised": as wide as the standard error of the *mean* score says, by the
            jackknife-after-bootstrap; the others have the width of a single replicate.

        Returns
        -------
        ndarray, shape (m, 2)

        Raises
        ------
        DataError
            For an unknown method or level, or with several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> lower, upper = model.score_interval(X, method="studentised").T
        >>> bool((lower < upper).all())
        True
        """
        scores = two_classes_of(self, "score intervals").scores
        return scores.interval(checked_rows(self, X), level, method)

    @answered_in_kind
    def prediction_sets(
        self,
        X: ArrayLike,
        level: float = 0.9,
        *,
        class_conditional: bool = False,
        weights: str | ArrayLike = "equal",
        allow_empty: bool = True,
        by: ArrayLike | None = None,
        training_by: ArrayLike | None = None,
    ) -> NDArray[np.bool_]:
        """Say which classes cannot be excluded: sets with a finite-sample guarantee.

        By jackknife+-after-bootstrap; parameters and guarantee as for
        `bootprob.ensemble.prediction_sets`.

        Returns
        -------
        ndarray of bool, shape (m, K)
            In the order of `classes_`.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level : float, default 0.9
            Nominal share of new rows whose class is in their set.
        class_conditional : bool, default False
            Whether it holds within each class.
        weights : str or array_like, default "equal"
            Of the models of the grid.
        allow_empty : bool, default True
            Whether a row unlike all others may have no class.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.prediction_sets(X[:2], level=0.9)
        array([[ True, False],
               [ True, False]])
        """
        return prediction_sets(
            self,
            X,
            level,
            class_conditional=class_conditional,
            weights=weights,
            allow_empty=allow_empty,
            by=by,
            training_by=training_by,
        )

    def metric_intervals(
        self, level: float = 0.95, method: Method = "auto", *, seed: int = 0
    ) -> dict[str, MetricInterval]:
        """Out-of-bag metrics of this model with intervals for what they would be on new rows.

        Parameters and result as for `bootprob.ensemble.out_of_bag_intervals`.

        Parameters
        ----------
        level : float, default 0.95
            Nominal confidence.
        method : {"auto", "bca", "percentile", "basic"}, default "auto"
            Where the bounds come from, as in `bootprob.metrics.metric_intervals`.
        seed : int, default 0
            Of what is drawn.

        Returns
        -------
        dict of str to MetricInterval

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> accuracy = model.metric_intervals()["accuracy"]
        >>> bool(accuracy.lower < accuracy.value < accuracy.upper)
        True
        """
        return out_of_bag_intervals(self, level, method, seed=seed)

    def subgroup_metrics(self, by: ArrayLike, level: float = 0.95, *, seed: int = 0) -> Subgroups:
        """Out-of-bag metrics, calibration and decisions of each subgroup of the training rows.

        Result and errors as for `bootprob.ensemble.out_of_bag_subgroups`.

        Parameters
        ----------
        by : array_like, shape (n,)
            What tells the subgroups of the training rows apart.
        level : float, default 0.95
            With which intervals hold in all subgroups at once.
        seed : int, default 0
            Of what is drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> found = model.subgroup_metrics(X[:, 0] > 6.2)
        >>> [each.n_rows for each in found.subgroups]
        [49, 51]
        """
        return out_of_bag_subgroups(self, by, level, seed=seed)

    def bootstrap_scores(self, X: ArrayLike, chunk_size: int | None = None) -> Iterator[Floats]:
        """Scores of rows under every model, some rows at a time.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        chunk_size : int, optional
            Rows in a chunk; default what makes about 128 MiB.

        Yields
        ------
        ndarray, shape (rows, R, B)
            Raw scores: neither weighted nor scaled.

        Raises
        ------
        DataError
            With several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> next(model.bootstrap_scores(X[:3])).shape  # rows, models, samples
        (3, 11, 20)
        """
        scores = two_classes_of(self, "scores of each machine").scores
        rows = checked_rows(self, X)
        if rows is X or not isinstance(rows, DeviceRows):
            yield from scores.of_models(rows, chunk_size)
        else:
            for each in scores.machines.of_models_there(rows, chunk_size):
                yield in_kind(each, X)

    def watched(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """See whether new rows, and their labels, are still like those of `fit`.

        Result and errors as for `bootprob.ensemble.updates.watched`.

        Parameters
        ----------
        X : array_like or data frame, shape (k, p)
            New rows, in the order in which they came; each may be shown once.
        y : array_like, shape (k,), optional
            Their labels; without them drift alone is looked for.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X, later, y, labels = X[:350, :2], X[350:, :2], y[:350], y[350:]
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.watched(later).history_[-1]["alarms"]
        []
        >>> model.watched(later, labels).history_[-1]["alarms"]  # fewer of these are malignant
        ['calibration']
        """
        found: Self = watched(self, X, y)
        return found

    def recalibrated(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        base_rate: float | None = None,
    ) -> Self:
        """Move probabilities and intervals to new labels, new rows or a known base rate.

        Result and errors as for `bootprob.ensemble.updates.recalibrated`.

        Parameters
        ----------
        X : array_like or data frame, shape (k, p), optional
            New rows.
        y : array_like, shape (k,), optional
            Their labels; without them the base rate of the rows is estimated.
        sample_weight : array_like, shape (k,), optional
            Weights of the rows, which have no unit (as in `fit`).
        base_rate : float, optional
            Share of the positive class from now on, where it is known; then without rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> rarer = model.recalibrated(base_rate=0.1)
        >>> bool((rarer.predict_proba(X)[:, 1] < model.predict_proba(X)[:, 1]).all())
        True
        """
        found: Self = recalibrated(self, X, y, sample_weight=sample_weight, base_rate=base_rate)
        return found

    @answered_in_kind
    def bootstrap_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities of rows by each bootstrap replicate alone.

        By what was trained on its sample, with `weights_` as they are, and by its own sigmoid, one
        Newton step from that of all rows. Another calibrator moves all replicates of a row alike,
        from the sigmoid's logit to its own. Where the posterior has a share in the scores, what is
        not known of its logit is spread over the replicates. With several classes the pairs are
        coupled replicate by replicate.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (B, m, K)
            In the order of `classes_`.

        Raises
        ------
        DataError
            With ``calibration=None``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> model.bootstrap_proba(X[:3]).shape
        (20, 3, 2)
        """
        return replicate_probabilities(self, checked_rows(self, X))

    def stability(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        positive: Any = None,
        threshold: float | None = None,
        thresholds: ArrayLike = THRESHOLDS,
        level: float = 0.95,
    ) -> Stability:
        """Say how far predictions would be others with other training rows.

        The probabilities of all replicates (`bootstrap_proba`) beside `predict_proba`: instability
        of predictions, classification, calibration and decision curves, after Riley and Collins
        (docs/stability.md).

        Parameters
        ----------
        X : array_like, shape (n, p)
            Rows; those of `fit` in the definition.
        y : array_like, shape (n,)
            Their classes.
        sample_weight : array_like, shape (n,), optional
            Their weights.
        positive : label, optional
            Class whose probability is looked at; default ``classes_[1]`` of two classes. Of several
            it has to be said: it is that class against the rest.
        threshold : float, optional
            Of the classification; default `decision_threshold_`, and one half of several classes.
        thresholds : array_like, shape (k,), optional
            Of the decision curves; default 0, 0.01, …, 0.99.
        level : float, default 0.95
            Of the percentiles.

        Returns
        -------
        bootprob.metrics.Stability

        Raises
        ------
        DataError
            With ``calibration=None``, for classes that the model does not have, rows of one class,
            or as of `bootprob.metrics.stability`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> found = model.stability(X, y)
        >>> bool(0 < found.mean_absolute_error < 0.1)
        True
        """
        return stability_of(
            self,
            checked_rows(self, X),
            on_host(y),
            on_host(sample_weight),
            positive=positive,
            threshold=threshold,
            thresholds=thresholds,
            level=level,
        )

    def bootstrap_counts(self) -> NDArray[np.uint16]:
        """Draw the bootstrap samples of the fit again, shape (B, n): how often each row occurs.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bootprob import BootstrapSVC
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = X[50:], y[50:]  # two species of three
        >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        >>> counts = model.bootstrap_counts()
        >>> counts.shape, set(counts.sum(axis=1).tolist())
        ((20, 100), {100})
        """
        return state_of(self).bootstrap_counts()

    @property
    def n_replicates_(self) -> int:
        """Number of bootstrap samples trained, B."""
        return state_of(self).n_replicates

    @property
    def decision_threshold_(self) -> float:
        """Probability of ``classes_[1]`` above which `predict` says it.

        One half, unless the rate of a calibrated model is controlled. Of several classes, which
        `predict` orders by probability, there is none.
        """
        ensemble = ensemble_of(self)
        if isinstance(ensemble, TwoClasses):
            return ensemble.decision_threshold
        raise AttributeError(
            f"decision_threshold_ is of two classes, and the model has {len(self.classes_)}."
        )

    def _measure_later(self, learnt: dict[str, Any], rows: TimedRows, preprocessor: Any) -> None:
        """Say how a model of the rows before the last tenth does on that, and warn of it."""
        learnt["later_rows_"] = measured_later(self, rows, preprocessor)
        remark = remark_of_later(learnt["later_rows_"])
        if remark is not None:
            learnt["remarks_"].append(remark)
            warnings.warn(remark, LaterRowsWarning, stacklevel=5)

    def _take(
        self, learnt: dict[str, Any], of_pairs: Sequence[dict[str, Any]], seconds: float
    ) -> None:
        """Become what was learnt; nothing of an earlier fit is left."""
        learnt["pair_ensembles_"] = [self._of_pair(each) for each in of_pairs]
        for name in set(vars(self)) - learnt.keys():  # what only another number of classes has
            if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)
        self.__dict__.pop("_column_names", None)  # see `with_column_names`
        for name, value in learnt.items():
            setattr(self, name, value)
        self.fit_seconds_ = seconds
        for pair in self.pair_ensembles_:
            pair.fit_seconds_ = self.fit_seconds_

    def _of_pair(self, learnt: dict[str, Any]) -> Self:
        """The estimator of a pair of classes."""
        pair = type(self)(**self.get_params(deep=False) | {"verbose": 0} | NO_CONTROL)
        for name, value in learnt.items():
            setattr(pair, name, value)
        pair.pair_ensembles_, pair.n_features_in_ = [], len(learnt["center_"])
        pair.preprocessor_ = pair.remarks_ = pair.later_rows_ = None
        return pair

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_seconds_")


_answer: Any = BootstrapEnsemble.proba_interval
if _answer.__doc__ is not None:  # python -OO has none
    _answer.__doc__ = filled(_answer.__doc__, "(methods)", listed(METHODS | VOTE_INTERVALS))
