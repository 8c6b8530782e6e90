"""Files that results are written to: Parquet, CSV and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bootprob.exceptions import DataError
from bootprob.tables.csv_safety import FORMULA_STARTS, neutralised

__all__ = ["batch_writer", "check_schema", "safe_batch", "safe_schema"]

_ROW_GROUP = 2**18  # rows

Write = Callable[[pa.RecordBatch], None]

_IS_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, *_IS_BINARY)
_FORMULA_STARTS = pa.array(FORMULA_STARTS, pa.large_string())


@contextmanager
def batch_writer(
    file: BinaryIO, suffix: str, schema: pa.Schema, *, header: bool = True
) -> Iterator[Write]:
    """Give what writes batches to an open file; `header` says if CSV gets its line of names."""
    if suffix == ".parquet":
        with _parquet(file, schema) as write:
            yield write
    elif suffix == ".csv":
        written = pa_csv.WriteOptions(include_header=header)
        with pa_csv.CSVWriter(file, schema, write_options=written) as writer:

            def write_text(batch: pa.RecordBatch) -> None:
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    if _is_binary(column.type):
                        _as_text(name, column)
                writer.write(batch)

            yield write_text
    else:
        with pa.ipc.new_file(file, schema) as writer:
            yield writer.write


@contextmanager
def _parquet(file: BinaryIO, schema: pa.Schema) -> Iterator[Write]:
    # Probabilities hardly ever repeat, and a dictionary of them would be tried in vain.
    repeated = [each.name for each in schema if not pa.types.is_floating(each.type)]
    held: list[pa.RecordBatch] = []
    with pq.ParquetWriter(file, schema, use_dictionary=repeated) as writer:

        def flush() -> None:
            if held:
                writer.write_table(pa.Table.from_batches(held, schema))
                held.clear()

        def write(batch: pa.RecordBatch) -> None:
            held.append(batch)
            if sum(each.num_rows for each in held) >= _ROW_GROUP:
                flush()

        yield write
        flush()


def check_schema(suffix: str, schema: pa.Schema) -> None:
    """Refuse kept columns that a kind of file cannot hold.

    Raises
    ------
    DataError
        Such as lists in CSV.
    """
    try:
        with batch_writer(BytesIO(), suffix, schema) as write:
            write(pa.RecordBatch.from_pylist([], schema))
    except (pa.ArrowException, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"A column to be kept cannot be written to {suffix}: {reason}.") from None


def safe_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of what `safe_batch` makes of batches."""
    return pa.schema(
        [
            pa.field(
                neutralised(each.name), pa.large_string() if _is_text(each.type) else each.type
            )
            for each in schema
        ]
    )


def safe_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Text cells and column names of a batch made harmless: `bootprob.tables.csv_safety`."""
    columns = [
        _safe(_as_text(name, column)) if _is_text(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=safe_schema(batch.schema))


def _is_text(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in _IS_TEXT)


def _is_binary(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in _IS_BINARY)


def _as_text(name: str, column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise DataError(
            f"The column {name!r}, which is to be kept, holds bytes that are no text in UTF-8; "
            "leave it out, or keep it in a Parquet or Arrow file."
        ) from None


def _safe(column: pa.Array) -> pa.Array:
    suspect = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), _FORMULA_STARTS)
    if not pc.any(suspect).as_py():
        return column
    safe = [neutralised(cell) for cell in column.filter(suspect).to_pylist()]
    return pc.replace_with_mask(column, suspect, pa.array(safe, pa.large_string()))
