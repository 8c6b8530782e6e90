"""Files of rows that are read a chunk at a time: Parquet, Arrow, and what all kinds share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from bootprob.exceptions import DataError
from bootprob.tables.files import readable
from bootprob.tables.folders import files_within
from bootprob.tables.suffixes import SCORED_SUFFIXES

__all__ = [
    "ArrowSource",
    "InputFile",
    "ParquetSource",
    "PartitionedSource",
    "Source",
    "find_files",
]

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_BUFFER = 2**20  # bytes of a column


class Source(Protocol):
    """A file of rows, in chunks that can be read without those before them."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file, named without the blanks around their names, and their types."""

    @property
    def chunks(self) -> Sequence[int]:
        """Rows of each chunk, in the file's order."""

    def read(
        self, chunks: range, columns: Sequence[str], categories: Sequence[str], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read chunks that follow each other.

        Parameters
        ----------
        chunks : range
            Their positions.
        columns : sequence of str
            Columns wanted.
        categories : sequence of str
            Those of which only the distinct values matter.
        size : int
            Rows of a batch, roughly.
        """


@dataclass(frozen=True)
class InputFile:
    """A file to be scored.

    Attributes
    ----------
    path : Path
    name : str
        Its path within the folder that was given, or its own name.
    partition : mapping of str to (str or None)
        Values that the folders' names give all its rows, as in ``year=2024/month=05``.
    """

    path: Path
    name: str
    partition: Mapping[str, str | None]


def find_files(path: str | os.PathLike[str]) -> list[InputFile]:
    """Find the files to be scored, sorted by name.

    Parameters
    ----------
    path : path-like
        A file, or a folder of files of one kind, also in folders within it. Names that begin with
        a dot or an underscore are passed over.

    Raises
    ------
    DataError
        There is no such file, it is of an unknown kind, or as `files_within` says.
    """
    path = Path(path)
    if path.is_file():
        if path.suffix.lower() not in SCORED_SUFFIXES:
            raise DataError(
                f"{path}: the name of a file to score must end in {', '.join(SCORED_SUFFIXES)}, "
                f"not in {path.suffix or 'nothing'}."
            )
        return [InputFile(path, path.name, {})]
    if not path.is_dir():
        what = "is not an ordinary file" if path.exists() else "does not exist"
        raise DataError(f"{path} {what}; give a file or a folder of files to score.")
    inside = ((each, each.relative_to(path)) for each in files_within(path))
    return [InputFile(each, name.as_posix(), _partition(name)) for each, name in inside]


def _partition(inside: Path) -> dict[str, str | None]:
    """Columns that the names of folders stand for, as Hive writes them."""
    pairs = (part.split("=", 1) for part in inside.parts[:-1] if "=" in part)
    return {
        unquote(name): None if value == _NULL_PARTITION else unquote(value) for name, value in pairs
    }


class ParquetSource:
    """A Parquet file; its chunks are row groups, put together to so many rows at least."""

    def __init__(self, path: Path, least: int) -> None:
        self._path = path
        with readable(path), pq.ParquetFile(path) as file:
            stored, metadata = file.schema_arrow, file.metadata
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.schema = _without_blanks(stored)
        self._raw = dict(zip(self.schema.names, stored.names, strict=True))
        self._groups = _together(rows, least)
        self.chunks = [sum(rows[i] for i in group) for group in self._groups]

    def read(
        self, chunks: range, columns: Sequence[str], categories: Sequence[str], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read chunks, decoding some pages at a time; see `Source`."""
        # Text as codes and a dictionary: most files store it so.
        texts = [self._raw[each] for each in categories if _is_text(self.schema.field(each).type)]
        raw = [self._raw[each] for each in columns]
        with (
            readable(self._path),
            # Neither setting alone keeps a large row group from being read as a whole.
            pq.ParquetFile(
                self._path, read_dictionary=texts, buffer_size=_BUFFER, pre_buffer=False
            ) as file,
        ):
            # One after the other: a reader of several holds what it read of all until it ends.
            for at in chunks:
                for batch in file.iter_batches(size, list(self._groups[at]), columns=raw):
                    yield _renamed(batch)


class ArrowSource:
    """An Arrow file (Feather 2); its chunks are record batches, put together likewise."""

    def __init__(self, path: Path, least: int) -> None:
        self._path = path
        with readable(path), self._open([]) as file:
            self.schema = _without_blanks(file.schema)
        # One column is enough to know how many rows each batch has.
        with readable(path), self._open(self.schema.names[:1]) as file:
            rows = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
        self._batches = _together(rows, least)
        self.chunks = [sum(rows[i] for i in group) for group in self._batches]

    @contextmanager
    def _open(self, columns: Sequence[str]) -> Iterator[pa.ipc.RecordBatchFileReader]:
        included = [self.schema.get_field_index(name) for name in columns] if columns else None
        options = pa.ipc.IpcReadOptions(included_fields=included)
        # Not mapped into memory: pages of a large file would count as this process's.
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_file(file, options=options) as reader:
            yield reader

    def read(
        self, chunks: range, columns: Sequence[str], categories: Sequence[str], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read chunks, a record batch at a time; see `Source`."""
        with readable(self._path), self._open(columns) as file:
            for at in chunks:
                for number in self._batches[at]:
                    batch = _renamed(file.get_batch(number))
                    for start in range(0, batch.num_rows, size):
                        yield batch.slice(start, size)


class PartitionedSource:
    """A file with the columns that its folders' names give, in place of its own of these names."""

    def __init__(self, source: Source, partition: Mapping[str, str | None]) -> None:
        self._source, self._partition = source, partition
        own = [each for each in source.schema if each.name not in partition]
        self.schema = pa.schema([*own, *((name, pa.string()) for name in partition)])
        self.chunks = source.chunks

    def read(
        self, chunks: range, columns: Sequence[str], categories: Sequence[str], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read chunks; see `Source`."""
        given = {name: value for name, value in self._partition.items() if name in columns}
        own = [name for name in columns if name not in given]
        # A table of which all columns are in the folders' names still has rows to count.
        own = own or self._source.schema.names[:1]
        own_categories = [name for name in categories if name not in given]
        for batch in self._source.read(chunks, own, own_categories, size):
            for name, value in given.items():
                column = pa.array([value], pa.string()).take(pa.array([0] * batch.num_rows))
                batch = batch.append_column(pa.field(name, pa.string()), column)
            yield batch


def _without_blanks(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each.with_name(each.name.strip()) for each in schema])


def _renamed(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.rename_columns([name.strip() for name in batch.schema.names])


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _together(rows: Sequence[int], least: int) -> list[range]:
    """Ranges of positions that follow each other, with at least so many rows each."""
    found: list[range] = []
    start = total = 0
    for at, count in enumerate(rows):
        total += count
        if total >= least or at == len(rows) - 1:
            found.append(range(start, at + 1))
            start, total = at + 1, 0
    return found
