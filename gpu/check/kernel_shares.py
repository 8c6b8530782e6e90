"""Which kernels the device's time goes into, by torch's profiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from bootprob_gpu import choose_solver, fit, vote_shares
from gpu.check.jobs import GERMAN, batch, table
from gpu.check.record import Record

__all__ = ["jobs", "run"]

_SHOWN = 12  # kernels


def run(record: Record) -> None:
    """One linear fit, one scoring, one RBF fit; the last of few replicates."""
    for name, work in jobs(record.device, record.tiny):
        _profile(record, name, work)


def jobs(device: torch.device, tiny: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is profiled, with its name.

    Parameters
    ----------
    device : torch.device
    tiny : bool
        Whether to rehearse with tiny sizes.
    """
    wisconsin, german = (table(name, 80 if tiny else None) for name in ("Wisconsin", GERMAN))
    replicates = 4 if tiny else 500
    linear = batch(wisconsin, "linear", replicates)
    yield f"training, {wisconsin.title}, linear", lambda: fit(linear, device=device)
    larger = batch(german, "linear", replicates)
    yield f"training, {german.title}, linear", lambda: fit(larger, device=device)
    models = replace(fit(larger, device=device), dtype=torch.float32)
    weights = torch.full_like(models.intercept[0], 1 / models.intercept.shape[1])
    rows = torch.randn(1_000 if tiny else 1_000_000, german.X.shape[1], device=device)
    yield (
        f"votes, {len(rows):,} rows, linear, float32",
        lambda: vote_shares(models, rows, weights),
    )
    grid = 2 if tiny else 11
    rbf = batch(german, "rbf", 2 if tiny else 25, n_C=grid, n_gamma=grid)
    name, most = f"training, {german.title}, RBF", None
    if choose_solver(rbf, device) == "smo-batched":  # a launch for every step of it
        most = 200
        name += f", at most {most} iterations a model"
    yield name, lambda: fit(rbf, device=device, max_iter=most)


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
