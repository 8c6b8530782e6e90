"""Read and write tables: CSV and Parquet, by the suffix of the file's name."""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from bootprob.exceptions import DataError
from bootprob.files import replace_when_complete

__all__ = ["TABLE_SUFFIXES", "check_columns", "read_table", "table_suffix", "write_table"]

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

    A CSV file has its column names in the first line, commas between the cells and UTF-8
    letters. Empty cells, ``?`` and the marks that pandas knows (``NA``, ``NaN``, ``null`` ...)
    are missing values.

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
        The file is missing, of another kind, unreadable or empty, or two columns share a name.
    """
    suffix = table_suffix(path)
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder, not a table.")
    try:
        frame = _read_csv(path, text_columns) if suffix == ".csv" else pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except DataError:
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV (UTF-8).") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied.") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty.") from None
    except (ValueError, NotImplementedError, OSError, csv.Error) as error:
        # pandas' ParserError and pyarrow's ArrowInvalid are ValueErrors.
        reason = str(error).removeprefix("Error tokenizing data. C error: ")
        reason = reason.strip().splitlines()[0].rstrip(".")
        kind = "CSV" if suffix == ".csv" else "Parquet"
        raise DataError(f"{path} cannot be read as {kind}: {reason}.") from None
    check_columns(frame, str(path))
    if frame.empty:
        raise DataError(f"{path} has column names but no rows.")
    return frame.reset_index(drop=True)


def _read_csv(path: str | os.PathLike[str], text_columns: Collection[str]) -> pd.DataFrame:
    # pandas would quietly rename the second "a" to "a.1", so the header is looked at first.
    header = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, skipinitialspace=True
    )
    raw_names = header.iloc[0].tolist()
    _refuse_duplicates([name.strip() for name in raw_names if name.strip()], str(path))
    if len(raw_names) == 1:
        for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in raw_names[0]:
                raise DataError(f"{path} is separated by {word}; save it with commas.")
    with warnings.catch_warnings():
        # pandas only warns when it cuts off cells that have no column.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                path,
                na_values=["?"],
                skipinitialspace=True,
                index_col=False,
                low_memory=False,  # in pieces, one column could get two kinds of values
                dtype={name: str for name in raw_names if name.strip() in text_columns},
            )
        except pd.errors.ParserWarning:
            raise DataError(
                f"{path} has rows with more cells than its first line has names."
            ) from None
    return frame.rename(columns=str.strip)


def check_columns(frame: pd.DataFrame, what: str = "The table") -> None:
    """Refuse a table without columns or with two columns of the same name.

    Parameters
    ----------
    frame : DataFrame
        The table.
    what : str
        How the error message calls it.

    Raises
    ------
    DataError
        The table has no columns or repeats a column's name.
    """
    if frame.shape[1] == 0:
        raise DataError(f"{what} has no columns.")
    _refuse_duplicates([str(name) for name in frame.columns], what)


def _refuse_duplicates(names: list[str], what: str) -> None:
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{what} has several columns named {', '.join(repeated)}; rename them.")


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table as CSV or Parquet, by the suffix, without its index.

    The file is complete or not there: see `bootprob.files.replace_when_complete`.

    Parameters
    ----------
    frame : DataFrame
        The table.
    path : path-like
        A file name that ends in ``.csv`` or ``.parquet``. An existing file is replaced.

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
            frame.to_csv(file, index=False)
        else:
            frame.to_parquet(file, index=False)
