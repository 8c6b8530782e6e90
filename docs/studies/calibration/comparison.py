"""Calibrated probabilities of ours beside those of scikit-learn's and venn-abers' calibrators.

    python -m docs.studies.calibration.comparison [NAME ...] [--kernels linear rbf]
        [--groups GROUP ...] [--bootstraps 100] [--folds 10] [--rows 3000] [--minutes M] [--again]

Writes docs/results/calibration.json, fold after fold, and docs/calibration.md with the tables that
it sums up. What the file has with the same settings is not measured again, unless `--again` says
so: a run that was interrupted, or that `--minutes` ended, is taken up where it stopped. The
probabilities of each fold and group of methods are kept in a folder (`--kept`), so that one group
can be measured again without the others, and calibrators that have changed are fitted again,
without training, where the results are deleted and the folder is kept.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from bootprob.runtime.arrays import Bools, Floats, Indices
from docs.studies.calibration.document import main as write_document
from docs.studies.calibration.losses import summarise
from docs.studies.calibration.methods import AUTO, OURS, PEERS, OutOfBag, of_peers
from docs.studies.calibration.store import Store
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS, ROOT
from gpu.benchmarks.common.study_results import load, save

__all__ = [
    "GROUPS",
    "KERNELS",
    "NAMES",
    "VARIANTS",
    "cut_down",
    "main",
    "measure",
    "pairs",
    "splits",
]

FILE = "calibration.json"
COMMAND = "make calibration"
KEPT = ROOT / "build" / "calibration"
KERNELS = ("linear", "rbf")
FOLDS = 10
INNER_FOLDS = 5

NAMES = (
    *("wisconsin", "german", "australian", "banknote", "careval", "housing", "heart", "votes"),
    *("divorce", "pima", "bupa", "crx", "nursery", "hepatitis", "zoo", "parkinsons"),
    *("soybean-small", "leukemia"),
)

VARIANTS: dict[str, dict[str, Any]] = {
    "accuracy weights": {"weighting": "accuracy"},
    "no class weights": {"class_weight": None},
    "neither": {"weighting": "accuracy", "class_weight": None},
}
"""Options of `BootstrapSVC` that are compared with its defaults."""

GROUPS = ("ours", "peers", *VARIANTS)
"""What is trained in one go."""

OF_VARIANTS = ("sigmoid", "sigmoid-both", AUTO)
"""Calibrations of which a variant's losses are kept."""

WITH_VARIANTS = ("wisconsin", "german", "australian", "housing", "hepatitis", "parkinsons", "pima")

Fold = tuple[Indices, Indices]
Settings = dict[str, Any]


def main(
    names: Sequence[str],
    kernels: Sequence[str],
    groups: Sequence[str] | None,
    given: Mapping[str, int],
    docs: Path = DOCS,
    kept: Path = KEPT,
    *,
    folds: int = FOLDS,
    seconds: float = math.inf,
    again: bool = False,
) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Parameters
    ----------
    groups : sequence of str, optional
        Of `GROUPS`; default ours, the peers and the first variant, and on a few data sets all. With
        `again` those that are measured again.
    given : dict
        "bootstraps", "rows" (a larger table is cut down to so many) and "seed".
    kept : Path
        Where probabilities are kept.
    folds : int
        How many of the ten outer folds.
    """
    started = time.perf_counter()
    if "peers" in (groups or GROUPS) and find_spec("venn_abers") is None:
        raise SystemExit("The package venn-abers is missing; install the extra 'bench'.")
    path = docs / "results" / FILE
    for name in those_at_hand(names):
        X, positive = cut_down(*LOADERS[name](), given["rows"], given["seed"])
        settings = {"bootstraps": given["bootstraps"], "seed": given["seed"], "rows": len(X)}
        for kernel in kernels:
            every = kernel == "linear" and name in WITH_VARIANTS
            wanted = list(groups or (GROUPS if every else GROUPS[:3]))
            found = load(path).get("data sets", {}).get(name, {}).get(kernel, {})
            if found.get("settings") != settings:
                found = {"folds": 0, "groups": []}
            has = set(found["log-loss"]["means"]) if found["folds"] >= folds else set()
            if not again and has.issuperset(m for group in wanted for m in _methods(group)):
                continue
            store = Store(kept, f"{name}-{kernel}", settings)
            done = [group for group in GROUPS if group in {*found["groups"], *wanted}]
            for number, fold in enumerate(splits(X, positive, given["seed"])[:folds]):
                for group in done:
                    if store.has(group, number) and not (again and group in wanted):
                        continue
                    if time.perf_counter() - started > seconds:
                        print(f"{name}, {kernel}: out of time; wrote {write_document(docs)}")
                        return
                    store.put(group, number, measure(X, positive, fold, group, kernel, settings))
                _write(path, name, kernel, _cell(store, done, number + 1, settings), X, positive)
            print(f"{name:14s} {kernel:7s} {time.perf_counter() - started:8.1f} s", flush=True)
    print(f"wrote {path} and {write_document(docs)}")


def splits(X: Floats, positive: Bools, seed: int) -> list[Fold]:
    """Rows to train on and rows held out, of each of ten stratified folds; the same for all."""
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, positive))


def measure(
    X: Floats, positive: Bools, fold: Fold, group: str, kernel: str, settings: Settings
) -> dict[str, Any]:
    """Train a group of methods on a fold.

    Returns
    -------
    dict
        "positive", whether each row held out is; "seconds", "load"; of the peers their
        probabilities, each as "p " and its name, and the C "chosen"; of ours the fields of
        `OutOfBag`, each as "oob " and its name.
    """
    training, held_out = fold
    rows = X[training], positive[training], X[held_out]
    started = time.perf_counter()
    kept: dict[str, Any]
    if group == "peers":
        by, C = of_peers(*rows, kernel=kernel, inner_folds=INNER_FOLDS, seed=settings["seed"])
        kept = {f"p {name}": probability for name, probability in by.items()} | {"chosen": C}
    else:
        found = OutOfBag.of_ensemble(
            *rows,
            kernel=kernel,
            n_bootstraps=settings["bootstraps"],
            random_state=settings["seed"],
            **VARIANTS.get(group, {}),
        )
        kept = {f"oob {name}": value for name, value in vars(found).items()}
    return kept | {
        "positive": positive[held_out],
        "seconds": round(time.perf_counter() - started, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def pairs(groups: Sequence[str]) -> list[tuple[str, str]]:
    """Which methods are compared: all of ours with every peer, other weights with the default's."""
    ours = [method for group in groups for method in _methods(group) if group != "peers"]
    found = [(one, other) for one in ours for other in PEERS if "peers" in groups]
    if "ours" in groups:
        others = [group for group in groups if group in VARIANTS]
        found += [(f"{group}: {method}", method) for group in others for method in OF_VARIANTS]
    return found


def _methods(group: str) -> list[str]:
    """Names of a group's methods among all others."""
    if group in VARIANTS:
        return [f"{group}: {method}" for method in OF_VARIANTS]
    return list(OURS if group == "ours" else PEERS)


def cut_down(X: Floats, positive: Bools, rows: int, seed: int) -> tuple[Floats, Bools]:
    """As many rows as asked for, with the shares of the classes kept."""
    if len(X) <= rows:
        return X, positive
    kept, _ = train_test_split(
        np.arange(len(X)), train_size=rows, stratify=positive, random_state=seed
    )
    kept.sort()
    return X[kept], positive[kept]


def _cell(store: Store, groups: Sequence[str], n_folds: int, settings: Settings) -> dict[str, Any]:
    """What the results say of a data set and a kernel, from the probabilities kept."""
    folds, chosen, seconds = [], {}, {}
    for number in range(n_folds):
        by: dict[str, Floats] = {}
        for group in groups:
            found, of_group, choice = store.get(group, number)
            by |= {name: of_group[name.rpartition(": ")[2]] for name in _methods(group)}
            chosen.setdefault(group, []).append(choice)
            seconds.setdefault(group, []).append(found["seconds"])
            positive = found["positive"]
        folds.append((by, positive))
    return {
        "settings": settings,
        "folds": len(folds),
        "groups": list(groups),
        "chosen": chosen,
        "seconds": {group: round(sum(times), 1) for group, times in seconds.items()},
        **summarise(folds, pairs(groups)),
    }


def _write(
    path: Path, name: str, kernel: str, cell: dict[str, Any], X: Floats, positive: Bools
) -> None:
    results = load(path)
    entry = results.setdefault("data sets", {}).setdefault(name, {})
    entry |= {"rows": len(X), "columns": X.shape[1], "positives": int(positive.sum())}
    entry[kernel] = cell
    save(path, COMMAND, results)


if __name__ == "__main__":
    parser = docs_options(__doc__, NAMES)
    parser.add_argument("--kernels", nargs="+", default=KERNELS, choices=KERNELS)
    parser.add_argument("--groups", nargs="+", metavar="GROUP", choices=GROUPS)
    parser.add_argument("--bootstraps", type=int, default=100)
    parser.add_argument("--folds", type=int, default=FOLDS, choices=range(1, 11), metavar="F")
    parser.add_argument("--rows", type=int, default=3000, help="of a larger table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fold after these")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER")
    given = parser.parse_args()
    main(
        given.names,
        given.kernels,
        given.groups,
        {"bootstraps": given.bootstraps, "rows": given.rows, "seed": given.seed},
        given.docs,
        given.kept,
        folds=given.folds,
        seconds=60 * given.minutes,
        again=given.again,
    )
