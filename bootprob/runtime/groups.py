"""Rows that belong together, such as several of one subject: codes from 0 on, or None."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["Groups", "checked_groups", "one_of_each", "sums_of_groups"]

Groups = NDArray[np.integer[Any]]
"""The group of each row, shape (n,)."""


def checked_groups(groups: ArrayLike | None, n: int) -> Groups | None:
    """Number the groups of n rows as they appear; None without groups, or of one row each.

    Raises
    ------
    DataError
        For another number of rows, a group that is missing (NaN or None), or one group alone.
    """
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (n,):
        raise DataError(
            f"groups has the shape {given.shape}, and there are {n} rows; give one group a row."
        )
    import pandas as pd  # which knows every kind of name, and of missing ones

    codes, names = pd.factorize(pd.Series(groups) if given.dtype.kind in "OU" else given)
    missing = codes < 0
    if missing.any():
        raise DataError(
            f"groups is missing in {np.count_nonzero(missing)} of {n} rows; give each a group, "
            "rows that belong to no other one of their own."
        )
    if len(names) == 1:
        raise DataError(
            "groups is the same for all rows; whole groups are drawn and left out, so there must "
            "be several. Leave groups out if rows are independent."
        )
    return None if len(names) == n else codes.astype(np.int64)


def one_of_each(used: NDArray[np.bool_], groups: Groups | None) -> NDArray[np.bool_]:
    """Used rows of which each stands for its group, always the same; all of them without groups.

    Drawn: the first of a group may be like no other, where rows are ordered.
    """
    if groups is None:
        return used
    rows = np.random.default_rng(0).permutation(np.flatnonzero(used))
    found = np.zeros(len(used), dtype=bool)
    found[rows[np.unique(groups[rows], return_index=True)[1]]] = True
    return found


def sums_of_groups(values: NDArray[np.floating[Any]], groups: Groups | None) -> Floats:
    """Sums over the rows of each group, one for each code; the values without groups."""
    found: Floats = values.astype(np.float64)
    return found if groups is None else np.bincount(groups, found).astype(np.float64)
