"""CUDA streams beside the one that computes, and steps of many kernels replayed as one graph."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Iterator

import torch

from bootprob_gpu.hardware.memory import is_out_of_memory
from bootprob_gpu.hardware.triton_choice import KernelFallbackWarning, fell_back

__all__ = ["Replayed", "can_capture", "side_stream"]

_one_capture = threading.Lock()  # torch allows one at a time in a process
_of_thread = threading.local()  # holds its side streams


def side_stream(device: torch.device, use: str) -> torch.cuda.Stream:
    """The stream of this thread for a use, such as "upload".

    One and the same each time, because torch caches memory, and libraries keep a workspace, for
    every stream that they have seen.

    Parameters
    ----------
    device : torch.device
        A CUDA device; without a number, the current one.
    use : str
        Work of different uses may run at the same time.
    """
    number = torch.cuda.current_device() if device.index is None else device.index
    streams: dict[tuple[int, str], torch.cuda.Stream]
    streams = _of_thread.__dict__.setdefault("streams", {})
    if (number, use) not in streams:
        streams[number, use] = torch.cuda.Stream(number)
    return streams[number, use]


def can_capture(kernels: Collection[str]) -> bool:
    """Whether a step that launches these kernels can be captured, as far as this process knows.

    Not where one of them could not be compiled: its twin reads numbers back, which ends a capture.

    Parameters
    ----------
    kernels : collection of str
        From `bootprob_gpu.hardware.triton_choice.kernel_names`.
    """
    return Replayed._capturable and not fell_back(kernels)


class Replayed:
    """A step that is run once, captured into a CUDA graph, and replayed from then on.

    Every call does the work of one step. Where the step cannot be captured, a warning says so and
    it goes on being run kernel by kernel; so it does, without one, where memory is short.

    Parameters
    ----------
    step : callable
        Changes tensors in place, the same ones each time, and reads nothing back.
    device : torch.device
        The CUDA device of those tensors.
    kernels : collection of str
        Names of the kernels that a step launches, of which none may have fallen back.
    """

    _capturable = True  # until a capture failed in this process

    def __init__(
        self, step: Callable[[], None], device: torch.device, kernels: Collection[str]
    ) -> None:
        self._step = step
        self._kernels = kernels
        self._stream = side_stream(device, "capture")  # the default stream cannot make one
        self._graph: torch.cuda.CUDAGraph | None = None
        # Those before it, which share its memory. Kept, because torch gives the workspaces of
        # cuBLAS on this stream back with any graph, also those that another one uses.
        self._past: list[torch.cuda.CUDAGraph] = []
        self._pool: torch.cuda._POOL_HANDLE | None = None
        self._ready = False
        # Memory that torch has cached, of which a step may make use, is closed to a capture.
        self._fits = True

    def __call__(self) -> None:
        """Do one step."""
        if self._ready and self._graph is None and self._fits and can_capture(self._kernels):
            self._capture()
        if self._graph is not None:
            self._graph.replay()
            return
        # Compiles the kernels and makes the workspaces of libraries, which a capture may not.
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            self._step()
        current.wait_stream(self._stream)
        self._ready = True

    def renew(self) -> None:
        """Forget the graph: the step works on other tensors from now on, smaller ones.

        The next call runs it, and the one after captures it anew, into the memory of the first
        graph, which must not be replayed again. No other memory is taken if that is enough.
        """
        if self._graph is not None:
            self._past.append(self._graph)
        self._graph, self._ready, self._fits = None, False, True

    def _capture(self) -> None:
        """Record a step without running it, if that can be done."""
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        try:
            self._graph = self._recorded()
        except RuntimeError as error:
            if any(is_out_of_memory(each) for each in _chain(error)):
                self._fits = False
            elif any("captur" in str(each) for each in _chain(error)):
                Replayed._capturable = False
                warnings.warn(
                    "The step could not be captured into a CUDA graph "
                    f"({str(error).strip().splitlines()[0]}); its kernels are launched one by one, "
                    "more slowly.",
                    KernelFallbackWarning,
                    stacklevel=3,
                )
            else:
                raise
        current.wait_stream(self._stream)

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        pool = torch.cuda.graph_pool_handle() if self._pool is None else self._pool
        # Without `torch.cuda.graph`, which would first give all cached memory back.
        with _one_capture, torch.cuda.stream(self._stream):
            try:
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    self._step()
                finally:
                    graph.capture_end()
            except BaseException:
                _leave(pool, self._stream.device)
                raise
        self._pool = pool
        return graph


def _leave(pool: tuple[int, int], device: torch.device) -> None:
    """End a capture for torch's allocator, which `capture_end` does not where CUDA refuses to end.

    Else the allocator would wait for ever before it reuses memory that several streams have seen.
    """
    name = "_cuda_endAllocateToPool"  # since torch 2.8
    if not hasattr(torch._C, name):
        name = "_cuda_endAllocateCurrentStreamToPool"
    try:
        getattr(torch._C, name)(device.index, pool)
    except RuntimeError:
        return  # nothing had begun, or it has ended, and then the graph gives the pool back itself
    torch._C._cuda_releasePool(device.index, pool)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it hides."""
    while error is not None:
        yield error
        error = error.__context__
