"""What a user waits for: `BootstrapSVC`, and where the host's time goes."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from typing import Any

import torch

from bootprob import BootstrapSVC
from gpu.check.jobs import GERMAN, Table, table
from gpu.check.plan import shown_path
from gpu.check.record import Record

__all__ = ["run"]

_SHOWN = 12  # functions
_MOST_RUNS = 3
_PREDICTED = 1000  # rows
_SECONDS = 4.0  # for the runs of one job


def run(record: Record) -> None:
    """Fits and predictions of the jobs that the engine is timed with; the host's clock."""
    for name, kernel in (
        ("Wisconsin", "auto"),
        ("Wisconsin", "linear"),
        (GERMAN, "linear"),
        ("Wisconsin", "rbf"),
        ("adult-like", "linear"),
        (GERMAN, "rbf"),
    ):
        source = table(name, record.size(None, 60))
        job = f"{source.title}, {kernel}"
        if record.seconds_left() < 3:
            record.measured(job, "not run: no time left")
            continue
        _measure(record, job, source, kernel)


def _measure(record: Record, job: str, source: Table, kernel: str) -> None:
    options: dict[str, Any] = {"kernel": kernel, "device": str(record.device), "random_state": 0}
    if kernel == "rbf":
        options["gamma"] = "grid"
    if record.tiny:
        options |= {"n_bootstraps": 4, "C": [0.1, 1.0]} | (
            {"gamma": 0.5} if kernel == "rbf" else {}
        )

    def train() -> BootstrapSVC:
        return BootstrapSVC(**options).fit(source.X, source.positive)

    first, model = _timed(record, train)
    found: dict[str, Any] = {
        "n_bootstraps": model.n_bootstraps,
        "rows predicted": min(_PREDICTED, len(source.X)),
        "first fit, s": first,
        "options": {key: value for key, value in options.items() if key != "device"},
    }
    record.measured(job, found)
    runs: list[float] = []
    while not runs or (
        len(runs) < record.size(_MOST_RUNS, 1)
        and sum(runs) + runs[-1] < min(_SECONDS, record.seconds_left() - 2)
    ):
        seconds, model = _timed(record, train)
        runs.append(seconds)
    found |= {"least, s": min(runs), "runs": len(runs)}
    some = source.X[:_PREDICTED]
    for name, work in (
        ("predict_proba", lambda: model.predict_proba(some)),
        ("proba_interval (normal)", lambda: model.proba_interval(some, method="normal")),
    ):
        _timed(record, work)
        found[f"{name}, s"] = _timed(record, work)[0]
    record.measured(job, found)
    if record.seconds_left() > 2 * min(runs) + 1:
        record.measured(job, {**found, "host": _profiled(record, train)})


def _timed(record: Record, work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    done = work()
    if record.device.type == "cuda":
        torch.cuda.synchronize(record.device)
    return time.perf_counter() - began, done


def _profiled(record: Record, work: Callable[[], Any]) -> dict[str, Any]:
    """The functions in which the main thread spends its time, without those that they call.

    Waiting for the device counts where the host waits; the profiler itself takes its share.
    """
    with cProfile.Profile() as profiler:
        _timed(record, work)
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    order = sorted(stats, key=lambda function: -stats[function][2])[:_SHOWN]
    return {
        "seconds under the profiler": round(total, 4),
        "functions": [
            {
                "name": f"{shown_path(file, 2)}:{line} {name}",
                "seconds": round(stats[file, line, name][2], 5),
                "calls": stats[file, line, name][1],
            }
            for file, line, name in order
        ],
    }
