"""Votes and weighted scores of new rows, prepared once for any number of blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TypeVar

import torch
from torch import Tensor

from bootprob_gpu.hardware.memory import chunked, free_bytes
from bootprob_gpu.hardware.process_setting import ieee_products
from bootprob_gpu.hardware.threads import few_threads, in_threads, workers
from bootprob_gpu.inputs import InputError
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.scoring.models_in_use import (
    OwnKernels,
    SharedColumns,
    columns_of,
    own_kernels,
    shared_columns,
)
from bootprob_gpu.scoring.row_stream import blocks_on_device
from bootprob_gpu.scoring.votes import vote_counter

T = TypeVar("T")

__all__ = ["CPU_BLOCK_BYTES", "ReplicateScores", "Votes"]

CPU_BLOCK_BYTES = 2**25  # blocks that stay in a CPU's caches are faster than large ones
_KERNEL_BLOCK_BYTES = 2**22  # and those of kernels, over which several passes are made, in a core's
_FEW_BYTES = 2**21  # of rows too few to share among cores, each of which waits for the slowest
_SENT_AT_ONCE = 2**27  # bytes of rows from the host
_LEAST_ROWS, _LEAST_REPLICATES = 256, 16  # of a block, however little memory is allowed
_DOUBLE = 8  # bytes of a number in float64


class _Scorer:
    """What votes and weighted scores have in common: the models in use, and rows in blocks."""

    def __init__(self, models: FittedBatch, weights: Tensor) -> None:
        self._models = models
        self._device, self._dtype = models.intercept.device, models.dtype
        self._B, self._R = models.intercept.shape
        if weights.shape != (self._R,):
            raise InputError(
                f"weights have shape {tuple(weights.shape)}; each replicate has {self._R} models."
            )
        self._weights = weights.to(models.intercept)
        used = self._weights != 0
        self._numbers = used.nonzero().squeeze(1).tolist()  # of the models in use
        self._shared: list[SharedColumns] = []
        self._own: OwnKernels | None = None
        columns = [0]
        if models.shares_columns:
            self._shared = shared_columns(models, used)
            columns += [part.n_columns for part in self._shared]
        elif self._numbers:
            self._own = own_kernels(models, used)
            columns += map(len, self._own.supports)
        self._n_columns = max(columns)
        # Replicates whose coefficients are picked and put in order at a time: all, if they fit.
        numbers = sum(len(part.used) * part.n_columns for part in self._shared)
        bytes_per_replicate = max(1, numbers * (_DOUBLE + 3 * self._dtype.itemsize))
        available = free_bytes(self._device, models.memory_limit)
        size = max(_LEAST_REPLICATES, available // bytes_per_replicate)
        self._replicates = [slice(b, min(b + size, self._B)) for b in range(0, self._B, size)]

    def _fill(self, out: Tensor, X: Tensor, score: Callable[[Tensor, Tensor], None]) -> None:
        """Fill `out`, which has an entry for each row of X, by ``score(centred rows, their part)``.

        Rows are taken in blocks that fit into memory, or into a CPU's caches.
        """
        self._models.check_columns(X)
        p, limit = X.shape[1], self._models.memory_limit
        blocks: Iterable[Tensor] = (X,)
        if X.device != self._device:
            parts = X.split(max(1, _SENT_AT_ONCE // max(1, p * X.dtype.itemsize)))
            blocks = blocks_on_device(parts, self._device)
        on_cpu, kernels = self._device.type == "cpu", 2
        if self._own is not None:
            kernels = (workers() if on_cpu else 1) * (1 + len(self._own.used))
        views = len({part.kernel.looks_at for part in self._shared})
        numbers = (1 + max(1, views)) * p + kernels * self._n_columns + self._R
        bytes_per_row = _DOUBLE * (2 * p + self._R) + self._dtype.itemsize * numbers
        # Kernels of their own are shared among threads already, and one large product by BLAS.
        of_a_core = on_cpu and self._own is None and not self._models.kernel.is_linear
        if on_cpu:
            most = CPU_BLOCK_BYTES if self._models.kernel.is_linear else _KERNEL_BLOCK_BYTES
            available = min(most, (limit or most) // (workers() if of_a_core else 1))
        else:
            available = free_bytes(self._device, limit)
        available = max(available, _LEAST_ROWS * bytes_per_row)
        for block in blocks:
            part, out = out[: len(block)], out[len(block) :]

            def work(items: slice, block: Tensor = block, part: Tensor = part) -> None:
                score(block[items] - self._models.center, part[items])  # in float64

            def in_chunks(some: slice, work: Callable[[slice], None] = work) -> None:
                for _ in chunked(
                    some.stop - some.start,
                    lambda items: work(slice(some.start + items.start, some.start + items.stop)),
                    bytes_per_item=bytes_per_row,
                    available=available,
                ):
                    pass

            with ieee_products:
                if of_a_core and len(block) * bytes_per_row > available:
                    in_threads(in_chunks, len(block))
                    continue
                few = on_cpu and len(block) * bytes_per_row <= _FEW_BYTES
                with few_threads(1) if few else nullcontext():
                    in_chunks(slice(0, len(block)))

    def _each(self, own: OwnKernels, work: Callable[[slice], T]) -> list[T]:
        """Do ``work(slice)`` for all replicates that have kernels of their own."""
        return in_threads(work, len(own.supports), self._device)


class Votes(_Scorer):
    """Counts for rows how many replicates score them above 0, for every model in use.

    Parameters
    ----------
    models : FittedBatch
        Trained models.
    weights : Tensor, shape (R,), optional
        Weight of each model; one of weight 0 is not scored, and gets no votes. Default: all models
        weigh 1 / R.
    """

    def __init__(self, models: FittedBatch, weights: Tensor | None = None) -> None:
        if weights is None:
            R = models.intercept.shape[1]
            weights = models.intercept.new_full((R,), 1 / R)
        super().__init__(models, weights)
        self._held: dict[tuple[int, int], Callable[[Tensor], Tensor]] = {}

    def counts(self, X: Tensor) -> Tensor:
        """Votes of rows (m, p) under each model, int32, shape (m, R)."""
        counts = torch.empty(self._R, len(X), dtype=torch.int32, device=self._device)
        self._fill(counts.T, X, self._count)
        return counts.T

    def shares(self, X: Tensor) -> Tensor:
        """Weighted share of votes of rows (m, p): ``Σ_r weight_r votes_r / B``, float64, (m,)."""
        shares = torch.empty(len(X), dtype=torch.float64, device=self._device)
        self._fill(shares, X, self._share)
        return shares

    def _share(self, rows: Tensor, out: Tensor) -> None:
        counts = torch.empty(self._R, len(rows), dtype=torch.int32, device=self._device)
        self._count(rows, counts.T)
        out.zero_()
        # Number by number, so that a share does not depend on the block that its row is in.
        for r in self._numbers:
            out += counts[r].double() * self._weights[r]
        out /= self._B

    def _count(self, rows: Tensor, out: Tensor) -> None:
        counts = out.zero_().T
        every = zip(self._shared, columns_of(self._shared, rows), strict=True)
        for number, (part, columns) in enumerate(every):
            for replicates in self._replicates:
                counts[part.used] += self._counter(number, replicates)(columns)
        if (own := self._own) is not None:
            for some in self._each(own, lambda items: own.votes(rows, items)):
                counts += some

    def _counter(self, number: int, replicates: slice) -> Callable[[Tensor], Tensor]:
        """Models ready to count; kept for the next rows if there is room for all of them."""
        key = (number, replicates.start)
        counter = self._held.get(key)
        if counter is None:
            if len(self._replicates) > 1:
                self._held.clear()
            coef, intercept = self._shared[number].linear(replicates)
            counter = vote_counter(
                coef.permute(1, 2, 0).to(self._dtype), intercept.T.to(self._dtype)
            )
            self._held[key] = counter
        return counter


class ReplicateScores(_Scorer):
    """Sums the scores of the models of each replicate, weighted.

    Coefficients are summed before rows are scored, so this costs R times less than all scores do.

    Parameters
    ----------
    models : FittedBatch
        Trained models.
    weights : Tensor, shape (R,)
        Weight of each model.
    """

    def __init__(self, models: FittedBatch, weights: Tensor) -> None:
        super().__init__(models, weights)
        intercept = torch.zeros(self._B, dtype=torch.float64, device=self._device)
        self._coef: list[Tensor] = []
        for part in self._shared:
            weight = self._weights[part.used]
            coefs = []
            for replicates in self._replicates:
                coef, constant = part.linear(replicates)
                intercept[replicates] += constant @ weight
                coefs.append((weight @ coef).to(self._dtype))
            self._coef.append(torch.cat(coefs))
        if self._own is not None:
            self._coef, intercept = self._own.weighed(self._weights)
        self._intercept = intercept.to(self._dtype)

    def __call__(self, X: Tensor) -> Tensor:
        """Scores of rows (m, p), shape (m, B), in the precision of the batch."""
        scores = torch.empty(len(X), self._B, dtype=self._dtype, device=self._device)
        self._fill(scores, X, self._sum)
        return scores

    def _sum(self, rows: Tensor, out: Tensor) -> None:
        out[:] = self._intercept
        if (own := self._own) is not None:
            self._each(own, lambda items: own.add(rows, self._coef, items, out))
            return
        for columns, coef in zip(columns_of(self._shared, rows), self._coef, strict=True):
            out.addmm_(columns, coef.T)
