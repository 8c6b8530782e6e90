"""The columns of an encoder as plain values that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bootprob.encoding.columns import LARGEST_CELL, TOO_LARGE, BadCells
from bootprob.encoding.dates import DateParts
from bootprob.encoding.encoder import TableEncoder

__all__ = ["encoder_of", "refuse_large_fills", "stored_columns", "stored_counts"]


def stored_columns(encoder: TableEncoder) -> list[dict[str, Any]]:
    """What was learnt of each column, for `encoder_of`; every one has a fill."""
    columns = []
    for name, kind in encoder.kinds.items():
        column: dict[str, Any] = {"name": name, "kind": kind, "fill": encoder.fills[name]}
        if kind == "date":
            column |= encoder.dates[name].to_dict()
        elif kind != "number":
            column["levels"] = encoder.levels[name]
        columns.append(column)
    return columns


def encoder_of(stored: Sequence[dict[str, Any]]) -> TableEncoder:
    """Restore what `stored_columns` returned.

    Raises
    ------
    AttributeError, KeyError, TypeError, ValueError
        It is something else. Numbers may yet be too large: `refuse_large_fills`.
    """
    columns = {column["name"]: column for column in stored}
    parts = {
        name: DateParts.from_dict(column)
        for name, column in columns.items()
        if column["kind"] == "date"
    }
    if not all(map(_is_stored_column, columns.values())):
        raise TypeError("a column is of an unknown kind")
    return TableEncoder(
        kinds={name: column["kind"] for name, column in columns.items()},
        fills={name: column["fill"] for name, column in columns.items()},
        levels={name: column["levels"] for name, column in columns.items() if "levels" in column},
        dates=parts,
    )


def refuse_large_fills(fills: Mapping[str, float | str]) -> None:
    """Raise a DataError for a number that no cell may have."""
    for name, fill in fills.items():
        if not isinstance(fill, str) and abs(fill) > LARGEST_CELL:
            raise BadCells(TOO_LARGE, np.array([True]), fill).refusal(name)


def stored_counts(counts: Any, names: Collection[str]) -> dict[str, int] | None:
    """How many values of each column were missing, as they were stored.

    Raises
    ------
    AttributeError, TypeError, ValueError
        They are something else.
    """
    if counts is None:  # a file of before they were kept
        return None
    if counts.keys() != set(names) or not all(type(n) is int and n >= 0 for n in counts.values()):
        raise ValueError("its missing values are none")
    return dict(counts)


def _is_stored_column(column: dict[str, Any]) -> bool:
    fill = column["fill"]
    if column["kind"] == "date":
        return "levels" not in column  # the rest is checked by `DateParts.from_dict`
    if column["kind"] == "number":
        return isinstance(fill, float) and np.isfinite(fill)
    levels = column["levels"]
    return (
        column["kind"] in ("boolean", "text")
        and isinstance(levels, list)
        and all(isinstance(level, str) for level in levels)
        and fill in levels
    )
