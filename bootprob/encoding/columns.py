"""What a table's column holds: numbers, yes/no answers, categories or dates, in one form.

A CSV file, a Parquet file and a hand-made data frame store the same column in different ways
(the category ``1`` may arrive as text, as an integer or, beside missing values, as ``1.0``).
Everything here brings them to the same values, so that a model does not care where its table
came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools, Floats

__all__ = [
    "LARGEST_CELL",
    "MISSING",
    "UNDATED",
    "BadCells",
    "Kind",
    "as_levels",
    "as_numbers",
    "category_text",
    "codes_and_levels",
    "column_kind",
    "column_kinds",
    "level_text",
    "name_rows",
    "numbers_and_bad",
    "plain_columns",
]

Kind = Literal["number", "boolean", "text", "date"]

_DATES = {"datetime64", "datetime", "date"}
_SPANS = {"time", "timedelta64", "timedelta", "period"}
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_YES_NO = {"true": "True", "1": "True", "false": "False", "0": "False"}

LARGEST_CELL = 1e150
"""Largest number that a table may hold: sums of squares of larger ones overflow."""

_OF_MODEL = "holds numbers in this model"
UNREADABLE, INFINITE, TOO_LARGE = "not a number", "infinite", "too large"
UNDATED, MISSING = "not a date", "missing"
"""Reasons for which a cell of a column of numbers, or of dates, cannot be used."""


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


def plain_columns(
    columns: Mapping[str, pd.Series], kinds: Mapping[str, Kind] | None = None
) -> tuple[dict[str, Kind], dict[str, pd.Series]]:
    """Bring all columns to float64, or to text as `as_levels` does, NaN where a value is missing.

    With the kinds since the fit, or else those that `column_kind` finds, which are returned too.

    Raises
    ------
    DataError
        As `column_kind` and `as_numbers` say.
    """
    found: dict[str, Kind] = {}
    plain = {}
    for name, column in columns.items():
        kind = column_kind(column, name)  # refuses dates and nested values
        kind = found[name] = kind if kinds is None else kinds[name]
        values = as_numbers(column, name) if kind == "number" else as_levels(column, kind)
        plain[name] = pd.Series(values, dtype=values.dtype)
    return found, plain


def column_kinds(columns: Mapping[str, pd.Series]) -> dict[str, Kind]:
    """`column_kind` of each."""
    return {name: column_kind(column, name) for name, column in columns.items()}


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
        if found in _DATES | _SPANS:
            raise _no_times(name, found in _DATES)
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
    if str(dtype).startswith("dictionary"):
        return "text"
    if dtype.kind not in "mM":
        raise DataError(
            f"Column {name!r} holds values of the type {dtype}; turn them into numbers or text, or "
            "leave it out."
        )
    raise _no_times(name, pd.api.types.is_datetime64_any_dtype(dtype))


def _no_times(name: str, are_dates: bool) -> DataError:
    if not are_dates:
        return DataError(
            f"Column {name!r} holds times or spans of time; turn it into numbers first (hours), or "
            "leave it out (--drop)."
        )
    return DataError(
        f"Column {name!r} holds dates or times; name it as dates (--dates, or "
        f"TablePreprocessor(dates=[{name!r}])) to learn from its days, months, weekdays and hours, "
        "or leave it out (--drop)."
    )


def as_numbers(column: pd.Series, name: str, what: str = _OF_MODEL) -> Floats:
    """Bring a column to float64, NaN where a value is missing.

    Parameters
    ----------
    column : Series (n,)
        Numbers, yes/no answers (1 and 0) or text that spells numbers.
    name : str
        Its name, for the error messages.
    what : str, optional
        Why it has to be numbers, what follows its name in the message about text.

    Returns
    -------
    ndarray (n,) float64

    Raises
    ------
    DataError
        A value is infinite, beyond ±1e150 or text that is not a number.
    """
    values, bad = numbers_and_bad(column, name)
    if bad:
        raise bad[0].refusal(name, what)
    return values


@dataclass(frozen=True, eq=False)
class BadCells:
    """Cells of a column of numbers, or of dates, that cannot be used.

    Attributes
    ----------
    reason : str
        What is wrong with them, in a few words.
    rows : ndarray of bool, shape (n,)
        Where they are.
    example : float or str
        The first of them.
    """

    reason: str
    rows: Bools
    example: float | str

    def refusal(self, name: str, what: str = _OF_MODEL) -> DataError:
        """The error that names the column and these rows; `what` is as of `as_numbers`."""
        rows = name_rows(self.rows)
        if self.reason == UNREADABLE:
            return DataError(
                f"Column {name!r} {what}, but {self.example!r} is not a number ({rows})."
            )
        if self.reason == UNDATED:
            return DataError(
                f"Column {name!r} is one of dates, but {self.example!r} is none "
                f"({rows}); write dates as 2024-12-31 or 2024-12-31T18:30 (ISO 8601), or leave "
                "such cells empty."
            )
        if self.reason == MISSING:
            return DataError(
                f"Column {name!r} has no value in {rows}, and the model was fitted to a table "
                "without gaps, so that nothing is known that could fill them; complete or remove "
                "such rows."
            )
        if self.reason == INFINITE:
            return DataError(
                f"Column {name!r} is infinite in {rows}; correct these values or leave them empty."
            )
        return DataError(
            f"Column {name!r} holds {self.example:.3g} in {rows}, {self.reason} to reckon with; "
            "give it in another unit or correct it."
        )


def numbers_and_bad(column: pd.Series, name: str) -> tuple[Floats, list[BadCells]]:
    """The same as `as_numbers`, but what it refuses is NaN and told.

    Raises
    ------
    DataError
        The column holds dates, complex or nested values.
    """
    if column_kind(column, name) == "text":
        texts = pd.Series(as_levels(column, "text"), dtype=object)
        parsed = pd.to_numeric(texts, errors="coerce")
        values = parsed.to_numpy(dtype=np.float64)
        unreadable = (parsed.isna() & texts.notna()).to_numpy()
        found = [(UNREADABLE, unreadable, texts.to_numpy())]
    else:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        found = []
    size = np.abs(values)
    if np.fmax.reduce(size, initial=0.0) > LARGEST_CELL:
        infinite = np.isinf(values)
        found.append((INFINITE, infinite, values))
        found.append((TOO_LARGE, (size > LARGEST_CELL) & ~infinite, values))
    bad = [BadCells(reason, rows, given[rows][0]) for reason, rows, given in found if rows.any()]
    for each in bad:
        values = np.where(each.rows, np.nan, values)
    return values, bad


def as_levels(column: pd.Series, kind: Kind) -> NDArray[np.object_]:
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
    codes, texts = codes_and_levels(column, kind)
    # The missing values have the code -1, which picks the NaN at the end.
    levels = np.array([text or np.nan for text in texts] + [np.nan], dtype=object)
    return levels[codes]


def codes_and_levels(
    column: pd.Series, kind: Kind
) -> tuple[NDArray[np.integer[Any]], Sequence[str]]:
    """The same as `as_levels`, each text once.

    Returns
    -------
    codes : ndarray of int, shape (n,)
        The position of each row's text, -1 where a value is missing.
    texts : sequence of str
        Of the distinct values, which may have the same text; empty for a blank one.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, found = column.cat.codes.to_numpy(), column.cat.categories
    elif isinstance(column.dtype, pd.StringDtype):
        codes, found = pd.factorize(column)
    else:
        codes, found = pd.factorize(column.astype(object))
        if _may_equal_booleans(column, found):  # True would stand for 1, or 1 for True
            texts = ["" if pd.isna(value) else category_text(value, kind) for value in column]
            return np.arange(len(texts)), texts
    return codes, [category_text(value, kind) for value in found]


def _may_equal_booleans(column: pd.Series, found: Iterable[Any]) -> bool:
    if not any(not isinstance(value, str) and value in (0, 1) for value in found):
        return False
    return bool(pd.api.types.infer_dtype(column, skipna=True).startswith("mixed"))


def category_text(value: Any, kind: Kind) -> str:
    """Text of a category in a column of a kind; empty for a blank one.

    >>> [category_text(value, "boolean") for value in (1, "true", " FALSE", False, "maybe")]
    ['True', 'True', 'False', 'False', 'maybe']
    """
    text = level_text(value)
    return _YES_NO.get(text.casefold(), text) if kind == "boolean" else text


def level_text(value: Any) -> str:
    """Canonical text of one category, without blanks around it.

    >>> [level_text(value) for value in (" A", 1, 1.0, 2.5, True)]
    ['A', '1', '1', '2.5', 'True']
    """
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if value.is_integer() else repr(float(value))
    return str(value).strip()
