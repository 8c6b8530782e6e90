"""Centre and scale of the columns, over all rows and inside each bootstrap sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError

__all__ = ["bootstrap_scale", "center_and_scale"]

Floats = NDArray[np.float64]

_DOUBTFUL = 1e-6  # variance below this share of the mean square has lost digits to cancellation
_NUMBERS_AT_ONCE = 2**24  # numbers of shape replicates × rows that are held at a time


def center_and_scale(X: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Mean and population standard deviation of the columns; scale 1 for constant ones.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are not looked at.

    Returns
    -------
    center, scale : ndarray, shape (p,)

    Raises
    ------
    DataError
        If a column's numbers are so large that their squares overflow.
    """
    X, weight = X[weight > 0], weight[weight > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.average(X, axis=0, weights=weight)
        # Two passes, and an exact test for constancy: a rounded mean leaves a tiny variance.
        scale = np.sqrt(np.average(np.square(X - center), axis=0, weights=weight))
    if not np.isfinite(scale).all():
        columns = np.flatnonzero(~np.isfinite(scale)).tolist()
        raise DataError(
            f"Columns {columns} (counted from 0) hold numbers up to {np.abs(X).max():.0e}, whose "
            "squares overflow; divide them or drop them."
        )
    constant = X.max(axis=0) == X.min(axis=0)
    center = np.where(constant, X[0], center)
    return center, np.where(constant | (scale == 0), 1.0, scale)


def bootstrap_scale(X: Floats, counts: NDArray[np.integer], weight: Floats) -> Floats:
    """Population standard deviation of the columns inside each bootstrap sample.

    Parameters
    ----------
    X : ndarray, shape (n, p)
        Rows with columns of mean near 0.
    counts : ndarray of int, shape (B, n)
        How often each row occurs in each replicate.
    weight : ndarray, shape (n,)
        Row weights.

    Returns
    -------
    scale : ndarray, shape (B, p)
        1 for a column that is constant in the replicate, such as the dummy of a level that the
        sample lacks.
    """
    squares = np.square(X)
    step = max(1, _NUMBERS_AT_ONCE // len(X))
    return np.concatenate(
        [
            _scale_of_block(X, squares, counts[start : start + step] * weight)
            for start in range(0, len(counts), step)
        ]
    )


def _scale_of_block(X: Floats, squares: Floats, mass: Floats) -> Floats:
    total = mass.sum(axis=1, keepdims=True)
    mean = mass @ X / total
    square = mass @ squares / total
    variance = square - np.square(mean)
    replicate, column = np.nonzero(variance <= _DOUBTFUL * square)
    step = max(1, _NUMBERS_AT_ONCE // len(X))
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
