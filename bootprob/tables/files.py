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
from bootprob.runtime.files import replace_when_complete
from bootprob.tables.csv_safety import neutralised_table

__all__ = [
    "TABLE_SUFFIXES",
    "check_columns",
    "read_table",
    "refuse_duplicates",
    "separator_and_names",
    "table_suffix",
    "write_table",
]

TABLE_SUFFIXES = (".csv", ".parquet")
"""Suffixes of the files that are tables."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


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
    frame = frame.rename(columns=lambda name: name.strip() if isinstance(name, str) else name)
    check_columns(frame, str(path))
    if frame.empty:
        raise DataError(f"{path} has column names but no rows.")
    return frame.reset_index(drop=True)


def _read_csv(path: str | os.PathLike[str], text_columns: Collection[str]) -> pd.DataFrame:
    # pandas would quietly rename the second "a" to "a.1", so the header is looked at first.
    separator, raw_names = separator_and_names(path)
    refuse_duplicates([name.strip() for name in raw_names if name.strip()], str(path))

    def read(decimal: str) -> pd.DataFrame:
        return pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            na_values=["?"],
            skipinitialspace=True,
            index_col=False,
            low_memory=False,  # in pieces, one column could get two kinds of values
            dtype={name: str for name in raw_names if name.strip() in text_columns},
        )

    with warnings.catch_warnings():
        # pandas only warns when it cuts off cells that have no column.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = read(".")
            if separator != "," and _n_numeric(frame) < frame.shape[1]:
                # "1,5" is a number where commas separate nothing, unless that costs a "1.5".
                frame = max(frame, read(","), key=_n_numeric)
        except pd.errors.ParserWarning:
            raise DataError(
                f"{path} has rows with more cells than its first line has names."
            ) from None
    return frame


def separator_and_names(path: str | os.PathLike[str]) -> tuple[str, list[str]]:
    """Find what separates the cells of a CSV file, and the names in its first line.

    `csv.Sniffer` takes any comma for the separator, also that of ``height, cm;weight, kg;sex``.
    So the line is read with each mark, and the mark that finds most names is taken.
    """
    found: dict[str, list[str]] = {}
    for mark in _SEPARATORS:
        header = pd.read_csv(
            path,
            sep=mark,
            header=None,
            nrows=1,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
        )
        found[mark] = header.iloc[0].tolist()
    # A mark that only occurs inside a quoted name leaves the quotes in the pieces.
    whole = {mark: names for mark, names in found.items() if '"' not in "".join(names)}
    found = whole or found
    most = max(len(names) for names in found.values())
    best = [mark for mark, names in found.items() if len(names) == most]
    if most == 1:
        if "|" in found[best[0]][0]:
            raise DataError(f"{path} is separated by bars; save it with commas.")
    elif len(best) > 1:
        marks = " or ".join(_SEPARATORS[mark] for mark in best)
        raise DataError(
            f"{path}: whether {marks} separate the cells is not clear from the first line; "
            "rename the columns that have such marks in their names."
        )
    return best[0], found[best[0]]


def _n_numeric(frame: pd.DataFrame) -> int:
    return sum(map(pd.api.types.is_numeric_dtype, frame.dtypes))


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
    refuse_duplicates([str(name) for name in frame.columns], what)


def refuse_duplicates(names: list[str], what: str) -> None:
    """Raise a DataError that says of `what`, such as a file, which names it has twice."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{what} has several columns named {', '.join(repeated)}; rename them.")


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
