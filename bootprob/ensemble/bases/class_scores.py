"""Scores of classes by any classifier, on a scale where differences are log-odds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["class_scores", "least_probability", "of_pair"]

_OFF = 1e-3  # of probabilities, that rounding in float16 leaves


def class_scores(classifier: Any, X: Any, K: int, least: float) -> Floats:
    """What a fitted classifier says of each class.

    Its `decision_function`, or else logarithms of its `predict_proba`.

    Parameters
    ----------
    classifier : classifier of scikit-learn's kind
    X : array-like, shape (m, ...)
        What it takes.
    K : int
        Number of classes; its labels are sorted.
    least : float
        Probability below which differences tell nothing: trees say 0 and 1.

    Returns
    -------
    ndarray, shape (m, 1) or (m, K)
        Of two classes the log-odds of the second, as far as the classifier means that by its
        scores; of several a score each.

    Raises
    ------
    DataError
        The answer has another shape, or numbers that are not finite, or no probabilities.
    """
    found, m = None, np.shape(X)[0]
    if hasattr(classifier, "decision_function"):
        found = np.asarray(classifier.decision_function(X), dtype=np.float64)
        if found.shape[:1] != (m,):
            raise DataError(
                f"decision_function of {type(classifier).__name__} has the shape {found.shape} for "
                f"{m} rows; it has to be (rows, …)."
            )
        if found.ndim == 1 and K == 2:
            return _finite(found[:, None], classifier)
        if found.shape[1:] != (K,):  # such as one column for each pair
            found = None
        elif K == 2:
            return _finite(found[:, 1:] - found[:, :1], classifier)
    if found is None:
        probability = np.asarray(_probability(classifier, X), dtype=np.float64)
        if probability.shape != (m, K):
            raise DataError(
                f"predict_proba of {type(classifier).__name__} has the shape {probability.shape} "
                f"for {m} rows and {K} classes; it has to be (rows, classes)."
            )
        _refuse_no_probabilities(_finite(probability, classifier), classifier)
        if K == 2:
            return logit(probability[:, 1:].clip(least, 1 - least))
        return np.log(probability.clip(least, 1.0))
    return _finite(found, classifier)


def least_probability(weight: Floats) -> float:
    """The probability of what none of so many rows has shown, by the rule of succession."""
    return 1 / (np.count_nonzero(weight) + 2)


def of_pair(scores: Floats, first: int, second: int) -> Floats:
    """Scores of the second class against the first, from those of all, (..., 1) or (..., K)."""
    if scores.shape[-1] == 1:
        return scores[..., 0]
    return scores[..., second] - scores[..., first]


def _probability(classifier: Any, X: Any) -> Any:
    if not hasattr(classifier, "predict_proba"):
        raise DataError(
            f"{type(classifier).__name__} has no decision_function with a score for each class and "
            "no predict_proba; give a classifier that has one of them."
        )
    return classifier.predict_proba(X)


def _refuse_no_probabilities(found: Floats, classifier: Any) -> None:
    inside = ((found >= -_OFF) & (found <= 1 + _OFF)).all(axis=1)
    wrong = ~inside | (np.abs(found.sum(axis=1) - 1) > _OFF)
    if wrong.any():
        raise DataError(
            f"predict_proba of {type(classifier).__name__} says "
            f"{found[wrong.argmax()].tolist()} of a row, and these are no probabilities: they are "
            "to lie between 0 and 1 and to sum to 1."
        )


def _finite(scores: Floats, classifier: Any) -> Floats:
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise DataError(
            f"{type(classifier).__name__} says {scores[row].tolist()} of a row (number {row} of "
            "those it was asked about, counted from 0), which is no score."
        )
    return scores
