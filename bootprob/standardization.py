"""Centre and scale of the columns, over all rows and inside each bootstrap sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bootstrap_scale", "center_and_scale"]

Floats = NDArray[np.float64]

_DOUBTFUL = 1e-6  # variance below this share of the mean square has lost digits to cancellation
_PAIRS_AT_ONCE = 2**24  # numbers held while doubtful variances are computed again


def center_and_scale(X: Floats) -> tuple[Floats, Floats]:
    """Mean and population standard deviation of the columns; scale 1 for constant ones.

    Parameters
    ----------
    X : ndarray, shape (n, p)

    Returns
    -------
    center, scale : ndarray, shape (p,)
    """
    center = X.mean(axis=0)
    # Two passes, and an exact test for constancy: a rounded mean leaves a tiny variance behind.
    scale = np.sqrt(np.square(X - center).mean(axis=0))
    constant = X.max(axis=0) == X.min(axis=0)
    center = np.where(constant, X[0], center)
    return center, np.where(constant | (scale == 0), 1.0, scale)


def bootstrap_scale(X: Floats, mass: Floats) -> Floats:
    """Population standard deviation of the columns inside each bootstrap sample.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Rows with columns of mean near 0.
    mass : ndarray, shape (B, n)
        Multiplicity × weight of the rows in each replicate.

    Returns
    -------
    scale : ndarray, shape (B, p)
        1 for a column that is constant in the replicate, such as the dummy of a level that the
        sample lacks.
    """
    total = mass.sum(axis=1, keepdims=True)
    mean = mass @ X / total
    square = mass @ np.square(X) / total
    variance = square - np.square(mean)
    replicate, column = np.nonzero(variance <= _DOUBTFUL * square)
    step = max(1, _PAIRS_AT_ONCE // len(X))
    for start in range(0, len(replicate), step):
        b, j = replicate[start : start + step], column[start : start + step]
        values, weight = X[:, j].T, mass[b]
        inside = weight > 0
        deviation = values - mean[b, j][:, None]
        again = (weight * np.square(deviation)).sum(axis=1) / total[b, 0]
        highest = np.where(inside, values, -np.inf).max(axis=1)
        lowest = np.where(inside, values, np.inf).min(axis=1)
        variance[b, j] = np.where(highest == lowest, 1.0, again)
    # Columns whose squares underflow are as good as constant.
    return np.sqrt(np.where(variance > 0, variance, 1.0))
