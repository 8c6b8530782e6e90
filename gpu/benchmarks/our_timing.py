"""Seconds, peak memory and certificates of our own training; one job in a process of its own.

    python -m gpu.benchmarks.our_timing JOB --into FOLDER [--quick]

Writes FOLDER/JOB.json, and the lower bounds of all optima, shape (B, R), to FOLDER/JOB.npy. The
clock runs from the standardised rows and the drawn samples to the trained models: scales inside
the samples, checks, Gram matrices and training.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from bootprob import BootstrapSVC
from bootprob_gpu import FittedBatch, Status, choose_solver, fit
from gpu.benchmarks.workloads import BOOTSTRAPS, Workload, make

__all__ = ["compile_seconds", "measure", "time_best"]

_SHORT = 3.0  # seconds below which a job is repeated and the best time taken
_REPEATS = 3
_TINY = """
import numpy as np, time
from bootprob_gpu import Problem, fit
X = np.random.default_rng(0).normal(size=(20, 30))
y = np.where(np.arange(20) % 2, 1, -1)
started = time.perf_counter()
for columns, kernel, gamma in ((2, "linear", None), (30, "linear", None), (2, "rbf", 1.0)):
    fit(Problem(X[:, :columns], y, np.ones((1, 20), int), [1.0], kernel=kernel, gamma=gamma))
print(time.perf_counter() - started)
"""


class PeakMemory:
    """Bytes that this process took on at its peak, inside a ``with`` block.

    On Linux the kernel's high-water mark is set back at the start; elsewhere `ru_maxrss` stands in,
    which sees only what goes beyond all that was before.
    """

    def __enter__(self) -> PeakMemory:
        _give_back_what_is_free()
        reset = Path("/proc/self/clear_refs")
        self._resettable = os.access(reset, os.W_OK)
        if self._resettable:
            reset.write_text("5")
        self._before = psutil.Process().memory_info().rss if self._resettable else _peak_of_life()
        return self

    def __exit__(self, *error: object) -> None:
        if self._resettable:
            status = Path("/proc/self/status").read_text()
            peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]
        else:
            peak = _peak_of_life()
        self.bytes = max(0, peak - self._before)


def _give_back_what_is_free() -> None:
    """Have the C library return freed memory, which else would count as held before."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # glibc has it, others do not
        ctypes.CDLL(None).malloc_trim(0)


def _peak_of_life() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def time_best(work: Callable[[], Any], repeats: int = _REPEATS) -> tuple[list[float], Any]:
    """Seconds of each run of `work`, once or, where it is short, several times; and its result."""
    seconds: list[float] = []
    result = None
    while not seconds or (sum(seconds) < _SHORT and len(seconds) < repeats):
        result = None  # the last run's memory is free again before the next
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return seconds, result


def train(workload: Workload, **options: float) -> dict[str, Any]:
    """Measure `bootprob_gpu.fit` on a job; ``"dual"`` holds the lower bounds, shape (B, R)."""
    B = len(workload.counts)
    size = workload.chunk or B
    seconds: list[float] = []
    parts: list[FittedBatch] = []
    runs = 0
    with PeakMemory() as memory:
        for start in range(0, B, size):
            chunk = slice(start, min(start + size, B))
            tried, batch = time_best(
                lambda chunk=chunk: fit(workload.problem(chunk), **options),  # type: ignore[misc]
                repeats=_REPEATS if size == B else 1,
            )
            seconds.append(min(tried))
            runs = len(tried)
            parts.append(batch)
    gap = torch.cat([part.gap for part in parts]).numpy()
    status = torch.cat([part.status for part in parts]).numpy()
    chunks = np.array(seconds)
    error = float(chunks.std(ddof=1) / np.sqrt(len(chunks))) if len(chunks) > 1 else None
    return {
        "seconds": float(chunks.sum()) * BOOTSTRAPS / B,
        "standard error": None if error is None else error * BOOTSTRAPS / size,
        "seconds measured": float(chunks.sum()),
        "models measured": gap.size,
        "models in a call": size * len(workload.C_per_model),
        "runs, best taken": runs,
        "largest gap": float(gap.max()),
        "median gap": float(np.median(gap)),
        "models unconverged": int((status != Status.CONVERGED).sum()),
        "median iterations": float(torch.cat([part.n_iter for part in parts]).double().median()),
        "peak memory, MiB": round(memory.bytes / 2**20, 1),
        "dual": torch.cat([part.dual for part in parts]).numpy(),
    }


def fit_estimator(workload: Workload) -> dict[str, Any]:
    """Measure the whole of `BootstrapSVC.fit`."""
    bootstraps = len(workload.counts)
    with PeakMemory() as memory:
        (seconds,), _ = time_best(
            lambda: BootstrapSVC(
                kernel=workload.kernel,
                gamma=workload.gamma,
                n_bootstraps=bootstraps,
                class_weight=None,
                device="cpu",
                random_state=0,
            ).fit(workload.X, workload.positive),
            repeats=1,
        )
    return {
        "seconds": seconds * BOOTSTRAPS / bootstraps,
        "peak memory, MiB": round(memory.bytes / 2**20, 1),
    }


def measure(workload: Workload) -> tuple[dict[str, Any], np.ndarray]:
    """All of ours on one job, and lower bounds of its optima, shape (B, R)."""
    first = workload.problem(slice(0, 1))
    fit(first)  # compiles, or loads what was compiled before
    default = train(workload)
    dual = default.pop("dual")
    result: dict[str, Any] = {
        "title": workload.title,
        "rows": len(workload.X),
        "columns": workload.X.shape[1],
        "models": workload.models,
        "solver": choose_solver(first, torch.device("cpu")),
        "threads": torch.get_num_threads(),
        "default gap": default,
    }
    if workload.kernel == "rbf":
        result["KKT tolerance 1e-3"] = train(workload, kkt_tol=1e-3)
        del result["KKT tolerance 1e-3"]["dual"]
    if workload.estimator:
        result["BootstrapSVC.fit"] = fit_estimator(workload)
    return result, dual


def compile_seconds() -> float:
    """Seconds of the first calls after an installation, when numba's cache is empty."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-c", _TINY],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    found, bounds = measure(make(arguments.job, quick=arguments.quick))
    np.save(arguments.into / f"{arguments.job}.npy", bounds)
    (arguments.into / f"{arguments.job}.json").write_text(json.dumps(found), encoding="utf-8")
