"""Memory is planned: chunk sizes from free memory, halved and retried when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import TypeVar

import torch

__all__ = ["chunked", "free_bytes", "is_out_of_memory", "visible_block"]

T = TypeVar("T")

_SHARE_OF_FREE = 0.5
_GPU_MODELS = 512
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
# What torch says on a CPU, the driver, and cuBLAS and cuSOLVER of their workspaces.
_OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "ALLOC_FAILED")


def free_bytes(device: torch.device, limit: int | None = None) -> int:
    """Bytes that a batch may use on a device.

    Half of what is free (of the card, or of the machine within its container's limit), and never
    more than `limit`.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # Blocks that torch caches count as used for the driver but are ours to use again.
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    else:
        free = int(min(_available_bytes(), _container_bytes()))
    planned = int(free * _SHARE_OF_FREE)
    return planned if limit is None else min(planned, limit)


def chunked(
    n_items: int,
    work: Callable[[slice], T],
    *,
    bytes_per_item: float,
    available: int,
    largest: int | None = None,
) -> Iterator[tuple[slice, T]]:
    """Work through ``range(n_items)`` in chunks that fit into memory.

    Parameters
    ----------
    n_items : int
        Number of items (replicates, rows).
    work : callable
        Takes a slice of items and returns their result; called again with half as many items
        when memory runs out.
    bytes_per_item : float
        Peak bytes that one item needs while `work` runs.
    available : int
        Bytes that a chunk may use.
    largest : int, optional
        Upper bound on the chunk size, where smaller is faster (caches).

    Yields
    ------
    slice, result

    Raises
    ------
    MemoryError
        If memory runs out with a single item in a chunk.
    """
    size = max(1, min(n_items, largest or n_items, int(available // max(bytes_per_item, 1))))
    start = 0
    while start < n_items:
        items = slice(start, min(start + size, n_items))
        ran_out = False
        try:
            result = work(items)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if size == 1:
                raise MemoryError(
                    f"Memory ran out on a single item of {bytes_per_item / 2**20:.0f} MiB; use "
                    "fewer rows or columns, a shorter grid, or a device with more memory."
                ) from error
            ran_out = True
        if ran_out:
            # Only now that the error is gone, whose traceback held what was to be freed.
            size = max(1, (items.stop - items.start) // 2)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            continue
        yield items, result
        start = items.stop


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, of the host or of a device."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(said in str(error) for said in _OUT_OF_MEMORY)


def _available_bytes() -> int:
    """Bytes that programs of the machine could still take, as its system estimates it."""
    if _MEMINFO.exists():  # Linux; what psutil reads there
        for line in _MEMINFO.read_text().splitlines():
            name, amount, *_ = line.split()
            if name == "MemAvailable:":
                return 1024 * int(amount)
    import psutil

    return psutil.virtual_memory().available


def _container_bytes() -> float:
    """Free bytes under a container's own limit (cgroup v2), infinite where there is none."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
        stat = _CGROUP / "memory.stat"
        lines = stat.read_text().splitlines() if stat.exists() else []
    except OSError:
        return float("inf")
    if limit == "max":
        return float("inf")
    # Files read long ago count as used, but the kernel gives them up as soon as memory is short.
    cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    return max(int(limit) - max(used - cached, 0), 0)


def visible_block(n_replicates: int, n_models: int) -> int:
    """Most replicates for a block on a device that could take all at once.

    A twentieth, so that progress is seen and an interrupt loses little; but enough models to keep
    a GPU busy.
    """
    return max(ceil(n_replicates / 20), ceil(_GPU_MODELS / n_models))
