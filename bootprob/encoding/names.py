"""Names of columns, each of which a table must have once."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bootprob.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_columns", "nameless", "refuse_duplicates"]


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
