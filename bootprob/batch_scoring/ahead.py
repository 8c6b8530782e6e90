"""Work on the next item while the last one is in use."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

__all__ = ["one_ahead"]

T = TypeVar("T")

_END = object()


def one_ahead(items: Generator[T]) -> Generator[T]:
    """Run a generator in a thread of its own, one item ahead of its consumer.

    No more than two items exist at a time. An exception of the generator reaches the consumer
    where the item would have. When this is closed, by whatever way, the item in the making is
    finished and the generator closed.
    """
    with closing(items), ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield item  # type: ignore[misc]
