"""CUDA graphs: what was captured is done again by a replay, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from pretended_cuda.driver import Allocation, driver, poison
from pretended_cuda.tensor import CudaTensor

__all__ = ["CUDAGraph", "Capture"]


class Capture:
    """The nodes of a graph.

    Work is only noted while a graph is captured. Torch's operators are done all the same, for the
    shapes of their results; in the end what they changed is put back, and what they made is
    poisoned until a replay makes it.
    """

    def __init__(self) -> None:
        self.broken = False
        self._nodes: list[Callable[[], None]] = []
        self._made: dict[int, Tensor] = {}  # by storage
        self._before: dict[int, tuple[Any, Any]] = {}  # storages that are written, and a copy
        self._given: dict[int, Callable[[], Allocation | None]] = {}

    def add(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        *,
        reads: Iterable[CudaTensor],
        writes: Iterable[Tensor],
    ) -> Any:
        """Note an operator; what it returns has the right shape only."""
        kwargs = kwargs or {}
        self._uses(reads, writes)
        out = func(*args, **kwargs)
        given = {id(each) for each in _tensors((args, kwargs))}
        results = _tensors(out)
        fresh = [number for number, each in enumerate(results) if id(each) not in given]
        for number in fresh:
            self.takes(results[number])

        def again() -> None:
            now = _tensors(func(*args, **kwargs))
            for number in fresh:
                results[number].copy_(now[number])

        self._nodes.append(again)
        return out

    def takes(self, memory: Tensor) -> Tensor:
        """Note memory that is the graph's own, of no contents yet."""
        self._made[memory.untyped_storage()._cdata] = memory
        return memory

    def launch(self, work: Callable[[], None], tensors: list[CudaTensor]) -> None:
        """Note a kernel, which is not run; it may write to any of its operands."""
        self._uses(tensors, [each.inner for each in tensors])
        self._nodes.append(work)

    def _uses(self, reads: Iterable[CudaTensor], writes: Iterable[Tensor]) -> None:
        for each in reads:
            key = each.inner.untyped_storage()._cdata
            if key not in self._made:
                self._given.setdefault(key, ref(each.allocation))
        for each in writes:
            storage = each.untyped_storage()
            if storage._cdata not in self._made and storage._cdata not in self._before:
                self._before[storage._cdata] = storage, storage.clone()

    def end(self) -> None:
        """Undo all."""
        for storage, before in self._before.values():
            storage.copy_(before)
        self._before.clear()
        for each in self._made.values():
            poison(each)

    def replay(self) -> None:
        """Do what was noted.

        Raises
        ------
        AssertionError
            If memory that the graph reads or writes was given back since.
        """
        if any(allocation() is None for allocation in self._given.values()):
            raise AssertionError("a graph is replayed whose operands are gone")
        for node in self._nodes:
            node()


class CUDAGraph:
    """Stands in for `torch.cuda.CUDAGraph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._capture: Capture | None = None

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        if driver().stream is driver().default_stream:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        if driver().capture is not None:
            raise RuntimeError("CUDA error: the stream is capturing already")
        driver().capture = Capture()

    def capture_end(self) -> None:
        capture, driver().capture = driver().capture, None
        assert capture is not None
        capture.end()
        if capture.broken:
            raise RuntimeError(
                "CUDA error: operation failed due to a previous error during capture"
            )
        self._capture = capture

    def replay(self) -> None:
        if self._capture is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        driver().replays += 1
        with torch._C.DisableTorchFunction():
            self._capture.replay()

    def reset(self) -> None:
        self._capture = None


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_flatten(values)[0] if isinstance(each, Tensor)]
