"""Tables 3.4 to 3.7 of the thesis on data sets at hand: Ctrl1 and Ctrl2, imposed TPR 0.5 to 1.

    python -m docs.studies.thesis.tables_3_4_to_3_7 [NAME ...] [--bootstraps 500] [--folds 10]
        [--constrained-bootstraps B] [--constrained-folds F] [--minutes M] [--ctrl2-times]

Writes docs/results/tables_3_4_to_3_7.json, cell after cell, and docs/studies.md. What the file
has with the same settings is not measured again: a run that was interrupted, or that `--minutes`
ended, is taken up where it stopped. `--ctrl2-times` measures instead how long an ensemble of
constrained machines takes to train on all rows of three data sets.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bootprob import BootstrapSVC
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.runtime.arrays import Bools, Floats
from docs.studies.thesis.numbers import TPR_IMPOSED
from docs.studies.thesis.studies_document import main as write_document
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, rates, save

__all__ = ["NAMES", "evaluate", "main", "measure", "training_time"]

FILE = "tables_3_4_to_3_7.json"
COMMAND = "make tables-3"
NAMES = ("wisconsin", "housing", "heart", "australian", "leukemia", "banknote", "german", "careval")
TIMED = {"wisconsin": 0.975, "australian": 0.96, "german": 0.65}


def main(
    names: list[str],
    settings: dict[str, dict[str, int]],
    docs: Path = DOCS,
    *,
    seconds: float = np.inf,
) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Settings are, for "none", "threshold" and "constrained", what a cell is measured with:
    "bootstraps", "folds" (how many of the ten) and "seed".
    """
    started = time.perf_counter()
    path = docs / "results" / FILE
    results = load(path)
    results["imposed"] = list(TPR_IMPOSED)
    for name in those_at_hand(names):
        X, positive = LOADERS[name]()
        found = results.setdefault("data sets", {}).setdefault(name, {"cells": {}})
        found |= {"rows": len(X), "columns": X.shape[1], "positives": int(positive.sum())}
        for control, least in _cells():
            key = control if least is None else f"{control} {least:g}"
            if least is not None and found["cells"]["none"]["tpr"] >= least:
                continue  # the thesis prints "−"
            if found["cells"].get(key, {}).get("settings") == settings[control]:
                continue
            if time.perf_counter() - started > seconds:
                break
            found["cells"][key] = measure(X, positive, control, least, settings[control])
            _say(name, key, found["cells"][key])
            save(path, COMMAND, results)
    print(f"wrote {path} and {write_document(docs)}")


def _cells() -> list[tuple[str, float | None]]:
    """What is measured, in this order."""
    controls = ("threshold", "constrained")
    return [("none", None), *((control, least) for control in controls for least in TPR_IMPOSED)]


def measure(
    X: Floats, positive: Bools, control: str, least: float | None, settings: dict[str, int]
) -> dict[str, Any]:
    """Squared errors and rates in held-out folds: means over folds, and fold by fold."""
    started = time.perf_counter()
    splitter = StratifiedKFold(10, shuffle=True, random_state=settings["seed"])
    splits = list(splitter.split(X, positive))[: settings["folds"]]
    asked = {} if least is None else {"control": control, "rates": {"tpr": least}}
    folds = []
    for training, held_out in splits:
        model = BootstrapSVC.paper(
            n_bootstraps=settings["bootstraps"], random_state=settings["seed"], **asked
        ).fit(X[training], positive[training])
        folds.append(evaluate(model.predict_proba(X[held_out])[:, 1], positive[held_out]))
    return {
        "settings": settings,
        **{key: float(np.mean([fold[key] for fold in folds])) for key in folds[0]},
        "folds": folds,
        "seconds": round(time.perf_counter() - started, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def evaluate(probability: Floats, positive: Bools) -> dict[str, float]:
    """Squared error of P(+ | x) for positives and for negatives, and the rates at one half."""
    return {
        "positives": float(np.square(1 - probability[positive]).mean()),
        "negatives": float(np.square(probability[~positive]).mean()),
        **rates(probability > 0.5, positive),
    }


def training_times(names: list[str], bootstraps: int, docs: Path = DOCS) -> None:
    """Time the training of constrained ensembles on all rows, and write the document."""
    path = docs / "results" / FILE
    results = load(path)
    for name in names:
        X, positive = LOADERS[name]()
        found = training_time(X, positive, TIMED[name], bootstraps)
        results.setdefault("training times", {})[name] = found
        print(f"{name}: {found}", flush=True)
        save(path, COMMAND, results)
    print(f"wrote {path} and {write_document(docs)}")


def training_time(X: Floats, positive: Bools, least: float, bootstraps: int) -> dict[str, Any]:
    """Train a constrained ensemble; see that each machine keeps the rate in its own sample.

    Shortfalls are counted from the coefficients, in rows of the sample with multiplicity.
    """
    load_before = round(os.getloadavg()[0], 1)
    model = BootstrapSVC.paper(
        control="constrained", rates={"tpr": least}, n_bootstraps=bootstraps, random_state=0
    ).fit(X, positive)
    counts, _ = bootstrap_counts(positive, np.ones(len(X)), range(bootstraps), model.entropy_)
    rows = ((X - model.center_) / model.scale_)[positive]
    shortfall = 0.0
    for b, times in enumerate(counts[:, positive].astype(np.int64)):
        scores = rows @ model.bootstrap_coef_[b].T + model.bootstrap_intercept_[b]  # (n₊, R)
        kept = times @ (scores >= 1 - 1e-6)
        shortfall = max(shortfall, float((np.ceil(least * times.sum() - 1e-9) - kept).max()))
    gap = model.control_gap_
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "imposed TPR": least,
        "bootstraps": bootstraps,
        "machines": int(gap.size),
        "seconds": round(model.fit_seconds_, 1),
        "largest shortfall, rows": shortfall,
        "gap": {
            "median": float(np.median(gap)),
            "mean": float(gap.mean()),
            "largest": float(gap.max()),
        },
        "out-of-bag TPR": model.controlled_rates_[0]["out_of_bag"],
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": load_before,
    }


def _say(name: str, key: str, cell: dict[str, Any]) -> None:
    numbers = ", ".join(f"{k} {cell[k]:.3f}" for k in ("positives", "negatives", "tpr", "tnr"))
    print(f"{name:12s} {key:18s} {numbers}  {cell['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    parser = docs_options(__doc__, NAMES)
    parser.add_argument("--bootstraps", type=int, default=500)
    parser.add_argument("--constrained-bootstraps", type=int, metavar="B", help="default: the same")
    parser.add_argument("--folds", type=int, default=10, choices=range(1, 11), metavar="F")
    parser.add_argument("--constrained-folds", type=int, choices=range(1, 11), metavar="F")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no cell after these")
    parser.add_argument("--ctrl2-times", action="store_true", help="only the time of training")
    given = parser.parse_args()
    if given.ctrl2_times:
        chosen = [name for name in TIMED if name in given.names]
        training_times(chosen, given.bootstraps, given.docs)
    else:
        plain = {"bootstraps": given.bootstraps, "folds": given.folds, "seed": given.seed}
        constrained = plain | {
            "bootstraps": given.constrained_bootstraps or given.bootstraps,
            "folds": given.constrained_folds or given.folds,
        }
        main(
            given.names,
            {"none": plain, "threshold": plain, "constrained": constrained},
            given.docs,
            seconds=60 * given.minutes,
        )
