"""Steps of many short kernels replayed as one CUDA graph."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import torch

from bootprob_gpu.triton_choice import KernelFallbackWarning

__all__ = ["Replayed"]

_one_capture = threading.Lock()  # torch allows one at a time in a process
_of_thread = threading.local()


class Replayed:
    """A step that is run once, captured into a CUDA graph, and replayed from then on.

    Every call does the work of one step. Where the step cannot be captured, a warning says so and
    it goes on being run kernel by kernel.

    Parameters
    ----------
    step : callable
        Changes tensors in place, the same ones each time, and reads nothing back.
    device : torch.device
        The CUDA device of those tensors.
    """

    _capturable = True  # until a capture failed in this process

    def __init__(self, step: Callable[[], None], device: torch.device) -> None:
        self._step = step
        self._stream = _side_stream(device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._ready = False

    def __call__(self) -> None:
        """Do one step."""
        if self._ready and self._graph is None and Replayed._capturable:
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

    def _capture(self) -> None:
        """Record a step without running it."""
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        try:
            # Without `torch.cuda.graph`, which would first give all cached memory back.
            with _one_capture, torch.cuda.stream(self._stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._step()
                finally:
                    graph.capture_end()
        except RuntimeError as error:
            if not _is_capture_error(error):
                raise
            Replayed._capturable = False
            warnings.warn(
                "The step could not be captured into a CUDA graph "
                f"({str(error).strip().splitlines()[0]}); its kernels are launched one by one, "
                "more slowly.",
                KernelFallbackWarning,
                stacklevel=3,
            )
        else:
            self._graph = graph
        current.wait_stream(self._stream)


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of this thread for captures, which the default stream cannot make.

    One and the same, because libraries keep a workspace for every stream that they have seen.
    """
    streams: dict[torch.device, torch.cuda.Stream] = _of_thread.__dict__.setdefault("streams", {})
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    return streams[device]


def _is_capture_error(error: BaseException | None) -> bool:
    """Whether a step was refused because it was captured, now or by what this error hides."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError):
            return False
        if "captur" in str(error):
            return True
        error = error.__context__
    return False
