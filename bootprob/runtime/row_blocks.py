"""Rows in blocks, so that sums over many rows need no temporary array of the size of the data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

__all__ = ["row_blocks"]


def row_blocks(n: int, numbers_per_row: int, at_once: int = 2**19) -> Iterator[slice]:
    """Split ``range(n)`` into slices of rows, to be worked through one after the other.

    Parameters
    ----------
    n : int
        Number of rows.
    numbers_per_row : int
        Numbers that a row takes in the largest array made of it.
    at_once : int, default 524,288
        Numbers that such an array may hold: by default 4 MiB of float64, which a CPU's caches
        like; every single row is a block at least.

    Returns
    -------
    iterator of slice
    """
    starts = range(0, n, max(1, at_once // max(1, numbers_per_row)))
    return map(slice, starts, chain(starts[1:], [n]))
