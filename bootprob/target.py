"""Two classes from the column that is to be predicted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
import pandas as pd

from bootprob.columns import as_levels, as_numbers, column_kind, level_text, name_rows
from bootprob.exceptions import DataError

__all__ = ["Label", "Target"]

_LEAST_SHARE = 0.05  # of the rows, in the largest class, lest "the rest" be nearly everything

Label = bool | int | float | str


@dataclass(frozen=True)
class Target:
    """The column to predict and what its two classes are called.

    Attributes
    ----------
    name : str
        The column.
    negative, positive : bool, int, float or str
        The classes. Where several values were put together, they are called ``not X``.
    n_negative, n_positive : int
        Rows of each class in the table fitted on.
    """

    name: str
    negative: Label
    positive: Label
    n_negative: int
    n_positive: int

    @classmethod
    def from_table(
        cls, frame: pd.DataFrame, name: str, positive: Label | None = None
    ) -> tuple[Self, np.ndarray]:
        """Make two classes of a column.

        - Two values: the larger in order is positive, or the one given.
        - More values: `positive` against the rest; without it, the most frequent value against
          the rest, and the most frequent is the negative class (thesis, 3.3.1).

        Parameters
        ----------
        frame : DataFrame (n, columns)
            The table.
        name : str
            The column to predict.
        positive : bool, int, float or str, optional
            The positive value. Text is understood as the column's kind: ``"1"`` finds 1, 1.0
            and True.

        Returns
        -------
        Target
        ndarray (n,) of int
            1 for the positive class, 0 for the negative one.

        Raises
        ------
        DataError
            No such column, missing values, fewer than two values, dates, a positive value that
            does not occur, or, without one, more than two values of which none is a main class
            (in 5 % of the rows).
        """
        column = _find(frame, name)
        values, codes = _values(column, name)
        counts = np.bincount(codes, minlength=len(values))
        if len(values) < 2:
            raise DataError(
                f"The target column {name!r} has one value only, {values[0]!r}; "
                "two classes are needed."
            )
        if positive is not None:
            singled_out = _position(values, positive, name)
        elif len(values) == 2:
            singled_out = 1
        else:
            _refuse_quantities(values, counts, name)
            singled_out = int(np.argmax(counts))
        one_is_positive = positive is not None or len(values) == 2
        is_one = codes == singled_out
        one, rest = values[singled_out], values[1 - singled_out]
        if len(values) > 2:
            # Text for both, so that a column of predicted labels has one type.
            one, rest = level_text(one), f"not {level_text(one)}"
        y = (is_one == one_is_positive).astype(np.int64)
        labels = (rest, one) if one_is_positive else (one, rest)
        return cls(str(name), *labels, int((y == 0).sum()), int((y == 1).sum())), y

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Restore what `to_dict` returned.

        Raises
        ------
        DataError
            `stored` is not what `to_dict` returns.
        """
        types: dict[str, Any] = {
            "name": str,
            "negative": Label,
            "positive": Label,
            "n_negative": int,
            "n_positive": int,
        }
        if not isinstance(stored, dict) or stored.keys() != types.keys():
            raise DataError("The stored target is damaged.")
        if not all(isinstance(stored[key], kind) for key, kind in types.items()):
            raise DataError("The stored target is damaged.")
        return cls(**stored)

    def __str__(self) -> str:
        return (
            f"{self.name}: positive = {self.positive} ({self.n_positive} rows), "
            f"negative = {self.negative} ({self.n_negative} rows)"
        )


def _find(frame: pd.DataFrame, name: str) -> pd.Series:
    names = [str(column) for column in frame.columns]
    if name in names:
        return frame.iloc[:, names.index(name)]
    close = get_close_matches(name, names, n=1)
    shown = ", ".join(names[:15]) + (f" and {len(names) - 15} more" if len(names) > 15 else "")
    hint = f"Did you mean {close[0]!r}?" if close else f"The columns are: {shown}."
    raise DataError(f"The table has no column {name!r}. {hint}")


def _values(column: pd.Series, name: str) -> tuple[list[Label], np.ndarray]:
    """Sorted values of a column without gaps, and for each row the position of its value."""
    kind = column_kind(column, name)
    values: np.ndarray = as_numbers(column, name) if kind == "number" else as_levels(column, kind)
    missing = pd.isna(values)
    if missing.any():
        count = "a missing value" if missing.sum() == 1 else f"{missing.sum()} missing values"
        raise DataError(
            f"The target column {name!r} has {count}, in {name_rows(missing)}; "
            "complete or remove such rows."
        )
    found, codes = np.unique(values, return_inverse=True)
    if kind == "boolean":
        return [text == "True" for text in found], codes
    if kind == "number" and not pd.api.types.is_float_dtype(column.dtype):
        return [int(value) if value.is_integer() else float(value) for value in found], codes
    return found.tolist(), codes


def _position(values: list[Label], positive: Label, name: str) -> int:
    matches = [
        position
        for position, value in enumerate(values)
        if level_text(value) == level_text(positive) or _same_number(value, positive)
    ]
    if not matches:
        shown = ", ".join(repr(value) for value in values[:15])
        more = f" and {len(values) - 15} more" if len(values) > 15 else ""
        raise DataError(
            f"The target column {name!r} has no value {positive!r}; it has {shown}{more}."
        )
    return matches[0]


def _same_number(value: Label, positive: Label) -> bool:
    """Compare as numbers, true being 1, unless `value` is text."""
    if isinstance(value, str):
        return False
    wanted: Any = positive.strip().casefold() if isinstance(positive, str) else positive
    if isinstance(value, bool):
        wanted = {"true": 1, "yes": 1, "false": 0, "no": 0}.get(wanted, wanted)
    try:
        return float(value) == float(wanted)
    except ValueError:
        return False


def _refuse_quantities(values: list[Label], counts: np.ndarray, name: str) -> None:
    fractions = any(isinstance(value, float) and not value.is_integer() for value in values)
    if fractions or counts.max() == 1 or counts.max() < _LEAST_SHARE * counts.sum():
        raise DataError(
            f"The target column {name!r} has {len(values)} different values, such as "
            f"{values[0]!r}, and no main class; name the positive value, or make a column with "
            "two values of it first."
        )
