"""Names of columns: which a table must have, and each of them once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "check_columns",
    "check_dates",
    "check_has_columns",
    "nameless",
    "refuse_duplicates",
    "similar_name",
    "similar_names",
    "with_text_names",
]


def check_columns(frame: pd.DataFrame, what: str = "The table") -> None:
    """Refuse a table without columns or with two columns of the same name; messages call it `what`.

    Raises
    ------
    DataError
        The table has no columns or repeats a column's name.
    """
    if frame.shape[1] == 0:
        raise DataError(f"{what} has no columns.")
    refuse_duplicates([str(name) for name in frame.columns], what)


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """The same, its columns called by text; also where their names have several levels."""
    return frame.set_axis(list(map(str, frame.columns)), axis=1)


def refuse_duplicates(names: list[str], what: str) -> None:
    """Raise a DataError that says of `what`, such as a file, which names it has twice."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"{what} has several columns named {', '.join(repeated)}; rename them.{nameless(names)}"
        )


def nameless(names: list[str]) -> str:
    """What to do where the names of a table look like cells, or like a whole line; else nothing."""
    if any(re.fullmatch(r"[-+]?\d+([.,]\d+)?", name) for name in names):
        return " If these are values and not names, put a line of names above them."
    if len(names) == 1 and len(names[0].split()) > 2:
        return " Cells must have commas, semicolons or tabs between them."
    return ""


def check_has_columns(names: Collection[str], frame: pd.DataFrame) -> None:
    """Refuse a table that lacks columns that the model was fitted on."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        one = len(missing) == 1
        own = [str(name) for name in frame.columns if name not in names]
        raise DataError(
            f"The table lacks {'the column' if one else f'{len(missing)} columns'} "
            f"{_listed(missing)} that the model was fitted on.{similar_names(missing, own)}"
        )


def similar_names(missing: Iterable[str], names: Sequence[str]) -> str:
    """Which of `names` may be meant for some that are missing, as a question; or nothing."""
    close = {name: similar_name(name, names) for name in missing}
    meant = [f"{found!r} for {name!r}" for name, found in close.items() if found]
    return f" Is it {', '.join(meant[:3])}? Names have to be the same." if meant else ""


def similar_name(name: str, names: Sequence[str]) -> str | None:
    """One of `names` that `name` may be meant for, whatever the case of its letters."""
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(str(name).casefold(), list(folded), n=1)
    return folded[close[0]] if close else None


def check_dates(dates: Sequence[str], frame: pd.DataFrame) -> None:
    """Refuse names of dates that are no columns."""
    if isinstance(dates, str):
        raise DataError(f"dates is {dates!r}; give a list of columns, such as [{dates!r}].")
    for name in dates:
        if name not in frame.columns:
            raise DataError(
                f"There is no column {name!r} that could hold dates; the table has "
                f"{_listed(list(frame.columns))}."
            )


def _listed(names: list[str], at_most: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:at_most])
    return shown + (f" and {len(names) - at_most} more" if len(names) > at_most else "")
