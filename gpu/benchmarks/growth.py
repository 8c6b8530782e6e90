"""How our training time grows with n, p, B and R, each varied alone.

    python -m gpu.benchmarks.growth --into FOLDER [--quick]

Writes FOLDER/growth.json; `report` draws it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.standardization import bootstrap_scale, center_and_scale
from bootprob_gpu import Problem, fit, scale_gamma
from gpu.benchmarks.our_timing import time_best
from gpu.benchmarks.synthetic import mixed_columns

__all__ = ["BASE", "SIZES", "measure", "slopes"]

Kernel = Literal["linear", "rbf"]
Sizes = dict[str, int]

BASE: dict[Kernel, Sizes] = {
    "linear": {"n": 500, "p": 20, "B": 40, "R": 11},
    "rbf": {"n": 300, "p": 20, "B": 40, "R": 11},
}
SIZES: dict[Kernel, dict[str, list[int]]] = {
    "linear": {
        "n": [125 * 2**k for k in range(6)],
        "p": [4 * 2**k for k in range(6)],
        "B": [10 * 2**k for k in range(6)],
        "R": [2 * 2**k for k in range(6)],
    },
    "rbf": {
        "n": [40 * 2**k for k in range(6)],
        "p": [4 * 2**k for k in range(6)],
        "B": [10 * 2**k for k in range(6)],
        "R": [2 * 2**k for k in range(6)],
    },
}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Seconds of `bootprob_gpu.fit` for every size.

    Returns
    -------
    dict
        For each kernel the ``"base"`` sizes and, for each of n, p, B and R, ``"sizes"`` and
        ``"seconds"``.
    """
    result: dict[str, Any] = {}
    for kernel, base in BASE.items():
        result[kernel] = {"base": base}
        for letter, sizes in SIZES[kernel].items():
            sizes = sizes[:3] if quick else sizes
            seconds = [_seconds(kernel, {**base, letter: size}) for size in sizes]
            result[kernel][letter] = {"sizes": sizes, "seconds": seconds}
    return result


def slopes(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Least-squares slope of log seconds on log size, over all sizes and over the largest three."""
    x, y = np.log(sizes), np.log(seconds)
    return float(np.polyfit(x, y, 1)[0]), float(np.polyfit(x[-3:], y[-3:], 1)[0])


def _seconds(kernel: Kernel, size: Sizes) -> float:
    X, positive = mixed_columns(size["n"], size["p"])
    weight = np.ones(len(X))
    center, scale = center_and_scale(X, weight)
    rows = (X - center) / scale
    counts, _ = bootstrap_counts(positive, weight, range(size["B"]), [0])
    problem = Problem(
        rows,
        np.where(positive, 1.0, -1.0),
        counts,
        np.logspace(-5, 5, size["R"], base=2),
        kernel=kernel,
        gamma=scale_gamma(rows) if kernel == "rbf" else None,
        scale=bootstrap_scale(rows, counts, weight),
    )
    fit(problem_of_one(problem))  # loads what numba has compiled
    return min(time_best(lambda: fit(problem), repeats=3)[0])


def problem_of_one(problem: Problem) -> Problem:
    """The same problem with its first replicate only."""
    return Problem(
        problem.X,
        problem.y,
        problem.counts[:1],
        problem.C,
        kernel=problem.kernel,
        gamma=problem.gamma,
        scale=problem.scale[:1],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    found = measure(quick=arguments.quick)
    (arguments.into / "growth.json").write_text(json.dumps(found), encoding="utf-8")
