"""Time on the device, by CUDA events; in a rehearsal on the CPU by the host's clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["Stopwatch", "peak_bytes", "timed"]


class Stopwatch:
    """Milliseconds between `start` and `stop` on a device's current stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def start(self) -> None:
        """Start, once all that was asked of the device is done."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            self._events[0].record(torch.cuda.current_stream(self._device))
        else:
            self._started = time.perf_counter()

    def stop(self) -> float:
        """Milliseconds since `start`, the work asked for since then included."""
        if self._device.type == "cuda":
            self._events[1].record(torch.cuda.current_stream(self._device))
            torch.cuda.synchronize(self._device)
            return self._events[0].elapsed_time(self._events[1])
        return 1e3 * (time.perf_counter() - self._started)


def timed(
    device: torch.device, work: Callable[[], object], *, seconds: float, most: int = 20
) -> dict[str, Any]:
    """Time some work again and again, after one run that does not count.

    Parameters
    ----------
    device : torch.device
    work : callable
    seconds : float
        No further run begins after so many.
    most : int
        Runs.

    Returns
    -------
    dict
        "median, ms", "least, ms", "runs" and "clock".
    """
    work()
    watch, found, began = Stopwatch(device), [], time.monotonic()
    while not found or (len(found) < most and time.monotonic() - began < seconds):
        watch.start()
        work()
        found.append(watch.stop())
    return summary(device, found)


def summary(device: torch.device, milliseconds: list[float]) -> dict[str, Any]:
    """Median and least of some times, and what they were taken with."""
    return {
        "median, ms": statistics.median(milliseconds),
        "least, ms": min(milliseconds),
        "runs": len(milliseconds),
        "clock": "CUDA events" if device.type == "cuda" else "host clock",
    }


def peak_bytes(device: torch.device) -> int | None:
    """Most bytes that tensors held on the device since the last call; None on a CPU."""
    if device.type != "cuda":
        return None
    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    return peak
