"""From rows of a table to rows of the matrix: the one way for `predict`, `score` and `serve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.encoding.columns import (
    LARGEST_CELL,
    MISSING,
    BadCells,
    Kind,
    category_text,
    codes_and_levels,
    column_kind,
    numbers_and_bad,
)
from bootprob.encoding.dates import DateParts, dates_and_bad
from bootprob.preparation.standardization import LARGEST
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["Column", "EncodedRows", "TableEncoder"]

_TOO_FAR = "too far from the training rows"

Column = pd.Series | list[Any]


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as the machines take them.

    Attributes
    ----------
    X : ndarray, shape (m, features), or TableRows
        The latter for classifiers of others (`bootprob.ensemble.scoring.frame_encoder`). A missing
        or bad cell counts as what fills its column's gaps, a level that the model does not know is
        zero in all columns of its category.
    bad : dict of str to (dict of str to ndarray of bool, shape (m,))
        By column and by reason, the rows that cannot be used; empty where they are refused.
    unknown : dict of str to dict of str to int
        By column, the levels that the model does not know and their numbers of rows; of dates,
        months and weekdays.
    """

    X: Any
    bad: dict[str, dict[str, Bools]]
    unknown: dict[str, dict[str, int]]


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """What was learnt of a table: kinds, what fills gaps, and levels.

    Attributes
    ----------
    kinds : dict of str to {"number", "boolean", "text", "date"}
        The columns in use. In the matrix numbers come first, then a column of 0 and 1 for each
        level of each category, then what is made of each date.
    fills : dict of str to (float or str)
        What a missing value becomes; a number missing in a column without is a bad cell.
    levels : dict of str to list of str
        Of the categories.
    dates : dict of str to DateParts
        Of the dates.
    center, scale : ndarray, shape (features,), optional
        What standardises the matrix. With them a number further than 1e100 scales from the centre
        is a bad cell, as its square overflows.
    """

    kinds: dict[str, Kind]
    fills: dict[str, float | str]
    levels: dict[str, list[str]]
    dates: dict[str, DateParts] = field(default_factory=dict)
    center: Floats | None = None
    scale: Floats | None = None

    def standardizing(self, center: Floats, scale: Floats) -> Self:
        """The same with `center` and `scale`."""
        return replace(self, center=center, scale=scale)

    @cached_property
    def n_features(self) -> int:
        """Columns of the matrix."""
        return sum(self._widths.values())

    @cached_property
    def places(self) -> dict[str, slice]:
        """The features of each column."""
        return {
            name: slice(self._first[name], self._first[name] + self._widths[name])
            for name in self.kinds
        }

    @cached_property
    def told(self) -> dict[str, slice]:
        """The same, but of a date its days alone, from which all else of it follows."""
        return {
            name: slice(place.start, place.start + 1) if name in self.dates else place
            for name, place in self.places.items()
        }

    @cached_property
    def numbers(self) -> list[str]:
        """Columns of numbers."""
        return [name for name, kind in self.kinds.items() if kind == "number"]

    @cached_property
    def _widths(self) -> dict[str, int]:
        """How many features each column has, in the order of the matrix."""
        return {
            **dict.fromkeys(self.numbers, 1),
            **{name: len(levels) for name, levels in self.levels.items()},
            **{name: len(parts.names) for name, parts in self.dates.items()},
        }

    @cached_property
    def _first(self) -> dict[str, int]:
        """The first feature of each column."""
        starts = np.cumsum([0, *self._widths.values()]).tolist()
        return dict(zip(self._widths, starts[:-1], strict=True))

    @cached_property
    def _fills(self) -> Floats:
        """What a gap of each number becomes."""
        fills = [self.fills.get(name, np.nan) for name in self.numbers]
        return np.array(fills, dtype=np.float64)

    @cached_property
    def _features(self) -> dict[str, dict[str, int]]:
        """The feature of each level of each category; of "" that of the level for gaps."""
        found = {}
        for name, levels in self.levels.items():
            at = {level: self._first[name] + k for k, level in enumerate(levels)}
            found[name] = at | {"": at[str(self.fills[name])]}
        return found

    def encode(
        self,
        columns: Mapping[str, Column],
        n_rows: int,
        *,
        mark_bad: bool = False,
    ) -> EncodedRows:
        """Make the matrix.

        Parameters
        ----------
        columns : mapping of str to Series or list, shape (m,)
            Has all columns in use. A list holds values as JSON has them, None where one is
            missing, and numbers of a column of numbers were checked as they were read.
        n_rows : int
            m.
        mark_bad : bool, default False
            Whether bad cells, which are text or infinity where a number belongs, numbers beyond
            ±1e150 and what is no date, are marked in the result instead of refused.

        Raises
        ------
        DataError
            A column holds dates as another kind, complex or nested values, or bad cells are
            refused.
        """
        X = np.zeros((n_rows, self.n_features))
        bad: dict[str, dict[str, Bools]] = {}
        unknown: dict[str, dict[str, int]] = {}
        numbers, rows = X[:, : len(self._fills)], np.arange(n_rows)
        is_read = self._read_at_once(columns, numbers)
        for name, kind in self.kinds.items():
            column, at, cells = columns[name], self._first[name], list[BadCells]()
            if kind == "date":
                dates, cells = dates_and_bad(column)
                X[:, self.places[name]] = self.dates[name].features(dates)
                if new := self.dates[name].unknown(dates):
                    unknown[name] = new
            elif kind != "number":
                where, texts, codes = self._places(column, name, kind)
                known = where >= 0
                if known.all():
                    X[rows, where] = 1.0
                else:
                    X[rows[known], where[known]] = 1.0
                    unknown[name] = _counted(texts, codes[~known])
            elif not is_read:
                X[:, at], cells = self._numbers(column, name, at)
            if cells and not mark_bad:
                raise cells[0].refusal(name)
            if cells:
                bad[name] = {each.reason: each.rows for each in cells}
        gaps = np.isnan(numbers)
        if gaps.any():
            for name, own in zip(self.numbers, gaps.T, strict=True):
                if name in self.fills or not own.any():
                    continue
                if not mark_bad:
                    raise BadCells(MISSING, own, np.nan).refusal(name)
                masks = bad.setdefault(name, {})
                only = own & ~np.logical_or.reduce([*masks.values(), np.zeros(n_rows, bool)])
                if only.any():
                    masks[MISSING] = only
            fills = np.where(np.isnan(self._fills), 0.0, self._fills)
            numbers[gaps] = fills[np.nonzero(gaps)[1]]
        return EncodedRows(X, bad, unknown)

    def _read_at_once(self, columns: Mapping[str, Column], numbers: Floats) -> bool:
        """Whether all columns of numbers hold numbers, none of them bad; if so, they are read."""
        for at, name in enumerate(self.numbers):
            column = columns[name]
            if isinstance(column, list):
                numbers[:, at] = np.array(column, dtype=np.float64)  # None becomes NaN
            elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
                numbers[:, at] = column.to_numpy(dtype=np.float64)
            else:
                return False
        lowest = np.fmin.reduce(numbers, axis=0, initial=np.inf)
        highest = np.fmax.reduce(numbers, axis=0, initial=-np.inf)
        if (np.maximum(highest, -lowest) > LARGEST_CELL).any():
            return False
        if self.center is None or self.scale is None:
            return True
        center, scale = self.center[: len(lowest)], self.scale[: len(lowest)]
        return not (np.maximum(center - lowest, highest - center) / scale > LARGEST).any()

    def _numbers(self, column: Column, name: str, at: int) -> tuple[Floats, list[BadCells]]:
        """Values of a column, NaN where they are missing or bad."""
        if isinstance(column, list):
            values, bad = np.array(column, dtype=np.float64), list[BadCells]()
        else:
            values, bad = numbers_and_bad(column, name)
        if self.center is None or self.scale is None:
            return values, bad
        center, scale = self.center[at], self.scale[at]
        lowest = np.fmin.reduce(values, initial=np.inf)
        highest = np.fmax.reduce(values, initial=-np.inf)
        if max(center - lowest, highest - center) / scale > LARGEST:
            far = np.abs(values - center) / scale > LARGEST
            bad.append(BadCells(_TOO_FAR, far, values[far][0]))
            values = np.where(far, np.nan, values)
        return values, bad

    def _places(
        self, column: Column, name: str, kind: Kind
    ) -> tuple[NDArray[np.intp], Sequence[str], NDArray[np.integer[Any]]]:
        """The feature of each row, −1 for an unknown level; distinct texts, and that of each row.

        A missing value has the code −1, which picks the level that fills gaps, at the end.
        """
        features = self._features[name]
        if isinstance(column, list):
            texts = ["" if value is None else category_text(value, kind) for value in column]
            where = np.array([features.get(text, -1) for text in texts], dtype=np.intp)
            return where, texts, np.arange(len(texts))
        column_kind(column, name)  # refuses dates and nested values
        codes, found = codes_and_levels(column, kind)
        where = np.array([*(features.get(text, -1) for text in found), features[""]])[codes]
        return where, found, codes


def _counted(texts: Sequence[str], codes: NDArray[np.integer[Any]]) -> dict[str, int]:
    """Rows of each unknown level; values that differ only by blanks are one level."""
    found: dict[str, int] = {}
    counts = np.bincount(codes, minlength=len(texts))
    for at in np.flatnonzero(counts).tolist():
        found[texts[at]] = found.get(texts[at], 0) + int(counts[at])
    return found
