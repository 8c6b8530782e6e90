"""Tables 3.2 and 3.3 of the thesis, 3 and 4 of its paper: squared errors of probabilities.

    python -m docs.studies.thesis.tables_3_2_and_3_3 [NAME ...] [--methods METHOD ...]
        [--bootstraps 500] [--folds 10] [--inner-folds 10] [--minutes M] [--again]

Writes docs/results/tables_3_2_and_3_3.json, fold after fold, and docs/studies.md. What the file
has with the same settings is not measured again, unless `--again` says so: a run that was
interrupted, or that `--minutes` ended, is taken up where it stopped.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from bootprob import BootstrapSVC
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob_gpu import Kernel
from docs.studies.thesis.studies_document import main as write_document
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save

__all__ = ["METHODS", "NAMES", "main", "measure", "settings_of", "splits"]

FILE = "tables_3_2_and_3_3.json"
COMMAND = "make tables-3-2-3-3"
NAMES = (
    *("wisconsin", "housing", "heart", "australian", "leukemia", "banknote", "german", "careval"),
    *("divorce", "pima"),
)
OUTER_FOLDS = 10

Settings = dict[str, int]


def _paper(given: Settings, **options: Any) -> ClassifierMixin:
    return BootstrapSVC.paper(
        n_bootstraps=given["bootstraps"], random_state=given["seed"], **options
    )


def _ours(given: Settings, kernel: Kernel = "linear") -> ClassifierMixin:
    return BootstrapSVC(kernel=kernel, n_bootstraps=given["bootstraps"], random_state=given["seed"])


def _baseline(given: Settings, name: str, **options: Any) -> ClassifierMixin:
    """An estimator of `bootprob.baselines` with the thesis's grid of C."""
    from bootprob import baselines

    estimator = getattr(baselines, name).paper(**options)
    known = estimator.get_params()
    wanted = {"cv": given.get("inner folds"), "random_state": given["seed"]}
    return estimator.set_params(**{key: value for key, value in wanted.items() if key in known})


def _tao(r: float) -> Callable[[Settings], ClassifierMixin]:
    return lambda given: _baseline(given, "PosteriorProbabilitySVC", r=r)


METHODS: dict[str, Callable[[Settings], ClassifierMixin]] = {
    "bootstrap": _paper,
    "best C, votes": lambda given: _paper(given, accuracy_tolerance=0.0),  # J is the best C alone
    "best C": lambda given: _baseline(given, "BestCSVC"),
    "Sollich": lambda given: _baseline(given, "SollichSVC"),
    "Platt": lambda given: _baseline(given, "PlattSVC"),
    "Tao, r = 0": _tao(0.0),
    "Tao, r = √10": _tao(math.sqrt(10)),
    "Tao, r = √20": _tao(math.sqrt(20)),
    "Tao, r = √30": _tao(math.sqrt(30)),
    "default": _ours,
    "rbf": lambda given: _ours(given, kernel="rbf"),
}
"""What makes the estimator of each column from the settings."""

_BOOTSTRAPPED = ("bootstrap", "best C, votes", "default", "rbf")


def settings_of(method: str, bootstraps: int, inner_folds: int, seed: int) -> Settings:
    """What a cell is measured with: "seed", and "bootstraps" or "inner folds" where it has any."""
    if method in _BOOTSTRAPPED:
        return {"seed": seed, "bootstraps": bootstraps}
    return {"seed": seed} if method == "Sollich" else {"seed": seed, "inner folds": inner_folds}


def main(
    names: list[str],
    methods: list[str],
    settings: dict[str, Settings],
    docs: Path = DOCS,
    *,
    folds: int = OUTER_FOLDS,
    seconds: float = math.inf,
    again: bool = False,
) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Settings are those of each of the methods, by `settings_of`; `folds` is how many of the ten.
    """
    started = time.perf_counter()
    path = docs / "results" / FILE
    results = load(path)
    for name in those_at_hand(names):
        X, positive = LOADERS[name]()
        found = results.setdefault("data sets", {}).setdefault(name, {"cells": {}})
        found |= {"rows": len(X), "columns": X.shape[1], "positives": int(positive.sum())}
        for method in methods:
            cell = found["cells"].get(method)
            if cell is None or again or cell["settings"] != settings[method]:
                cell = {"settings": settings[method], "folds": []}
            missing = splits(X, positive, settings[method])[len(cell["folds"]) : folds]
            for training, held_out in missing:
                if time.perf_counter() - started > seconds:
                    break
                cell["folds"].append(
                    measure(X, positive, training, held_out, method, settings[method])
                )
                found["cells"][method] = cell
                save(path, COMMAND, results)
            if cell["folds"]:
                error = np.mean([fold["squared error"] for fold in cell["folds"]])
                taken = sum(fold["seconds"] for fold in cell["folds"])
                print(
                    f"{name:12s} {method:14s} {error:.4f}  {len(cell['folds'])} folds, "
                    f"{taken:.1f} s",
                    flush=True,
                )
    print(f"wrote {path} and {write_document(docs)}")


def splits(X: Floats, positive: Bools, given: Settings) -> list[tuple[Indices, ...]]:
    """Rows to train on and rows held out, of each of ten stratified folds; the same for all."""
    splitter = StratifiedKFold(OUTER_FOLDS, shuffle=True, random_state=given["seed"])
    return list(splitter.split(X, positive))


def measure(
    X: Floats,
    positive: Bools,
    training: Indices,
    held_out: Indices,
    method: str,
    given: Settings,
) -> dict[str, float]:
    """Mean squared error of P(+ | x) against 0 or 1 on the rows held out of one fold."""
    started = time.perf_counter()
    model = METHODS[method](given).fit(X[training], positive[training])
    probability = model.predict_proba(X[held_out])[:, 1]
    return {
        "squared error": float(np.square(probability - positive[held_out]).mean()),
        "seconds": round(time.perf_counter() - started, 2),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    parser = docs_options(__doc__, NAMES)
    parser.add_argument("--methods", nargs="+", metavar="METHOD", choices=METHODS)
    parser.add_argument("--bootstraps", type=int, default=500)
    parser.add_argument("--folds", type=int, default=OUTER_FOLDS, choices=range(1, 11), metavar="F")
    parser.add_argument("--inner-folds", type=int, default=10, metavar="F")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fold after these")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    given = parser.parse_args()
    chosen = given.methods or list(METHODS)
    main(
        given.names,
        chosen,
        {
            method: settings_of(method, given.bootstraps, given.inner_folds, given.seed)
            for method in chosen
        },
        given.docs,
        folds=given.folds,
        seconds=60 * given.minutes,
        again=given.again,
    )
