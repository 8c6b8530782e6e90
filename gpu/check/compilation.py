"""Compiles what the parts after it will launch, so that no limit of theirs pays for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from jobs import GERMAN, batch, table
from record import Record

from bootprob_gpu import FittedBatch, Problem, fit
from bootprob_gpu.numba_choice import numba_loads

__all__ = ["run"]

T = TypeVar("T")

_FEW = 3  # iterations: enough to launch every kernel


def run(record: Record) -> None:
    """Two replicates of each job for a few iterations, and votes; on the CPU one of each kernel."""
    before = _files()
    for name in ("Wisconsin", GERMAN, "adult-like"):
        source = table(name, record.size(None, 40))
        problem = batch(source, "linear", 2, n_C=record.size(11, 2))
        models = _timed(
            record, f"{source.title}, linear", lambda problem=problem: _train(record, problem)
        )
        if name == GERMAN:
            for dtype in (torch.float32, torch.float64):
                votes = f"{source.title}, votes, {str(dtype)[6:]}"
                rows, typed = torch.from_numpy(source.X[:64]), replace(models, dtype=dtype)
                _timed(record, votes, lambda typed=typed, rows=rows: typed.votes(rows))
    for name in ("Wisconsin", GERMAN):
        source = table(name, record.size(None, 40))
        problem = batch(source, "rbf", 2, n_C=2, n_gamma=2)
        for dtype in (torch.float64, torch.float32):
            job = f"{source.title}, RBF, {str(dtype)[6:]}"
            _timed(record, job, lambda problem=problem, dtype=dtype: _train(record, problem, dtype))
    if numba_loads():
        source = table("Wisconsin", 60)
        for kernel in ("linear", "rbf"):
            problem = batch(source, kernel, 2, n_C=2, n_gamma=2)
            _timed(
                record,
                f"{kernel}, CPU",
                lambda problem=problem: fit(problem).votes(torch.from_numpy(source.X)),
            )
    record.measured(
        "compiled kernels of Triton",
        {"files found": before, "files now": _files(), "kept by": "TRITON_CACHE_DIR"},
    )


def _train(record: Record, problem: Problem, dtype: torch.dtype = torch.float64) -> FittedBatch:
    return fit(problem, device=record.device, dtype=dtype, max_iter=_FEW)


def _timed(record: Record, name: str, work: Callable[[], T]) -> T:
    began = time.monotonic()
    done = work()
    if record.device.type == "cuda":
        torch.cuda.synchronize(record.device)
    record.measured(name, {"seconds": round(time.monotonic() - began, 2)})
    return done


def _files() -> int | None:
    """Compiled kernels in Triton's cache: files of machine code."""
    folder = os.environ.get("TRITON_CACHE_DIR")
    return None if folder is None else sum(1 for _ in Path(folder).rglob("*.cubin"))
