"""Seconds for the 5,500 models of an ensemble, beside scikit-learn's SVC in the same run.

    python gpu/benchmarks/training_time.py

Ours: the whole of `BootstrapSVC.fit`, B = 500, 11 values of C, certified at the default gap, then
out-of-bag statistics and calibration. scikit-learn: `SVC` at its default tolerance on the literally
resampled and re-standardised rows, for a few bootstrap samples and all C, times 500 / samples; it
uses one core, so its seconds are halved on two cores (a peer that parallelises perfectly).
Writes docs/results/training_time.json.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from datasets import FOLDER, LOADERS, Data
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import DEFAULT_C, BootstrapSVC

OUT = Path(__file__).parents[2] / "docs" / "results" / "training_time.json"
BOOTSTRAPS = 500
#         data set, kernel, rows or None for all, bootstrap samples given to the peer
JOBS = (
    ("wisconsin", "linear", None, 10),
    ("wisconsin", "rbf", None, 10),
    ("german", "linear", 900, 1),
    ("german", "rbf", 900, 2),
)


def ours(data: Data, kernel: str) -> tuple[float, BootstrapSVC]:
    started = time.perf_counter()
    model = BootstrapSVC(kernel=kernel, class_weight=None, random_state=0).fit(*data)
    return time.perf_counter() - started, model


def peer(data: Data, kernel: str, model: BootstrapSVC, samples: int) -> float:
    """Seconds that SVC would take for all samples, one after another."""
    X, y = data
    spent = 0.0
    for counts in model.bootstrap_counts()[:samples]:
        rows, labels = np.repeat(X, counts, axis=0), np.repeat(y, counts)
        rows = StandardScaler().fit_transform(rows)
        started = time.perf_counter()
        for C in DEFAULT_C:
            SVC(kernel=kernel, C=C, gamma=1 / X.shape[1]).fit(rows, labels)
        spent += time.perf_counter() - started
    return spent * BOOTSTRAPS / samples


def main() -> None:
    cores = os.cpu_count() or 1
    BootstrapSVC(kernel="rbf", n_bootstraps=2).fit(*LOADERS["wisconsin"]())  # compiles
    rows = []
    for name, kernel, limit, samples in JOBS:
        if name != "wisconsin" and not FOLDER.exists():
            print(f"{name}: no such data here (set BOOTPROB_DATASETS), left out")
            continue
        X, y = LOADERS[name]()
        data = X[:limit], y[:limit]
        seconds, model = ours(data, kernel)
        reference = peer(data, kernel, model, samples)
        rows.append(
            {
                "data": f"{name} {data[0].shape[0]} × {data[0].shape[1]}",
                "kernel": kernel,
                "models": model.accuracy_.size,
                "bootprob, seconds": round(seconds, 2),
                "SVC, one core, seconds": round(reference, 1),
                f"SVC on {cores} cores / bootprob": round(reference / cores / seconds, 1),
                "SVC bootstrap samples measured": samples,
                "largest relative gap": float(model.certificates_["gap"].max()),
                "not converged": int((model.certificates_["status"] != 0).sum()),
            }
        )
        print(rows[-1], flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {
        "command": "make bench",
        "cores": cores,
        "python": platform.python_version(),
        "versions": {n: version(n) for n in ("bootprob", "torch", "scikit-learn", "numba")},
        "peak memory, MiB": round(peak / 2**20),
        "measured": rows,
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
