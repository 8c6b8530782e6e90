"""What the machines of a fitted ensemble say of rows: scores and votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted, validate_data

from bootprob import intervals
from bootprob.calibration.calibrated import CLOSEST, shares
from bootprob.calibration.coupling import Coupling
from bootprob.ensemble.mean_hyperplane import mean_hyperplane
from bootprob.ensemble.scoring.moments import PrincipalReplicates, ScoreMoments, average_models
from bootprob.ensemble.scoring.rows import (
    NewRows,
    model_scores,
    model_scores_there,
    replicate_scores,
    restore_models,
    vote_shares,
)
from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.ensemble.weighting import accuracy_weights
from bootprob.exceptions import DataError
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.feature_map import FeatureMap
from bootprob.preparation.grids import grid_of
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import DeviceRows, answered_in_kind, in_kind, take_rows
from bootprob_gpu import FittedBatch, resolve_device

__all__ = ["FittedScores"]


class FittedScores:
    """Scores and votes of a trained ensemble; `BootstrapSVC` documents its attributes."""

    accuracy_: Floats
    accuracy_tolerance: float
    bootstrap_coef_: Floats | None
    bootstrap_dual_coef_: Floats | None
    bootstrap_intercept_: Floats
    bootstrap_scale_: Floats
    calibration: str | None
    calibration_: str | None
    calibrator_: dict[str, Floats]
    center_: Floats
    certificates_: dict[str, NDArray[Any]]
    classes_: NDArray[Any]
    control: str | None
    counts_gram_: Floats
    coupling: Coupling
    device: str
    dtype: str
    entropy_: list[int]
    feature_map_: dict[str, Floats] | None
    gamma_: Floats | None
    get_params: Callable[..., dict[str, Any]]  # scikit-learn's
    interval: str
    kernel_posterior_: dict[str, NDArray[Any]]
    lack_of_fit_: dict[str, float] | None
    memory_limit: int | None
    oob_counts_: NDArray[np.int64]
    oob_decision_function_: Floats
    oob_jackknife_variance_: Floats
    oob_kernel_logits_: Floats | None
    oob_model_scores_: Floats
    oob_proba_: Floats
    oob_score_variance_: Floats
    oob_vote_proba_: Floats
    pair_ensembles_: list[Any]
    sample_weight_: Floats
    scale_: Floats
    score_offset_: Floats
    score_scale_: Floats
    score_threshold_: float
    shared_draws_: dict[str, NDArray[Any]] | None
    sigmoid_: tuple[float, float]
    sigmoid_information_: Floats
    sigmoid_replicates_: Floats
    true_logit_: Floats
    vote_thresholds_: Floats
    weights_: Floats
    X_fit_: Floats | None
    y_: NDArray[np.int64]

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
        """
        if (several := self._several()) is not None:
            return several.vote_proba(self._checked(X))
        models = self._models(self.bootstrap_intercept_ - self.vote_thresholds_)
        return shares(vote_shares(models, self._rows(X), self.weights_))

    @answered_in_kind
    def decision_function(self, X: ArrayLike) -> Floats:
        """Weighted mean score: over the models with `weights_`, then over the replicates.

        With several classes the logarithm of each class's odds against all others, by
        `predict_proba`.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m,), or (m, K) with several classes
            Larger means more likely ``classes_[1]``, or the class of the column.
        """
        if (several := self._several()) is not None:
            return logit(several.predict_proba(self._checked(X)).clip(CLOSEST, 1 - CLOSEST))
        models = average_models(self._models(), self.score_scale_)
        if models is None:
            parts = [scores.mean(axis=1) for scores in self._replicate_scores(X)]
            return np.concatenate(parts)
        scores = replicate_scores(models, self._rows(X), self.weights_)
        return np.concatenate(list(scores))[:, 0] + self.score_offset_.mean()

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
        """
        self._refuse_several("score intervals")
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
        """
        self._refuse_several("scores of each machine")
        rows = take_rows(self, X)
        if rows is X:
            yield from model_scores(self._models(), self._rows(X), chunk_size)
        else:
            for scores in model_scores_there(self._models(), self._rows(rows), chunk_size):
                yield in_kind(scores, X)

    def bootstrap_counts(self) -> NDArray[np.uint16]:
        """Draw the bootstrap samples of the fit again, shape (B, n): how often each row occurs."""
        check_is_fitted(self)
        drawn = self.shared_draws_
        codes, weight = self.y_, self.sample_weight_
        if drawn is not None:
            codes, weight = drawn["classes"], drawn["weight"]
        counts, _ = bootstrap_counts(codes, weight, range(self.n_replicates_), self.entropy_)
        return (counts if drawn is None else counts[:, drawn["rows"]]).astype(np.uint16)

    @property
    def n_replicates_(self) -> int:
        """Number of bootstrap samples trained, B."""
        first = self.pair_ensembles_[0] if self._is_several else self
        return len(first.bootstrap_intercept_)

    @property
    def coef_(self) -> Floats:
        """What a unit of each column adds to `decision_function`, shape (1, p); linear only.

        ``decision_function(X) = (X @ coef_.T + intercept_)[:, 0]``, for columns as they are given.

        Raises
        ------
        AttributeError
            With the RBF kernel, a feature map or several classes.
        """
        return self._hyperplane("coef_")[0][None]

    @property
    def intercept_(self) -> Floats:
        """What `decision_function` is for a row of zeros, shape (1,); errors as for `coef_`."""
        return np.array([self._hyperplane("intercept_")[1]])

    @property
    def in_J_(self) -> NDArray[np.bool_]:  # noqa: N802
        """Which models belong to the set J of thesis (3.3), whatever the weighting; shape (R,)."""
        check_is_fitted(self)
        return accuracy_weights(np.nanmean(self.accuracy_, axis=0), self.accuracy_tolerance) > 0

    # -- several classes -----------------------------------------------------------------------

    @property
    def _is_several(self) -> bool:
        check_is_fitted(self)
        return len(self.pair_ensembles_) > 0

    def _several(self) -> SeveralClasses | None:
        """What the pairs of several classes say; None for two classes."""
        if not self._is_several:
            return None
        for pair in self.pair_ensembles_:  # they follow when a parameter of the model is changed
            pair.set_params(**self.get_params(deep=False) | {"verbose": 0})
        return SeveralClasses(self.classes_, self.pair_ensembles_, self.coupling)

    def _refuse_several(self, what: str) -> None:
        if self._is_several:
            raise DataError(
                f"The model has {len(self.classes_)} classes, and {what} are of two; ask one of "
                "pair_ensembles_, or fit one class against the rest."
            )

    def _hyperplane(self, attribute: str) -> tuple[Floats, float]:
        # hasattr is how others tell that there is none; NotFittedError is an AttributeError too.
        if self._is_several:
            raise AttributeError(
                f"The model has {len(self.classes_)} classes, whose probabilities are coupled, and "
                f"no {attribute}; those of pair_ensembles_ have one each."
            )
        if self.gamma_ is not None:
            raise AttributeError(
                f"Scores of the RBF kernel are not linear in the columns, so there is no "
                f"{attribute}; permutation_importance needs none."
            )
        return mean_hyperplane(self)

    # -- scoring -------------------------------------------------------------------------------

    def _checked(self, X: Any) -> Any:
        """Rows as an array of numpy, or as `DeviceRows`."""
        check_is_fitted(self)
        if isinstance(rows := take_rows(self, X), DeviceRows):
            return rows
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def _rows(self, X: Any) -> NewRows:
        """Rows on their way to the models, which copies nothing of float64 or float32."""
        given = self._unmapped(X)
        feature_map, mapped = self._feature_map(), None
        if feature_map is not None:

            def mapped(rows: Floats) -> Floats:
                return feature_map.transform(rows / self.bootstrap_scale_)

        return replace(given, feature_map=mapped)

    def _unmapped(self, X: Any) -> NewRows:
        """The same, but for the feature map."""
        rows = self._checked(X)
        X = rows.tensor if isinstance(rows, DeviceRows) else rows
        return NewRows(X, self.center_, self.scale_)

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
            intercept=self.bootstrap_intercept_ if intercept is None else intercept,
            coef=self.bootstrap_coef_,
            dual_coef=self.bootstrap_dual_coef_,
            rows=self.X_fit_,
            scale=scale,
            gamma=gamma,
            certificates=self.certificates_,
            device=resolve_device(self.device),
            dtype=getattr(torch, self.dtype),
            memory_limit=self.memory_limit,
        )

    def _moments(self, X: ArrayLike) -> Iterator[ScoreMoments]:
        """Mean and variances of the replicate scores of rows, some at a time."""
        models = self._models()
        if models.coef is None or models.coef.shape[2] >= self.n_replicates_:
            for scores in self._replicate_scores(X):
                yield ScoreMoments.of(scores, self.counts_gram_)
            return
        principal = PrincipalReplicates(
            models, self.weights_, self.score_scale_, self.score_offset_, self.counts_gram_
        )
        yield from principal.moments(self._rows(X))

    def _replicate_scores(self, X: ArrayLike) -> Iterator[Floats]:
        """Weighted scores of each replicate, aligned, in chunks (m, B)."""
        for scores in replicate_scores(self._models(), self._rows(X), self.weights_):
            yield scores / self.score_scale_ + self.score_offset_
