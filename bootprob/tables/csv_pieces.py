"""A CSV file of any size, in pieces that are read as `bootprob.tables.csv_files` reads it whole.

Two things of a CSV file depend on all of its rows: whether a column holds numbers, and whether
numbers have a decimal comma. So the file is looked through once before any row is scored. Pieces
end at line ends; pandas itself says whether such a line end lies inside a quoted cell, in which
case the piece is made longer. From then on every piece can be read without those before it.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self

import pandas as pd

from bootprob.encoding.columns import Kind, column_kinds
from bootprob.exceptions import DataError
from bootprob.tables.csv_files import CsvForm, UnclearRowsError, checked_names
from bootprob.tables.files import readable

__all__ = ["CsvLayout", "read_piece"]

_PIECE = 2**24  # bytes
_LONGEST = 2**28  # bytes of a piece that a quoted cell makes longer
_LITTLE = 1  # bytes, up to a line end, by which it is made longer at first

_WITHIN_QUOTES = "EOF inside string"


@dataclass
class _Found:
    """What the values of a column have been so far.

    Attributes
    ----------
    kinds : set of {"number", "boolean", "text"}
        Empty while there are no values.
    gaps : bool
        Whether some are missing.
    """

    kinds: set[Kind] = field(default_factory=set)
    gaps: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of the whole column: pandas takes mixed values as text."""
        if len(self.kinds) > 1:
            return "text"
        return next(iter(self.kinds), "number")

    @property
    def counts_as_number(self) -> bool:
        """Whether pandas has a numeric dtype for it, by which the decimal mark is chosen."""
        return self.kind == "number" or (self.kind == "boolean" and not self.gaps)


@dataclass(frozen=True)
class CsvLayout:
    """What looking through a CSV file finds, as plain values.

    Attributes
    ----------
    separator, decimal : str
        Marks between cells and within numbers.
    header : (int, int)
        First byte of the line of names, and its number of bytes.
    kinds : dict of str to {"number", "boolean", "text"}
        By the name as it is written in the file, blanks included.
    pieces : list of (int, int, int)
        Of each piece the first byte, the number of bytes and the number of rows.
    """

    separator: str
    decimal: str
    header: tuple[int, int]
    kinds: dict[str, Kind]
    pieces: list[tuple[int, int, int]]

    @classmethod
    def find(
        cls,
        path: Path,
        text_columns: Sequence[str],
        advance: Callable[[int], None] = lambda n_bytes: None,
    ) -> Self:
        """Look through a file; `text_columns` are text even if they look like numbers.

        `advance` is told the number of bytes just looked through.

        Raises
        ------
        DataError
            What `read_table` refuses.
        """
        with readable(path):
            separator, raw_names = checked_names(path)
            texts = [name for name in raw_names if name.strip() in text_columns]
            with path.open("rb") as file:
                before, header = _header(file, separator)
                decimals = "." if separator == "," else ".,"
                found: dict[str, dict[str, _Found]] = {mark: {} for mark in decimals}
                pieces, n_rows, offset = [], 0, before + len(header)
                advance(offset)
                while data := _more(file, b"", _PIECE):
                    for mark in decimals:
                        form = CsvForm(separator, mark, dict.fromkeys(texts, str))
                        frame, data = _complete(form, header, file, data, n_rows)
                        _note(found[mark], frame)
                    if len(frame):
                        pieces.append((offset, len(data), len(frame)))
                    n_rows += len(frame)
                    offset += len(data)
                    advance(len(data))
        # As in read_table, the point unless the comma makes more columns numbers.
        decimal = max(decimals, key=lambda mark: _n_numeric(found[mark].values()))
        kinds: dict[str, Kind] = dict.fromkeys(raw_names, "number")  # of a file without rows
        kinds = {name: each.kind for name, each in found[decimal].items()} or kinds
        return cls(separator, decimal, (before, len(header)), kinds, pieces)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values that JSON can hold; ``CsvLayout(**stored)`` restores it."""
        return asdict(self)


def _note(found: dict[str, _Found], frame: pd.DataFrame) -> None:
    """Note what the columns of a piece hold."""
    missing = {name: frame[name].isna() for name in frame.columns}
    kinds = column_kinds({name: frame[name] for name in missing if not missing[name].all()})
    for name in missing:
        each = found.setdefault(name, _Found())
        each.gaps |= bool(missing[name].any())
        if name in kinds:
            each.kinds.add(kinds[name])


def _n_numeric(columns: Iterable[_Found]) -> int:
    return sum(each.counts_as_number for each in columns)


def read_piece(form: CsvForm, header: bytes, data: bytes) -> pd.DataFrame:
    """Read lines of a file behind its line of names."""
    return form.read(BytesIO(header + data))


def _complete(
    form: CsvForm, header: bytes, file: BinaryIO, data: bytes, n_before: int
) -> tuple[pd.DataFrame, bytes]:
    """Read a piece, with more of the file while its end lies inside a quoted cell."""
    more = _LITTLE
    while True:
        try:
            return read_piece(form, header, data), data
        except UnclearRowsError as error:
            reason = str(error)
        except pd.errors.ParserError as error:
            reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
            if _WITHIN_QUOTES in reason:
                longer = _more(file, data, more)
                if len(data) < len(longer) <= _LONGEST:
                    data, more = longer, 2 * more
                    continue
                reason = "a quoted cell that does not end"
        raise DataError(
            f"{file.name} cannot be read as CSV beyond row {n_before}: {reason}."
        ) from None


def _more(file: BinaryIO, data: bytes, size: int) -> bytes:
    """`data` with so many bytes more, up to a line end."""
    data += file.read(size)
    if data and not data.endswith(b"\n"):
        data += file.readline(_LONGEST)
        if len(data) >= _LONGEST:
            raise DataError(f"{file.name} has no line end in {_LONGEST >> 20} MiB; is it CSV?")
    return data


def _header(file: BinaryIO, separator: str) -> tuple[int, bytes]:
    """How many bytes come before the first line that is not blank, and this line."""
    before, blank = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0, b" \t\r\n"
    blank = blank.replace(separator.encode(), b"")
    file.seek(before)
    while (line := file.readline(_LONGEST)) and not line.strip(blank):
        before += len(line)
    lines: list[bytes] = []

    def texts() -> Iterator[str]:
        for each in chain([line], iter(lambda: file.readline(_LONGEST), b"")):
            lines.append(each)
            yield each.decode()

    try:
        # The names go on over line ends in quotes.
        next(csv.reader(texts(), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        if b"\r" in lines[0].rstrip():  # of old spreadsheets: all of it would be one line
            raise DataError(
                f"{file.name} has lines that end in CR alone; save it with LF or CRLF."
            ) from None
        raise DataError(f"{file.name} has no line of names: {error}.") from None
    return before, b"".join(lines)
