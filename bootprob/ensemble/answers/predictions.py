"""Classes, probabilities, votes and scores of rows."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from bootprob.ensemble.fitted import ensemble_of, two_classes_of, warn_of_doubts
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import answered_in_kind, on_host, take_rows

__all__ = ["PredictionAnswers"]


class PredictionAnswers(ClassifierMixin):
    """What rows are, and how probable that is."""

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
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Natural logarithms of `predict_proba`, shape (m, K); -inf of a probability of 0.

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
        >>> model.predict_log_proba(X[:3]).shape
        (3, 2)
        """
        with np.errstate(divide="ignore"):
            return np.log(ensemble_of(self).predict_proba(checked_rows(self, X)))

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

        Its sign is what `predict` says with sigmoid calibration alone, before `recalibrated`: other
        probabilities are one half, or `decision_threshold_`, at another score. With several classes
        it is the logarithm of each class's odds against all others, by `predict_proba`, and
        `class_offsets_` where a rate is controlled.

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
