"""Read and write tables: CSV, Parquet and Excel files, by the suffix of the file's name."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import os
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from bootprob.encoding.names import check_columns, refuse_duplicates, with_text_names
from bootprob.exceptions import DataError
from bootprob.runtime.files import replace_when_complete
from bootprob.tables.csv_files import MISSING, read_csv
from bootprob.tables.csv_safety import neutralised_table
from bootprob.tables.magic import check_content
from bootprob.tables.suffixes import table_suffix

__all__ = ["read_table", "readable", "write_table"]

_OPENED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_KINDS = {".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet", ".xlsx": "Excel"}
_WORDS = "True", "TRUE", "true", "False", "FALSE", "false"  # that pandas takes for answers
_TRUTH = {word: word.casefold() == "true" for word in _WORDS}


def read_table(
    path: str | os.PathLike[str],
    *,
    text_columns: Collection[str] = (),
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read a table of at least one row from a text, Parquet or Excel file.

    A CSV file has its column names in the first line, and between the cells commas, semicolons or
    tabs: whichever cuts the first line into most names; a TSV file has tabs. Where it is not
    the comma, numbers may have a decimal comma. Empty cells, ``?`` and the marks that pandas
    knows (``NA``, ``NaN``, ``null`` ...) are missing values. Of an Excel file the first sheet is
    read, with the names in its first row.

    Blanks around the names of columns are left out, in all kinds of files.

    Parameters
    ----------
    path : path-like
        A file whose name ends in ``.csv`` or ``.tsv``, perhaps with ``.gz``, ``.bz2`` or ``.xz``
        after it, in ``.parquet``, or in ``.xlsx`` (which needs the package openpyxl).
    text_columns : collection of str
        Columns to read as text even if they look like numbers, so that the codes ``01`` and ``1``
        stay apart. Names that the table lacks are ignored; a Parquet file knows its types.
    encoding : str, optional
        Of the letters of a text file, by any name that Python knows, such as ``cp1252``
        (Windows); default UTF-8.

    Returns
    -------
    DataFrame
        With a plain index 0, 1, 2 ...

    Raises
    ------
    DataError
        The file is missing, of another kind, unreadable or empty, it is not clear what separates
        its cells, or two columns share a name; an encoding is unknown, or given of no text file.
    """
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder, not a table; give a file in it.")
    suffix = table_suffix(path)
    is_text = suffix in (".csv", ".tsv")
    if encoding is not None:
        _check_encoding(encoding, path, is_text=is_text)
    with readable(path, _KINDS[suffix]):
        check_content(path)
        if is_text:
            frame = _read_text(path, text_columns, encoding)
        elif suffix == ".parquet":
            frame = pd.read_parquet(path)  # which makes columns of the file an index again
            frame = frame.reset_index([name for name in frame.index.names if name is not None])
        else:
            frame = _read_excel(path, text_columns)
    frame = frame.rename(columns=lambda name: name.strip() if isinstance(name, str) else name)
    check_columns(frame, str(path))
    if frame.empty:
        raise DataError(f"{path} has column names but no rows.")
    return frame.reset_index(drop=True)


def _check_encoding(encoding: str, path: str | os.PathLike[str], *, is_text: bool) -> None:
    if not is_text:
        raise DataError(f"An encoding is of CSV and TSV files; leave it out for {path}.")
    try:
        "".encode(encoding)  # codecs.lookup knows some that are not of text
    except (LookupError, ValueError):
        raise DataError(
            f"There is no encoding {encoding!r}; cp1252 (Windows), latin-1 and utf-16 are usual."
        ) from None


def _read_text(
    path: str | os.PathLike[str], text_columns: Collection[str], encoding: str | None
) -> pd.DataFrame:
    """A CSV or TSV file; what cannot be decoded is refused with advice."""
    try:
        return read_csv(path, text_columns, encoding or "utf-8")
    except UnicodeError as error:
        if encoding is not None or not isinstance(error, UnicodeDecodeError):
            raise DataError(
                f"{path} is not text in the encoding given; give another one."
            ) from None
        raise DataError(_undecodable(path, error)) from None


def _read_excel(path: str | os.PathLike[str], text_columns: Collection[str]) -> pd.DataFrame:
    """The first sheet."""
    try:
        names = pd.read_excel(
            path, header=None, nrows=1, dtype=str, keep_default_na=False, engine="openpyxl"
        )
    except ImportError:
        raise DataError(
            f'{path} needs the package openpyxl: pip install "bootprob[excel]"; or save it as CSV.'
        ) from None
    given = [] if names.empty else names.iloc[0].tolist()
    refuse_duplicates([name.strip() for name in given if name.strip()], str(path))
    texts = {name: str for name in given if name.strip() in text_columns}
    kinds = defaultdict[Any, type](lambda: object, texts)
    frame = pd.read_excel(path, na_values=[MISSING], dtype=kinds, engine="openpyxl")
    cells = {name: frame[name] if name in texts else _of_cells(frame[name]) for name in frame}
    return with_text_names(pd.DataFrame(cells))


def _of_cells(column: pd.Series) -> pd.Series:
    """A column as it is read from text, where TRUE is no number; pandas would make it 1."""
    known = column.dropna()
    kinds = set(map(type, known))
    if kinds <= {int, float, str}:
        try:
            return pd.to_numeric(column)
        except ValueError:
            pass
    if kinds <= {bool, str} and known.map(str).isin(_TRUTH).all():
        column = column.map(lambda cell: _TRUTH[str(cell)], na_action="ignore")
    return column.infer_objects()


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
    except (
        *(pa.ArrowException, NotImplementedError, OSError, csv.Error),
        ValueError,  # such as pandas' ParserError
        *(EOFError, zlib.error, lzma.LZMAError),  # of compressed files
        *(zipfile.BadZipFile, KeyError),  # of what is called .xlsx
    ) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        reason = (reason.splitlines() or [type(error).__name__])[0].rstrip(".")
        as_kind = f" as {kind}" if kind else ""
        raise DataError(f"{path} cannot be read{as_kind}: {reason}.") from error


def _undecodable(path: str | os.PathLike[str], error: UnicodeDecodeError) -> str:
    """What bytes that are no UTF-8 may be."""
    with _OPENED.get(Path(path).suffix.lower(), open)(path, "rb") as file:
        start = file.read(2)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return f"{path} is UTF-16 text; give encoding='utf-16' (--encoding utf-16)."
    around = error.object[max(0, error.start - 12) : error.end + 12]
    shown = max(around.decode("cp1252", "replace").splitlines(), key=len)
    return (
        f"{path} is not UTF-8 text. If {shown!r} reads well, give encoding='cp1252' (--encoding "
        "cp1252); else another one, or save the file as CSV (UTF-8)."
    )


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
    suffix = table_suffix(path, written=True)
    with replace_when_complete(path) as file:
        if suffix == ".csv":
            (neutralised_table(frame) if csv_safe else frame).to_csv(file, index=False)
        else:
            frame.to_parquet(file, index=False)
