"""Which subgroup each row is in: the levels of a column, or its quarters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.counted import counted

__all__ = ["MISSING", "names_of_rows", "subgroups_of_rows"]

MISSING = "missing"
"""The subgroup of rows without a value."""

_MOST, _MOST_OF_NUMBERS = 30, 10


def subgroups_of_rows(by: ArrayLike, kept: NDArray[np.bool_]) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the subgroups, and which of them each row that is kept is in, shape (k,).

    A column of more than 10 different numbers is cut at its quartiles; other values are subgroups
    of their own, in sorted order, and rows without one are `MISSING`.

    Parameters
    ----------
    by : array_like, shape (n,)
    kept : ndarray of bool, shape (n,)
        Rows that are measured; the others neither make a subgroup nor move a quartile.

    Raises
    ------
    DataError
        For another number of values, one subgroup alone, or more than 30.
    """
    import pandas as pd  # which machines that only train do without

    from bootprob.encoding.columns import level_text

    given = by.to_numpy() if isinstance(by, pd.Series) else _array(by)
    _check_shape("by", given, len(kept))
    values = pd.Series(given[kept]).infer_objects()
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if numbers and values.nunique() > _MOST_OF_NUMBERS:
        names, codes = _quarters(values.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        codes, levels = pd.factorize(values, sort=numbers)
        texts = np.array([level_text(level) for level in levels], dtype=object)
        same, found = pd.factorize(texts, sort=not numbers)  # " a" and "a" are one level
        names, codes = found.tolist(), _moved(codes, same)
    if (codes < 0).any():
        codes = np.where(codes < 0, len(names), codes)
        names = [*names, MISSING]
    if len(names) > _MOST:
        raise DataError(
            f"by has {len(names)} different values; subgroups are told of {_MOST} at most. Put "
            "rare ones together."
        )
    if not names:
        raise DataError("by has no rows; give a value for each row.")
    if len(names) < 2:
        raise DataError(f"by is {names[0]!r} in all rows; there is nothing to compare.")
    return names, codes.astype(np.intp)


def names_of_rows(what: str, by: ArrayLike | None, n: int) -> NDArray[np.str_]:
    """The level that each row has, as text, shape (n,); none is put together or cut.

    Parameters
    ----------
    what : str
        What errors call it.
    by : array_like, shape (n,)
    n : int

    Raises
    ------
    DataError
        For another number of values, or missing ones.
    """
    import pandas as pd

    from bootprob.encoding.columns import level_text

    given = _array(by)
    _check_shape(what, given, n)
    values = pd.Series(given)
    if values.isna().any():
        raise DataError(f"{what} is missing in {int(values.isna().sum())} of {n} rows.")
    return np.array([level_text(value) for value in values], dtype=np.str_)


def _array(by: ArrayLike | None) -> NDArray[Any]:
    """Values as they were given: beside text NumPy makes text of gaps too."""
    return np.array(by, dtype=object) if isinstance(by, (list, tuple)) else np.asarray(by)


def _check_shape(what: str, given: NDArray[Any], n: int) -> None:
    if given.ndim != 1:
        raise DataError(f"{what} has the shape {given.shape}; give one value a row, (n,).")
    if len(given) != n:
        raise DataError(
            f"{what} has {counted(len(given), 'value')}, and there are {counted(n, 'row')}; give "
            "one a row."
        )


def _quarters(values: NDArray[np.float64]) -> tuple[list[str], NDArray[np.intp]]:
    """Numbers by the quarter that they are in; equal ones are never apart."""
    finite = values[np.isfinite(values)]
    levels, inner = np.unique(finite), np.unique(np.quantile(finite, [0.25, 0.5, 0.75]))
    inner = inner[inner < levels[-1]]
    if not inner.size:  # most have the largest
        inner = levels[-2:-1]
    codes = np.where(np.isnan(values), -1, np.searchsorted(inner, values, side="left"))
    texts = next(
        each
        for digits in range(6, 18)
        if len(set(each := [f"{edge:.{digits}g}" for edge in inner])) == len(inner)
    )
    between = [f"above {a} to {b}" for a, b in pairwise(texts)]
    return [f"up to {texts[0]}", *between, f"above {texts[-1]}"], codes


def _moved(codes: NDArray[np.intp], to: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.where(codes < 0, -1, to[codes]) if len(to) else codes
