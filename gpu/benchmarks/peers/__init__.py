"""The peers, one a file: drop a file in and it takes part.

A peer is a module with

``NAME`` : str
    As the document shows it.
``DISTRIBUTION`` : str
    What to install, and whose version is reported.
``NOTE`` : str
    What it does differently, a sentence or two.
``SAME_PROBLEM`` : bool
    Whether it minimises `Machine.objective` (an unpenalised intercept above all).
``OWN_THREADS`` : bool
    Whether a single solve uses all cores by itself.
``solves(kernel, rows, columns)`` : bool
    Whether it can train such a machine in reasonable time and memory.
``prepare(machine)`` : anything
    What it needs and others do not, such as a Gram matrix; not timed.
``solve(machine, prepared)`` : anything
    The training of one machine, at the peer's own default tolerance; timed.
``answer(machine, prepared, solved)`` : Answer
    What it found; not timed.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, cast

from gpu.benchmarks.svm import Answer, Machine

__all__ = ["Peer", "installed", "load"]


class Peer(Protocol):
    """What a peer's module offers; see the package."""

    NAME: str
    DISTRIBUTION: str
    NOTE: str
    SAME_PROBLEM: bool
    OWN_THREADS: bool
    solves: Callable[[str, int, int], bool]
    prepare: Callable[[Machine], Any]
    solve: Callable[[Machine, Any], Any]
    answer: Callable[[Machine, Any, Any], Answer]


def load(key: str) -> Peer:
    """Import a peer by the name of its file."""
    return cast(Peer, cast(ModuleType, import_module(f"{__name__}.{key}")))


def installed() -> Iterator[tuple[str, Peer | None]]:
    """All peers by the name of their file; None where the peer's package is not installed."""
    for module in pkgutil.iter_modules(__path__):
        try:
            yield module.name, load(module.name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith(__name__):
                raise
            yield module.name, None
