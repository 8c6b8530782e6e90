"""Between being told to stop and stopping."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import cast

__all__ = ["Stopping", "draining"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], None]


@dataclass
class Stopping:
    """What an application says of itself.

    Attributes
    ----------
    begun : bool
        Whether it has been told to stop: it is not ready, and asks every client by
        ``Connection: close`` to connect anew, elsewhere.
    interrupted : bool
        Whether Ctrl-C has told it so.
    """

    begun: bool = False
    interrupted: bool = False


@contextmanager
def draining(stopping: Stopping, delay: float) -> Iterator[None]:
    """Let a server that is told to stop go on for a while, so that others can leave it out.

    To be entered in the main thread when the server has set its handlers of SIGTERM and SIGINT.

    Parameters
    ----------
    stopping : Stopping
    delay : float
        Seconds from the first signal until the server's own handler is called; SIGINT, once more,
        ends them.
    """
    loop = asyncio.get_running_loop()

    def told(number: int, frame: FrameType | None) -> None:
        is_first, stopping.begun = not stopping.begun, True
        stopping.interrupted |= number == signal.SIGINT
        if is_first and delay > 0:
            loop.call_soon_threadsafe(loop.call_later, delay, before[number], number, None)
        elif is_first or number == signal.SIGINT:
            before[number](number, frame)
        # A second SIGTERM comes from whoever stops both workers and their supervisor.

    before: dict[int, _Handler] = {
        number: cast(_Handler, signal.signal(number, told)) for number in _SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
