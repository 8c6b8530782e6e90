"""Numbers and names of decision-making units, taken from arrays and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

    Table = np.ndarray | pd.DataFrame | pd.Series | Sequence[Any]
    """Units in rows; one column may be given flat."""

__all__ = [
    "PanelError",
    "by_name",
    "check_values",
    "checked_names",
    "column_names",
    "enumerated",
    "index_names",
    "listed",
    "numbers_of",
]


class PanelError(DataError):
    """Inputs or outputs of decision-making units that cannot be used.

    Attributes
    ----------
    units : tuple of str
        Those that the message is about; empty where it is about the whole.
    columns : tuple of str
        Inputs or outputs that the message is about; empty where it is about the whole.
    """

    def __init__(
        self, message: str, *, units: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.units, self.columns = tuple(units), tuple(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), units=self.units, columns=self.columns), self.args


def numbers_of(table: Any, what: str) -> np.ndarray:
    """A copy of a table (K, N) in float64; missing values as NaN. `what` is for the errors.

    `PanelError` if it is empty, has more than two dimensions, or holds what is no number.
    """
    if isinstance(table, (str, bytes, dict)) or not hasattr(table, "__len__"):
        raise PanelError(
            f"{what} is {type(table).__name__}; give an array or a data frame of numbers, one row "
            "for each unit."
        )
    try:
        if isinstance(table, np.ma.MaskedArray):
            table = np.ma.filled(table.astype(np.float64), np.nan)
        if hasattr(table, "isna"):  # pandas: its own missing values become NaN
            dtypes = table.dtypes if hasattr(table, "columns") else [table.dtype]
            if any(dtype.kind in "mM" for dtype in dtypes):
                raise TypeError("dates or times")
            values = table.mask(table.isna(), np.nan).to_numpy(dtype=np.float64)
        else:
            raw = np.asarray(table)
            if raw.dtype.kind in "cmM":
                raise TypeError("complex numbers" if raw.dtype.kind == "c" else "dates or times")
            values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PanelError(f"{what} cannot be read as numbers ({error}).") from error
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.size:
        raise PanelError(
            f"{what} has the shape {values.shape}; give (units, columns), at least one of each."
        )
    return np.array(values, dtype=np.float64, order="C")


def check_values(values: np.ndarray, units: Sequence[str], names: Sequence[str]) -> None:
    """Refuse missing, infinite and negative amounts (K, N) of these units and columns.

    `PanelError` names the first of them, and says how many more there are.
    """
    for bad, what, advice in (
        (np.isnan(values), "missing (NaN)", "Fill it in or leave the unit or the column out."),
        (np.isinf(values), "infinite", "Correct it."),
        (values < 0, "negative", "DEA needs values from zero up; shift, split or leave it out."),
    ):
        if bad.any():
            rows, columns = (np.flatnonzero(bad.any(axis=axis)).tolist() for axis in (1, 0))
            first = np.argwhere(bad)[0].tolist()
            more = f" ({int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
            raise PanelError(
                f"{names[first[1]]!r} of unit {units[first[0]]!r} is {what}{more}. {advice}",
                units=[units[row] for row in rows],
                columns=[names[column] for column in columns],
            )


def checked_names(names: Any, what: str, length: int) -> tuple[str, ...]:
    """As text, without blanks around them; `what` is for the errors.

    `PanelError` if there are more or fewer than `length`, one is empty, or two are the same.
    """
    texts = tuple(str(name).strip() for name in listed(names, what) or [])
    if len(texts) != length:
        raise PanelError(f"{what} has {len(texts)} names; {length} are needed.")
    if not all(texts):
        raise PanelError(f"{what} holds an empty name.")
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise PanelError(
            f"{what} holds {twice[0]!r} more than once; give every one its own name, for example "
            "by a number behind it."
        )
    return texts


def listed(names: Iterable[object] | None, what: str) -> list[Any] | None:
    """As a list; None stays None. `PanelError` for one text, or what cannot be listed."""
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise PanelError(f"{what} is {names!r}; give a list.")
    return list(names)


def column_names(table: Any) -> list[Any] | None:
    """Names that a data frame's columns, or a series, really have."""
    if hasattr(table, "columns"):
        return None if _numbered(table.columns) else list(table.columns)
    name = getattr(table, "name", None)
    return None if name is None else [name]


def index_names(*tables: Any) -> list[Any] | None:
    """Unit names of the data frames given; `PanelError` if they do not agree.

    Numbers that pandas made up are no names.
    """
    indexes = [
        table.index for table in tables if hasattr(table, "iloc") and not _numbered(table.index)
    ]
    if len(indexes) == 2 and not indexes[0].equals(indexes[1]):
        raise PanelError(
            "inputs and outputs have different indexes; take them from one data frame, or give "
            "arrays and `units`."
        )
    return list(indexes[0]) if indexes else None


def by_name(values: Any, what: str) -> Any:
    """A series as a dict, by the names in its index; anything else as it is.

    A series whose index pandas made up stays as it is: it is in the order of units or outputs.
    `PanelError` about `what` if a name is in the index twice.
    """
    if not hasattr(values, "iloc") or hasattr(values, "columns") or _numbered(values.index):
        return values
    names = checked_names(values.index, f"the index of {what}", len(values))
    return dict(zip(names, values.tolist(), strict=True))


def _numbered(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def enumerated(what: str, names: Sequence[str], at_most: int = 5) -> str:
    """The first of some names, with what they are called and how many more there are."""
    shown = ", ".join(map(repr, names[:at_most]))
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return f"{what}{'s' if len(names) > 1 else ''} {shown}{more}"
