"""Read a scored table, what ``bootprob predict`` and ``bootprob score`` write, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.encoding.columns import level_text
from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.tables.csv_files import csv_batches, separator_and_names
from bootprob.tables.folders import files_within
from bootprob.tables.mistake_costs import ASKING_COLUMNS
from bootprob.tables.suffixes import SCORED_SUFFIXES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "SCORED_COLUMNS",
    "ScoredBatch",
    "ScoredTable",
    "number_text",
    "numbers_of",
]


SCORED_COLUMNS = ("probability", "probability_lower", "probability_upper", "label")
"""Columns that make a table a scored one, of two classes."""

_BATCH_ROWS = 2**17
_THRESHOLD = "threshold"
_TRUTH = ("true", "false", "none", "")
_NUMBERS = (*SCORED_COLUMNS[:3], _THRESHOLD)


@dataclass(frozen=True)
class ScoredBatch:
    """Some consecutive rows of a scored table; rows without a probability are left out.

    Attributes
    ----------
    n_rows : int
        Rows read, with those left out.
    row : ndarray of int, shape (m,)
        Number of each row in the table, from 1.
    probability : ndarray, shape (m,)
    lower, upper : ndarray, shape (m,)
        Interval, cut off at 0 and 1.
    label : ndarray of int, shape (m,)
        Position of the label in `ScoredTable.labels`.
    threshold : ndarray, shape (m,), or None
        Probability above which each row was decided positive; None where the table does not say.
    id : pyarrow.Array, length m, or None
        The column that tells rows apart.
    ask : ndarray of bool, shape (m,), or None
        Whether a person is to be asked; None where the table does not say.
    undecided : ndarray of bool, shape (m,), or None
        Whether the model leaves the row undecided; None where the table does not say.
    """

    n_rows: int
    row: NDArray[np.int64]
    probability: Floats
    lower: Floats
    upper: Floats
    label: NDArray[np.int64]
    threshold: Floats | None
    id: pa.Array | None
    ask: NDArray[np.bool_] | None = None
    undecided: NDArray[np.bool_] | None = None


class ScoredTable:
    """A scored table in a file, or in the files of a folder, in the order of their names.

    Parameters
    ----------
    path : path-like
        CSV, Parquet or Arrow (Feather), or a folder of files of one of these kinds.
    id_column : str, optional
        A column that tells rows apart.

    Attributes
    ----------
    labels : list of str
        Labels seen so far, two at most.
    missing : list of str
        Columns that the table lacks to be a scored one of two classes; no `batches` are read then.
    names : list of str
        Columns of the first file.
    of_several_classes : bool
        Whether it has the columns of a table that was scored by a model of several classes.

    Raises
    ------
    DataError
        There is no such file, it cannot be read, or it has no column `id_column`.
    """

    def __init__(self, path: str | os.PathLike[str], id_column: str | None = None) -> None:
        self.path, self.id_column = Path(path), id_column
        self.labels: list[str] = []
        self._files = _files(self.path)
        with _readable(self.path):
            self.names = names = [name.strip() for name in _column_names(self._files[0])]
        self.missing = [name for name in SCORED_COLUMNS if name not in names]
        self._says_threshold = _THRESHOLD in names
        self._says_ask = set(ASKING_COLUMNS) <= set(names)  # "ask" alone may be of the user's
        self._says_undecided = (_THRESHOLD, "undecided") in pairwise(names)
        self.of_several_classes = {"label"} == set(SCORED_COLUMNS) - set(self.missing) and any(
            name.startswith("p_") for name in names
        )
        given = self.of_several_classes or not self.missing
        if id_column is not None and given and id_column not in names:
            raise DataError(f"{path} has no column {id_column!r} to tell rows apart by.")

    def n_rows(self) -> int | None:
        """Number of rows where the files say it, which only Parquet files do; else None."""
        if self._files[0].suffix.lower() != ".parquet":
            return None
        import pyarrow.parquet as pq

        with _readable(self.path):
            return sum(pq.read_metadata(file).num_rows for file in self._files)

    def batches(self) -> Iterator[ScoredBatch]:
        """Read the rows, in order; memory does not depend on how many there are.

        Yields
        ------
        ScoredBatch

        Raises
        ------
        DataError
            The table cannot be read, or a row holds what no scored row can; the message names it.
        """
        names = [*SCORED_COLUMNS, *([_THRESHOLD] if self._says_threshold else [])]
        names += ["ask"] if self._says_ask else []
        names += ["undecided"] if self._says_undecided else []
        if self.id_column is not None and self.id_column not in names:
            names.append(self.id_column)
        for batch, first in self.read(names, _NUMBERS):
            yield self._take(batch, first)

    def read(
        self, names: Sequence[str], numbers: Collection[str]
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Read some columns, batch by batch, each with the number of rows before it.

        Columns of a CSV file are text but for those in `numbers`, of which there are some.

        Raises
        ------
        DataError
            The table cannot be read; the message says why.
        """
        first = 0
        for file in self._files:
            with _readable(file):
                raw = {name.strip(): name for name in _column_names(file)}
                if absent := [name for name in names if name not in raw]:
                    raise DataError(f"{file} has no column {absent[0]!r}, unlike the first file.")
                for batch in _read(file, {name: raw[name] for name in names}, numbers):
                    if batch.num_rows:
                        yield batch, first
                    first += batch.num_rows

    def _take(self, batch: pa.RecordBatch, first: int) -> ScoredBatch:
        import pyarrow as pa

        p, lower, upper = (numbers_of(batch, name, self.path) for name in SCORED_COLUMNS[:3])
        threshold = numbers_of(batch, _THRESHOLD, self.path) if self._says_threshold else None
        known = ~np.isnan(p)

        def refuse(wrong: NDArray[np.bool_], what: str) -> None:
            if (wrong & known).any():
                row = first + int(np.flatnonzero(wrong & known)[0]) + 1
                raise DataError(f"{self.path}, row {row}: {what}")

        refuse(~((p >= 0) & (p <= 1)), "the probability does not lie between 0 and 1.")
        refuse(
            ~(lower <= upper), "the interval of the probability is missing or its ends are swapped."
        )
        refuse((upper < 0) | (lower > 1), "the interval lies beyond 0 and 1.")
        if threshold is not None:
            refuse(~((threshold >= 0) & (threshold <= 1)), "the threshold is no probability.")
        label = self._codes(batch.column("label"))
        refuse(label < 0, "there is a probability and no label.")
        ids = None
        if self.id_column is not None:
            ids = batch.column(self.id_column).filter(pa.array(known))
        return ScoredBatch(
            n_rows=batch.num_rows,
            row=first + 1 + np.flatnonzero(known),
            probability=p[known],
            lower=lower[known].clip(0, 1),
            upper=upper[known].clip(0, 1),
            label=label[known],
            threshold=None if threshold is None else threshold[known],
            id=ids,
            ask=self._truths(batch, "ask")[known] if self._says_ask else None,
            undecided=self._truths(batch, "undecided")[known] if self._says_undecided else None,
        )

    def _truths(self, batch: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
        """A column of truth values or, in CSV files, of their names."""
        texts = [str(value).lower() for value in batch.column(name).to_pylist()]
        if unknown := next((text for text in texts if text not in _TRUTH), None):
            raise DataError(
                f"{self.path}: the column {name!r} holds {unknown!r}, not true and false, which "
                "bootprob predict writes there."
            )
        return np.array(texts) == "true"

    def _codes(self, column: pa.Array) -> NDArray[np.int64]:
        """Positions of labels, −1 where there is none; a third label is an error."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        position = [-1]
        used = set(np.unique(column.indices.fill_null(-1).to_numpy()).tolist())
        for code, value in enumerate(column.dictionary.to_pylist()):
            text = "" if value is None else level_text(value)
            if code not in used or not text:
                position.append(-1)
                continue
            if text not in self.labels:
                self.labels.append(text)
            position.append(self.labels.index(text))
        if len(self.labels) > 2:
            shown = ", ".join(map(repr, self.labels[:3]))
            raise DataError(
                f"{self.path}: the column 'label' holds more than two classes ({shown}); a report "
                "is of two."
            )
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.array(position)[codes + 1]


def numbers_of(batch: pa.RecordBatch, name: str, path: Path) -> Floats:
    """One column as float64, NaN where it is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(name)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise DataError(f"{path}: the column {name!r} holds {column.type}, not numbers.")
    return pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)


def number_text(text: str) -> str:
    """``"1.0"`` of a CSV file as the ``"1"`` that a model calls it."""
    try:
        return level_text(float(text))
    except ValueError:
        return text


def _files(path: Path) -> list[Path]:
    """The files of a table, all of one kind."""
    if path.is_dir():
        return files_within(path)
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.suffix.lower() not in SCORED_SUFFIXES:
        raise DataError(
            f"{path}: a scored table is one of {', '.join(SCORED_SUFFIXES)}, not "
            f"{path.suffix or 'nothing'}. A table to fit needs its target named."
        )
    return [path]


def _column_names(file: Path) -> list[str]:
    """Names as they are written, blanks around them included."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.suffix.lower() == ".csv":
        return [str(name) for name in separator_and_names(file)[1]]
    if file.suffix.lower() == ".parquet":
        return list(pq.read_schema(file).names)
    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
        return list(reader.schema.names)


def _read(file: Path, raw: dict[str, str], numbers: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, batch by batch, under their names without blanks.

    pyarrow's data sets would do the same for all kinds, but read ahead without bounds where the
    batches are taken more slowly than they are read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(raw.values())
    if file.suffix.lower() == ".csv":
        types = {raw[key]: pa.float64() if key in numbers else pa.string() for key in raw}
        number = next(raw[key] for key in raw if key in numbers)
        batches: Iterator[pa.RecordBatch] = csv_batches(file, types, number)
    elif file.suffix.lower() == ".parquet":
        # Buffered ahead, the columns would be held until the whole file is read.
        source = pq.ParquetFile(file, pre_buffer=False)
        batches = source.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
    else:
        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
    for batch in batches:
        yield batch.select(columns).rename_columns(list(raw))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what pyarrow and pandas raise over a file into one typed error."""
    try:
        yield
    except DataError:
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV (UTF-8).") from None
    except (ValueError, NotImplementedError, OSError) as error:
        # pyarrow's ArrowInvalid is a ValueError, pandas' ParserError too.
        reason = (str(error).strip() or "no reason given").splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot be read as a scored table: {reason}.") from None
