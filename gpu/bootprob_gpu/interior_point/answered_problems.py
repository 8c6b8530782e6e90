"""When answered problems leave the batch of an interior point, and how their number is read.

A problem that stays costs an iteration its share of the matrix products alone, because the kernels
between them skip it. Taking it out costs a copy of the others' state and, where steps are replayed
as a CUDA graph, another capture.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["LateCount", "leave"]

_FEW = 64  # problems of which any that leaves is worth the copy
# Problems × rows below which another capture takes longer than what the products would save.
_RECAPTURED_CELLS = 2**20


def leave(working: int, batch: int, n_rows: int, *, replayed: bool) -> bool:
    """Whether the answered problems should leave the batch now.

    Parameters
    ----------
    working : int
        Problems that are not answered, of which there are some.
    batch : int
        Problems in the batch.
    n_rows : int
    replayed : bool
        Whether steps are replayed as a CUDA graph. Then they leave once half are answered, while
        the batch is large, so that there are as many captures as halvings.
    """
    answered = batch - working
    if replayed:
        return 2 * answered >= batch and batch * n_rows >= _RECAPTURED_CELLS
    return answered > 0 and (10 * answered >= batch or batch < _FEW)


class LateCount:
    """Counts the problems at work and tells one call later, so that the device need not wait.

    The host waits for a count while the device is busy with the step after it. The delay is a call
    however fast either of them is, so what is decided by the count is the same in every run.

    Parameters
    ----------
    problems : int
        What the first call tells.
    """

    def __init__(self, problems: int) -> None:
        self._told = problems
        self._last, self._next = _pinned(2).unbind()
        self._arrived: torch.cuda.Event | None = None  # in `_last`

    def __call__(self, working: Tensor) -> int:
        """Queue the count of `working` (1 or 0 each), and tell the one that the last call queued.

        Parameters
        ----------
        working : Tensor of int64, shape (problems,)
            On a CUDA device.
        """
        before = self._arrived
        self._next.copy_(working.sum(), non_blocking=True)
        self._arrived = torch.cuda.current_stream(working.device).record_event()
        if before is not None:
            before.synchronize()
            self._told = int(self._last)
        self._last, self._next = self._next, self._last
        return self._told


def _pinned(n_counts: int) -> Tensor:
    return torch.empty(n_counts, dtype=torch.int64, device="cpu", pin_memory=True)
