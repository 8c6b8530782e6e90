"""A setting of the whole process that callers in several threads hold for a while."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import TracebackType

__all__ = ["ProcessSetting"]


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()
