"""When each row is from: numbers, dates or their ISO text, brought to an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Instants", "checked_instants"]

_WANTED = "give numbers, dates, or text such as 2026-03-01 or 2026-03-01T12:30"


@dataclass(frozen=True)
class Instants:
    """The instants of n rows.

    Attributes
    ----------
    ranks : ndarray of int, shape (n,)
        Which instant each row is from, counted from the first one.
    names : sequence of str
        Of the instants, in their order.
    """

    ranks: NDArray[np.int64]
    names: Sequence[str]


def checked_instants(time: ArrayLike, n: int, called: str = "time") -> Instants:
    """Order n rows by time.

    Parameters
    ----------
    time : array_like, shape (n,)
        Numbers, dates of numpy, pandas or Python, or ISO 8601 text; text without a zone is taken
        for UTC where other text has one.
    n : int
    called : str
        How messages call it.

    Raises
    ------
    DataError
        For another number of rows, a time that is missing, infinite or no time, or one alone.
    """
    import pandas as pd  # which knows every kind of date

    if np.shape(time) != (n,):
        raise DataError(
            f"{called} has the shape {np.shape(time)}, and there are {n} rows; give one time a row."
        )
    given = pd.Series(time).reset_index(drop=True)
    if isinstance(given.dtype, pd.CategoricalDtype):
        given = given.astype(given.cat.categories.dtype)
    missing = given.isna()
    if missing.any():
        raise DataError(
            f"{called} is missing in {missing.sum()} of {n} rows, the first of them row "
            f"{missing.argmax() + 1}; leave such rows out, or say when they are from."
        )
    codes, values = pd.factorize(_ordered(given, called), sort=True)
    if len(values) == 1:
        raise DataError(
            f"{called} is the same for all rows, so none is later than others; leave it out."
        )
    return Instants(codes.astype(np.int64), _names(values))


def _ordered(given: pd.Series, called: str) -> pd.Series:
    """Values that have an order: numbers, dates, lengths of time or periods."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(given)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        numbers = pd.to_numeric(given)
        if not np.isfinite(numbers.to_numpy(dtype=np.float64)).all():
            raise DataError(f"{called} is infinite in some rows; {_WANTED}.")
        return numbers
    if kind in ("datetime64", "timedelta64", "timedelta", "period"):
        return given
    if kind not in ("datetime", "date", "string"):
        raise DataError(f"{called} holds {kind} values, which are no times; {_WANTED}.")
    read: Any = pd.to_datetime(given, format="ISO8601", errors="coerce", utc=True)
    if read.isna().any():
        row = int(read.isna().argmax())
        raise DataError(
            f"{called} holds {str(given[row])[:40]!r} in row {row + 1}, which is no date in ISO "
            f"form; {_WANTED}."
        )
    return read.dt.tz_localize(None)


def _names(values: Any) -> list[str]:
    """Dates without an hour where all have none."""
    import pandas as pd

    if not isinstance(values, pd.DatetimeIndex):
        return [f"{each:.15g}" if isinstance(each, float) else str(each) for each in values]
    midnight = bool((values == values.normalize()).all())
    return [str(each.date()) if midnight else each.isoformat() for each in values]
