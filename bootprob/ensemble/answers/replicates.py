"""Each bootstrap replicate alone: its rows, scores and probabilities, and how they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.replicate_stability import replicate_probabilities, stability_of
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.state import state_of
from bootprob.metrics.prediction_stability import THRESHOLDS, Stability
from bootprob.runtime.arrays import Floats
from bootprob.runtime.device_rows import DeviceRows, answered_in_kind, in_kind, on_host

__all__ = ["ReplicateAnswers"]


class ReplicateAnswers:
    """What would be said with other training rows."""

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
