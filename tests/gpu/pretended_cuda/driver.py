"""What is known about the pretended device: its memory, the graph being captured, what was done."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pretended_cuda.graphs import Capture
    from pretended_cuda.streams import Stream

__all__ = ["DEVICE", "Allocation", "Driver", "driver", "poison"]

DEVICE = torch.device("cuda", 0)


class Allocation:
    """Memory of the device, given back with the last tensor that lies in it."""

    def __init__(self, owner: Driver, n_bytes: int) -> None:
        self._owner, self._n_bytes = owner, n_bytes

    def __del__(self) -> None:
        self._owner.freed(self._n_bytes)


class Driver:
    """The state of the device, and a record of what was asked of it.

    Parameters
    ----------
    capacity : int
        Bytes of memory.

    Attributes
    ----------
    launches : Counter
        Operators and kernels that were launched, by name; not those of replayed graphs.
    waits : Counter
        What made the host wait for the device, by name.
    replays : int
        Graphs that were replayed.
    """

    current: Driver | None = None  # of this process

    def __init__(self, capacity: int) -> None:
        from pretended_cuda.streams import Stream

        self.capacity = capacity
        self.allocated = self.peak = 0
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.replays = 0
        self._held: WeakValueDictionary[int, Allocation] = WeakValueDictionary()
        self._pinned: dict[int, Tensor] = {}  # by address; kept, so that none is used again
        self._lock = threading.RLock()
        self._of_thread = threading.local()
        self.default_stream = Stream()
        self.streams: list[Stream] = [self.default_stream]

    # --- memory ------------------------------------------------------------------------------

    def allocation(self, inner: Tensor) -> Allocation:
        """The memory that a tensor lies in, taken if it is new."""
        storage = inner.untyped_storage()
        with self._lock:
            found = self._held.get(storage._cdata)
            if found is None:
                n_bytes = storage.nbytes()
                if self.allocated + n_bytes > self.capacity:
                    raise torch.OutOfMemoryError(
                        f"CUDA out of memory. Tried to allocate {n_bytes} bytes, "
                        f"{self.capacity - self.allocated} of {self.capacity} are free."
                    )
                self.allocated += n_bytes
                self.peak = max(self.peak, self.allocated)
                found = self._held[storage._cdata] = Allocation(self, n_bytes)
        return found

    def freed(self, n_bytes: int) -> None:
        """Take memory back."""
        with self._lock:
            self.allocated -= n_bytes

    def pin(self, tensor: Tensor) -> Tensor:
        """Call a tensor's memory pinned."""
        self._pinned[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def is_pinned(self, tensor: Tensor) -> bool:
        """Whether a tensor of the host lies in pinned memory."""
        return tensor.untyped_storage().data_ptr() in self._pinned

    # --- order -------------------------------------------------------------------------------

    @property
    def stream(self) -> Stream:
        """The current stream of this thread."""
        return getattr(self._of_thread, "stream", self.default_stream)

    @stream.setter
    def stream(self, stream: Stream) -> None:
        self._of_thread.stream = stream

    @property
    def capture(self) -> Capture | None:
        """The graph that this thread captures."""
        return getattr(self._of_thread, "capture", None)

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self._of_thread.capture = capture

    def wait(self, what: str, arrive: Callable[[], None] | None = None) -> None:
        """Have the host wait for the device; an error while a graph is captured.

        Parameters
        ----------
        what : str
            Its reason.
        arrive : callable, optional
            What is done by then; default: all that was asked of the current stream.
        """
        self.waits[what] += 1
        if self.capture is not None:
            self.capture.broken = True
            raise RuntimeError(
                f"CUDA error: operation not permitted when stream is capturing ({what})"
            )
        (arrive or self.stream.arrive)()


def driver() -> Driver:
    """The pretended device of this process.

    Raises
    ------
    RuntimeError
        If there is none: a tensor of it was used after its end.
    """
    if Driver.current is None:
        raise RuntimeError("CUDA error: driver shutting down")
    return Driver.current


def poison(tensor: Tensor) -> Tensor:
    """Fill memory with what nobody would take for a result."""
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor.fill_(float("nan"))
    return tensor.fill_(True if tensor.dtype == torch.bool else torch.iinfo(tensor.dtype).max)
