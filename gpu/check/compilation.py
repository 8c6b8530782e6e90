"""Compiles what the parts after it will launch, so that no limit of theirs pays for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from bootprob_gpu import FittedBatch, Problem, fit, votes
from bootprob_gpu.hardware.numba_choice import numba_loads
from gpu.check.jobs import GERMAN, batch, table
from gpu.check.record import PartIncompleteError, Record

__all__ = ["run"]

_FEW = 3  # iterations: enough to launch every kernel


def run(record: Record) -> None:
    """Two replicates of each job for a few iterations, votes, and the kernels by themselves.

    Those in another process, as most cores are idle while one kernel is compiled.
    """
    before = _files()
    with _beside(record) as ended:
        for name, work in _jobs(record):
            if record.seconds_left() < 10:
                raise PartIncompleteError(f"no time for {name} and what follows")
            _timed(record, name, work)
        if not ended(record.seconds_left() - 2):
            raise PartIncompleteError("no time for all kernels by themselves")
    record.measured(
        "compiled kernels of Triton",
        {"files found": before, "files now": _files(), "kept by": "TRITON_CACHE_DIR"},
    )


@contextmanager
def _beside(record: Record) -> Iterator[Callable[[float], bool]]:
    """Launch every kernel in another process, where they are compiled; yields a wait for it."""
    if record.device.type != "cuda" or os.environ.get("TRITON_INTERPRET") == "1":
        yield lambda seconds: True
        return
    command = [sys.executable, "-m", "gpu.check.each_kernel", str(record.device)]
    process = subprocess.Popen(command)

    def ended(seconds: float) -> bool:
        try:
            status = process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        record.promise("every kernel can be compiled and launched", status == 0, status=status)
        return True

    try:
        yield ended
    finally:
        process.kill()
        process.wait()


def _jobs(record: Record) -> Iterator[tuple[str, Callable[[], object]]]:
    for name in ("Wisconsin", GERMAN, "adult-like"):
        source = table(name, record.size(None, 40))
        problem = batch(source, "linear", 2, n_C=record.size(11, 2))
        models: list[FittedBatch] = []

        def train(problem: Problem = problem, models: list[FittedBatch] = models) -> None:
            models.append(_train(record, problem))

        yield f"{source.title}, linear", train
        for dtype in (torch.float32, torch.float64) if name == GERMAN else ():

            def vote(source=source, models=models, dtype=dtype) -> None:
                votes(replace(models[0], dtype=dtype), torch.from_numpy(source.X[:64]))

            yield f"{source.title}, votes, {str(dtype)[6:]}", vote
    for name in ("Wisconsin", GERMAN):
        source = table(name, record.size(None, 40))
        problem = batch(source, "rbf", 2, n_C=2, n_gamma=2)
        for dtype in (torch.float64, torch.float32):
            title = f"{source.title}, RBF, {str(dtype)[6:]}"
            yield title, partial(_train, record, problem, dtype)
    if numba_loads():
        source = table("Wisconsin", 60)
        for kernel in ("linear", "rbf"):
            problem = batch(source, kernel, 2, n_C=2, n_gamma=2)
            yield f"{kernel}, CPU", partial(_on_cpu, problem)


def _on_cpu(problem: Problem) -> None:
    votes(fit(problem), torch.from_numpy(problem.X))


def _train(record: Record, problem: Problem, dtype: torch.dtype = torch.float64) -> FittedBatch:
    return fit(problem, device=record.device, dtype=dtype, max_iter=_FEW)


def _timed(record: Record, name: str, work: Callable[[], object]) -> None:
    began = time.monotonic()
    work()
    if record.device.type == "cuda":
        torch.cuda.synchronize(record.device)
    record.measured(name, {"seconds": round(time.monotonic() - began, 2)})


def _files() -> int | None:
    """Compiled kernels in Triton's cache: files of machine code."""
    folder = os.environ.get("TRITON_CACHE_DIR")
    return None if folder is None else sum(1 for _ in Path(folder).rglob("*.cubin"))
