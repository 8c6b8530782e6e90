"""What the bootstrap replicates of a fitted model say of rows, and how far they disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.exceptions import DataError
from bootprob.metrics.prediction_stability import THRESHOLDS, Stability, stability
from bootprob.runtime.arrays import Floats

__all__ = ["replicate_probabilities", "stability_of"]


def replicate_probabilities(model: Any, rows: Rows) -> Floats:
    """`predict_proba` by each replicate alone, shape (B, m, K); rows come checked."""
    ensemble = ensemble_of(model)
    if isinstance(ensemble, TwoClasses):
        positive = ensemble.replicate_proba(rows).T
        return np.stack([1 - positive, positive], axis=2)
    return ensemble.replicate_proba(rows).transpose(1, 0, 2)


def stability_of(
    model: Any,
    rows: Rows,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    positive: Any = None,
    threshold: float | None = None,
    thresholds: ArrayLike = THRESHOLDS,
    level: float = 0.95,
) -> Stability:
    """Stability of a fitted model; parameters as of `BootstrapSVC.stability`, rows checked."""
    ensemble, classes, labels = ensemble_of(model), list(model.classes_), np.asarray(y)
    of_two = isinstance(ensemble, TwoClasses)
    shown = ", ".join(map(str, classes))
    if positive is None and not of_two:
        raise DataError(f"positive is missing: say which class is looked at, of {shown}.")
    if positive is not None and positive not in classes:
        raise DataError(f"positive is {positive!r}, which is none of the classes, {shown}.")
    if labels.shape != (len(rows),):
        raise DataError(
            f"y has the shape {labels.shape}, and there are {len(rows)} rows; give one class a row."
        )
    if not np.isin(labels, model.classes_).all():
        raise DataError(f"y holds other classes than those of the model, which are {shown}.")
    k = 1 if positive is None else classes.index(positive)
    if threshold is None:
        at = ensemble.decision_threshold if isinstance(ensemble, TwoClasses) else 0.5
        threshold = at if k == 1 else 1 - at
    return stability(
        labels == classes[k],
        ensemble.predict_proba(rows)[:, k],
        replicate_probabilities(model, rows)[:, :, k],
        sample_weight,
        threshold=threshold,
        thresholds=thresholds,
        level=level,
    )
