"""Memory that really runs out: the work is halved until it fits, and the result is the same.

Most of the device's memory is taken, and the planner is told that plenty is free. On a CPU, where
that would harm others, every operation with a large result raises the error: a rehearsal.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bootprob_gpu import FittedBatch, Status, fit, iter_fit, vote_shares
from bootprob_gpu.hardware import memory
from gpu.check.jobs import Table, batch, table
from gpu.check.record import Record

__all__ = ["run"]

_SHARE_LEFT = 0.4  # of what the job took when all memory was its own
_TOL = 1e-7


def run(record: Record) -> None:
    """Train, then score, once with all the memory and once with too little."""
    _training(record)
    _scoring(record)


def _training(record: Record) -> None:
    # Many rows and few columns: the memory goes into the blocks that can be halved.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(record.size(20_000, 80), 20))
    source = Table("noisy", X, X[:, 0] + rng.normal(size=len(X)) > 0)
    problem = batch(source, "linear", record.size(94, 8))

    def train() -> list[FittedBatch]:
        return list(iter_fit(problem, device=record.device, tol=_TOL))

    expected, peak = _measured_peak(record, train)
    joined = FittedBatch.concatenate(expected)
    del expected
    with _crowded(record, peak) as errors:
        blocks = train()
    found = FittedBatch.concatenate(blocks)
    # Both are within the tolerance of the same optimum.
    apart = ((found.primal - joined.primal).abs() / joined.primal).max().item()
    converged = all(bool((each.status == Status.CONVERGED).all()) for each in (joined, found))
    again = [fit(problem.take(b.replicates), device=record.device) for b in blocks[:3]]
    same = all(
        torch.equal(getattr(one, name), getattr(other, name))
        for one, other in zip(blocks, again, strict=False)
        for name in ("coef", "intercept", "primal", "dual")
    )
    sizes = [len(block.intercept) for block in blocks]
    _report(record, "training", errors, peak, **{"replicates in the blocks that were done": sizes})
    record.promise(
        "what is trained with too little memory is as good as with all of it",
        converged and apart <= _TOL,
        found=apart,
        allowed=_TOL,
    )
    record.promise("and is bit for bit what blocks of that size give with all of it", same)


def _scoring(record: Record) -> None:
    problem = batch(table("Wisconsin", record.size(None, 60)), "linear", record.size(50, 4))
    models = fit(problem, device=record.device)
    shape = record.size(10_000_000, 2_000), problem.X.shape[1]
    draws = torch.Generator(record.device).manual_seed(0)
    rows = torch.randn(shape, device=record.device, generator=draws)
    weights = torch.full_like(models.intercept[0], 1 / problem.n_models)

    def score() -> torch.Tensor:
        return vote_shares(models, rows, weights)

    expected, peak = _measured_peak(record, score)
    # On the device it would keep the block that it was cut from, which is room for the next time.
    expected = expected.cpu()
    with _crowded(record, peak) as errors:
        found = score()
    _report(record, "scoring", errors, peak, rows=len(rows))
    differ = int((found.cpu() != expected).sum())
    record.promise(
        "vote shares with too little memory are those with all of it", differ == 0, differ=differ
    )


def _report(record: Record, what: str, errors: list[str], peak: int, **more: Any) -> None:
    record.measured(
        what,
        {
            "times that memory ran out": len(errors),
            "errors": sorted(set(errors)),
            "bytes taken with all memory": peak,
            "share of them left": _SHARE_LEFT,
            "simulated": record.device.type != "cuda",
            **more,
        },
    )
    record.promise(
        f"{what} runs out of memory and recovers", "OutOfMemoryError" in errors, times=len(errors)
    )


def _measured_peak(record: Record, work: Callable[[], Any]) -> tuple[Any, int]:
    """What some work gives, and how many bytes of the device it takes at the most.

    In a rehearsal, how many its largest tensor takes.
    """
    if record.device.type != "cuda":
        with _Sizes() as sizes:
            return work(), sizes.largest
    torch.cuda.reset_peak_memory_stats(record.device)
    before = torch.cuda.memory_allocated(record.device)
    done = work()
    return done, torch.cuda.max_memory_allocated(record.device) - before


@contextmanager
def _crowded(record: Record, peak: int) -> Iterator[list[str]]:
    """Too little memory inside; yields the names of the errors that were recovered from."""
    errors: list[str] = []
    judge = memory.is_out_of_memory

    def noticed(error: Exception) -> bool:
        verdict = judge(error)
        if verdict:
            errors.append(type(error).__name__)
        return verdict

    with ExitStack() as inside:
        inside.enter_context(patch.object(memory, "is_out_of_memory", noticed))
        if record.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info(record.device)
            taken = max(0, free - int(_SHARE_LEFT * peak))
            filler = torch.empty(taken, dtype=torch.uint8, device=record.device)
            told = (2**50, total)
            inside.enter_context(patch.object(torch.cuda, "mem_get_info", lambda *_: told))
        else:
            filler = None
            inside.enter_context(_Sizes(limit=int(_SHARE_LEFT * peak)))
        yield errors
        del filler


class _Sizes(TorchDispatchMode):
    """Notes the bytes of the largest tensor made inside, and refuses those beyond a limit."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.largest = max(self.largest, made.nbytes)
            if self._limit is not None and made.nbytes > self._limit:
                raise torch.OutOfMemoryError("raised by hand")
        return made
