"""What a CSV file is: names, separators, decimal marks, missing values; read whole or as batches.

`bootprob.tables.csv_pieces` reads files of any size by the same rules.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from bootprob.encoding.names import refuse_duplicates
from bootprob.exceptions import DataError
from bootprob.tables.suffixes import COMPRESSED, table_suffix

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MISSING",
    "CsvForm",
    "UnclearRowsError",
    "checked_names",
    "csv_batches",
    "read_csv",
    "separator_and_names",
]

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_TAIL = 2**20  # bytes
MISSING = "?"
"""A missing value, beside the empty cell and the marks that pandas knows."""
_GAPS = ["", MISSING, "NA", "NaN", "nan", "null", "NULL"]  # of a file read in batches


class UnclearRowsError(ValueError):
    """Which cells a row has, or whether a line is one, the file leaves open."""


@dataclass(frozen=True)
class CsvForm:
    """How the cells of a file are read.

    Attributes
    ----------
    separator, decimal : str
        Marks between cells and within numbers.
    dtypes : mapping of str to type
        Columns whose type is not found from their values, by the name as it is written.
    columns : list of str, optional
        Columns wanted; default all.
    encoding : str
        Of the letters.
    """

    separator: str
    decimal: str
    dtypes: Mapping[str, type]
    columns: list[str] | None = None
    encoding: str = "utf-8"

    def read(self, source: str | os.PathLike[str] | BytesIO) -> pd.DataFrame:
        """Read a file, or a part of one with its line of names in front.

        Raises
        ------
        UnclearRowsError
            Instead of cutting cells off, or leaving out blank lines of a single column.
        """
        with warnings.catch_warnings():
            # pandas only warns when it cuts off cells that have no column.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = self._read(source)
            except pd.errors.ParserWarning:
                raise UnclearRowsError(
                    "rows with more cells than its first line has names"
                ) from None
        if frame.shape[1] == 1 and self.columns is None:
            if isinstance(source, BytesIO):
                source.seek(0)
            if len(self._read(source, skip_blank_lines=False)) > len(frame):
                raise UnclearRowsError(
                    "one column and blank lines, which may be gaps or nothing: write NA for a gap, "
                    "or take them out"
                )
        return frame

    def _read(
        self, source: str | os.PathLike[str] | BytesIO, *, skip_blank_lines: bool = True
    ) -> pd.DataFrame:
        return pd.read_csv(
            source,
            sep=self.separator,
            decimal=self.decimal,
            na_values=[MISSING],
            skipinitialspace=True,
            skip_blank_lines=skip_blank_lines,
            index_col=False,
            low_memory=False,  # in pieces, one column could get two kinds of values
            dtype=self.dtypes,
            usecols=self.columns,
            encoding=self.encoding,
        )


def read_csv(
    path: str | os.PathLike[str], text_columns: Collection[str], encoding: str = "utf-8"
) -> pd.DataFrame:
    """Read a whole file; for what it may be, see `bootprob.tables.files.read_table`."""
    separator, raw_names = checked_names(path, encoding)
    texts = {name: str for name in raw_names if name.strip() in text_columns}
    try:
        form = CsvForm(separator, ".", texts, encoding=encoding)
        frame = form.read(path)
        if separator != "," and _n_numeric(frame) < frame.shape[1]:
            # "1,5" is a number where commas separate nothing, unless that costs a "1.5".
            frame = max(frame, replace(form, decimal=",").read(path), key=_n_numeric)
    except UnclearRowsError as error:
        raise DataError(f"{path} has {error}.") from None
    return frame


def _n_numeric(frame: pd.DataFrame) -> int:
    return sum(map(pd.api.types.is_numeric_dtype, frame.dtypes))


def checked_names(path: str | os.PathLike[str], encoding: str = "utf-8") -> tuple[str, list[str]]:
    """`separator_and_names` of a whole file in which no two columns share a name.

    pandas would quietly rename the second "a" to "a.1", and take cells that were cut off for gaps,
    so the first line and the last are looked at first.
    """
    separator, raw_names = separator_and_names(path, encoding)
    refuse_duplicates([name.strip() for name in raw_names if name.strip()], str(path))
    # Of what is compressed, or of wide letters, the last line is not at the end of the bytes.
    if Path(path).suffix.lower() not in COMPRESSED and "\n".encode(encoding) == b"\n":
        _refuse_cut_off(Path(path), separator.encode(), len(raw_names))
    return separator, raw_names


def _refuse_cut_off(path: Path, separator: bytes, n_columns: int) -> None:
    """Raise a DataError where the last line neither ends nor has all cells."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        *_, last = file.read().split(b"\n")
    n_cells = last.count(separator) + 1
    if last and b'"' not in last and n_cells < n_columns:
        raise DataError(
            f"{path} ends within a row: its last line has {n_cells} of {n_columns} cells, and no "
            "line end. Fetch the file again, or complete the row."
        )


def separator_and_names(
    path: str | os.PathLike[str], encoding: str = "utf-8"
) -> tuple[str, list[str]]:
    """Find what separates the cells of a CSV file, and the names in its first line.

    `csv.Sniffer` takes any comma for the separator, also that of ``height, cm;weight, kg;sex``.
    So the line is read with each mark, and the mark that finds most names is taken.

    Raises
    ------
    DataError
        It is not clear which mark separates.
    """
    found: dict[str, list[str]] = {}
    for mark in "\t" if table_suffix(path) == ".tsv" else _SEPARATORS:
        header = pd.read_csv(
            path,
            sep=mark,
            header=None,
            nrows=1,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            encoding=encoding,
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


def csv_batches(
    path: str | os.PathLike[str], types: Mapping[str, pa.DataType], number: str
) -> Iterator[pa.RecordBatch]:
    """Read columns of known types, batch by batch: no rows may decide that one is another kind.

    Names are those of `separator_and_names`; the first rows of the column `number` tell the decimal
    mark. Text is without blanks before it.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    separator, names = separator_and_names(path)
    decimal = "."
    if separator != ",":
        shown = pd.read_csv(
            path, sep=separator, usecols=[number], nrows=1000, dtype=str, skipinitialspace=True
        )
        if shown.iloc[:, 0].str.contains(",", regex=False, na=False).any():
            decimal = ","
    parsing = pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    with pa_csv.open_csv(path, parse_options=parsing) as file:
        as_written = dict(zip(names, file.schema.names, strict=True))  # with blanks before them
    for batch in pa_csv.open_csv(
        path,
        read_options=pa_csv.ReadOptions(block_size=2**23),
        parse_options=parsing,
        convert_options=pa_csv.ConvertOptions(
            column_types={as_written[name]: kind for name, kind in types.items()},
            include_columns=[as_written[name] for name in types],
            strings_can_be_null=True,
            null_values=_GAPS,
            decimal_point=decimal,
        ),
    ):
        columns = [_without_blanks(column) for column in batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(dict(types)))


def _without_blanks(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    text = pc.utf8_ltrim_whitespace(column)
    return pc.if_else(pc.is_in(text, pa.array(_GAPS)), None, text)
