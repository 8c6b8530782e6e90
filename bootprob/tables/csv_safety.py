"""Text that a spreadsheet program would run as a formula, made harmless in CSV files (CWE-1236)."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

__all__ = ["FORMULA_STARTS", "neutralised", "neutralised_table"]

FORMULA_STARTS = tuple("=+-@\t\r\n\0＝＋－＠")
"""First characters by which spreadsheet programs take text for a formula, as OWASP lists them."""

_NUMBER = re.compile(r"[+-](?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")


def neutralised(text: str) -> str:
    """Put an apostrophe before text that would be run; numbers are left alone.

    >>> neutralised("=cmd|' /C calc'!A0")
    "'=cmd|' /C calc'!A0"
    >>> neutralised("-1.5e3"), neutralised("a=b")
    ('-1.5e3', 'a=b')
    """
    if text.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def neutralised_table(table: pd.DataFrame) -> pd.DataFrame:
    """`neutralised` for the text cells and the column names of a table."""
    return pd.DataFrame(
        {
            _neutralised(name): column.astype(object).map(_neutralised)
            if _may_hold_text(column)
            else column
            for name, column in table.items()
        }
    )


def _may_hold_text(column: pd.Series) -> bool:
    kind = column.dtype
    return isinstance(kind, (pd.CategoricalDtype, pd.StringDtype)) or pd.api.types.is_object_dtype(
        kind
    )


def _neutralised(value: Any) -> Any:
    return neutralised(value) if isinstance(value, str) else value
