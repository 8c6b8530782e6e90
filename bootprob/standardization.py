"""Centre and scale of the columns, over all rows and inside each bootstrap sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.row_blocks import row_blocks

__all__ = ["bootstrap_scale", "center_and_scale"]

Floats = NDArray[np.float64]

_DOUBTFUL = 1e-6  # variance below this share of the mean square has lost digits to cancellation
_NUMBERS_IN_CACHE = 2**18  # numbers of shape (replicates, columns) worked on at a time
_NUMBERS_AT_ONCE = 2**20  # numbers of shape (replicate, column) pairs × rows held at a time


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
    n, p = X.shape

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for rows in row_blocks(n, p):
            inside = weight[rows] > 0
            if inside.any():
                yield X[rows][inside], weight[rows][inside, None]

    total, sums = 0.0, np.zeros(p)
    highest, lowest = np.full(p, -np.inf), np.full(p, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        for values, mass in blocks():
            total += mass.sum()
            sums += (values * mass).sum(axis=0)
            highest = np.maximum(highest, values.max(axis=0))
            lowest = np.minimum(lowest, values.min(axis=0))
        center = sums / total
        # Two passes, and an exact test for constancy: a rounded mean leaves a tiny variance.
        squares = np.zeros(p)
        for values, mass in blocks():
            squares += (np.square(values - center) * mass).sum(axis=0)
        scale = np.sqrt(squares / total)
    if not np.isfinite(scale).all():
        columns = np.flatnonzero(~np.isfinite(scale)).tolist()
        raise DataError(
            f"Columns {columns} (counted from 0) hold numbers up to "
            f"{max(highest.max(), -lowest.min()):.0e}, whose squares overflow; divide them or drop "
            "them."
        )
    constant = highest == lowest
    center = np.where(constant, lowest, center)
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
    scale = np.empty((len(counts), X.shape[1]))
    constant = X.max(axis=0) == X.min(axis=0)
    # A block of replicates at a time: all of them at once would leave the caches pass by pass.
    for replicates in row_blocks(len(counts), X.shape[1], at_once=_NUMBERS_IN_CACHE):
        scale[replicates] = _scale_inside(X, counts[replicates], weight, constant)
    return scale


def _scale_inside(
    X: Floats, counts: NDArray[np.integer], weight: Floats, constant: NDArray[np.bool_]
) -> Floats:
    """`bootstrap_scale` of a few replicates, shape (b, p)."""
    B, (n, p) = len(counts), X.shape
    total, mean, square = np.zeros((B, 1)), np.zeros((B, p)), np.zeros((B, p))
    for rows in row_blocks(n, B + p):
        mass, values = counts[:, rows] * weight[rows], X[rows]
        total += mass.sum(axis=1, keepdims=True)
        mean += mass @ values
        square += mass @ np.square(values)
    mean /= total
    square /= total
    variance = square - np.square(mean)
    variance[:, constant] = 1.0
    replicate, column = np.nonzero((variance <= _DOUBTFUL * square) & ~constant)
    step = max(1, _NUMBERS_AT_ONCE // n)
    for start in range(0, len(replicate), step):
        b, j = replicate[start : start + step], column[start : start + step]
        mass, values = counts[b] * weight, X[:, j].T
        inside = mass > 0
        deviation = values - mean[b, j][:, None]
        again = (mass * np.square(deviation)).sum(axis=1) / total[b, 0]
        highest = np.where(inside, values, -np.inf).max(axis=1)
        lowest = np.where(inside, values, np.inf).min(axis=1)
        variance[b, j] = np.where(highest == lowest, 1.0, again)
    # Columns whose squares underflow are as good as constant.
    return np.sqrt(np.where(variance > 0, variance, 1.0))
