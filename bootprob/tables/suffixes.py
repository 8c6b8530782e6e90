"""Which files are tables, by the suffix of their names; imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path

from bootprob.exceptions import DataError

__all__ = ["COMPRESSED", "SCORED_SUFFIXES", "TABLE_SUFFIXES", "is_table_name", "table_suffix"]

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".xlsx")
"""Suffixes of the files that are read as tables."""

SCORED_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")
"""Suffixes of the files that are scored, or were, whatever their length."""

COMPRESSED = (".gz", ".bz2", ".xz")
"""What may follow the suffix of a text file."""

_TEXT = (".csv", ".tsv")
_SPREADSHEETS = (".xls", ".xlsm", ".xlsb", ".ods")
_WRITTEN = (".csv", ".parquet")


def is_table_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name is that of a table that can be read or scored."""
    return _suffix(path) in (*TABLE_SUFFIXES, *SCORED_SUFFIXES)


def table_suffix(path: str | os.PathLike[str], *, written: bool = False) -> str:
    """Suffix of a table's file name in lower case, without that of a compression.

    Parameters
    ----------
    path : path-like
    written : bool, default False
        Whether the table is to be written, which `.csv` and `.parquet` alone can be.

    Raises
    ------
    DataError
        The suffix is none of a table.
    """
    allowed = _WRITTEN if written else TABLE_SUFFIXES
    suffix = Path(path).suffix.lower() if written else _suffix(path)
    if suffix not in allowed:
        also = (
            ""
            if written
            else f" ({' and '.join(_TEXT)} also with {', '.join(COMPRESSED)} after it)"
        )
        raise DataError(
            f"{path}: the name of a table {'to write ' if written else ''}must end in "
            f"{', '.join(allowed[:-1])} or {allowed[-1]}{also}, not in {suffix or 'nothing'}."
            f"{'' if written else _advice(suffix)}"
        )
    return suffix


def _advice(suffix: str) -> str:
    if suffix in _SPREADSHEETS:
        return " Save it from the spreadsheet program as .xlsx or CSV."
    if suffix in (".txt", ".dat", ".data"):
        return " If commas, semicolons or tabs separate its cells, call it .csv."
    return ""


def _suffix(path: str | os.PathLike[str]) -> str:
    *before, suffix = ["", *(each.lower() for each in Path(path).suffixes)]
    is_compressed_text = suffix in COMPRESSED and before[-1] in _TEXT
    return before[-1] if is_compressed_text else suffix
