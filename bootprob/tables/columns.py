"""What a table's column holds: numbers, yes/no answers or categories, in one canonical form.

A CSV file, a Parquet file and a hand-made data frame store the same column in different ways
(the category ``1`` may arrive as text, as an integer or, beside missing values, as ``1.0``).
Everything here brings them to the same values, so that a model does not care where its table
came from.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd

from bootprob.exceptions import DataError

__all__ = ["LARGEST", "Kind", "as_levels", "as_numbers", "column_kind", "level_text", "name_rows"]

Kind = Literal["number", "boolean", "text"]

_TIMES = {"datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"}
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
LARGEST = 1e150
"""Largest number that a table may hold: sums of squares of larger ones overflow."""


def name_rows(mask: np.ndarray, at_most: int = 5) -> str:
    """Say in words which rows a mask marks, counting from 1 below the header.

    >>> name_rows(np.array([False, True, False, True, True]))
    'rows 2, 4 and 5'
    >>> name_rows(np.ones(8, dtype=bool), at_most=2)
    'rows 1, 2 and 6 more'
    """
    rows = np.flatnonzero(mask) + 1
    if len(rows) == 1:
        return f"row {rows[0]}"
    if len(rows) > at_most:
        shown, last = rows[:at_most], f"{len(rows) - at_most} more"
    else:
        shown, last = rows[:-1], str(rows[-1])
    return f"rows {', '.join(map(str, shown))} and {last}"


def column_kind(column: pd.Series, name: str) -> Kind:
    """Decide from a column's dtype, or from its values where the dtype is ``object``.

    Parameters
    ----------
    column : Series
        The column.
    name : str
        Its name, for the error message.

    Returns
    -------
    {"number", "boolean", "text"}
        A categorical dtype is text whatever its categories are.

    Raises
    ------
    DataError
        The column holds dates, times, complex numbers or nested values.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "text"
    if pd.api.types.is_object_dtype(dtype):
        found = pd.api.types.infer_dtype(column, skipna=True)
        if found in _TIMES:
            raise _no_times(name)
        if found in _NUMBERS:
            return "number"
        if found == "boolean":
            return "boolean"
        if any(isinstance(value, (bytes, list, tuple, set, dict, np.ndarray)) for value in column):
            raise DataError(f"Column {name!r} holds nested or binary values; leave it out.")
        return "text"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"Column {name!r} holds complex numbers; split them into two columns.")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_string_dtype(dtype):
        return "text"
    raise _no_times(name)


def _no_times(name: str) -> DataError:
    return DataError(
        f"Column {name!r} holds dates or times; leave it out or turn it into numbers first "
        "(days since a date, month, hour)."
    )


def as_numbers(column: pd.Series, name: str) -> np.ndarray:
    """Bring a column to float64, NaN where a value is missing.

    Parameters
    ----------
    column : Series (n,)
        Numbers, yes/no answers (1 and 0) or text that spells numbers.
    name : str
        Its name, for the error messages.

    Returns
    -------
    ndarray (n,) float64

    Raises
    ------
    DataError
        A value is infinite, beyond ±1e150 or text that is not a number.
    """
    if column_kind(column, name) == "text":
        texts = pd.Series(as_levels(column, "text"), dtype=object)
        parsed = pd.to_numeric(texts, errors="coerce")
        unreadable = (parsed.isna() & texts.notna()).to_numpy()
        if unreadable.any():
            example = texts[unreadable].iloc[0]
            raise DataError(
                f"Column {name!r} holds numbers in this model, but {example!r} is not a number "
                f"({name_rows(unreadable)})."
            )
        values = parsed.to_numpy(dtype=np.float64)
    else:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        raise DataError(
            f"Column {name!r} is infinite in {name_rows(infinite)}; correct these values or "
            "leave them empty."
        )
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        raise DataError(
            f"Column {name!r} holds {values[too_large][0]:.3g} in {name_rows(too_large)}, too "
            "large to reckon with; give it in another unit or correct it."
        )
    return values


def as_levels(column: pd.Series, kind: Kind) -> np.ndarray:
    """Bring a column of categories to text, NaN where a value is missing or blank.

    Parameters
    ----------
    column : Series (n,)
        Values of any plain kind.
    kind : {"boolean", "text"}
        For ``"boolean"``, 1 and 0 and ``true`` and ``FALSE`` become ``True`` and ``False``.

    Returns
    -------
    ndarray (n,) of object
        str, or NaN.
    """
    codes, found = pd.factorize(column.astype(object))
    texts = [level_text(value) for value in found]
    if kind == "boolean":
        spelled = {"true": "True", "1": "True", "false": "False", "0": "False"}
        texts = [spelled.get(text.casefold(), text) for text in texts]
    # The missing values have the code -1, which picks the NaN at the end.
    levels = np.array([text or np.nan for text in texts] + [np.nan], dtype=object)
    return levels[codes]


def level_text(value: Any) -> str:
    """Canonical text of one category, without blanks around it.

    >>> [level_text(value) for value in (" A", 1, 1.0, 2.5, True)]
    ['A', '1', '1', '2.5', 'True']
    """
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if value.is_integer() else repr(float(value))
    return str(value).strip()
