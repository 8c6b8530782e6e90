"""What a file that is called a table holds by its first bytes, whatever its name says."""

from __future__ import annotations

import os
from pathlib import Path

from bootprob.exceptions import DataError

__all__ = ["check_content"]

_SAVE = "save it from the spreadsheet program as .xlsx or CSV"
# First bytes, what has them, the suffixes of such files, and what to do with one of another name.
_KINDS = (
    (b"PK\x03\x04", "an Excel file (or another zip file)", (".xlsx",), "let its name end in .xlsx"),
    (b"PAR1", "a Parquet file", (".parquet",), "let its name end in .parquet"),
    (b"\xd0\xcf\x11\xe0", "an Excel file of the old kind", (), _SAVE),
    (b"\x1f\x8b", "text compressed by gzip", (".gz",), "let its name end in .csv.gz or .tsv.gz"),
)


def check_content(path: str | os.PathLike[str]) -> None:
    """Refuse a file that begins as files of another kind than its name says do.

    Raises
    ------
    DataError
        With the name that it should have.
    FileNotFoundError, PermissionError
    """
    suffix = Path(path).suffix.lower()
    with Path(path).open("rb") as file:
        start = file.read(4)
    for begin, what, suffixes, advice in _KINDS:
        if start.startswith(begin) and suffix not in suffixes:
            raise DataError(f"{path} is by its content {what}; {advice}.")
    if suffix == ".xlsx" and start and not start.startswith(b"PK"):
        raise DataError(f"{path} is no Excel file; if it holds text, let its name end in .csv.")
