"""Names of columns, each of which a table must have once."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from bootprob.exceptions import DataError

__all__ = ["check_columns", "refuse_duplicates"]


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
        raise DataError(f"{what} has several columns named {', '.join(repeated)}; rename them.")
