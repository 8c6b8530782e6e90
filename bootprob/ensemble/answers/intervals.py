"""Intervals of probabilities and scores, and sets of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.ensemble.conformal import prediction_sets
from bootprob.ensemble.documentation import filled, listed
from bootprob.ensemble.fitted import ensemble_of, two_classes_of, warn_of_doubts
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.uncertainty.probability_intervals import METHODS
from bootprob.intervals.levels import check_level
from bootprob.intervals.votes import VOTE_INTERVALS
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import answered_in_kind

__all__ = ["IntervalAnswers"]


class IntervalAnswers:
    """How far what is said of rows may be off."""

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


_answer: Any = IntervalAnswers.proba_interval
if _answer.__doc__ is not None:  # python -OO has none
    _answer.__doc__ = filled(_answer.__doc__, "(methods)", listed(METHODS | VOTE_INTERVALS))
