"""A column of dates as numbers: days since the first, hour, and dummies of month and weekday."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bootprob.encoding.columns import UNDATED, BadCells, codes_and_levels
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["DateParts", "are_dates", "dates_and_bad", "read_date"]

Dates = NDArray[np.datetime64]
Codes = NDArray[np.integer[Any]]

_NONE = np.datetime64("NaT", "us")
_DAY, _HOUR = 86_400e6, 3_600e6  # µs
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONDAY = 3  # 1970-01-01 was a Thursday


def read_date(text: str) -> np.datetime64 | None:
    """A date or time of ISO 8601, in UTC where it has a zone; None for what is none.

    >>> read_date("2024-01-31T18:30+01:00"), read_date("31.01.2024")
    (np.datetime64('2024-01-31T17:30:00.000000'), None)
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return np.datetime64(found, "us")


def are_dates(texts: Iterable[str]) -> bool:
    """Whether all texts are dates with dashes, as codes of eight digits are not."""
    return all("-" in text and read_date(text) is not None for text in texts)


def dates_and_bad(column: pd.Series | list[Any]) -> tuple[Dates, list[BadCells]]:
    """Bring a column to dates, NaT where a value is missing or none.

    Parameters
    ----------
    column : Series or list, shape (n,)
        Dates or timestamps of NumPy, pandas, Arrow or Python, or text of ISO 8601. Times with a
        zone become UTC.

    Returns
    -------
    dates : ndarray of datetime64[us], shape (n,)
    bad : list of BadCells
        One for what is no date of the years 1 to 9999, or none.
    """
    values = pd.Series(column, dtype=object) if isinstance(column, list) else column
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    if isinstance(values.dtype, np.dtype) and values.dtype.kind == "M":
        given = values.to_numpy()
        years = given.astype("datetime64[Y]").astype(np.int64) + 1970
        shown, bad = given, ~np.isnat(given) & ((years < 1) | (years > 9999))
        found = np.where(bad, _NONE, given).astype("datetime64[us]")
    else:
        codes, texts = codes_and_levels(values, "text")
        read = [read_date(text) for text in texts]
        # The missing values have the code -1, which picks what is at the end.
        found = np.array([*(_NONE if each is None else each for each in read), _NONE])[codes]
        shown = np.array([*texts, ""], dtype=object)[codes]
        bad = np.isnat(found) & (shown != "")
    return found, [BadCells(UNDATED, bad, str(shown[bad][0]))] if bad.any() else []


@dataclass(frozen=True)
class DateParts:
    """What was learnt of a column of dates.

    Attributes
    ----------
    first : datetime64[us]
        From which days are counted.
    fill : datetime64[us]
        What a missing date becomes.
    hours : bool
        Whether times of day varied, so that the hour, with its minutes, is a feature.
    months, weekdays : tuple of int
        Those that there were, January and Monday being 0; empty where all rows had the same.
    """

    first: np.datetime64
    fill: np.datetime64
    hours: bool
    months: tuple[int, ...]
    weekdays: tuple[int, ...]

    @classmethod
    def of(cls, dates: Dates) -> Self:
        """Learn from dates of which none is missing; gaps become the lower median."""
        months, weekdays = (np.unique(each).tolist() for each in _month_and_weekday(dates))
        return cls(
            dates.min(),
            np.sort(dates)[(len(dates) - 1) // 2],
            len(np.unique(_hours(dates))) > 1,
            tuple(months) if len(months) > 1 else (),
            tuple(weekdays) if len(weekdays) > 1 else (),
        )

    @cached_property
    def names(self) -> list[str]:
        """Of the features, to go behind the column's."""
        return [
            "days",
            *(["hour"] if self.hours else []),
            *(f"month={_MONTHS[each]}" for each in self.months),
            *(f"weekday={_WEEKDAYS[each]}" for each in self.weekdays),
        ]

    def days(self, dates: Dates) -> Floats:
        """Days since the first date, gaps filled, shape (m,)."""
        filled = np.where(np.isnat(dates), self.fill, dates)
        found: Floats = (filled - self.first).astype(np.int64) / _DAY
        return found

    def features(self, dates: Dates) -> Floats:
        """Numbers that machines see, gaps filled, shape (m, features)."""
        filled = np.where(np.isnat(dates), self.fill, dates)
        month, weekday = _month_and_weekday(filled)
        return np.column_stack(
            [
                self.days(filled),
                *([_hours(filled)] if self.hours else []),
                month[:, None] == np.array(self.months, dtype=np.int64),
                weekday[:, None] == np.array(self.weekdays, dtype=np.int64),
            ]
        ).astype(np.float64)

    def unknown(self, dates: Dates) -> dict[str, int]:
        """Months and weekdays that the training table lacked while it had others, by rows."""
        known = dates[~np.isnat(dates)]
        month, weekday = _month_and_weekday(known)
        new = zip(
            _new(month, self.months, _MONTHS), _new(weekday, self.weekdays, _WEEKDAYS), strict=True
        )
        found = Counter(" ".join(filter(None, each)) for each in new)
        del found[""]
        return dict(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        return {
            "first": str(self.first),
            "fill": str(self.fill),
            "hours": self.hours,
            "months": list(self.months),
            "weekdays": list(self.weekdays),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Restore what `to_dict` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is something else.
        """
        first, fill = (read_date(stored[name]) for name in ("first", "fill"))
        if first is None or fill is None or fill < first:
            raise ValueError("a column of dates has no first and no middle date")
        if not isinstance(stored["hours"], bool):
            raise TypeError("a column of dates does not say whether it has hours")
        found = []
        for name, most in (("months", 12), ("weekdays", 7)):
            codes = stored[name]
            if not isinstance(codes, list) or len(codes) > most or len(codes) == 1:
                raise TypeError(f"a column of dates has no {name}")
            if any(type(code) is not int or not 0 <= code < most for code in codes) or any(
                codes[k] >= codes[k + 1] for k in range(len(codes) - 1)
            ):
                raise ValueError(f"{name} of a column of dates are not as they should be")
            found.append(tuple(codes))
        return cls(first, fill, stored["hours"], *found)


def _hours(dates: Dates) -> Floats:
    """Since midnight."""
    found: Floats = (dates - dates.astype("datetime64[D]")).astype(np.int64) / _HOUR
    return found


def _month_and_weekday(dates: Dates) -> tuple[Codes, Codes]:
    month = dates.astype("datetime64[M]").astype(np.int64) % 12
    weekday = (dates.astype("datetime64[D]").astype(np.int64) + _MONDAY) % 7
    return month, weekday


def _new(codes: Codes, seen: tuple[int, ...], names: Sequence[str]) -> NDArray[np.object_]:
    """Names of codes that were not seen; empty for others, and where none was."""
    new: Bools = ~np.isin(codes, seen) if seen else np.zeros(len(codes), dtype=bool)
    return np.where(new, np.array(names, dtype=object)[codes], "")
