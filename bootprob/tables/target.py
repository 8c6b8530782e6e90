"""Classes from the column that is to be predicted: two, or as many as it has values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from bootprob.encoding.columns import as_levels, as_numbers, column_kind, level_text, name_rows
from bootprob.encoding.names import nameless, similar_name
from bootprob.exceptions import DataError
from bootprob.runtime.counted import counted

__all__ = ["Label", "Target", "find_column"]

_LEAST_SHARE = 0.05  # of the rows, in the largest class, lest "the rest" be nearly everything

Label = bool | int | float | str
_TIMES = ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time")  # as pandas says it
_OF_TWO = ("negative", "positive", "n_negative", "n_positive")  # as stored


@dataclass(frozen=True)
class Target:
    """The column to predict and what its classes are called.

    Attributes
    ----------
    name : str
        The column.
    labels : tuple of bool, int, float or str
        The classes: of two, the negative and the positive one, and where several values were put
        together, they are called ``not X``; else all values in order.
    counts : tuple of int
        Rows of each class in the table fitted on.
    """

    name: str
    labels: tuple[Label, ...]
    counts: tuple[int, ...]

    @property
    def negative(self) -> Label:
        """The negative class; a DataError if there are more than two."""
        return self._of_two(self.labels)[0]

    @property
    def positive(self) -> Label:
        """The positive class; a DataError if there are more than two."""
        return self._of_two(self.labels)[1]

    @property
    def n_negative(self) -> int:
        """Rows of the negative class; a DataError if there are more than two."""
        return self._of_two(self.counts)[0]

    @property
    def n_positive(self) -> int:
        """Rows of the positive class; a DataError if there are more than two."""
        return self._of_two(self.counts)[1]

    @classmethod
    def from_table(
        cls,
        frame: pd.DataFrame,
        name: str,
        positive: Label | None = None,
        *,
        all_classes: bool = False,
    ) -> tuple[Self, np.ndarray]:
        """Make classes of a column.

        - Two values: the larger in order is positive, or the one given.
        - More values: with `all_classes` each is a class. Else `positive` against the rest;
          without it, the most frequent value against the rest, and the most frequent is the
          negative class (thesis, 3.3.1).

        Parameters
        ----------
        frame : DataFrame (n, columns)
            The table.
        name : str
            The column to predict.
        positive : bool, int, float or str, optional
            The positive value. Text is understood as the column's kind: ``"1"`` finds 1, 1.0
            and True.
        all_classes : bool, default False
            Whether more than two values are as many classes.

        Returns
        -------
        Target
        ndarray (n,) of int
            Position of each row's class among the labels: of two classes 1 for the positive one.

        Raises
        ------
        DataError
            No such column, missing values, fewer than two values, dates, a positive value that
            does not occur, or, without one, more than two values of which none is a main class
            (in 5 % of the rows). With `all_classes`, quantities, a value that occurs once, or a
            positive value beside it.
        """
        if all_classes and positive is not None:
            raise DataError(
                f"all_classes makes each value a class, and {positive!r} was given as the positive "
                "one, against the rest; leave one of the two out."
            )
        column = find_column(frame, name)
        values, codes = _values(column, name)
        counts = np.bincount(codes, minlength=len(values))
        if len(values) < 2:
            raise DataError(
                f"The target column {name!r} has one value only, {values[0]!r}; "
                "two classes are needed."
            )
        if all_classes and len(values) > 2:
            _refuse_single_rows(values, counts, name)
            return cls(str(name), tuple(values), tuple(counts.tolist())), codes.astype(np.int64)
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
        return cls(str(name), labels, (int((y == 0).sum()), int((y == 1).sum()))), y

    def put_together(self, frame: pd.DataFrame) -> list[str]:
        """Values of the column that one of two classes holds together; empty if each is a class.

        Parameters
        ----------
        frame : DataFrame (n, columns)
            The table that the classes were made of.

        Returns
        -------
        list of str
            As text, in their order.
        """
        values, _ = _values(find_column(frame, self.name), self.name)
        if len(values) == len(self.labels):
            return []
        alone = self.positive if self.negative == f"not {self.positive}" else self.negative
        return [text for text in map(level_text, values) if text != alone]

    def by_position(self, of_labels: Mapping[Any, Any]) -> dict[int, Any]:
        """What is given by label, or by its text, by the position of the label.

        Raises
        ------
        DataError
            There is no such label.
        """
        texts = {level_text(label): k for k, label in enumerate(self.labels)}
        unknown = [name for name in of_labels if level_text(name) not in texts]
        if unknown:
            shown = ", ".join(map(repr, self.labels[:15]))
            raise DataError(
                f"{unknown[0]!r} is no class of {self.name!r}; of {len(self.labels)} classes rates "
                f"are by class, and these are {shown}."
            )
        return {texts[level_text(name)]: value for name, value in of_labels.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values that JSON can hold."""
        if len(self.labels) > 2:
            return {"name": self.name, "labels": list(self.labels), "counts": list(self.counts)}
        return {"name": self.name} | {name: getattr(self, name) for name in _OF_TWO}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Restore what `to_dict` returned.

        Raises
        ------
        DataError
            `stored` is not what `to_dict` returns.
        """
        damaged = DataError("The stored target is damaged.")
        if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
            raise damaged
        if stored.keys() == {"name", *_OF_TWO}:
            labels, counts = (
                tuple(stored[f"{before}{name}"] for name in ("negative", "positive"))
                for before in ("", "n_")
            )
        elif stored.keys() == {"name", "labels", "counts"} and all(
            isinstance(stored[name], list) and len(stored[name]) > 2
            for name in ("labels", "counts")
        ):
            labels, counts = tuple(stored["labels"]), tuple(stored["counts"])
        else:
            raise damaged
        plain = all(isinstance(each, Label) for each in labels)
        if len(labels) != len(counts) or not plain or not all(type(n) is int for n in counts):
            raise damaged
        return cls(stored["name"], labels, counts)

    def __str__(self) -> str:
        if len(self.labels) > 2:
            shown = ", ".join(
                f"{a} ({counted(n, 'row')})" for a, n in zip(self.labels, self.counts, strict=True)
            )
            return f"{self.name}: {len(self.labels)} classes, {shown}"
        return (
            f"{self.name}: positive = {self.positive} ({counted(self.n_positive, 'row')}), "
            f"negative = {self.negative} ({counted(self.n_negative, 'row')})"
        )

    def _of_two(self, each: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(self.labels) > 2:
            raise DataError(
                f"The model of {self.name!r} has {len(self.labels)} classes, none of them the "
                "positive one; fit one class against the rest by naming it as the positive value."
            )
        return each


def find_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column by its name; a DataError if there is none, with one that is called alike."""
    names = [str(column) for column in frame.columns]
    if name in names:
        return frame.iloc[:, names.index(name)]
    close = similar_name(name, names)
    if len(names) > 15:  # the target is often the last
        names = [*names[:12], f"… ({len(names) - 14} more)", *names[-2:]]
    shown = ", ".join(names)
    hint = f"Did you mean {close!r}?" if close else f"The columns are: {shown}."
    raise DataError(f"The table has no column {name!r}. {hint}{nameless(names)}")


def _values(column: pd.Series, name: str) -> tuple[list[Label], np.ndarray]:
    """Sorted values of a column without gaps, and for each row the position of its value."""
    if pd.api.types.infer_dtype(column, skipna=True) in _TIMES:
        raise DataError(f"The target column {name!r} holds dates or times; give one of classes.")
    kind = column_kind(column, name)
    if pd.api.types.is_integer_dtype(column.dtype) and not column.isna().any():
        values = np.asarray(column)  # beyond 2⁵³ floats put some of them together
    else:
        values = as_numbers(column, name) if kind == "number" else as_levels(column, kind)
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
        return [int(value) if value == int(value) else float(value) for value in found], codes
    return found.tolist(), codes


def _position(values: list[Label], positive: Label, name: str) -> int:
    text = level_text(positive)
    exact = [k for k, value in enumerate(values) if level_text(value) == text]
    matches = exact or [k for k, value in enumerate(values) if _same_number(value, positive)]
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


def _refuse_single_rows(values: list[Label], counts: np.ndarray, name: str) -> None:
    fractions = any(isinstance(value, float) and not value.is_integer() for value in values)
    if fractions or counts.min() == 1:
        what = (
            "fractions"
            if fractions
            else f"values that occur once, such as {values[counts.argmin()]!r}"
        )
        raise DataError(
            f"The target column {name!r} has {len(values)} different values, and {what}; a class "
            "needs two rows at least. Put rare values together first, or name one positive value."
        )
