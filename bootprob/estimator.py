"""The estimator: calibrated class probabilities with intervals from bootstrapped SVMs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bootprob import intervals
from bootprob.calibration import Isotonic, Sigmoid
from bootprob.exceptions import DataError
from bootprob.feature_map import FeatureMap, warn_of_coarse_map
from bootprob.fitting import learn
from bootprob.grids import DEFAULT_C, grid_of
from bootprob.probabilities import Calibrated, both, both_intervals, shares
from bootprob.resampling import bootstrap_counts
from bootprob.scoring import (
    NewRows,
    model_scores,
    replicate_scores,
    restore_models,
    vote_shares,
    warn_of_unsolved,
)
from bootprob.weighting import accuracy_weights
from bootprob_gpu import FittedBatch, Kernel, resolve_device

__all__ = ["BootstrapSVC"]

Floats = NDArray[np.float64]


class BootstrapSVC(ClassifierMixin, BaseEstimator):
    """Class probabilities with intervals from support vector machines over bootstrap samples.

    Trains a support vector machine for every bootstrap sample and every value of C (and γ), all at
    once; weights the values of C by how well they do out of bag; and calibrates on the
    out-of-bag scores, so that no data are set aside and nothing is trained twice. Thesis
    chapter 3, Algorithm 2, and beyond. Two classes.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default "linear"
        Kernel of the support vector machines.
    C : float or array_like, shape (n_C,), optional
        Grid of C, in scikit-learn's convention ``½ ‖w‖² + C Σ ξ``; default
        ``2**-5, 2**-4, ..., 2**5``. The thesis minimises ``‖w‖² + C Σ ξ``: its C is twice this
        one (see `paper`).
    gamma : {"scale", "median", "grid"}, float or array_like, shape (n_gamma,), default "scale"
        γ of the RBF kernel, on the standardised columns: scikit-learn's rule
        ``1 / (p · variance)``, the inverse median of squared distances ("sigest"), a number, or
        a grid that is crossed with `C`; "grid" is the median rule times ``2**-5, ..., 2**5``.
    feature_map : {"nystroem", "random-features"} or None, default None
        None trains RBF models on the kernel itself, which takes matrices of n × n and is refused
        beyond 20,000 rows, unless a `memory_limit` is given that they fit into. A feature map
        approximates the kernel by inner products of `n_components` columns, fitted once on the
        standardised rows, and trains linear models on them: scikit-learn's `Nystroem` (landmarks
        among the rows; the closer one with equally many columns) or `RBFSampler` (random
        frequencies). It takes one γ, and the rows are standardised once ("global"), not inside
        each bootstrap sample. How far the kernel is off is measured: `feature_map_error_`.
    n_components : int, default 500
        Columns of the feature map, D; training takes time in proportion to n · D².
    n_bootstraps : int, default 500
        Number of bootstrap samples, B.
    accuracy_tolerance : float, default 0.02
        ε of the set J in thesis (3.3): values of C whose out-of-bag accuracy is within ε of the
        best take part. It acts on ``weighting="accuracy"`` only.
    weighting : {"accuracy", "log_loss"}, default "log_loss"
        Weights of the values of C: squared out-of-bag accuracy within J, thesis (3.3), or
        ``exp(−n (loss − min loss))`` with the out-of-bag log-loss of a sigmoid per C.
    standardize : {"bootstrap", "global"} or None, default "bootstrap"
        Standardise the columns inside each bootstrap sample (thesis 3.3.1), once over all rows,
        or not at all.
    class_weight : {"balanced"}, dict or None, default "balanced"
        "balanced" weighs the classes equally while the machines are trained, which keeps a rare
        class alive in the scores; calibration then puts the base rate back. A dict weighs all
        rows of a class, as `sample_weight` does: the probabilities are those of a population in
        which the classes occur that much more often.
    calibration : {"sigmoid", "isotonic"} or None, default "sigmoid"
        How `predict_proba` turns scores into probabilities; None reports the vote share, (3.4).
    interval : {"normal", "replicate", "wald", "wilson"}, default "normal"
        Default method of `proba_interval`.
    device : str, default "auto"
        "cpu", "cuda", "cuda:1", ...; "auto" takes CUDA where there is one.
    dtype : {"float64", "float32"}, default "float64"
        Precision of RBF Gram matrices and of scoring. Solvers work in float64 either way.
    tol : float, optional
        Relative duality gap of every model; default 1e-7 for the linear kernel, 1e-6 for RBF
        (1e-4 in float32).
    random_state : int, RandomState instance or None, default None
        Seed of the bootstrap samples.
    memory_limit : int, optional
        Bytes that training and scoring may use at a time; default half of what is free.
    verbose : int, default 0
        1 shows a progress bar on standard error.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Class labels; ``classes_[1]`` is the positive class.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Column names, where they are all strings.
    C_ : ndarray, shape (R,)
        C of each of the R models of a replicate.
    gamma_ : ndarray, shape (R,) or None
        γ of each model; None for the linear kernel. The models of one γ stand together, in the
        order of C: whatever has the shape (R,) becomes a table with ``reshape(n_gamma, n_C)``.
    accuracy_ : ndarray, shape (B, R)
        Out-of-bag accuracy of each model; NaN for a replicate that left no row out.
    weights_ : ndarray, shape (R,)
        Weight of each model of the grid in the ensemble.
    in_J_ : ndarray of bool, shape (R,)
        Whether the model belongs to the set J of (3.3).
    intercept_ : ndarray, shape (B, R)
        Intercepts.
    coef_ : ndarray, shape (B, R, p) or None
        Coefficients of linear models, on ``(X - center_) / scale_``; with a feature map (B, R, D)
        and on its columns.
    dual_coef_ : ndarray, shape (B, R, n) or None
        Dual coefficients of RBF models and of linear models with more columns than rows.
    X_fit_ : ndarray, shape (n, p) or None
        Training rows, ``(X - center_) / scale_``, where `dual_coef_` needs them; with a feature
        map (n, D), mapped.
    feature_map_ : dict of ndarray or None
        What the feature map is made of: "landmarks" (D, p) and "normalization" (D, D), or
        "frequencies" (p, D) and "phases" (D,).
    feature_map_error_ : dict of float or None
        How far the inner products K̃ of the mapped rows are from the kernel K, over all pairs of
        up to 300 training rows that are no landmarks: the root mean square of ``K̃ − K``
        "relative" to that of K, and absolutely ("root_mean_square"), the "largest" of
        ``|K̃ − K|``, and the rows looked at ("n_rows"). `fit` warns from a relative error of 0.1
        on; a small one is no guarantee (docs/guide.md).
    center_, scale_ : ndarray, shape (p,)
        Mean and standard deviation of the training columns.
    bootstrap_scale_ : ndarray, shape (B, p) or (p,)
        Scale of the columns of ``(X - center_) / scale_`` in each replicate, or that which the
        feature map sees.
    score_scale_, score_offset_ : ndarray, shape (B,)
        Replicate scores are ``score / score_scale_ + score_offset_``, which gives all replicates
        the same mean and spread out of bag, and probability one half at 0; 1 and 0 without
        calibration.
    certificates_ : dict of ndarray, each of shape (B, R)
        "primal" and "dual" objective, relative "gap", "n_iter" and "status"
        (`bootprob_gpu.Status`) of every model.
    oob_decision_function_ : ndarray, shape (n,)
        Mean score over the replicates that did not see the row; NaN if there is none.
    oob_score_variance_ : ndarray, shape (n,)
        Variance of those scores; NaN with fewer than two replicates.
    oob_vote_proba_, oob_proba_ : ndarray, shape (n, 2)
        Out-of-bag vote shares (3.4) and calibrated probabilities, NaN as above.
    oob_counts_ : ndarray of int, shape (n,)
        Replicates that did not see the row.
    sigmoid_ : tuple of float
        Slope and intercept of the out-of-bag sigmoid.
    sampled_rows_ : ndarray of int, shape (k,)
        Up to 20 training rows, evenly spaced over the out-of-bag scores.
    sampled_scores_ : ndarray, shape (k, B)
        Their replicate scores, NaN where the replicate saw the row.
    y_ : ndarray of int, shape (n,)
        Training labels as 0 and 1.
    sample_weight_ : ndarray, shape (n,)
        Row weights given to `fit`, times those of a `class_weight` dict.
    n_redrawn_ : int
        Bootstrap samples drawn again because a class was missing.
    entropy_ : list of int
        Seed from which `bootstrap_counts` draws the samples again.
    device_, versions_, fit_seconds_ : str, dict, float
        Where, with what and in how many seconds the ensemble was trained.

    Notes
    -----
    `predict` follows `predict_proba`. With sigmoid calibration `decision_function` is moved so
    that 0 is where both classes are equally likely, and agrees; the raw scores of
    `bootstrap_scores`, and the votes, keep the machines' own 0, which with balanced class weights
    is where both classes cost the same.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BootstrapSVC(n_bootstraps=50, random_state=0).fit(X[50:], y[50:])
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    >>> lower, upper = model.proba_interval(X[:1])[0, 1]
    >>> bool(lower < model.predict_proba(X[:1])[0, 1] < upper)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"linear", "rbf"})],
        "C": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "gamma": [
            StrOptions({"scale", "median", "grid"}),
            Interval(Real, 0, None, closed="neither"),
            "array-like",
        ],
        "feature_map": [StrOptions({"nystroem", "random-features"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_bootstraps": [Interval(Integral, 2, None, closed="left")],
        "accuracy_tolerance": [Interval(Real, 0, 1, closed="both")],
        "weighting": [StrOptions({"accuracy", "log_loss"})],
        "standardize": [StrOptions({"bootstrap", "global"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "calibration": [StrOptions({"sigmoid", "isotonic"}), None],
        "interval": [StrOptions({"normal", "replicate", "wald", "wilson"})],
        "device": [str],
        "dtype": [StrOptions({"float64", "float32"})],
        "tol": [None, Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "memory_limit": [None, Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Kernel = "linear",
        C: float | ArrayLike | None = None,
        gamma: str | float | ArrayLike = "scale",
        feature_map: Literal["nystroem", "random-features"] | None = None,
        n_components: int = 500,
        n_bootstraps: int = 500,
        accuracy_tolerance: float = 0.02,
        weighting: str = "log_loss",
        standardize: str | None = "bootstrap",
        class_weight: str | dict[Any, float] | None = "balanced",
        calibration: str | None = "sigmoid",
        interval: str = "normal",
        device: str = "auto",
        dtype: str = "float64",
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        memory_limit: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.feature_map = feature_map
        self.n_components = n_components
        self.n_bootstraps = n_bootstraps
        self.accuracy_tolerance = accuracy_tolerance
        self.weighting = weighting
        self.standardize = standardize
        self.class_weight = class_weight
        self.calibration = calibration
        self.interval = interval
        self.device = device
        self.dtype = dtype
        self.tol = tol
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.verbose = verbose

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Make the thesis's own estimator (chapter 3, Algorithm 2), to the letter.

        B = 500, no class weights, accuracy weights (3.3), no calibration, the Wald interval (3.5)
        and the grid C = 2⁻⁵ … 2⁵ of ``‖w‖² + C Σ ξ``, which is 2⁻⁶ … 2⁴ in the convention used
        here. The thesis does not print its ε; 0.02 is used.

        Parameters
        ----------
        **overrides
            Parameters to set otherwise.
        """
        parameters: dict[str, Any] = {
            "C": tuple(C / 2 for C in DEFAULT_C),
            "class_weight": None,
            "weighting": "accuracy",
            "calibration": None,
            "interval": "wald",
        }
        return cls(**{**parameters, **overrides})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble, weight its models and calibrate it.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Training rows.
        y : array_like, shape (n,)
            Labels of two classes.
        sample_weight : array_like, shape (n,), optional
            Weights that multiply C row by row, and count in accuracies and calibration.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For data that scikit-learn's checks refuse, a number of classes other than two, or
            unusable weights, more rows than the RBF kernel is trained on without a feature map,
            or a feature map that does not fit the kernel, `gamma` or the rows (`DataError`).

        Warns
        -----
        ConvergenceWarning
            If a model was not solved to `tol`; says how many, and how far they got.
        UserWarning
            If the feature map's kernel is off by a tenth or more.
        """
        started = time.perf_counter()
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        # Nothing is assigned before everything is known: a refit that fails, or is interrupted,
        # leaves the model as it was.
        for name, value in learn(self, X, y, weight).items():
            setattr(self, name, value)
        self.fit_seconds_ = time.perf_counter() - started
        warn_of_unsolved(self.certificates_)
        if self.feature_map_error_ is not None:
            warn_of_coarse_map(self.feature_map_error_, self.n_components)
        return self

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

    def vote_proba(self, X: ArrayLike) -> Floats:
        """Weighted share of replicates that vote for each class, thesis (3.4).

        This is the papers' estimate. It is a vote, not a calibrated probability: it says how
        stable the classification is under resampling.

        Parameters
        ----------
        X : array_like, shape (m, p)
            Rows.

        Returns
        -------
        ndarray, shape (m, 2)
            In the order of `classes_`; a score of exactly 0 votes for ``classes_[0]``.
        """
        return shares(vote_shares(self._models(), self._rows(X), self.weights_))

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
            bounds = intervals.logit_normal(
                self.oob_proba_[:, 1],
                self.oob_decision_function_,
                self.oob_score_variance_,
                self._calibrated().sigmoid,
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_seconds_")

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

    def _models(self) -> FittedBatch:
        """Restore the trained models on the device, as the engine wants them."""
        check_is_fitted(self)
        feature_map = self._feature_map()
        scale, gamma = self.bootstrap_scale_, None
        if feature_map is not None:
            scale = np.ones(feature_map.n_components)
        elif self.gamma_ is not None:
            gamma = grid_of(self.gamma_)
        return restore_models(
            intercept=self.intercept_,
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
        return Calibrated(Sigmoid(slope, intercept, self.sigmoid_information_), isotonic)

    def _checked_method(self, method: str | None) -> str:
        check_is_fitted(self)
        method = self.interval if method is None else method
        return intervals.check_method(method, calibrated=self.calibration is not None)
