"""Rows from the host to a device, and results back, while the device computes.

On CUDA a block of rows is copied into pinned memory and from there, on a stream of its own, to the
device, while the block before it is worked on; results return in the same way. On a CPU blocks and
results are passed through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, cuda

from bootprob_gpu.hardware.cuda import side_stream
from bootprob_gpu.hardware.threads import workers
from bootprob_gpu.inputs import InputError

__all__ = ["Rows", "blocks_on_device", "blocks_on_host"]

Rows = NDArray[np.float32] | NDArray[np.float64]

_WORTH_A_THREAD = 2**22  # bytes to copy


def blocks_on_device(blocks: Iterable[Rows | Tensor], device: torch.device) -> Iterator[Tensor]:
    """Send blocks of rows to a device, each ahead of its turn.

    The caller works on a block on the stream that is current when the first block is asked for.
    At any time at most three blocks are on the device: one at work, one waiting, one on its way.

    Parameters
    ----------
    blocks : iterable of ndarray or Tensor, each of shape (m, p)
        Rows in float32 or float64, in the host's memory and in any layout. Slices of a
        memory-mapped array are read one at a time, when their turn comes. Tensors in pinned
        memory are sent from where they lie, and may be changed once the iteration has ended. Where
        the first block is a tensor on a GPU all are, and none passes through the host.
    device : torch.device
        Where to.

    Yields
    ------
    Tensor, shape (m, p)
        To be read only: on a CPU it may be the memory of the block given.

    Raises
    ------
    InputError
        For arrays of another type.
    """
    if device.type == "cuda":
        return _on_cuda(map(_check, blocks), device)
    return map(partial(_moved, device), blocks)


def blocks_on_host(results: Iterable[Tensor], device: torch.device) -> Iterator[NDArray[Any]]:
    """Bring results back from a device as arrays, each while the next one is computed.

    Parameters
    ----------
    results : iterable of Tensor
        Computed, or queued, on the stream that is current when the first one is asked for.
    device : torch.device
        Where they are.

    Yields
    ------
    ndarray
        Of the shape and type of the result, and the caller's to keep.
    """
    return _fetched(results, device) if device.type == "cuda" else map(Tensor.numpy, results)


def _check(block: Rows | Tensor) -> Rows | Tensor:
    name = str(block.dtype).removeprefix("torch.")
    if name not in ("float32", "float64"):
        raise InputError(f"Rows have the type {name}; give float32 or float64.")
    return block


def _moved(device: torch.device, block: Rows | Tensor) -> Tensor:
    """The block itself wherever torch takes it: there, in order, and not write-protected."""
    block = _check(block)
    if isinstance(block, Tensor):
        return block.to(device)
    if min(block.strides) < 0:  # of a single row, numpy says that it is in order all the same
        block = block.copy()
    return torch.from_numpy(np.require(block, requirements=["C", "W"])).to(device)


def _on_cuda(blocks: Iterator[Rows | Tensor], device: torch.device) -> Iterator[Tensor]:
    for first in blocks:
        every = chain([first], blocks)
        there = isinstance(first, Tensor) and first.is_cuda
        yield from map(partial(_moved, device), every) if there else _sent(every, device)


def _sent(blocks: Iterable[Rows | Tensor], device: torch.device) -> Iterator[Tensor]:
    compute, upload = cuda.current_stream(device), side_stream(device, "upload")
    buffers = _PinnedPair()
    sent: list[cuda.Event] = []  # by block: it has arrived, and its buffer is free again
    used: list[cuda.Event] = []  # by block: the work that the caller queued for it is done

    def send(block: Rows | Tensor) -> Tensor:
        number = len(sent)
        if number >= 2:
            sent[number - 2].synchronize()
        if number >= 3:
            used[number - 3].synchronize()  # a fast host would fill the device
        if isinstance(block, Tensor) and block.is_pinned():
            source = block
        else:
            source = buffers.room(number, block)
            _fill(source, block)
        with cuda.stream(upload):
            rows = torch.empty(source.shape, dtype=source.dtype, device=device)
            _queue_copy(rows, source)
        sent.append(upload.record_event())
        return rows

    def ready(rows: Tensor, number: int) -> Tensor:
        compute.wait_event(sent[number])
        _hold_for(rows, compute)
        return rows

    ahead: Tensor | None = None
    for block in blocks:
        coming = send(block)
        if ahead is not None:
            yield ready(ahead, len(sent) - 2)
            used.append(compute.record_event())
        ahead = coming
    if ahead is not None:
        yield ready(ahead, len(sent) - 1)
        # Rows that the caller has pinned may still be read.
        sent[-1].synchronize()


def _fetched(results: Iterable[Tensor], device: torch.device) -> Iterator[NDArray[Any]]:
    compute, download = cuda.current_stream(device), side_stream(device, "download")
    buffers = _PinnedPair()
    waiting: tuple[Tensor, cuda.Event] | None = None
    for number, result in enumerate(results):
        # The buffer's last result was handed over before this one was asked for.
        target = buffers.room(number, result)
        download.wait_event(compute.record_event())
        with cuda.stream(download):
            _queue_copy(target, result)
        _hold_for(result, download)
        coming = (target, download.record_event())
        if waiting is not None:
            yield _arrived(*waiting)
        waiting = coming
    if waiting is not None:
        yield _arrived(*waiting)


def _arrived(target: Tensor, event: cuda.Event) -> NDArray[Any]:
    event.synchronize()
    return target.numpy().copy()


class _PinnedPair:
    """Two buffers of pinned memory that blocks take turns in."""

    def __init__(self) -> None:
        self._buffers = [_pinned(1), _pinned(1)]

    def room(self, number: int, block: NDArray[Any] | Tensor) -> Tensor:
        """The buffer of block `number`, as a tensor of the block's shape and type."""
        dtype = block.dtype if isinstance(block, Tensor) else getattr(torch, block.dtype.name)
        if len(self._buffers[number % 2]) < block.nbytes:
            self._buffers[number % 2] = _pinned(block.nbytes)
        return self._buffers[number % 2][: block.nbytes].view(dtype).view(block.shape)


def _pinned(n_bytes: int) -> Tensor:
    return torch.empty(n_bytes, dtype=torch.uint8, device="cpu", pin_memory=True)


def _fill(target: Tensor, block: Rows | Tensor) -> None:
    """Copy rows within the host, by several threads: one is slower than the way to the device."""
    source = block.numpy() if isinstance(block, Tensor) else block
    parts = max(1, min(workers(), source.nbytes // _WORTH_A_THREAD))
    if parts == 1:
        np.copyto(target.numpy(), source)
        return
    with ThreadPoolExecutor(parts) as pool:
        pieces = zip(
            np.array_split(target.numpy(), parts), np.array_split(source, parts), strict=True
        )
        list(pool.map(lambda piece: np.copyto(*piece), pieces))


def _queue_copy(target: Tensor, source: Tensor) -> None:
    target.copy_(source, non_blocking=True)


def _hold_for(tensor: Tensor, stream: cuda.Stream) -> None:
    """Keep memory of another stream from being given away before this stream is done with it."""
    tensor.record_stream(stream)
