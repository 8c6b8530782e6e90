"""What a fitted ensemble says of rows: probabilities, intervals, scores and votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob import intervals
from bootprob.calibration import Isotonic, Sigmoid
from bootprob.exceptions import DataError
from bootprob.feature_map import FeatureMap
from bootprob.grids import grid_of
from bootprob.probabilities import Calibrated, both, both_intervals, shares
from bootprob.resampling import bootstrap_counts
from bootprob.scoring import (
    NewRows,
    model_scores,
    replicate_scores,
    restore_models,
    vote_shares,
)
from bootprob.weighting import accuracy_weights
from bootprob_gpu import FittedBatch, resolve_device

__all__ = ["FittedEnsemble"]

Floats = NDArray[np.float64]


class FittedEnsemble:
    """Predictions of a trained ensemble; `BootstrapSVC` trains it and documents its attributes."""

    accuracy_: Floats
    accuracy_tolerance: float
    bootstrap_scale_: Floats
    calibration: str | None
    center_: Floats
    certificates_: dict[str, NDArray[Any]]
    classes_: NDArray[Any]
    coef_: Floats | None
    device: str
    dtype: str
    dual_coef_: Floats | None
    entropy_: list[int]
    feature_map_: dict[str, Floats] | None
    gamma_: Floats | None
    intercept_: Floats
    interval: str
    isotonic_: Floats
    memory_limit: int | None
    oob_counts_: NDArray[np.int64]
    oob_decision_function_: Floats
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
        return both(self._calibrated().predict(self.decision_function(X)))

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
        method : {"normal", "replicate", "wald", "wilson"}, optional
            Default: the parameter `interval`.

            - "normal": normal on the logit, around `predict_proba`, with the variance of the
              replicates plus that of the calibrator. Meant to contain the true probability
              ``P(y | x)`` with the stated confidence; at 95 % it did in 94 to 97 % of the cases
              on three known truths within the linear kernel's reach (docs/intervals.md). It
              knows nothing of a truth outside it.
            - "replicate": percentiles of the calibrated replicates. Somewhat too wide, and it
              does not hold the uncertainty of the calibrator.
            - "wald": thesis (3.5) around `vote_proba`. It measures the Monte-Carlo noise of B
              draws and nothing else: at 95 % it contained the true probability in 8 to 60 % of
              the cases on the same truths. Its width is the same for every row, also where all
              votes fall on one side (it uses the largest variance, ¼), and its bounds pass 0
              and 1.
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
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        if method in intervals.OF_VOTES:
            vote = self.vote_proba(X)[:, 1]
            bounds = intervals.of_votes(vote, self.n_replicates_, level, method, clip=clip)
            return both_intervals(bounds)
        chunks = self._replicate_scores(X)
        return both_intervals(
            np.concatenate([self._calibrated().interval(s, level, method) for s in chunks])
        )

    def summarize(
        self, X: ArrayLike, level: float = 0.95, method: str | None = None
    ) -> dict[str, NDArray[Any]]:
        """Say everything about rows in one pass over the ensemble.

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
        of_votes = method in intervals.OF_VOTES
        score, score_interval, interval = [], [], []
        for scores in self._replicate_scores(X):
            score.append(scores.mean(axis=1))
            score_interval.append(intervals.basic(scores, level))
            if not of_votes:
                interval.append(self._calibrated().interval(scores, level, method))
        if of_votes:
            vote = self.vote_proba(X)[:, 1]
            interval.append(intervals.of_votes(vote, self.n_replicates_, level, method))
        mean = np.concatenate(score)
        probability = vote if self.calibration is None else self._calibrated().predict(mean)
        return {
            "probability": probability,
            "probability_interval": np.concatenate(interval),
            "score": mean,
            "score_interval": np.concatenate(score_interval),
            "label": self.classes_[(probability > 0.5).astype(int)],
        }

    def oob_proba_interval(
        self, level: float = 0.95, method: str | None = None, *, clip: bool = False
    ) -> Floats:
        """Intervals for the training rows, from the replicates that did not see them.

        Parameters
        ----------
        level, method, clip
            As for `proba_interval`; "replicate" is not to be had here.

        Returns
        -------
        ndarray, shape (n, 2, 2)
            NaN for a row without enough out-of-bag replicates.
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        if method == "replicate":
            raise DataError(
                "method='replicate' needs all replicate scores of the training rows, which are not "
                "kept; use 'normal', or proba_interval on new rows."
            )
        if method == "normal":
            bounds = self._calibrated().normal_interval(
                self.oob_proba_[:, 1],
                self.oob_decision_function_,
                self.oob_score_variance_,
                level,
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
        method : {"basic", "percentile"}, default "basic"
            "basic": thesis (3.6), ``(2 f̂ − f*_(1−α/2), 2 f̂ − f*_(α/2))``. "percentile":
            ``(f*_(α/2), f*_(1−α/2))``.

        Returns
        -------
        ndarray, shape (m, 2)
        """
        level = intervals.check_level(level)
        if method not in ("basic", "percentile"):
            raise DataError(f"method is {method!r}; give 'basic' or 'percentile'.")
        interval = intervals.basic if method == "basic" else intervals.percentile
        return np.concatenate([interval(s, level) for s in self._replicate_scores(X)])

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
        isotonic = Isotonic(*self.isotonic_) if self.calibration == "isotonic" else None
        sigmoid = Sigmoid(slope, intercept, self.sigmoid_information_)
        return Calibrated(sigmoid, isotonic, self.score_threshold_)

    def _checked_method(self, method: str | None) -> str:
        check_is_fitted(self)
        method = self.interval if method is None else method
        return intervals.check_method(method, calibrated=self.calibration is not None)
