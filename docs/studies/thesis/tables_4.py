"""Tables 4.2 to 4.10 of the thesis on data sets at hand: the fewest columns that keep the rates.

    python -m docs.studies.thesis.tables_4 [NAME ...] [--seconds 20] [--folds 10] [--seed 0]

Writes docs/results/tables_4.json and docs/feature_selection_tables.md, which says what is done and
how it differs from the thesis. What the file has with the same settings is not measured again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from bootprob.exceptions import UnattainableRateError
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob.selection import CostSensitiveSelector
from bootprob.selection.cost_sensitive.classifier import train_on_kept
from docs.studies.thesis.cardinality_bounded import cardinality_bounded
from docs.studies.thesis.numbers_4 import PAIRS_4_10, RADIAL, TABLE_4_2
from docs.studies.thesis.tables_4_document import main as write_document
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, dataset, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save, standardised

__all__ = ["main", "measure", "rows_of"]

FILE = "tables_4.json"
COMMAND = "make tables-4"
LOSS = 0.025  # what a rate may lose
ALPHA = 0.05
POWERS = [2.0**k for k in range(-5, 6)]
COLUMNS_4_9 = (1, 2, 3, 5, 10, 20, 34)
SMALL = 100  # rows, below which every row is left out once

Once = Callable[[str, Callable[[], Any]], Any]


def main(names: list[str], settings: dict[str, Any], docs: Path = DOCS) -> None:
    """Measure what is missing and write the document."""
    path = docs / "results" / FILE
    results = load(path)
    sets = results.setdefault("data sets", {})
    for name in those_at_hand(names):
        if sets.get(name, {}).get("settings") != settings:
            sets[name] = {"settings": settings}
        measure(name, *rows_of(name), sets[name], lambda: save(path, COMMAND, results))
    print(f"wrote {path} and {write_document(docs)}")


def rows_of(name: str) -> tuple[Floats, Bools]:
    """Standardised rows, the larger class positive; of nursery, the largest of its classes."""
    if name == "nursery":
        found = dataset(name)
        return standardised(found.X), found.labels == "not_recom"
    X, positive = LOADERS[name]()
    return standardised(X), positive if positive.mean() >= 0.5 else ~positive


def measure(
    name: str, X: Floats, positive: Bools, found: dict[str, Any], keep: Callable[[], None]
) -> None:
    """Measure what is missing of one data set.

    Parameters
    ----------
    name : str
    X, positive : ndarray
        Of `rows_of`.
    found : dict
        Its entry in the results, with its "settings" at least; is filled in.
    keep : callable
        Called whenever a part is done.
    """
    settings = found["settings"]
    folds = list(
        LeaveOneOut().split(X)
        if len(X) < SMALL
        else StratifiedKFold(settings["folds"], shuffle=True, random_state=settings["seed"]).split(
            X, positive
        )
    )
    found |= {"rows": len(X), "columns": X.shape[1], "positives": int(positive.sum())}

    def once(part: str, run: Callable[[], Any]) -> Any:
        if part not in found:
            started = time.perf_counter()
            value = run()
            found[part] = {
                "value": value,
                "seconds": round(time.perf_counter() - started, 1),
                "load": round(os.getloadavg()[0], 1),
            }
            keep()
            print(f"{name:12s} {part:28s} {found[part]['seconds']} s", flush=True)
        return found[part]["value"]

    svm = once("svm", lambda: [_svm(X, positive, fold, np.arange(X.shape[1])) for fold in folds])
    floors = {rate: max(0.0, float(np.mean(_values(svm, rate))) - LOSS) for rate in ("tpr", "tnr")}
    found["floors"] = floors
    for thresholds in ("4.3", "4.4"):
        chosen = once(
            f"selected by {thresholds}",
            lambda t=thresholds: [
                _selected(X, positive, fold, _shares(floors, positive[fold[0]], t), settings)
                for fold in folds
            ],
        )
        for kernel in ("linear", "rbf") if name in RADIAL else ("linear",):
            once(
                f"{kernel} on {thresholds}",
                lambda k=kernel, c=chosen: [
                    _trained(X, positive, fold, row, k) for fold, row in zip(folds, c, strict=True)
                ],
            )
        once(
            f"compared with {thresholds}",
            lambda c=chosen: [
                _compared(X, positive, fold, len(row["features"]))
                for fold, row in zip(folds, c, strict=True)
            ],
        )
    once("all rows", lambda: _on_all_rows(X, positive, floors, settings))
    if name == "australian":
        _tables_of_australian(X, positive, folds, settings, once)


def _tables_of_australian(
    X: Floats, positive: Bools, folds: list[Any], settings: dict[str, Any], once: Once
) -> None:
    """Tables 4.9, the comparison at every number of columns, and 4.10, other rates."""
    for most in COLUMNS_4_9:
        once(f"4.9: {most}", lambda m=most: [_compared(X, positive, fold, m) for fold in folds])
    for tpr, tnr in PAIRS_4_10:
        shares = {"tpr": tpr, "tnr": tnr}
        chosen = once(
            f"4.10: {tpr:g}, {tnr:g} selected",
            lambda s=shares: [_selected(X, positive, fold, s, settings) for fold in folds],
        )
        once(
            f"4.10: {tpr:g}, {tnr:g}",
            lambda c=chosen: [
                _trained(X, positive, fold, row, "linear")
                for fold, row in zip(folds, c, strict=True)
            ],
        )


def _shares(floors: dict[str, float], positive: Bools, thresholds: str) -> dict[str, float]:
    """(4.3), or (4.4) cut off at 1, which the thesis must have done."""
    if thresholds == "4.3":
        return floors
    sizes = {"tpr": int(positive.sum()), "tnr": int((~positive).sum())}
    return {rate: min(1.0, floors[rate] + sqrt(-log(ALPHA) / (2 * n))) for rate, n in sizes.items()}


def _selected(
    X: Floats, positive: Bools, fold: Any, shares: dict[str, float], settings: dict[str, Any]
) -> dict[str, Any]:
    """(P1) on the training rows of a fold."""
    rows = fold[0]
    selector = CostSensitiveSelector(shares, classifier=None, time_limit=settings["seconds"])
    try:
        selector.fit(X[rows], positive[rows])
    except UnattainableRateError:
        return {"shares": shares, "features": [], "status": "not found"}
    result = selector.result_
    return {
        "shares": shares,
        "features": [int(j) for j in result.features],
        "bound": result.bound,
        "status": result.status,
        "seconds": round(result.seconds, 2),
        "given up": np.flatnonzero(~selector.kept_).tolist(),
    }


def _on_all_rows(
    X: Floats, positive: Bools, floors: dict[str, float], settings: dict[str, Any]
) -> dict[str, Any]:
    """(P1) with (4.3) on all rows, and the contingency table of a single column of two levels."""
    rows = np.arange(len(X))
    found = _selected(X, positive, (rows, rows), floors, settings)
    if len(found["features"]) == 1:
        column = X[:, found["features"][0]]
        levels = np.unique(column)
        if len(levels) == 2:
            found["contingency"] = [
                [int((positive == sign)[column == level].sum()) for level in levels]
                for sign in (True, False)
            ]
    return found


def _trained(
    X: Floats, positive: Bools, fold: Any, row: dict[str, Any], kernel: str
) -> dict[str, Any] | None:
    """(P2) or (P3) on the columns chosen; C and γ by cross-validation of the plain machine."""
    if not row["features"]:
        return None
    training, held_out = fold
    columns = X[:, row["features"]]
    options = _tuned(columns[training], positive[training], kernel)
    kept = np.ones(len(training), dtype=bool)
    kept[row["given up"]] = False
    try:
        machine = train_on_kept(
            columns[training], positive[training], kept, kernel=kernel, **options
        )
    except UnattainableRateError:
        return None
    return {**_hits(machine.predict(columns[held_out]), positive[held_out]), **options}


def _compared(X: Floats, positive: Bools, fold: Any, most: int) -> dict[str, Any] | None:
    if most == 0:
        return None
    training = fold[0]
    return _svm(X, positive, fold, cardinality_bounded(X[training], positive[training], most))


def _svm(X: Floats, positive: Bools, fold: Any, columns: Indices) -> dict[str, Any]:
    """The plain linear machine on some columns."""
    training, held_out = fold
    rows = _span(X[:, columns])
    options = _tuned(rows[training], positive[training], "linear")
    machine = _plain(rows[training], "linear").set_params(**options)
    machine.fit(rows[training], positive[training])
    predicted = machine.predict(rows[held_out])
    return {**_hits(predicted, positive[held_out]), **options, "columns": len(columns)}


def _span(X: Floats) -> Floats:
    """Rows in as many columns as there are rows at most, with the same inner products.

    The machine is the same, too, and thousands of genes do not take hours.
    """
    if X.shape[1] <= len(X):
        return X
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    return left * singular


def _tuned(X: Floats, positive: Bools, kernel: str) -> dict[str, float]:
    """C, and γ, of the best accuracy over inner folds of the plain machine."""
    grid = {"C": POWERS} if kernel == "linear" else {"C": POWERS[::2], "gamma": POWERS[::2]}
    inner = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(_plain(X, kernel), grid, cv=inner, refit=False)
    return {key: float(value) for key, value in search.fit(X, positive).best_params_.items()}


def _plain(X: Floats, kernel: str) -> LinearSVC | SVC:
    """The machine without rates.

    LinearSVC's penalty on the intercept is too much for the small coefficients of many columns.
    """
    if kernel == "rbf":
        return SVC()
    if X.shape[1] > len(X):
        return SVC(kernel="linear")
    return LinearSVC(dual=False, max_iter=10_000, random_state=0)


def _hits(predicted: Bools, positive: Bools) -> dict[str, float | None]:
    """Rates of a fold; None of a class that it has no row of."""
    right = predicted == positive
    return {
        "acc": float(right.mean()),
        "tpr": float(right[positive].mean()) if positive.any() else None,
        "tnr": float(right[~positive].mean()) if (~positive).any() else None,
    }


def _values(rows: list[Any], rate: str) -> list[float]:
    return [row[rate] for row in rows if row is not None and row[rate] is not None]


if __name__ == "__main__":
    parser = docs_options(__doc__, TABLE_4_2)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each (P1)")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    main(
        given.names,
        {"seconds": given.seconds, "folds": given.folds, "seed": given.seed},
        given.docs,
    )
