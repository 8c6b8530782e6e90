"""Linear classifiers of scikit-learn, alone or after scaling, as planes: what a graph can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from bootprob.ensemble.bases.class_scores import class_scores, of_pair
from bootprob.ensemble.state import TwoClassState
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = [
    "is_straight",
    "plane_of_candidate",
    "planes_of_classifiers",
    "refusal",
    "refuse_unknown",
    "without_freezing",
]

_STRAIGHT = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA)
_SAME = 1e-8  # of scores, relative


def planes_of_classifiers(state: TwoClassState) -> tuple[Floats, Floats]:
    """Scores for the second class of two, as functions of rows as they are given.

    A score that is straight in the columns is told by what it is at p + 1 rows.

    Parameters
    ----------
    state : TwoClassState
        Of classifiers that are straight, or of a pair of classes of such.

    Returns
    -------
    coef : ndarray, shape (B, R, p)
    intercept : ndarray, shape (B, R)

    Raises
    ------
    DataError
        A classifier turns out to be bent.
    """
    assert state.estimators_ is not None
    planes = [plane_of_candidate(state, r) for r in range(len(state.estimators_[0]))]
    shape = state.n_replicates, len(planes), len(state.center_) + 1
    found = np.broadcast_to(np.stack(planes, axis=1), shape)
    coef, intercept = found[..., :-1], found[..., -1]
    if (units := state.candidate_units_) is None:
        return coef, intercept
    return coef * units[:, :1], intercept * units[:, 0] + units[:, 1]


def refuse_unknown(state: TwoClassState) -> None:
    """Raise a DataError for classifiers with machines beside them, or of more than numbers."""
    if state.machines_:
        raise DataError(
            "A BootstrapSVC among classifiers is not exported with them; fit it by itself, and "
            "export that."
        )
    if state.preprocessor_ is not None:
        raise DataError(
            "These classifiers were given a data frame with categories, or gaps, and a graph has "
            "those of plain numbers; serve the model, or score files with it."
        )


def plane_of_candidate(state: TwoClassState, candidate: int) -> Floats:
    """Coefficients and intercept of each replicate, (B, p + 1); errors as above."""
    assert state.estimators_ is not None
    fitted = [replicate[candidate] for replicate in state.estimators_]
    rows = state.center_ + np.vstack([np.zeros(len(state.scale_)), np.diag(state.scale_)])
    between = rows.mean(axis=0) + 7.0 * (rows[:1] - rows)  # where the planes are looked at again
    given = _as_given(state, np.vstack([rows, between]))
    return np.stack([_plane(state, each, rows, between, given) for each in fitted])


def _plane(
    state: TwoClassState, classifier: Any, rows: Floats, between: Floats, given: Any
) -> Floats:
    """Coefficients and intercept, shape (p + 1,)."""
    scores = of_pair(class_scores(classifier, given, state.n_classes, 0.0), *state.pair)
    known, others = scores[: len(rows)], scores[len(rows) :]
    coef = (known[1:] - known[0]) / state.scale_
    plane = np.append(coef, known[0] - state.center_ @ coef)
    off = np.abs(between @ plane[:-1] + plane[-1] - others).max()
    if off > _SAME * (1 + np.abs(scores).max()):
        raise refusal(classifier)
    return plane


def without_freezing(classifier: Any) -> Any:
    """What stands in a FrozenEstimator; others are themselves."""
    while isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    return classifier


def is_straight(classifier: Any) -> bool:
    """Whether it calls itself linear, after steps that are straight in the columns."""
    found = without_freezing(classifier)
    steps = [found]
    if isinstance(found, Pipeline):
        steps = [step for _, step in found.steps if step not in (None, "passthrough")]
    *before, last = steps
    straight = all(
        isinstance(step, _STRAIGHT) and not getattr(step, "clip", False) for step in before
    )
    return straight and isinstance(last, LinearClassifierMixin)


def _as_given(state: TwoClassState, rows: Floats) -> Any:
    """Rows as the classifiers were given them: columns by their names, where they have some."""
    if state.frame_columns_ is None:
        return rows
    return pd.DataFrame(rows, columns=[each["name"] for each in state.frame_columns_])


def refusal(classifier: Any) -> DataError:
    """What is said of a classifier that a graph cannot have."""
    return DataError(
        f"{type(classifier).__name__} is not exported as ONNX: a graph has linear classifiers of "
        "scikit-learn (LogisticRegression, LinearSVC, SGDClassifier, RidgeClassifier, "
        "LinearDiscriminantAnalysis), alone or in a Pipeline after scalers or PCA, its trees, "
        "alone, in forests and in HistGradientBoostingClassifier, and LGBMClassifier of LightGBM "
        "4.7 or later. Serve the model, or score files with it."
    )
