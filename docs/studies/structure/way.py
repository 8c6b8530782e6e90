"""Follow a piece of work through the files of the program: which it enters, and its moves."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bootprob
import bootprob_gpu

__all__ = ["Way", "followed"]

_ROOTS = {
    str(Path(package.__path__[0])) + os.sep: f"{package.__name__}/"
    for package in (bootprob, bootprob_gpu)
}


class Way:
    """Files of the two packages that a piece of work entered.

    Attributes
    ----------
    files : set of str
        Of which a function ran.
    moves : Counter of (str, str)
        How often code of the first file called, or resumed a generator of, the second; what lies
        between them in other packages does not count.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.moves: Counter[tuple[str, str]] = Counter()
        self._known: dict[CodeType, str] = {}

    def note(self, frame: FrameType) -> None:
        """Note that a function begins or goes on."""
        here = self._file(frame.f_code)
        if not here:
            return
        self.files.add(here)
        caller = frame.f_back
        while caller is not None and not self._file(caller.f_code):
            caller = caller.f_back
        if caller is not None and (there := self._file(caller.f_code)) != here:
            self.moves[there, here] += 1

    def _file(self, code: CodeType) -> str:
        """Where code of ours stands; empty for others', for templates and for importing."""
        if code not in self._known:
            path, root = code.co_filename, ""
            if path.endswith(".py") and code.co_name != "<module>":
                root = next((each for each in _ROOTS if path.startswith(each)), "")
            self._known[code] = _ROOTS[root] + path.removeprefix(root) if root else ""
        return self._known[code]


_followed: list[Way] = []


def _profile(frame: FrameType, event: str, arg: Any) -> None:
    if event == "call":
        for way in _followed:
            way.note(frame)


threading.setprofile(_profile)  # threads that begin before anything is followed count too


@contextmanager
def followed() -> Iterator[Way]:
    """Follow what happens in here, in all threads that began after this module was imported."""
    way = Way()
    _followed.append(way)
    sys.setprofile(_profile)
    try:
        yield way
    finally:
        sys.setprofile(None)
        _followed.remove(way)
