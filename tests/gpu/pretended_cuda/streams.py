"""Streams and events: what the host can see of a copy comes late, when it is waited for.

What the device sees is in order at once: races between streams are not pretended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from pretended_cuda.driver import DEVICE, driver, poison

__all__ = ["Event", "Stream", "copied_late", "read_late", "stream"]


class Stream:
    """Effects on the host that are under way, in their order."""

    def __init__(self, device: object = None, priority: int = 0) -> None:
        self.device = DEVICE
        self.effects: list[Callable[[], None]] = []
        self._done = 0

    def arrive(self, position: int | None = None) -> None:
        """Have happened what was asked for before a position, by default all."""
        end = len(self.effects) if position is None else position
        while self._done < end:
            self._done += 1
            self.effects[self._done - 1]()

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        self.effects.append(event.arrive)

    def wait_stream(self, other: Stream) -> None:
        self.wait_event(other.record_event())

    def synchronize(self) -> None:
        driver().wait("Stream.synchronize", self.arrive)

    def query(self) -> bool:
        return self._done == len(self.effects)


class Event:
    """A place in a stream."""

    def __init__(self, enable_timing: bool = False, **options: object) -> None:
        self._timed = enable_timing
        self._stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or driver().stream
        self._position, self._time = len(self._stream.effects), time.perf_counter()

    def arrive(self) -> None:
        """Have happened what the stream was asked for before."""
        if self._stream is not None:
            self._stream.arrive(self._position)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or driver().stream).wait_event(self)

    def synchronize(self) -> None:
        driver().wait("Event.synchronize", self.arrive)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds between two events, by the host's clock."""
        if not (self._timed and end._timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        return 1e3 * (end._time - self._time)


@contextmanager
def stream(chosen: Stream | None) -> Iterator[None]:
    """Make a stream the current one of this thread; None changes nothing."""
    before = driver().stream
    driver().stream = chosen or before
    try:
        yield
    finally:
        driver().stream = before


def copied_late(target: Tensor, source: Tensor) -> None:
    """Copy to pinned memory of the host, which holds poison until somebody waits for the stream."""
    result = source.to(target.dtype, copy=True)
    poison(target)

    def arrive() -> None:
        target.copy_(result)

    driver().stream.effects.append(arrive)


def read_late(source: Tensor) -> None:
    """Note that pinned memory of the host is being read: until it was, it must stay as it is."""
    before = source.clone()

    def compare() -> None:
        if not torch.equal(before.view(torch.uint8), source.contiguous().view(torch.uint8)):
            raise AssertionError("pinned memory was changed while a copy of it was under way")

    driver().stream.effects.append(compare)
