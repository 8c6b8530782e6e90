"""Work handed to joblib's workers, which are gone once it is stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import joblib

__all__ = ["after_parent", "end_with_parent", "outcomes_of"]

_MANAGER = "ExecutorManagerThread"  # of loky, who has ended its workers by then
_WORKER = "LokyProcess"


@contextmanager
def outcomes_of(pool: joblib.Parallel, calls: Iterable[Any]) -> Iterator[Generator[Any]]:
    """Start calls in workers; on leaving, those that have not ended are ended with their workers.

    Parameters
    ----------
    pool : joblib.Parallel
        Made with ``return_as="generator"`` or ``"generator_unordered"``.
    calls : iterable
        Of ``joblib.delayed``.

    Yields
    ------
    generator
        What the calls return.
    """
    outcomes: Generator[Any] | None = None
    try:
        with _signals_held():  # workers stopped while they start are in nobody's books
            outcomes = pool(calls)
        yield outcomes
    finally:
        if outcomes is not None:
            with warnings.catch_warnings(), _quiet_manager():
                # That tasks were cancelled is what was asked for.
                warnings.filterwarnings("ignore", module="joblib", category=UserWarning)
                outcomes.close()


def after_parent(call: Callable[[], None]) -> None:
    """Call it, in a thread, once the process that started this one is gone, killed perhaps.

    Nothing on Windows, which does not tell, and in a process that Python did not start.
    """
    parent = multiprocessing.parent_process()
    if parent is None or sys.platform == "win32":
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(1.0)
        call()

    threading.Thread(target=watch, daemon=True).start()


@cache
def end_with_parent() -> None:
    """Have this process, if it is one of joblib's, end with the one that gives it tasks.

    To be called in a task. A worker that writes what it found to a pipe which nobody reads any more
    would stay for good.
    """
    if multiprocessing.current_process().name.startswith(_WORKER):
        after_parent(lambda: os._exit(1))


@contextmanager
def _signals_held() -> Iterator[None]:
    """Have SIGINT and SIGTERM handled on leaving; only the main thread can, and needs to."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
    }
    for number in handlers:
        signal.signal(number, lambda *given: held.append(given))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received, frame in held[:1]:
            handlers[signal.Signals(received)](received, frame)


@contextmanager
def _quiet_manager() -> Iterator[None]:
    """No traceback of loky's manager, which may look for work that it has just given up (#663)."""
    show = threading.excepthook

    def told(given: threading.ExceptHookArgs) -> None:
        thread = given.thread
        if given.exc_type is not KeyError or thread is None or thread.name != _MANAGER:
            show(given)

    threading.excepthook = told
    try:
        yield
    finally:
        threading.excepthook = show
