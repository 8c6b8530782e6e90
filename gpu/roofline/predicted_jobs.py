"""The jobs that goals were set for: what they execute, counted on this machine, and predictions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.standardization import bootstrap_scale
from bootprob_gpu import Problem, fit
from gpu.check.floors import Work, beside_its_floor, linear_training, rbf_training, vote_shares
from gpu.check.jobs import GERMAN, Table, batch, table
from gpu.check.plan import ROOT
from gpu.roofline import (
    interior_point_counts,
    linear_prediction,
    path_prediction,
    scoring_prediction,
)
from gpu.roofline.hardware import H100, UNCERTAINTY, ceilings

__all__ = ["predictions"]

REPLICATES = 500
RBF_COUNTS = ROOT / "docs" / "results" / "smo_counts.json"
# Bootstrap samples trained on this machine, repeated up to `REPLICATES`, and the goal in seconds.
_LINEAR = (("Wisconsin", 500, 0.010), (GERMAN, 200, 0.020), ("adult-like", 4, 1.1))
_RBF = (("Wisconsin", 0.1), (GERMAN, 0.2))
_SCORED, _SCORING_GOAL = 10_000_000, 0.2
_TRITON = "Triton where it can"  # as `gpu/check` names what it times


def predictions(tiny: bool = False, rbf_counts: Path = RBF_COUNTS) -> Iterator[dict[str, Any]]:
    """Predictions of one job after the other.

    Parameters
    ----------
    tiny : bool, default False
        Of a few rows and samples: to see that all works.
    rbf_counts : Path
        What `gpu/roofline/smo_counts.py` wrote; where there is none, it counts here.
    """
    for name, trained, goal in _LINEAR:
        source = table(name, 80 if tiny else None)
        yield _linear_job(source, 4 if tiny else trained, goal)
    counted = _rbf_counts(rbf_counts, tiny)
    for (name, goal), found in zip(_RBF, counted, strict=True):
        yield _rbf_job(table(name, 60 if tiny else None), found, goal)
    columns = table(GERMAN).X.shape[1]
    for dtype in (torch.float32, torch.float64):
        yield _scoring_job(columns, dtype)


def _linear_job(source: Table, trained: int, goal: float) -> dict[str, Any]:
    problem = batch(source, "linear", trained)
    n, p = problem.X.shape
    n_iter = fit(problem, solver="interior-point", device="cpu").n_iter.numpy()
    every = np.resize(n_iter, (REPLICATES, n_iter.shape[1]))
    counts = {
        when: interior_point_counts.job(every, n, before=when == "before")
        for when in ("before", "after")
    }
    work = linear_training(n, p, every.size, int(every.sum()))
    return {
        "job": f"{source.title}, linear, float64, {_TRITON}",
        "models": every.size,
        "goal, s": goal,
        "counts": {
            "bootstrap samples trained": trained,
            "mean iterations": float(n_iter.mean()),
            "most iterations": int(n_iter.max()),
            **{when: asdict(found) for when, found in counts.items()},
        },
        "on the host before, ms": _host_work(source, problem),
        **_beside(work, *(linear_prediction.predicted(counts[when], n, p + 1) for when in counts)),
    }


def _rbf_counts(path: Path, tiny: bool) -> list[dict[str, Any]]:
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    from gpu.roofline.smo_counts import counted  # numba

    return [counted(name, 2 if tiny else REPLICATES) for name, _ in _RBF]


def _rbf_job(source: Table, found: dict[str, Any], goal: float) -> dict[str, Any]:
    before, after = found["before"], found["after"]
    n, p = source.X.shape
    models = REPLICATES * 121
    iterations = round(models * after["iterations of a model"])
    work = rbf_training(
        after["rows of weight"], p, REPLICATES * 11, models, iterations, torch.float32
    )
    return {
        "job": f"{source.title}, rbf, float64, {_TRITON}",
        "models": models,
        "goal, s": goal,
        "counts": {"bootstrap samples walked": found["replicates"], **found},
        **_beside(
            work,
            path_prediction.predicted(before, n, p, path_prediction.BEFORE, REPLICATES),
            path_prediction.predicted(
                after, after["largest rows of weight"], p, path_prediction.AFTER, REPLICATES
            ),
        ),
    }


def _scoring_job(columns: int, dtype: torch.dtype) -> dict[str, Any]:
    models, name = REPLICATES * 11, str(dtype).removeprefix("torch.")
    work = vote_shares(_SCORED, columns, models, dtype)
    found = scoring_prediction.predicted(work)
    return {
        "job": f"votes, {_SCORED:,} rows × {columns}, {models:,} models, {name}, rows on the "
        f"device, {_TRITON}",
        "models": models,
        "goal, s": _SCORING_GOAL if dtype == torch.float32 else None,
        "counts": {"FLOPs": work.flops, "bytes": work.moved},
        **_beside(work, found, found),
    }


def _beside(work: Work, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Predictions and the floor that arithmetic and memory set, as `gpu/check` computes it."""
    floor = beside_its_floor(work, ceilings(H100), 1e3 * after["seconds"])
    return {
        "floor, s": 1e-3 * floor["floor, ms"],
        "before": before,
        "after": after,
        "between, s": [after["seconds"] * (1 + sign * UNCERTAINTY) for sign in (-1, 1)],
        "limited by": max(after["causes"], key=after["causes"].__getitem__),
    }


def _host_work(source: Table, problem: Problem) -> dict[str, float]:
    """Milliseconds of drawing all samples and of their scales, on this machine, the least of 5."""
    one = np.ones(len(problem.X))
    counts, _ = bootstrap_counts(source.positive, one, range(REPLICATES), [0])
    work = {
        "samples": lambda: bootstrap_counts(source.positive, one, range(REPLICATES), [0]),
        "scales": lambda: bootstrap_scale(problem.X, counts, one),
    }
    times = {}
    for name, run in work.items():
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
        times[name] = round(1e3 * min(taken), 2)
    return times
