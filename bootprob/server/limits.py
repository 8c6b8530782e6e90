"""How much a server takes before it refuses."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real

from bootprob.exceptions import DataError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds on requests and on what waits; every one of them is enforced before work is done.

    Attributes
    ----------
    max_rows : int, default 4096
        Most rows of a request, and most rows scored together.
    queue_rows : int, default 16384
        Most rows that wait to be scored; beyond, requests get 429.
    max_requests : int, default 1000
        Most requests that are read, queued and answered at the same time; beyond, 503.
    deadline : float, default 10.0
        Seconds from a request's first byte of body to its result: 408 if its body is not there by
        then, 503 if its result is not.
    max_body : int, default 4 MiB
        Most bytes of a body; beyond, 413.
    max_depth : int, default 16
        Deepest nesting of arrays and objects in a body; beyond, 400.
    max_containers : int, default 65536
        Most arrays and objects in a body; beyond, 413. Sixteen for each of 4096 rows.
    max_held : int, default 32 MiB
        Most bytes of bodies that are held at the same time, but for what is within the first
        32 KiB of each; beyond, 503.
    max_explained : int, default 8
        Most rows of a request whose probabilities are explained; four times as many may wait for
        that, beyond, 429.
    max_delay : float, default 0.002
        Seconds that the first of some rows waits for others, if nothing is being scored.

    Examples
    --------
    >>> from bootprob.server import Limits
    >>> limits = Limits(max_rows=100, deadline=2.0)  # the rest by default
    >>> limits.max_rows, limits.max_body
    (100, 4194304)
    >>> Limits(max_rows=0)
    Traceback (most recent call last):
        ...
    bootprob.exceptions.DataError: max_rows is 0; it must be positive.
    """

    max_rows: int = 4096
    queue_rows: int = 16384
    max_requests: int = 1000
    deadline: float = 10.0
    max_body: int = 4 * 2**20
    max_depth: int = 16
    max_containers: int = 2**16
    max_held: int = 32 * 2**20
    max_explained: int = 8
    max_delay: float = 0.002

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            seconds = name in ("deadline", "max_delay")
            allowed = isinstance(value, Real if seconds else Integral)
            if isinstance(value, bool) or not allowed or not math.isfinite(value):
                what = "a number of seconds" if seconds else "a whole number"
                raise DataError(f"{name} is {value!r}; give {what}.")
            if value < 0 or (value == 0 and name != "max_delay"):
                raise DataError(f"{name} is {value!r}; it must be positive.")
        if self.queue_rows < self.max_rows:
            raise DataError(
                f"queue_rows is {self.queue_rows} and max_rows {self.max_rows}: the queue must "
                "hold one request at least; raise queue_rows or lower max_rows."
            )
        if self.max_held < self.max_body:
            raise DataError(
                f"max_held is {self.max_held} and max_body {self.max_body}: one body at least must "
                "be held; raise max_held or lower max_body."
            )
