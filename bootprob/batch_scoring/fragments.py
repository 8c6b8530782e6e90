"""Rows of a file cut into fragments: what is scored and written at once, and resumed by."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa

from bootprob.batch_scoring.sources import Source
from bootprob.exceptions import DataError

__all__ = ["Block", "Fragment", "blocks_of", "cut"]


@dataclass(frozen=True)
class Fragment:
    """Rows that follow each other in a file.

    Attributes
    ----------
    number : int
        Position among the fragments of all files.
    file : int
        Position of the file.
    start, stop : int
        First row in the file, counted from 0, and the one after the last.
    """

    number: int
    file: int
    start: int
    stop: int


@dataclass(frozen=True)
class Block:
    """Some rows of a fragment.

    Attributes
    ----------
    fragment : Fragment
    first : int
        Position of the first row in the file.
    batch : pyarrow.RecordBatch
    """

    fragment: Fragment
    first: int
    batch: pa.RecordBatch


def cut(chunks: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Cut a file into fragments of about so many rows, between chunks where that can be.

    >>> cut([40, 40, 40, 250], 100)
    [(0, 120), (120, 245), (245, 370)]
    """
    found: list[tuple[int, int]] = []
    start = stop = 0
    for at, size in enumerate(chunks):
        stop += size
        if stop - start >= rows or (at == len(chunks) - 1 and stop > start):
            parts = max(1, (stop - start) // rows)
            edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
            found += pairwise(edges)
            start = stop
    return found


def blocks_of(
    source: Source,
    fragments: Sequence[Fragment],
    columns: Sequence[str],
    categories: Sequence[str],
    size: int,
) -> Iterator[Block]:
    """Read fragments of a file, in blocks that lie in one fragment each.

    A chunk that several fragments share is read once; chunks that no fragment needs are not read.
    Fragments are in the file's order; blocks have `size` rows or up to twice as many, but for the
    last of a fragment.

    Raises
    ------
    DataError
        The file ends before the last fragment does.
    """
    waiting = deque(fragments)
    for chunks, row in _runs(source.chunks, fragments):
        held: list[pa.RecordBatch] = []
        for batch in source.read(chunks, columns, categories, size):
            done = 0
            while waiting and waiting[0].start < row + batch.num_rows and done < batch.num_rows:
                fragment = waiting[0]
                begin = max(fragment.start - row, done)
                done = min(fragment.stop - row, batch.num_rows)
                held.append(batch.slice(begin, done - begin))
                n_held = sum(part.num_rows for part in held)
                finished = row + done == fragment.stop
                if finished or n_held >= size:
                    yield Block(fragment, row + done - n_held, _joined(held))
                    held = []
                if finished:
                    waiting.popleft()
            row += batch.num_rows
    if waiting:
        raise DataError("A file has fewer rows than before; it was changed while it was read.")


def _runs(chunks: Sequence[int], fragments: Sequence[Fragment]) -> Iterator[tuple[range, int]]:
    """Ranges of chunks that hold the fragments, and the first row of each range."""
    if not fragments:
        return
    stops = np.cumsum(chunks)
    starts = stops - chunks
    begins = np.array([*(each.start for each in fragments), stops[-1]])
    following = np.searchsorted([each.stop for each in fragments], starts, side="right")
    needed = begins[following] < stops
    for is_needed, run in groupby(range(len(chunks)), key=needed.__getitem__):
        if is_needed:
            positions = list(run)
            yield range(positions[0], positions[-1] + 1), int(starts[positions[0]])


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return table.to_batches()[0]
