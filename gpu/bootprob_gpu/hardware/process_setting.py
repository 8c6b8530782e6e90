"""Settings of the whole process that callers in several threads hold for a while.

One is that BLAS takes one thread. Another is that products of float32 numbers are made in float32,
whatever less the process allows for them. A program may let torch round the factors of such
products to TF32 or bfloat16 (``torch.set_float32_matmul_precision``). Scores that are rounded like
that flip votes, and distances, which are differences of products, lose their digits.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

__all__ = [
    "ProcessSetting", "hold_torch_to_threads", "ieee_products", "one_blas_thread",
    "one_openmp_thread", "torch_threads",
]  # fmt: skip

# Since torch 2.9 each kind of device has a setting of its own; the one for all cannot even be read
# where a program uses those.
_SETTINGS: tuple[Any, ...] = ()
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    _SETTINGS = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul  # type: ignore[attr-defined]

_SETTING_THREADS = Lock()


class ProcessSetting:
    """Context manager, to be entered any number of times and by several threads at once.

    The setting is the process's, so of the callers inside the first one makes it, and only the
    last one restores what was there before.

    Parameters
    ----------
    hold : callable
        Makes the setting and returns what restores the one before.
    """

    def __init__(self, hold: Callable[[], Callable[[], None]]) -> None:
        self._hold = hold
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._restore = self._hold()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()


def _hold() -> Callable[[], None]:
    """Hold products to float32; what is returned restores the settings."""
    before = ExitStack()
    if not _SETTINGS:
        before.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("highest")
    for setting in _SETTINGS:
        precision = setting.fp32_precision
        if precision not in ("none", "ieee"):
            before.callback(_restore, setting, precision)
            setting.fp32_precision = "ieee"
    return before.close


def _restore(setting: Any, precision: str) -> None:
    setting.fp32_precision = "none"
    # What was not said for all kinds of devices at once was said for this one.
    if setting.fp32_precision != precision:
        setting.fp32_precision = precision


ieee_products = ProcessSetting(_hold)


@cache
def _libraries() -> ThreadpoolController:
    """The libraries loaded; looked for once, as it takes milliseconds."""
    import_module("scipy.linalg.cython_blas")  # numba loads it at its first product: too late
    return ThreadpoolController()


def _hold_blas_to_one_thread() -> Callable[[], None]:
    return _libraries().limit(limits=1, user_api="blas").restore_original_limits


one_blas_thread = ProcessSetting(_hold_blas_to_one_thread)


def one_openmp_thread() -> None:
    """Hold OpenMP to one thread in what the calling thread does, and nowhere else."""
    _libraries().select(user_api="openmp").limit(limits=1)
    # A program that gives torch a number of threads gives it to every thread.
    hold_torch_to_threads(1)


def torch_threads() -> int:
    """Threads that torch may take in what the calling thread does.

    A new thread takes them over when it first asks, which must not be while another sets its own.
    """
    with _SETTING_THREADS:
        return torch.get_num_threads()


def hold_torch_to_threads(most: int) -> Callable[[], None]:
    """Let torch take so many threads at most in what the calling thread does, and nowhere else.

    Returns
    -------
    callable
        Restores what was before, called by the same thread.
    """
    with _SETTING_THREADS:
        before = torch.get_num_threads()
        if before > most:
            _set_torch_threads(most, before)

    def restore() -> None:
        with _SETTING_THREADS:
            _set_torch_threads(before, before)

    return restore if before > most else lambda: None


def _set_torch_threads(own: int, of_others: int) -> None:
    """Set them for this thread, and for threads to come.

    Those have what was set last, by whichever thread: here by one that ends at once, and costs
    whoever asks about a single row a fourth of what one of `threading` would.
    """
    torch.set_num_threads(own)
    if own == of_others:
        return
    ended = allocate_lock()
    ended.acquire()

    def last() -> None:
        try:
            torch.set_num_threads(of_others)
        finally:
            ended.release()

    start_new_thread(last, ())
    ended.acquire()
