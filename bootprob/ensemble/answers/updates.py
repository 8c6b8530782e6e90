"""Rows that came after the fit: whether they are others, and a model that is moved to them."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from bootprob.ensemble.updates import recalibrated, watched

__all__ = ["UpdateAnswers"]


class UpdateAnswers:
    """Copies of a model that know of later rows."""

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
