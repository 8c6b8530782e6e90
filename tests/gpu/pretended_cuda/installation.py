"""Puts the pretended device in the place of `torch.cuda`, and takes it away again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from pretended_cuda.calls import Calls, Generator
from pretended_cuda.driver import Driver
from pretended_cuda.graphs import CUDAGraph
from pretended_cuda.kernels import interpreted_kernels
from pretended_cuda.streams import Event, Stream, stream

__all__ = ["pretended_cuda"]


@contextmanager
def pretended_cuda(capacity: int = 2**26) -> Iterator[Driver]:
    """Pretend that there is one CUDA device, in all threads that are started inside.

    Parameters
    ----------
    capacity : int, default 2**26
        Bytes of its memory.

    Raises
    ------
    RuntimeError
        If there is a CUDA device, or if Triton does not interpret (``TRITON_INTERPRET=1`` must be
        set before kernels are imported).
    """
    if torch.cuda.is_available():
        raise RuntimeError("There is a CUDA device here, real or pretended.")
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("Kernels would be compiled; set TRITON_INTERPRET=1.")
    device = Driver(capacity)
    run = threading.Thread.run

    def run_pretending(thread: threading.Thread) -> None:
        with Calls():
            run(thread)

    with ExitStack() as inside:

        def replace(owner: Any, **stand_ins: Any) -> None:
            for name, value in stand_ins.items():
                inside.enter_context(patch.object(owner, name, value, create=owner is torch._C))

        replace(Driver, current=device)
        replace(torch.cuda, **_of_torch_cuda(device))
        # Private names, by which the engine leaves a capture that failed.
        replace(torch._C, _cuda_endAllocateToPool=_nothing, _cuda_releasePool=_nothing)
        replace(torch, Generator=Generator)
        replace(torch.profiler, profile=_profile)
        replace(threading.Thread, run=run_pretending)
        inside.enter_context(interpreted_kernels())
        inside.enter_context(Calls())
        yield device
        for each in device.streams:
            each.arrive()


def _of_torch_cuda(device: Driver) -> dict[str, Any]:
    def new_stream(*args: Any, **kwargs: Any) -> Stream:
        device.streams.append(Stream(*args, **kwargs))
        return device.streams[-1]

    def synchronize(which: Any = None) -> None:
        device.wait("torch.cuda.synchronize", lambda: [each.arrive() for each in device.streams])

    def reset_peak(which: Any = None) -> None:
        device.peak = device.allocated

    card = SimpleNamespace(
        name="Pretended CUDA device", total_memory=device.capacity, multi_processor_count=132,
        major=9, minor=0,
    )  # fmt: skip
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda which=None: card,
        "get_device_name": lambda which=None: card.name,
        "get_device_capability": lambda which=None: (card.major, card.minor),
        "device": _context,
        "device_of": _context,
        "Stream": new_stream,
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "stream": stream,
        "current_stream": lambda which=None: device.stream,
        "default_stream": lambda which=None: device.default_stream,
        "is_current_stream_capturing": lambda: device.capture is not None,
        "graph_pool_handle": lambda: (0, 1),
        "synchronize": synchronize,
        "empty_cache": _nothing,
        "mem_get_info": lambda which=None: (device.capacity - device.allocated, device.capacity),
        "memory_allocated": lambda which=None: device.allocated,
        "memory_reserved": lambda which=None: device.allocated,
        "max_memory_allocated": lambda which=None: device.peak,
        "reset_peak_memory_stats": reset_peak,
    }


_profile_all = torch.profiler.profile


def _profile(*, activities: Iterable[Any] = (), **options: Any) -> torch.profiler.profile:
    """A profile without what the device did, which torch would ask a CUDA library for."""
    on_host = [each for each in activities if each != torch.profiler.ProfilerActivity.CUDA]
    return _profile_all(activities=on_host or None, **options)


def _context(which: Any) -> AbstractContextManager[None]:
    return nullcontext()


def _nothing(*args: Any) -> None:
    """There is no cache, and no pool."""
