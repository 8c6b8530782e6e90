"""What the columns of a data frame were like, and others like them, of files and requests.

Classifiers of others are given a data frame as it is, and may look at its types: categories in
their order, integers, true and false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bootprob.encoding.columns import (
    Kind,
    category_text,
    column_kind,
    level_text,
    numbers_and_bad,
)
from bootprob.encoding.encoder import Column
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Bools

__all__ = ["GivenColumns"]

_PLAIN = (bool, int, float, str)
_TRUE_FALSE = {"True": True, "False": False}


@dataclass(frozen=True)
class GivenColumns:
    """Columns of a data frame, in their order.

    Attributes
    ----------
    columns : sequence of dict
        Of each its "name" as it was; its "kind", None where values of its type cannot be made of
        files and requests; and its "dtype", or "categories" and whether they are "ordered".
    """

    columns: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> GivenColumns:
        """Those of a data frame."""
        return cls([_described(name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)])

    @classmethod
    def checked(cls, stored: Any) -> GivenColumns:
        """Those that a file has; a TypeError or ValueError says that they are none."""
        for each in stored:
            if not isinstance(each, dict) or not isinstance(each.get("name"), _PLAIN):
                raise TypeError("a column of frame_columns_ has no name")
            if each.get("kind") not in ("number", "boolean", "text", None):
                raise ValueError("a column of frame_columns_ is of no kind")
            plain = [each.get("dtype")] if "dtype" in each else each.get("categories")
            if not isinstance(plain, list) or not all(isinstance(one, _PLAIN) for one in plain):
                raise TypeError("a column of frame_columns_ is of no type")
            if "dtype" in each:
                pd.api.types.pandas_dtype(each["dtype"])
            elif len({level_text(one) for one in plain}) < len(plain):
                raise ValueError("categories of frame_columns_ are not distinct")
        return cls(stored)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """By name; a DataError for those of which no values can be made."""
        found: dict[str, Kind] = {}
        for each in self.columns:
            if each["kind"] is None:
                raise DataError(
                    f"Column {str(each['name'])!r} holds values that no file or request has as "
                    "they are, and the classifiers were fitted to these; use the model from "
                    "Python, or fit it without the column, or with text or numbers in it."
                )
            found[str(each["name"])] = each["kind"]
        return found

    def frame(
        self,
        columns: Mapping[str, Column],
        n_rows: int,
        fills: Mapping[str, float | str],
        bad: Mapping[str, Mapping[str, Bools]],
    ) -> pd.DataFrame:
        """A data frame like the one described; a missing value stays missing.

        Parameters
        ----------
        columns : mapping of str to Series or list, shape (m,)
            As `TableEncoder.encode` takes them; has all.
        n_rows : int
            m.
        fills : mapping of str to (float or str)
            What takes the place of cells that are bad, of numbers; default 0.
        bad : mapping of str to mapping of str to ndarray of bool, shape (m,)
            These, as `EncodedRows` has them.
        """
        found = []
        for each in self.columns:
            name = str(each["name"])
            column = columns[name]
            if each["kind"] == "number":
                numbers = _numbers(column, name)
                for mask in bad.get(name, {}).values():
                    numbers[mask] = fills.get(name, 0.0)
                found.append(_typed_numbers(numbers, each["dtype"]))
            elif "categories" in each:
                found.append(_categories(column, each))
            else:
                found.append(_texts(column, each["kind"], each["dtype"]))
        made = pd.concat(found, axis=1) if found else pd.DataFrame(index=range(n_rows))
        return made.set_axis([each["name"] for each in self.columns], axis=1)


def _described(name: Any, column: pd.Series) -> dict[str, Any]:
    name, dtype = name.item() if isinstance(name, np.generic) else name, column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories.tolist()
        plain = all(isinstance(each, _PLAIN) for each in known)
        distinct = len({level_text(each) for each in known}) == len(known) if plain else False
        if distinct:
            found = {"categories": known, "ordered": bool(dtype.ordered)}
            return {"name": name, "kind": "text", **found}
        return {"name": name, "kind": None, "dtype": "object"}
    kind: Kind | None
    try:
        kind = column_kind(column, str(name))
    except DataError:  # of dates and others that teach nothing, and are left out of the matrix
        kind = None
    if kind == "text" and not all(isinstance(each, str) for each in column.dropna()):
        kind = None
    return {"name": name, "kind": kind, "dtype": "object" if kind is None else str(dtype)}


def _numbers(column: Column, name: str) -> np.ndarray:
    if isinstance(column, list):
        return np.array(column, dtype=np.float64)  # None becomes NaN
    return numbers_and_bad(column, name)[0].copy()


def _typed_numbers(numbers: np.ndarray, dtype: str) -> pd.Series:
    """Numbers of a type, or float64 where that cannot hold them."""
    made, wanted = pd.Series(numbers), pd.api.types.pandas_dtype(dtype)
    if not pd.api.types.is_numeric_dtype(wanted):
        return made
    takes_gaps = pd.api.types.is_extension_array_dtype(wanted) or wanted.kind == "f"
    if wanted.kind in "iub" and not (made.dropna() % 1 == 0).all():
        return made
    return made.astype(wanted) if takes_gaps or not made.isna().any() else made


def _categories(column: Column, described: Mapping[str, Any]) -> pd.Series:
    """Categories in their order; those that there were not come behind them."""
    known = {level_text(each): each for each in described["categories"]}
    values = [known.get(text, text) if text else None for text in _spelled(column, "text")]
    new = dict.fromkeys(
        text for text in values if text is not None and level_text(text) not in known
    )
    made = pd.Categorical(values, [*known.values(), *new], ordered=described["ordered"])
    return pd.Series(made)


def _texts(column: Column, kind: Kind, dtype: str) -> pd.Series:
    """Text as it is written, or true and false."""
    wanted = pd.api.types.pandas_dtype(dtype)
    if kind == "boolean":
        values = [_TRUE_FALSE.get(text, text or np.nan) for text in _spelled(column, kind)]
        is_typed = all(isinstance(each, bool) for each in values)
    else:
        values = [
            value if isinstance(value, str) else text or np.nan
            for value, text in zip(column, _spelled(column, kind), strict=True)
        ]
        is_typed = True
    made = pd.Series(values, dtype=object)
    return made.astype(wanted) if is_typed else made


def _spelled(column: Column, kind: Kind) -> list[str]:
    """The level of each value; empty where it is missing."""
    return ["" if pd.isna(value) else category_text(value, kind) for value in column]
