"""The training set I and the anchor set J of thesis chapter 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Indices

__all__ = ["split_rows"]


def split_rows(
    anchors: str | ArrayLike,
    positive: NDArray[np.bool_],
    used: NDArray[np.bool_],
    *,
    shuffle: bool,
    random_state: np.random.RandomState,
) -> tuple[Indices, Indices]:
    """Split rows into training rows and anchors.

    Parameters
    ----------
    anchors : {"halves", "all"} or array_like
        "halves": the first half of the rows are I, the others J; "all": both are all rows, problem
        (3.7); or the rows of J, as indices or as a mask of shape (n,), the others being I.
    positive : ndarray of bool, shape (n,)
        Which rows belong to the positive class.
    used : ndarray of bool, shape (n,)
        Rows that have weight; the others are in neither set.
    shuffle : bool
        Draw the halves at random within each class.

    Returns
    -------
    training, anchors : ndarray of int
        Row numbers, ascending.

    Raises
    ------
    DataError
        For indices that are no rows, and where I lacks a class.
    """
    n = len(positive)
    rows = np.flatnonzero(used)
    if isinstance(anchors, str):
        if anchors == "all":
            return rows, rows
        if shuffle:
            halves = [_half(np.flatnonzero(used & label), random_state)
                      for label in (positive, ~positive)]  # fmt: skip
            training = np.sort(np.concatenate(halves))
        else:
            training = rows[: len(rows) // 2]
        chosen = np.setdiff1d(rows, training)
    else:
        chosen = np.intersect1d(_row_numbers(anchors, n), rows)
        training = np.setdiff1d(rows, chosen)
    for name, label in (("positive", positive), ("negative", ~positive)):
        if not label[training].any():
            advice = (
                "set shuffle=True" if isinstance(anchors, str) else "leave some out of `anchors`"
            )
            raise DataError(
                f"The training set has no {name} row: all of them are anchors; {advice}, or train "
                "on the anchors too with anchors='all'."
            )
    return training, chosen


def _half(rows: Indices, random_state: np.random.RandomState) -> Indices:
    return random_state.permutation(rows)[: (len(rows) + 1) // 2]


def _row_numbers(anchors: ArrayLike, n: int) -> Indices:
    given = np.asarray(anchors)
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size == 0:
        raise DataError(
            f"anchors has shape {given.shape} and dtype {given.dtype}; give 'halves', 'all', row "
            f"numbers, or a mask of shape ({n},)."
        )
    if given.min() < 0 or given.max() >= n:
        raise DataError(
            f"anchors has row numbers from {given.min()} to {given.max()}; there are the rows 0 to "
            f"{n - 1}."
        )
    return np.unique(given).astype(np.intp)
