"""Seconds of training: all models of a job, with Triton's kernels and without."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from bootprob_gpu import Certificate, FittedBatch, Problem, Status, iter_fit
from bootprob_gpu.hardware.triton_choice import triton_kernels
from gpu.check import scoring_times
from gpu.check.floors import Work, beside_its_floor, linear_training, rbf_training
from gpu.check.jobs import GERMAN, Table, batch, table
from gpu.check.record import Record
from gpu.check.timing import Stopwatch, peak_bytes, summary

__all__ = ["linear", "rbf", "without_triton"]

_MOST_RUNS = 7
_KERNELS = {"auto": "Triton where it can", "never": "plain torch"}


@dataclass
class _Run:
    """One training, perhaps cut off between two blocks of replicates."""

    milliseconds: float
    replicates: int
    certificate: Certificate


def linear(record: Record) -> None:
    """Wisconsin, German, adult-like; float64."""
    for name, seconds in (("Wisconsin", 4.0), (GERMAN, 4.0), ("adult-like", 10.0)):
        source, problem = _linear_problem(record, name)
        _measure(record, source, problem, "auto", torch.float64, seconds)


def rbf(record: Record) -> None:
    """Wisconsin and German with the grid of γ, in both precisions."""
    for name in ("Wisconsin", GERMAN):
        source = table(name, record.size(None, 60))
        problem = _rbf_problem(record, source)
        for dtype in (torch.float64, torch.float32):
            _measure(record, source, problem, "auto", dtype, 7.0)


def without_triton(record: Record) -> None:
    """The linear jobs by plain torch; Wisconsin with an RBF kernel, launch by launch; scoring."""
    for name, seconds in (("Wisconsin", 3.0), (GERMAN, 3.0), ("adult-like", 8.0)):
        source, problem = _linear_problem(record, name)
        _measure(record, source, problem, "never", torch.float64, seconds)
    source = table("Wisconsin", record.size(None, 60))
    _measure(record, source, _rbf_problem(record, source), "never", torch.float64, 12.0)
    scoring_times.by_twins(record)


def _linear_problem(record: Record, name: str) -> tuple[Table, Problem]:
    source = table(name, record.size(None, 120))
    return source, batch(source, "linear", record.size(500, 6), n_C=record.size(11, 3))


def _rbf_problem(record: Record, source: Table) -> Problem:
    grid = record.size(11, 2)
    return batch(source, "rbf", record.size(500, 3), n_C=grid, n_gamma=grid)


def _measure(
    record: Record,
    source: Table,
    problem: Problem,
    kernels: Literal["auto", "never"],
    dtype: torch.dtype,
    seconds: float,
) -> None:
    """Train again and again for so many seconds, and report the job beside its floor."""
    B, R = problem.n_replicates, problem.n_models
    name = f"{source.title}, {problem.kernel}, {str(dtype)[6:]}, {_KERNELS[kernels]}"
    if record.seconds_left() < 2:
        record.measured(name, "not run: no time left")
        return
    seconds = min(seconds, record.seconds_left() - 1)
    with triton_kernels(kernels):
        # Compiles the kernels, and makes the workspaces of the libraries.
        began, few = time.monotonic(), problem.take(slice(0, min(B, 2)))
        _train(record, few, dtype, seconds, max_iter=64 if kernels == "never" else None)
        peak_bytes(record.device)
        first = time.monotonic() - began
        runs: list[_Run] = []
        began = time.monotonic()
        while not runs or (
            len(runs) < record.size(_MOST_RUNS, 2)
            and runs[-1].replicates == B
            and time.monotonic() - began + 1e-3 * runs[-1].milliseconds < seconds
        ):
            runs.append(_train(record, problem, dtype, seconds - (time.monotonic() - began)))
    if len(runs) > 1 and runs[-1].replicates < B:
        runs.pop()
    times = summary(record.device, [run.milliseconds for run in runs])
    record.measured(
        name,
        {
            **times,
            **_job(record, problem, runs[0], times["median, ms"], dtype),
            "models": R * runs[0].replicates,
            "replicates": f"{runs[0].replicates} of {B}",
            "peak memory, bytes": peak_bytes(record.device),
            "first run of two replicates, s": round(first, 3),
        },
    )


def _train(
    record: Record,
    problem: Problem,
    dtype: torch.dtype,
    seconds: float,
    max_iter: int | None = None,
) -> _Run:
    """Train block by block, as `fit` does, until the time is over."""
    watch, blocks, began = Stopwatch(record.device), [], time.monotonic()
    watch.start()
    for block in iter_fit(problem, device=record.device, dtype=dtype, max_iter=max_iter):
        block.train_scores = None
        blocks.append(block)
        if time.monotonic() - began > seconds:
            break
    else:
        FittedBatch.concatenate(blocks)
    milliseconds = watch.stop()
    certificate = Certificate.concatenate([block.certificate for block in blocks])
    return _Run(milliseconds, blocks[-1].replicates.stop, certificate)


def _job(
    record: Record, problem: Problem, run: _Run, milliseconds: float, dtype: torch.dtype
) -> dict[str, Any]:
    """What was computed in a run: iterations, certificates, and the least it could take."""
    n_iter, (n, p) = run.certificate.n_iter, problem.X.shape
    models, iterations = n_iter.numel(), int(n_iter.sum())
    if problem.kernel == "linear":
        work: Work = linear_training(n, p, models, iterations)
    else:
        assert problem.gamma is not None
        replicates = run.replicates
        grams = len(problem.gamma) * (1 if problem.shares_scale else replicates)
        rows = float(np.mean(np.count_nonzero(problem.counts[:replicates], axis=1)))
        work = rbf_training(rows, p, grams, models, iterations, dtype)
    job: dict[str, Any] = {
        "mean iterations": iterations / models,
        "most iterations": int(n_iter.max()),
        "not converged": int((run.certificate.status != Status.CONVERGED).sum()),
        "largest relative gap": float(run.certificate.gap.max()),
        **beside_its_floor(work, record.ceilings, milliseconds),
    }
    if run.replicates < problem.n_replicates:
        share = run.replicates / problem.n_replicates
        job["all replicates in proportion, ms"] = milliseconds / share
    return job
