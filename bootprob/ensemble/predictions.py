"""What a fitted ensemble says of rows: probabilities, their intervals, and sets of classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bootprob import intervals
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.calibration.calibrated import Calibrated, both, both_intervals
from bootprob.ensemble.scores import FittedScores
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.uncertainty.kernel_posterior import KernelPosterior
from bootprob.ensemble.uncertainty.probability_intervals import (
    NEEDS_REPLICATES,
    ProbabilityIntervals,
)
from bootprob.ensemble.uncertainty.true_logit import TrueLogit
from bootprob.exceptions import DataError, LackOfFitWarning
from bootprob.metrics.lack_of_fit import warn_of_lack_of_fit
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import answered_in_kind
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import resolve_device

if TYPE_CHECKING:
    from bootprob.metrics.intervals import Method, MetricInterval

__all__ = ["FittedEnsemble"]


class FittedEnsemble(FittedScores):
    """Predictions of a trained ensemble; `BootstrapSVC` trains it and documents its attributes."""

    @answered_in_kind
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes of the highest probability, shape (m,); ties go to the first of ``classes_``.

        Of two classes, ``classes_[1]`` where its probability is above `decision_threshold_`: one
        half, unless a rate is controlled.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.
        """
        probability = self.predict_proba(X)
        if self._is_several:
            return self.classes_[probability.argmax(axis=1)]
        return self.classes_[(probability[:, 1] > self.decision_threshold_).astype(int)]

    @property
    def decision_threshold_(self) -> float:
        """Probability of ``classes_[1]`` above which `predict` says it.

        One half, unless the rate of a calibrated model is controlled. Of several classes, which
        `predict` orders by probability, there is none.
        """
        if self._is_several:
            raise AttributeError(
                f"decision_threshold_ is of two classes, and the model has {len(self.classes_)}."
            )
        return 0.5 if self.calibration is None else self._calibrated().decision_threshold

    @answered_in_kind
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities: calibrated, or vote shares with ``calibration=None``.

        Control of a rate moves decisions (`decision_threshold_`) and not these. Vote shares it does
        move: they are counted about `vote_thresholds_`, as in the thesis.

        With several classes, those of the pairs, coupled (`coupling`).

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, K)
            In the order of `classes_`.
        """
        if (several := self._several()) is not None:
            return several.predict_proba(self._checked(X))
        if self.calibration is None:
            return self.vote_proba(X)
        calibrated = self._calibrated()
        votes = self.vote_proba(X)[:, 1] if calibrated.needs_votes else None
        return both(calibrated.predict(self.decision_function(X), votes))

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

            - "corrected": meant to contain the true probability ``P(y | x)`` with the stated
              confidence, also of rows where it is small or large. Linear kernels: normal on the
              logit, corrected for what the noise of the scores does to logits
              (`bootprob.ensemble.uncertainty.true_logit`). RBF kernels, which smooth more than
              resampling shows: the posterior of a Gaussian process of the same kernel
              (`bootprob.ensemble.uncertainty.kernel_posterior`).
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
        ndarray, shape (m, K, 2)
            Lower and upper bound for each class; of several classes each by itself, from those of
            the pairs (`bootprob.ensemble.several_classes`).

        Raises
        ------
        DataError
            For an unknown method or level, or a method that needs a calibration without one. With
            several classes, for methods that say nothing of errors which the pairs share:
            "wald", "wilson" and "venn-abers".

        Warns
        -----
        LackOfFitWarning
            If out-of-bag residuals show that the truth is out of the kernel's reach.
        """
        method = self._checked_method(method)
        level = intervals.check_level(level)
        if (several := self._several()) is not None:
            rows = self._checked(X)
            with warnings.catch_warnings():
                # Once for all pairs is enough, and single ones err by chance.
                warnings.simplefilter("ignore", LackOfFitWarning)
                found = several.proba_interval(rows, level, method)
            self._warn_of_doubts(method)
            return found
        self._warn_of_doubts(method)
        if method in intervals.OF_VOTES:
            vote = self.vote_proba(X)[:, 1]
            bounds = intervals.of_votes(vote, self.n_replicates_, level, method, clip=clip)
            return both_intervals(bounds)
        parts = self._parts(X, level, method, of_scores=False)
        return both_intervals(np.concatenate([part[-1] for part in parts]))

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
            Of several classes "probability" (m, K), "probability_interval" (m, K, 2) and "label".
        """
        if self._is_several:
            probability = self.predict_proba(X)
            return {
                "probability": probability,
                "probability_interval": self.proba_interval(X, level, method),
                "label": self.classes_[probability.argmax(axis=1)],
            }
        method = self._checked_method(method)
        level = intervals.check_level(level)
        self._warn_of_doubts(method)
        of_votes = method in intervals.OF_VOTES
        parts = self._parts(X, level, None if of_votes else method, of_scores=score_interval)
        score, basic, probability, interval = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        if of_votes:
            vote = self.vote_proba(X)[:, 1]
            interval = intervals.of_votes(vote, self.n_replicates_, level, method)
            probability = vote if self.calibration is None else probability
        found = {
            "probability": probability,
            "probability_interval": interval,
            "score": score,
            "score_interval": basic,
            "label": self.classes_[(probability > self.decision_threshold_).astype(int)],
        }
        if not score_interval:
            del found["score_interval"]
        return found

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
        """
        self._refuse_several("out-of-bag intervals")
        method = self._checked_method(method)
        level = intervals.check_level(level)
        if method in NEEDS_REPLICATES:
            raise DataError(
                f"method={method!r} needs all replicate scores of the training rows, which are not "
                "kept; use 'corrected' or 'normal', or proba_interval on new rows."
            )
        if method in intervals.OF_PROBABILITIES:
            moments = ScoreMoments(
                self.oob_decision_function_,
                self.oob_score_variance_,
                self.oob_jackknife_variance_,
            )
            bounds = self._intervals().of_moments(
                moments,
                self.oob_kernel_logits_,
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

    @answered_in_kind
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
        `bootprob.ensemble.prediction_sets`.

        Returns
        -------
        ndarray of bool, shape (m, K)
            In the order of `classes_`.
        """
        from bootprob.ensemble.conformal import prediction_sets

        self._several()  # the pairs follow this model's parameters
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

        Parameters and result as for `bootprob.ensemble.out_of_bag_intervals`.
        """
        from bootprob.ensemble.out_of_bag_metrics import out_of_bag_intervals

        return out_of_bag_intervals(self, level, method, seed=seed)

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
        counts = cache(self.bootstrap_counts)  # drawn once for all rows, if at all

        def accelerations(replicates: Floats) -> Floats:
            return intervals.acceleration(replicates, counts(), self.sample_weight_ > 0)

        calibrated = self._calibrated()
        return ProbabilityIntervals(
            calibrated,
            TrueLogit(calibrated.sigmoid, *self.true_logit_.tolist()),
            self.kernel_posterior_.get("weight", np.empty(0)),
            self.sigmoid_replicates_,
            self.counts_gram_,
            cache(lambda: VennAbers.fit(*self._taught()[1:])),
            accelerations,
        )

    def _taught(self) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_], Floats]:
        """Which training rows the calibrator was fitted to; their scores, labels and weights."""
        scores, used = self.oob_decision_function_ + self.score_threshold_, self.sample_weight_ > 0
        taught = np.isfinite(scores) & used
        weight = self.sample_weight_[taught] / self.sample_weight_[used].mean()
        return taught, scores[taught], self.y_[taught] == 1, weight

    def _kernel_logits(self, X: ArrayLike) -> Floats | None:
        """Moments of the kernel's posterior, shape (m, g, 2); None for the linear kernel."""
        if not self.kernel_posterior_:
            return None
        posterior = KernelPosterior(**self.kernel_posterior_)
        new = self._unmapped(X)
        device = resolve_device(self.device)
        scale = self.bootstrap_scale_ if self.bootstrap_scale_.ndim == 1 else 1.0
        found = np.empty((len(new.X), len(posterior.gamma), 2))
        for block in row_blocks(*new.X.shape):
            seen = new.standardized(block)
            found[block] = posterior.moments(
                seen / torch.as_tensor(scale, device=seen.device), device
            )
        return found

    def _parts(
        self, X: ArrayLike, level: float, method: str | None, *, of_scores: bool
    ) -> Iterator[tuple[Floats, ...]]:
        """Score, its basic interval, probability and its interval, some rows at a time.

        An interval that is not asked for has no rows: of the score without `of_scores`, of the
        probability without a method.
        """
        made = self._intervals()
        votes = self.vote_proba(X)[:, 1] if made.calibrated.needs_votes else None
        kernel_logits = self._kernel_logits(X) if method == "corrected" else None
        none, done = np.zeros((0, 2)), 0
        parts: Iterator[ScoreMoments | Floats] = self._moments(X)
        if of_scores or method in NEEDS_REPLICATES:
            parts = self._replicate_scores(X)
        for part in parts:
            mean = part.mean if isinstance(part, ScoreMoments) else part.mean(axis=1)
            rows = slice(done, done + len(mean))
            done = rows.stop
            seen = None if votes is None else votes[rows]
            known = None if kernel_logits is None else kernel_logits[rows]
            probability = made.calibrated.predict(mean, seen)
            basic = interval = none
            if isinstance(part, ScoreMoments):
                if method is not None:
                    interval = made.of_moments(part, known, probability, level, method)
            else:
                if of_scores:
                    basic = intervals.basic(part, level)
                if method is not None:
                    interval = made.of_replicates(part, known, probability, level, method)
            yield mean, basic, probability, interval

    def _warn_of_doubts(self, method: str) -> None:
        if method in intervals.OF_PROBABILITIES and method != "venn-abers":
            assert self.lack_of_fit_ is not None
            warn_of_lack_of_fit(self.lack_of_fit_)

    def _checked_method(self, method: str | None) -> str:
        check_is_fitted(self)
        method = self.interval if method is None else method
        return intervals.check_method(method, calibrated=self.calibration is not None)
