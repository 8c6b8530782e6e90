"""Scoring of ten million rows by a linear ensemble."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from bootprob_gpu import FittedBatch, fit
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes
from gpu.check.floors import Work, beside_its_floor, replicate_scores, vote_shares
from gpu.check.jobs import GERMAN, batch, table
from gpu.check.record import Record
from gpu.check.timing import Stopwatch, peak_bytes, summary

__all__ = ["by_twins", "run"]

_MOST_RUNS = 5
_SECONDS = 4.0  # for the runs of one job


def run(record: Record) -> None:
    """Vote shares in both precisions, with rows on the device and from the host; then scores."""
    job = _Job.prepared(record)
    for dtype in (torch.float32, torch.float64):
        rows, vote, name, work = job.of(record, dtype)
        _measure(record, f"{name}, rows on the device", vote, rows, work, "auto")
        pinned = torch.empty(rows.shape, dtype=dtype, pin_memory=record.device.type == "cuda")
        pinned.copy_(rows)
        sent = replace(work, sent=float(pinned.nbytes))
        _measure(record, f"{name}, rows in pinned host memory", vote, pinned, sent, "auto")
        if dtype == torch.float32:
            host = pinned.clone()
            _measure(record, f"{name}, rows in ordinary host memory", vote, host, sent, "auto")
            del host
            some, models = rows[: len(rows) // 10], replace(job.fitted, dtype=dtype)
            B, (m, p) = len(models.intercept), some.shape
            _measure(
                record,
                f"scores of each replicate, {m:,} rows × {p}, {B:,} replicates, float32, "
                "rows on the device",
                lambda rows, models=models: ReplicateScores(models, job.weights)(rows),
                some,
                replicate_scores(m, p, B, dtype),
                "auto",
            )
        del pinned


def by_twins(record: Record) -> None:
    """Vote shares of rows on the device without Triton, in both precisions."""
    job = _Job.prepared(record)
    for dtype in (torch.float32, torch.float64):
        rows, vote, name, work = job.of(record, dtype)
        _measure(record, f"{name}, rows on the device", vote, rows, work, "never")


@dataclass(frozen=True)
class _Job:
    """The ensemble that scores, and the weights of its models in a replicate."""

    fitted: FittedBatch
    weights: torch.Tensor

    @classmethod
    def prepared(cls, record: Record) -> _Job:
        source = table(GERMAN, record.size(None, 80))
        problem = batch(source, "linear", record.size(500, 5), n_C=record.size(11, 2))
        fitted = fit(problem, device=record.device)
        R = fitted.intercept.shape[1]
        weights = torch.full((R,), 1 / R, dtype=torch.float64, device=record.device)
        return cls(fitted, weights)

    def of(
        self, record: Record, dtype: torch.dtype
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor], str, Work]:
        """Rows on the device, what counts their votes, the job's name and its least work."""
        m, p = record.size(10_000_000, 3_000), len(self.fitted.center)
        draws = torch.Generator(record.device).manual_seed(0)
        rows = torch.randn(m, p, dtype=dtype, device=record.device, generator=draws)
        models, count = replace(self.fitted, dtype=dtype), self.fitted.intercept.numel()
        name = f"votes, {m:,} rows × {p}, {count:,} models, {str(dtype).removeprefix('torch.')}"

        def vote(rows: torch.Tensor) -> torch.Tensor:
            return Votes(models, self.weights).shares(rows)

        return rows, vote, name, vote_shares(m, p, count, dtype)


def _measure(
    record: Record,
    name: str,
    score: Callable[[torch.Tensor], torch.Tensor],
    rows: torch.Tensor,
    work: Work,
    kernels: Literal["auto", "never"],
) -> None:
    """Score all rows a few times, and report it beside its floor."""
    name = f"{name}, {'Triton where it can' if kernels == 'auto' else 'plain torch'}"
    if record.seconds_left() < 3:
        record.measured(name, "not run: no time left")
        return
    seconds = min(_SECONDS, record.seconds_left() - 2)
    with triton_kernels(kernels):
        score(rows[: max(1, len(rows) // 100)])  # compiles the kernels
        peak_bytes(record.device)
        watch, began = Stopwatch(record.device), time.monotonic()
        found: list[float] = []
        while not found or (
            len(found) < _MOST_RUNS and time.monotonic() - began + 1e-3 * found[-1] < seconds
        ):
            watch.start()
            scores = score(rows)
            found.append(watch.stop())
    times = summary(record.device, found)
    record.measured(
        name,
        {
            **times,
            "mean of the results": scores.double().mean().item(),
            **beside_its_floor(work, record.ceilings, times["median, ms"]),
            "peak memory, bytes": peak_bytes(record.device),
        },
    )
