"""Which kernels the device's time goes into, by torch's profiler."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch
from jobs import GERMAN, batch, table
from record import Record
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from bootprob_gpu import choose_solver, fit

__all__ = ["run"]

_SHOWN = 12  # kernels


def run(record: Record) -> None:
    """One linear fit, one scoring, one RBF fit; the last of few replicates."""
    wisconsin, german = (table(name, record.size(None, 80)) for name in ("Wisconsin", GERMAN))
    linear = batch(wisconsin, "linear", record.size(500, 4))
    _profile(
        record, f"training, {wisconsin.title}, linear", lambda: fit(linear, device=record.device)
    )
    larger = fit(batch(german, "linear", record.size(500, 4)), device=record.device)
    models = replace(larger, dtype=torch.float32)
    weights = torch.full_like(models.intercept[0], 1 / models.intercept.shape[1])
    rows = torch.randn(record.size(1_000_000, 1_000), german.X.shape[1], device=record.device)
    _profile(
        record,
        f"votes, {len(rows):,} rows, linear, float32",
        lambda: models.vote_shares(rows, weights),
    )
    rbf = batch(
        german, "rbf", record.size(25, 2), n_C=record.size(11, 2), n_gamma=record.size(11, 2)
    )
    name, most = f"training, {german.title}, RBF", None
    if choose_solver(rbf, record.device) == "smo-batched":  # a launch for every step of it
        most = 200
        name += f", at most {most} iterations a model"
    _profile(record, name, lambda: fit(rbf, device=record.device, max_iter=most))


def _profile(record: Record, name: str, work: Callable[[], object]) -> None:
    """Run once for the compilers, once under the profiler."""
    work()
    on_gpu = record.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    started = time.perf_counter()
    with profile(activities=activities) as profiler:
        work()
        if on_gpu:
            torch.cuda.synchronize(record.device)
    seconds = time.perf_counter() - started
    wanted = DeviceType.CUDA if on_gpu else DeviceType.CPU
    kernels = [each for each in profiler.key_averages() if each.device_type == wanted]
    spent = {
        each.key: (each.self_device_time_total if on_gpu else each.self_cpu_time_total)
        for each in kernels
    }
    calls = {each.key: each.count for each in kernels}
    total = sum(spent.values())
    order = sorted(spent, key=lambda key: -spent[key])
    record.measured(
        name,
        {
            "seconds under the profiler": seconds,
            "device busy, seconds": 1e-6 * total,
            "kernel launches": sum(calls.values()),
            "kernels": [
                {"name": key[:120], "share": spent[key] / max(total, 1e-30), "calls": calls[key]}
                for key in order[:_SHOWN]
            ],
            "others, share": sum(spent[key] for key in order[_SHOWN:]) / max(total, 1e-30),
        },
    )
