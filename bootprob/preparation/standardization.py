"""Centre and scale of the columns, over all rows and inside each bootstrap sample."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import ConstantColumnWarning, DataError
from bootprob.runtime.array_forms import LARGEST
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["LARGEST", "MANY_LEVELS", "bootstrap_scale", "center_and_scale", "scale_of_levels"]

"""What numbers of a model may be at most; the inverse is the least scale. Products of two of them,
and of a row within a million standard deviations, are far from overflow."""

MANY_LEVELS = 100
"""Dummies of a column of more levels are scaled together."""

_DOUBTFUL = 1e-6  # variance below this share of the mean square has lost digits to cancellation
_NUMBERS_IN_CACHE = 2**18  # numbers of shape (replicates, columns) worked on at a time
_NUMBERS_AT_ONCE = 2**20  # numbers of shape (replicate, column) pairs × rows held at a time


def center_and_scale(
    X: Floats, weight: Floats, names: Sequence[str] | NDArray[Any] | None = None
) -> tuple[Floats, Floats]:
    """Mean and population standard deviation of the columns; scale 1 for constant ones.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are not looked at.
    names : sequence of str, shape (p,), optional
        Of the columns, for messages.

    Returns
    -------
    center, scale : ndarray, shape (p,)

    Raises
    ------
    DataError
        If a column holds numbers beyond ±1e100, whose products overflow.

    Warns
    -----
    ConstantColumnWarning
        If a column's standard deviation is below 1e-100, whose square vanishes; its scale is 1.
    """
    p = X.shape[1]
    slices = list(row_blocks(*X.shape))

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for rows in slices:
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
    reach = np.maximum(highest, -lowest)
    if not (reach <= LARGEST).all():
        raise DataError(
            f"{_named(reach > LARGEST, names)} numbers up to {reach.max():.0e}, whose squares "
            f"overflow (beyond {LARGEST:.0e}); divide them or drop them."
        )
    constant = highest == lowest
    tiny = ~constant & (scale < 1 / LARGEST)
    if tiny.any():
        warnings.warn(
            f"{_named(tiny, names)} numbers that differ by {(highest - lowest)[tiny].max():.0e} "
            "at most, whose squares vanish: standardised they are constant. Multiply them, or drop "
            "them.",
            ConstantColumnWarning,
            stacklevel=2,
        )
    center = np.where(constant, lowest, center)
    return center, np.where(constant | tiny, 1.0, scale)


def scale_of_levels(shares: Floats) -> Floats:
    """One scale for all dummies of a column, so that they have the variance of one column.

    Two rows are then as far apart by their levels as by a column of numbers. Scaled one by one, K
    dummies count as K columns, and the rarer a level the further it is from all others.

    Parameters
    ----------
    shares : ndarray, shape (K,)
        Of the levels, which are the dummies' means.

    Returns
    -------
    scale : ndarray, shape (K,)
        The root of ``Σ p_k (1 − p_k)``, of all the same; 1 where only one level occurs.
    """
    variance = float((shares * (1 - shares)).sum())
    return np.full(len(shares), np.sqrt(variance) if variance > 0 else 1.0)


def _named(
    columns: NDArray[np.bool_], names: Sequence[str] | NDArray[Any] | None, at_most: int = 10
) -> str:
    """Subject of a sentence: which columns hold something."""
    found = np.flatnonzero(columns).tolist()
    shown = found[:at_most] if names is None else [str(names[j]) for j in found[:at_most]]
    more = f" and {len(found) - at_most} more" if len(found) > at_most else ""
    return f"Columns {shown}{more}{' (counted from 0)' if names is None else ''} hold"


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
    # Columns whose squares vanish are as good as constant, as in `center_and_scale`.
    return np.sqrt(np.where(variance >= LARGEST**-2, variance, 1.0))
