"""Rows that calibrators are given to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["checked_rows", "given_votes"]


def checked_rows(
    scores: ArrayLike, positive: ArrayLike, weight: ArrayLike
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Scores, labels and weights of the same rows, shape (n,) each.

    Raises
    ------
    DataError
        They are not as many, scores are not finite, labels are none, or weights are negative.
    """
    known, labels = np.asarray(scores, dtype=np.float64), np.asarray(positive)
    mass = np.asarray(weight, dtype=np.float64)
    if known.ndim != 1 or not known.shape == labels.shape == mass.shape:
        raise DataError(
            "scores, positive and weight are of the same rows, and have the shapes "
            f"{known.shape}, {labels.shape} and {mass.shape}."
        )
    if not np.isfinite(known).all():
        raise DataError("scores must be finite; leave rows without one out.")
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        raise DataError("positive must hold booleans, or 1 and 0.")
    if not (np.isfinite(mass) & (mass >= 0)).all() or not mass.any():
        raise DataError("weight must be finite and at least 0, and not 0 everywhere.")
    return known, labels.astype(bool), mass


def given_votes(vote_logits: Floats | None) -> Floats:
    """The logits of vote shares; a DataError where there are none."""
    if vote_logits is None:
        raise DataError("This calibration goes by votes; give vote_logits too.")
    return vote_logits
