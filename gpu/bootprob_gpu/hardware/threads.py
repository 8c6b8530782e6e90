"""Compiled solvers over many paths of models: one thread a path, on the rows of weight only."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.hardware.process_setting import ProcessSetting

__all__ = [
    "PathCertificates",
    "in_threads",
    "one_blas_thread",
    "one_core_each",
    "one_openmp_thread",
    "solve_paths",
    "workers",
]

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass
class PathCertificates:
    """What a solver says of the models of one path; arrays of shape (models,) to be filled in."""

    primal: Floats
    dual: Floats
    n_iter: NDArray[np.int64]
    status: NDArray[np.int64]


@cache
def _libraries() -> ThreadpoolController:
    """The libraries loaded; looked for once, as it takes milliseconds."""
    import_module("scipy.linalg.cython_blas")  # numba loads it at its first product: too late
    return ThreadpoolController()


def _hold_blas_to_one_thread() -> Callable[[], None]:
    return _libraries().limit(limits=1, user_api="blas").restore_original_limits


one_blas_thread = ProcessSetting(_hold_blas_to_one_thread)

Solve = Callable[[int, NDArray[np.intp], NDArray[np.intp], Floats, PathCertificates], None]


def solve_paths(upper: Floats, y: Floats, intercept: Floats, solve: Solve) -> Certificate:
    """Solve every path in a thread of its own, as many at once as torch may use.

    Models in which only one class has weight are answered here, with that class's sign.

    Parameters
    ----------
    upper : ndarray, shape (paths, R, n)
        Box bounds.
    y : ndarray, shape (n,) or (paths, n)
        Labels, −1 or +1.
    intercept : ndarray, shape (paths, R)
        Filled in for models of a single class; `solve` fills in the others.
    solve : callable
        Called as ``solve(path, models, rows, box, certificates)`` with the models that have both
        classes, the rows that carry weight in any of them, and their box bounds, shape
        (models, rows). It must let go of the interpreter lock.

    Returns
    -------
    Certificate
        With tensors of shape (paths, R).
    """
    shape = upper.shape[:2]
    primal, dual = np.zeros(shape), np.zeros(shape)
    n_iter = np.zeros(shape, dtype=np.int64)
    status = np.full(shape, int(Status.SINGLE_CLASS), dtype=np.int64)

    def work(path: int) -> None:
        box, label = upper[path], y if y.ndim == 1 else y[path]
        negative, positive = box[:, label < 0].sum(1), box[:, label > 0].sum(1)
        single = (negative == 0) | (positive == 0)
        intercept[path, single] = np.sign(positive - negative)[single]
        models, rows = np.flatnonzero(~single), np.flatnonzero(box[~single].any(0))
        if len(models) == 0:
            return
        k = len(models)
        end = PathCertificates(
            np.zeros(k), np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64)
        )
        solve(path, models, rows, np.ascontiguousarray(box[np.ix_(models, rows)]), end)
        primal[path, models], dual[path, models] = end.primal, end.dual
        n_iter[path, models], status[path, models] = end.n_iter, end.status

    # Threads of a matrix product inside threads of a path would fight for the cores.
    with one_blas_thread, ThreadPoolExecutor(workers()) as pool:
        try:
            list(pool.map(work, range(shape[0])))
        except BaseException:  # Ctrl-C above all: what has not begun need not
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    primal_t, dual_t = torch.from_numpy(primal), torch.from_numpy(dual)
    return Certificate(
        primal_t,
        dual_t,
        relative_gap(primal_t, dual_t),
        torch.from_numpy(n_iter),
        torch.from_numpy(status),
    )


def in_threads(work: Callable[[slice], T], n_items: int) -> list[T]:
    """Do ``work(slice of items)`` in as many threads as torch may use, each on one core.

    For many small operations of torch: sharing each of them among threads, as torch does, makes
    every one wait for the slowest core, and on a busy machine that takes most of the time.
    """
    if min(workers(), n_items) <= 1:
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
    with one_blas_thread, ThreadPoolExecutor(count, initializer=one_openmp_thread) as pool:
        return list(pool.map(work, parts))


def one_openmp_thread() -> None:
    """Hold OpenMP to one thread in what the calling thread does, and nowhere else."""
    _libraries().select(user_api="openmp").limit(limits=1)


def workers() -> int:
    """Threads that solve at the same time: what torch is allowed to use."""
    return max(1, min(torch.get_num_threads(), os.cpu_count() or 1))
