"""Threads for work that lets go of the interpreter lock, each on one core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import numpy as np
import torch

from bootprob_gpu.hardware.process_setting import (
    hold_torch_to_threads,
    one_blas_thread,
    one_openmp_thread,
    torch_threads,
)

__all__ = [
    "few_threads",
    "in_the_callers_mode",
    "in_threads",
    "one_core_each",
    "one_core_for_each",
    "workers",
]

S = TypeVar("S")
T = TypeVar("T")


def in_threads(
    work: Callable[[slice], T], n_items: int, device: torch.device | None = None
) -> list[T]:
    """Do ``work(slice of items)`` in as many threads as torch may use, each on one core.

    For many small operations of torch: sharing each of them among threads, as torch does, makes
    every one wait for the slowest core, and on a busy machine that takes most of the time. So a
    single item is left to the calling thread, on one core. On another `device` than a CPU the
    calling thread does all at once.
    """
    if device is not None and device.type != "cpu":
        return [work(slice(0, n_items))]
    if min(workers(), n_items) <= 1:
        with few_threads(1):
            return [work(slice(0, n_items))]
    return one_core_each(work, n_items)


def one_core_each(work: Callable[[slice], T], n_items: int) -> list[T]:
    """As `in_threads`, and a single item on one core as well.

    The last bits of a matrix product depend on its shape and on the threads that share it. What
    products of an item's own leave is then the same whatever stands beside it, and on any number
    of cores.
    """
    count = min(workers(), n_items)
    bounds = np.linspace(0, n_items, count + 1).astype(int).tolist()
    parts = list(map(slice, bounds[:-1], bounds[1:]))
    if workers() == 1:
        return [work(part) for part in parts]
    work = in_the_callers_mode(work)
    with one_blas_thread, ThreadPoolExecutor(count, initializer=one_openmp_thread) as pool:
        return list(pool.map(work, parts))


def one_core_for_each(work: Callable[[S], T], items: Sequence[S], n_threads: int) -> list[T]:
    """Do ``work(item)`` in so many threads, each on one core; whichever is free takes the next.

    For items that take different times. One alone is done by the calling thread. Threads are in
    torch's inference mode if the calling one is.
    """
    count = min(n_threads, len(items))
    if count <= 1:
        return [work(each) for each in items]
    work = in_the_callers_mode(work)
    with one_blas_thread, ThreadPoolExecutor(count, initializer=one_openmp_thread) as pool:
        return list(pool.map(work, items))


def in_the_callers_mode(work: Callable[[S], T]) -> Callable[[S], T]:
    """The same in torch's inference mode, whatever thread calls it, if this one is in it."""
    found: Callable[[S], T] = torch.inference_mode(torch.is_inference_mode_enabled())(work)
    return found


@contextmanager
def few_threads(most: int) -> Iterator[int]:
    """Within, torch shares an operation of the calling thread among so many threads at most.

    And among no more than there are cores. For operations that come one after another and are too
    small for all cores of a large machine: each of them waits for the slowest, and if another
    process has one of the cores, for most of the time.

    Yields
    ------
    int
        `workers` without that, for what `one_core_for_each` does.
    """
    count = workers()
    restore = hold_torch_to_threads(min(most, _cores()))
    try:
        yield count
    finally:
        restore()


def workers() -> int:
    """Threads that solve at the same time: what torch is allowed to use."""
    return max(1, min(torch_threads(), _cores()))


@cache
def _cores() -> int:
    """Asking the system takes longer than adding up a row of a kernel."""
    return os.cpu_count() or 1
