"""Pieces of a CSV file as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from bootprob.encoding.columns import Kind
from bootprob.tables.csv_files import CsvForm
from bootprob.tables.csv_pieces import CsvLayout, read_piece
from bootprob.tables.files import readable

__all__ = ["CsvSource"]


class CsvSource:
    """A CSV file that has been looked through; its chunks are the pieces found.

    Parameters
    ----------
    path : Path
    layout : CsvLayout
    interpreted : sequence of str
        Columns that are read as numbers or yes/no answers where they hold such. All others are text
        as it is written, but for the marks of missing values.
    """

    def __init__(self, path: Path, layout: CsvLayout, interpreted: Sequence[str]) -> None:
        self._path, self._layout = path, layout
        self._raw = {raw.strip(): raw for raw in layout.kinds}
        self._kinds: dict[str, Kind] = {
            name: layout.kinds[raw] if name in interpreted else "text"
            for name, raw in self._raw.items()
        }
        types = {"number": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
        self.schema = pa.schema([(name, types[kind]) for name, kind in self._kinds.items()])
        self.chunks = [rows for *_, rows in layout.pieces]

    def read(
        self, chunks: range, columns: Sequence[str], categories: Sequence[str], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read pieces; see `bootprob.batch_scoring.sources.Source`."""
        layout = self._layout
        schema = pa.schema([self.schema.field(name) for name in columns])
        dtypes = {
            self._raw[name]: np.float64 if self._kinds[name] == "number" else str
            for name in columns
        }
        before, length = layout.header
        with readable(self._path), self._path.open("rb") as file:
            file.seek(before)
            header = file.read(length)
            form = CsvForm(layout.separator, layout.decimal, dtypes, list(dtypes))
            for at in chunks:
                start, length, _ = layout.pieces[at]
                file.seek(start)
                frame = read_piece(form, header, file.read(length)).rename(columns=str.strip)
                for name in columns:
                    if self._kinds[name] == "boolean":
                        frame[name] = frame[name].str.casefold().map({"true": True, "false": False})
                table = pa.Table.from_pandas(frame[list(columns)], schema, preserve_index=False)
                yield from table.to_batches(size)
