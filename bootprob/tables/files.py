"""Read and write tables: CSV and Parquet, by the suffix of the file's name."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa

from bootprob.encoding.names import check_columns
from bootprob.exceptions import DataError
from bootprob.runtime.files import replace_when_complete
from bootprob.tables.csv_files import read_csv
from bootprob.tables.csv_safety import neutralised_table

__all__ = [
    "TABLE_SUFFIXES",
    "read_table",
    "readable",
    "table_suffix",
    "write_table",
]

TABLE_SUFFIXES = (".csv", ".parquet")
"""Suffixes of the files that are tables."""


def table_suffix(path: str | os.PathLike[str]) -> str:
    """Suffix of a table's file name in lower case.

    Raises
    ------
    DataError
        The suffix is none of `TABLE_SUFFIXES`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise DataError(
            f"{path}: the name of a table must end in {' or '.join(TABLE_SUFFIXES)}, "
            f"not in {suffix or 'nothing'}."
        )
    return suffix


def read_table(path: str | os.PathLike[str], *, text_columns: Collection[str] = ()) -> pd.DataFrame:
    """Read a table of at least one row from a CSV or Parquet file.

    A CSV file has its column names in the first line, UTF-8 letters, and between the cells
    commas, semicolons or tabs: whichever cuts the first line into most names. Where it is not
    the comma, numbers may have a decimal comma. Empty cells, ``?`` and the marks that pandas
    knows (``NA``, ``NaN``, ``null`` ...) are missing values.

    Blanks around the names of columns are left out, in both kinds of files.

    Parameters
    ----------
    path : path-like
        A file whose name ends in ``.csv`` or ``.parquet``.
    text_columns : collection of str
        Columns of a CSV file to read as text even if they look like numbers, so that the codes
        ``01`` and ``1`` stay apart. Names that the table lacks are ignored.

    Returns
    -------
    DataFrame
        With a plain index 0, 1, 2 ...

    Raises
    ------
    DataError
        The file is missing, of another kind, unreadable or empty, it is not clear what separates
        its cells, or two columns share a name.
    """
    suffix = table_suffix(path)
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder, not a table.")
    kind = "CSV" if suffix == ".csv" else "Parquet"
    with readable(path, kind):
        frame = read_csv(path, text_columns) if suffix == ".csv" else pd.read_parquet(path)
    frame = frame.rename(columns=lambda name: name.strip() if isinstance(name, str) else name)
    check_columns(frame, str(path))
    if frame.empty:
        raise DataError(f"{path} has column names but no rows.")
    return frame.reset_index(drop=True)


@contextmanager
def readable(path: str | os.PathLike[str], kind: str = "") -> Iterator[None]:
    """Turn what a damaged or foreign file raises into a `DataError` that says it is no `kind`."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV (UTF-8).") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except (pa.ArrowException, ValueError, NotImplementedError, OSError, csv.Error) as error:
        # pandas' ParserError is a ValueError.
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        reason = (reason.splitlines() or [type(error).__name__])[0].rstrip(".")
        as_kind = f" as {kind}" if kind else ""
        raise DataError(f"{path} cannot be read{as_kind}: {reason}.") from error


def write_table(
    frame: pd.DataFrame, path: str | os.PathLike[str], *, csv_safe: bool = False
) -> None:
    """Write a table as CSV or Parquet, by the suffix, without its index.

    The file is complete or not there: see `bootprob.runtime.files.replace_when_complete`.

    Parameters
    ----------
    frame : DataFrame
        The table.
    path : path-like
        A file name that ends in ``.csv`` or ``.parquet``. An existing file is replaced.
    csv_safe : bool, default False
        Whether text that a spreadsheet program would run gets an apostrophe in a CSV file; see
        `bootprob.tables.csv_safety.neutralised`.

    Raises
    ------
    DataError
        Another suffix.
    OSError
        The disk is full or the folder cannot be written.
    """
    suffix = table_suffix(path)
    with replace_when_complete(path) as file:
        if suffix == ".csv":
            (neutralised_table(frame) if csv_safe else frame).to_csv(file, index=False)
        else:
            frame.to_parquet(file, index=False)
