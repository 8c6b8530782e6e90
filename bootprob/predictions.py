"""What a fitted ensemble says of rows: probabilities, intervals, scores and votes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob import intervals
from bootprob.alternatives import Alternatives
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.exceptions import DataError
from bootprob.feature_map import FeatureMap
from bootprob.grids import grid_of
from bootprob.lack_of_fit import warn_of_lack_of_fit
from bootprob.probabilities import Calibrated, both, both_intervals, shares
from bootprob.probability_intervals import NEEDS_REPLICATES, ProbabilityIntervals
from bootprob.resampling import bootstrap_counts
from bootprob.scoring import (
    NewRows,
    model_scores,
    replicate_scores,
    restore_models,
    vote_shares,
)
from bootprob.true_logit import TrueLogit
from bootprob.weighting import accuracy_weights
from bootprob_gpu import FittedBatch, resolve_device

if TYPE_CHECKING:
    from bootprob.metric_intervals import Method, MetricInterval

__all__ = ["FittedEnsemble"]

Floats = NDArray[np.float64]


class FittedEnsemble:
    """Predictions of a trained ensemble; `BootstrapSVC` trains it and documents its attributes."""

    accuracy_: Floats
    accuracy_tolerance: float
    alternatives_: dict[str, NDArray[Any]]
    bootstrap_scale_: Floats
    calibration: str | None
    calibration_: str | None
    calibrator_: dict[str, Floats]
    center_: Floats
    certificates_: dict[str, NDArray[Any]]
    classes_: NDArray[Any]
    coef_: Floats | None
    control: str | None
    counts_gram_: Floats
    device: str
    dtype: str
    dual_coef_: Floats | None
    entropy_: list[int]
    feature_map_: dict[str, Floats] | None
    gamma_: Floats | None
    intercept_: Floats
    interval: str
    lack_of_fit_: dict[str, float] | None
    memory_limit: int | None
    oob_counts_: NDArray[np.int64]
    oob_decision_function_: Floats
    oob_jackknife_variance_: Floats
    oob_model_scores_: Floats
    oob_model_variance_: Floats
    oob_proba_: Floats
    oob_score_variance_: Floats
    oob_vote_proba_: Floats
    sample_weight_: Floats
    scale_: Floats
    score_offset_: Floats
    score_scale_: Floats
    score_threshold_: float
    sigmoid_: tuple[float, float]
    sigmoid_information_: Floats
    sigmoid_replicates_: Floats
    true_logit_: dict[str, Floats]
    vote_thresholds_: Floats
    weights_: Floats
    X_fit_: Floats | None
    y_: NDArray[np.int64]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes of the higher probability, shape (m,); ties go to ``classes_[0]``.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        """
        check_is_fitted(self)
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities: calibrated, or vote shares with ``calibration=None``.

        Under control of a rate the odds of all rows are multiplied by one number, such that one
        half falls on the controlled decision, and `predict` keeps the rate. `calibrated_proba`
        gives the probabilities without that.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, 2)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        if self.calibration is None:
            return self.vote_proba(X)
        calibrated = self._calibrated()
        votes = self.vote_proba(X)[:, 1] if calibrated.needs_votes else None
        return both(calibrated.predict(self.decision_function(X), votes))

    def calibrated_proba(self, X: ArrayLike) -> Floats:
        """Calibrated class probabilities, whatever rate is controlled.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, 2)
            In the order of `classes_`; those of `predict_proba` where nothing is controlled.

        Raises
        ------
        DataError
            With ``calibration=None``.
        """
        check_is_fitted(self)
        if self.calibration is None:
            raise DataError(
                "The model has calibration=None, so it has no calibrated probabilities; fit it "
                "with calibration='sigmoid'."
            )
        if self.control is None:
            return self.predict_proba(X)
        before_control = self.decision_function(X) + self.score_threshold_
        return both(self._calibrated().predict(before_control))

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
        ndarray, shape (m, 2)
            In the order of `classes_`; a score of exactly the threshold votes for
            ``classes_[0]``.
        """
        check_is_fitted(self)
        models = self._models(self.intercept_ - self.vote_thresholds_)
        return shares(vote_shares(models, self._rows(X), self.weights_))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Weighted mean score: over the models with `weights_`, then over the replicates.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m,)
            Larger means more likely ``classes_[1]``.
        """
        return np.concatenate([scores.mean(axis=1) for scores in self._replicate_scores(X)])

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

            - "corrected": meant to contain the true probability ``P(y | x)`` with the stated
              confidence, also of rows where it is small or large: normal on the logit, corrected
              for what the noise of the scores does to logits (`bootprob.true_logit`).
            - "normal": normal on the logit around `predict_proba`, with the variance of the
              replicates plus that of the calibrator.
            - "jackknife": the same with the infinitesimal jackknife's variance of the mean.
            - "percentile", "basic" and "bca": of the calibrated replicates, on the logit; score
              and calibrator are resampled together.
            - "venn-abers": from ``p₀`` to ``p₁``, whatever the level. One of them is calibrated;
              it is no confidence interval.
            - "wald": thesis (3.5) around `vote_proba`. It measures the Monte-Carlo noise of B
              draws and nothing else. Its width is the same for every row, also where all votes
              fall on one side (it uses the largest variance, ¼), and its bounds pass 0 and 1.
            - "wilson": Wilson's interval around `vote_proba`; measures the same noise.
        clip : bool, default False
            Cut the bounds of "wald" at 0 and 1; the others never pass them.

        Returns
        -------
        ndarray, shape (m, 2, 2)
            Lower and upper bound for each class.

        Raises
        ------
        DataError
            For an unknown method or level, or a method that needs a calibration without one.

        Warns
        -----
        LackOfFitWarning
            If out-of-bag residuals show that the truth is out of the kernel's reach.
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        self._warn_of_doubts(method)
        if method in intervals.OF_VOTES:
            vote = self.vote_proba(X)[:, 1]
            bounds = intervals.of_votes(vote, self.n_replicates_, level, method, clip=clip)
            return both_intervals(bounds)
        return both_intervals(np.concatenate([part[-1] for part in self._parts(X, level, method)]))

    def summarize(
        self, X: ArrayLike, level: float = 0.95, method: str | None = None
    ) -> dict[str, NDArray[Any]]:
        """Say everything about rows in one pass over the ensemble, or two where votes count.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        level, method
            As for `proba_interval`.

        Returns
        -------
        dict
            For the positive class: "probability" (m,), "probability_interval" (m, 2), "score"
            (m,) and its basic "score_interval" (m, 2); and "label" (m,), as `predict` gives it.
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        self._warn_of_doubts(method)
        of_votes = method in intervals.OF_VOTES
        parts = self._parts(X, level, None if of_votes else method)
        score, score_interval, probability, interval = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        if of_votes:
            vote = self.vote_proba(X)[:, 1]
            interval = intervals.of_votes(vote, self.n_replicates_, level, method)
            probability = vote if self.calibration is None else probability
        return {
            "probability": probability,
            "probability_interval": interval,
            "score": score,
            "score_interval": score_interval,
            "label": self.classes_[(probability > 0.5).astype(int)],
        }

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
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        if method in NEEDS_REPLICATES:
            raise DataError(
                f"method={method!r} needs all replicate scores of the training rows, which are not "
                "kept; use 'corrected' or 'normal', or proba_interval on new rows."
            )
        if method in intervals.OF_PROBABILITIES:
            bounds = self._intervals().of_moments(
                self.oob_decision_function_,
                self.oob_score_variance_,
                self.oob_jackknife_variance_,
                self.oob_model_variance_,
                self.oob_proba_[:, 1],
                level,
                method,
            )
            return both_intervals(bounds)
        with np.errstate(divide="ignore"):
            vote = self.oob_vote_proba_[:, 1]
            return both_intervals(
                intervals.of_votes(vote, self.oob_counts_, level, method, clip=clip)
            )

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
            For an unknown method or level.
        """
        level = intervals.check_level(level)
        method = intervals.check_score_method(method)
        counts = used = gram = None
        if method in ("bca", "studentised"):
            check_is_fitted(self)
            counts, used = self.bootstrap_counts(), self.sample_weight_ > 0
            if method == "studentised":
                gram = intervals.after_bootstrap_gram(counts, used)

        def of(scores: Floats) -> Floats:
            if method == "basic":
                return intervals.basic(scores, level)
            if method == "percentile":
                return intervals.percentile(scores, level)
            assert counts is not None
            assert used is not None
            if method == "bca":
                return intervals.bca(scores, level, intervals.acceleration(scores, counts, used))
            assert gram is not None
            variance = intervals.after_bootstrap_variance(scores, gram, int(used.sum()))
            return intervals.studentised(scores, level, np.sqrt(variance))

        found = np.concatenate([of(scores) for scores in self._replicate_scores(X)])
        return intervals.separated(found)

    def prediction_sets(
        self,
        X: ArrayLike,
        level: float = 0.9,
        *,
        class_conditional: bool = False,
        weights: str | ArrayLike = "equal",
        allow_empty: bool = True,
    ) -> NDArray[np.bool_]:
        """Say which classes cannot be excluded: sets with a finite-sample guarantee.

        By jackknife+-after-bootstrap; parameters and guarantee as for
        `bootprob.prediction_sets.prediction_sets`.

        Returns
        -------
        ndarray of bool, shape (m, 2)
            In the order of `classes_`.
        """
        from bootprob.prediction_sets import prediction_sets

        return prediction_sets(
            self,
            X,
            level,
            class_conditional=class_conditional,
            weights=weights,
            allow_empty=allow_empty,
        )

    def metric_intervals(
        self, level: float = 0.95, method: Method = "auto", *, seed: int = 0
    ) -> dict[str, MetricInterval]:
        """Out-of-bag metrics of this model with intervals for what they would be on new rows.

        Parameters and result as for `bootprob.metric_intervals.out_of_bag_intervals`.
        """
        from bootprob.metric_intervals import out_of_bag_intervals

        return out_of_bag_intervals(self, level, method, seed=seed)

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
        """
        yield from model_scores(self._models(), self._rows(X), chunk_size)

    def bootstrap_counts(self) -> NDArray[np.uint16]:
        """Draw the bootstrap samples of the fit again, shape (B, n): how often each row occurs."""
        check_is_fitted(self)
        counts, _ = bootstrap_counts(
            self.y_ == 1, self.sample_weight_, range(self.n_replicates_), self.entropy_
        )
        return counts.astype(np.uint16)

    @property
    def n_replicates_(self) -> int:
        """Number of bootstrap samples trained, B."""
        return len(self.intercept_)

    @property
    def in_J_(self) -> NDArray[np.bool_]:  # noqa: N802
        """Which models belong to the set J of thesis (3.3), whatever the weighting; shape (R,)."""
        return accuracy_weights(np.nanmean(self.accuracy_, axis=0), self.accuracy_tolerance) > 0

    # -- scoring -------------------------------------------------------------------------------

    def _rows(self, X: ArrayLike) -> NewRows:
        """Rows on their way to the models, which copies nothing of float64 or float32."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))
        feature_map, mapped = self._feature_map(), None
        if feature_map is not None:

            def mapped(rows: Floats) -> Floats:
                return feature_map.transform(rows / self.bootstrap_scale_)

        return NewRows(X, self.center_, self.scale_, mapped)

    def _feature_map(self) -> FeatureMap | None:
        if self.feature_map_ is None:
            return None
        assert self.gamma_ is not None
        return FeatureMap(self.gamma_[0], self.feature_map_)

    def _models(self, intercept: Floats | None = None) -> FittedBatch:
        """Restore the trained models on the device, with these intercepts or their own."""
        check_is_fitted(self)
        feature_map = self._feature_map()
        scale, gamma = self.bootstrap_scale_, None
        if feature_map is not None:
            scale = np.ones(feature_map.n_components)
        elif self.gamma_ is not None:
            gamma = grid_of(self.gamma_)
        return restore_models(
            intercept=self.intercept_ if intercept is None else intercept,
            coef=self.coef_,
            dual_coef=self.dual_coef_,
            rows=self.X_fit_,
            scale=scale,
            gamma=gamma,
            certificates=self.certificates_,
            device=resolve_device(self.device),
            dtype=getattr(torch, self.dtype),
            memory_limit=self.memory_limit,
        )

    def _replicate_scores(self, X: ArrayLike) -> Iterator[Floats]:
        """Weighted scores of each replicate, aligned, in chunks (m, B)."""
        for scores in replicate_scores(self._models(), self._rows(X), self.weights_):
            yield scores / self.score_scale_ + self.score_offset_

    # -- probabilities and intervals -----------------------------------------------------------

    def _calibrated(self) -> Calibrated:
        slope, intercept = self.sigmoid_
        return Calibrated.restore(
            self.calibration_ or "sigmoid",
            self.calibrator_,
            Sigmoid(slope, intercept, self.sigmoid_information_),
            self.score_threshold_,
            float(self.oob_counts_.mean()),
        )

    def _intervals(self) -> ProbabilityIntervals:
        used = self.sample_weight_ > 0

        def venn_abers() -> VennAbers:
            scores = self.oob_decision_function_ + self.score_threshold_
            taught = np.isfinite(scores) & used
            weight = self.sample_weight_[taught] / self.sample_weight_[used].mean()
            return VennAbers.fit(scores[taught], self.y_[taught] == 1, weight)

        counts = cache(self.bootstrap_counts)  # drawn once for all rows, if at all

        def accelerations(replicates: Floats) -> Floats:
            return intervals.acceleration(replicates, counts(), used)

        return ProbabilityIntervals(
            self._calibrated(),
            TrueLogit.restore(**self.true_logit_),
            Alternatives(**self.alternatives_),
            self.sigmoid_replicates_,
            self.counts_gram_,
            venn_abers,
            accelerations,
        )

    def _parts(
        self, X: ArrayLike, level: float, method: str | None
    ) -> Iterator[tuple[Floats, ...]]:
        """Score, its basic interval, probability and its interval, some rows at a time.

        Without a method the interval of the probability is that of the score once more.
        """
        made = self._intervals()
        votes = self.vote_proba(X)[:, 1] if made.calibrated.needs_votes else None
        others = np.zeros((0, 0))
        if method == "corrected" and len(made.alternatives.models):
            chosen = made.alternatives.models
            others = np.concatenate(
                [part[:, chosen].mean(axis=2) for part in self.bootstrap_scores(X)]
            )
        done = 0
        for scores in self._replicate_scores(X):
            mean, basic = scores.mean(axis=1), intervals.basic(scores, level)
            rows = slice(done, done + len(mean))
            done = rows.stop
            seen = None if votes is None else votes[rows]
            probability = made.calibrated.predict(mean, seen)
            interval = basic
            if method is not None:
                interval = made.of_replicates(scores, others[rows], probability, level, method)
            yield mean, basic, probability, interval

    def _warn_of_doubts(self, method: str) -> None:
        if method in intervals.OF_PROBABILITIES and method != "venn-abers":
            assert self.lack_of_fit_ is not None
            warn_of_lack_of_fit(self.lack_of_fit_)

    def _checked_method(self, method: str | None) -> str:
        check_is_fitted(self)
        method = self.interval if method is None else method
        return intervals.check_method(method, calibrated=self.calibration is not None)
