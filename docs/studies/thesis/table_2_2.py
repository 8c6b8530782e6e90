"""Table 2.2 of the thesis on data sets at hand: SVM, SVM(C₊, C₋), sliding β and CSVM.

    python -m docs.studies.thesis.table_2_2 [NAME ...] [--folds 10] [--inner-folds 10] [--seed 0]

Writes docs/results/table_2_2.json, method after method, and docs/studies.md. What the file has
with the same settings is not measured again; `--again` does. `--exact NAME` solves the constrained
machines of some folds of one data set exactly as well. docs/studies.md says what is done, and how
it differs from the thesis.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from bootprob.constrained import ConstrainedSVC
from bootprob.runtime.arrays import Bools, Floats
from docs.studies.thesis.numbers import PRINTED_TOO, TABLE_2_2, TARGET
from docs.studies.thesis.studies_document import main as write_document
from docs.studies.thesis.svm_tuning import (
    Chosen,
    Criterion,
    Grid,
    asked_share,
    choose,
    equal_costs,
    two_costs,
)
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, rates, save, standardised

__all__ = ["Fold", "folds_of", "main", "measure", "rows_of"]

FILE = "table_2_2.json"
STEP = 0.025  # δ of thesis 2.3.1


@dataclass(frozen=True)
class Fold:
    """Rows of one outer fold; the first half of the training rows are I, the others J."""

    X: Floats
    positive: Bools
    X_held_out: Floats
    positive_held_out: Bools
    seed: int

    @property
    def positive_anchors(self) -> int:
        """How many positives J has."""
        return int(self.positive[len(self.positive) // 2 :].sum())


def main(
    names: list[str],
    settings: dict[str, int],
    docs: Path = DOCS,
    *,
    again: bool = False,
    exact: dict[str, Any] | None = None,
) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Settings are "folds", "inner folds" and "seed". `exact` has the "name" of the data set whose
    machines are solved exactly as well, in so many "folds", each for so many "seconds".
    """
    path = docs / "results" / FILE
    results = load(path)
    found = results.setdefault("data sets", {})
    for name in those_at_hand(names):
        if again or found.get(name, {}).get("settings") != settings:
            found[name] = {"settings": settings}
        measure(name, *rows_of(name), found[name], lambda: save(path, "make table-2-2", results))
    if exact is not None and exact["name"] in found:
        found[exact["name"]]["exact"] = _exact(found[exact["name"]], exact)
        save(path, "make table-2-2", results)
    print(f"wrote {path} and {write_document(docs)}")


def rows_of(name: str) -> tuple[Floats, Bools]:
    """Standardised rows, and which are positive by thesis 2.3.5."""
    X, positive = LOADERS[name]()
    return standardised(X), ~positive if name == "votes" else positive  # democrats are positive


def folds_of(X: Floats, positive: Bools, settings: dict[str, int]) -> list[Fold]:
    """Outer folds, stratified, their training rows in random order."""
    seed = settings["seed"]
    splitter = StratifiedKFold(settings["folds"], shuffle=True, random_state=seed)
    folds = []
    for number, (training, held_out) in enumerate(splitter.split(X, positive)):
        order = np.random.default_rng([seed, number]).permutation(training)
        rows = X[order], positive[order], X[held_out], positive[held_out]
        folds.append(Fold(*rows, seed=seed + number))
    return folds


def measure(
    name: str, X: Floats, positive: Bools, found: dict[str, Any], keep: Callable[[], None]
) -> None:
    """Measure what is missing of one data set: all methods, for each target.

    Parameters
    ----------
    name : str
    X, positive : ndarray
        Of `rows_of`.
    found : dict
        Its entry in the results, with its "settings" at least; is filled in.
    keep : callable
        Called whenever a method is done.
    """
    folds = folds_of(X, positive, found["settings"])
    rare = min(positive.mean(), 1 - positive.mean()) < 0.3
    criterion: Criterion = "G-mean" if rare else "accuracy"
    found |= {"rows": len(X), "columns": X.shape[1], "positives": int(positive.sum())}
    found["criterion"] = criterion

    def once(methods: dict[str, Any], method: str, run: Callable[[Fold, int], Any]) -> None:
        if method in methods:
            return
        methods[method] = rows = [run(fold, number) for number, fold in enumerate(folds)]
        found["load"] = round(os.getloadavg()[0], 1)
        keep()
        tpr, tnr = (np.mean([row[rate] for row in rows]) for rate in ("tpr", "tnr"))
        seconds = sum(row["tuning, s"] + row["training, s"] for row in rows)
        print(f"{name:12s} {method:22s} TPR {tpr:.3f} TNR {tnr:.3f}  {seconds:.1f} s", flush=True)

    def tuned(grid: Grid, fold: Fold, **constrained: Any) -> Chosen:
        inner = found["settings"]["inner folds"]
        return choose(fold.X, fold.positive, grid, criterion, inner, fold.seed, **constrained)

    plain = found.setdefault("methods", {})
    for method, grid in (("svm", equal_costs()), ("two costs", two_costs())):
        once(plain, method, lambda fold, _, g=grid: _trained(fold, lambda: tuned(g, fold), {}))
    reached = float(np.mean([row["tpr"] for row in plain["svm"]]))
    own = {"measured": reached + STEP} | ({"printed": TARGET[name]} if name in PRINTED_TOO else {})
    targets = found.setdefault("targets", {})
    for kind, least in own.items():
        against = targets.setdefault(kind, {"TPR": least, "methods": {}})["methods"]

        def slid(fold: Fold, number: int, least: float = least) -> dict[str, Any]:
            options = _asked(fold, least) | {"method": "slide"}
            return _trained(fold, lambda: _chosen(plain["svm"][number]), options)

        once(against, "sliding", slid)
        for method, per_class in (("constrained", False), ("constrained, C / |I|", True)):

            def constrained(
                fold: Fold, _: int, least: float = least, per_class: bool = per_class
            ) -> dict[str, Any]:
                options = _asked(fold, least) | {"normalize_C": per_class}
                asked = {"least": least, "per_class": per_class}
                return _trained(fold, lambda: tuned(equal_costs(), fold, **asked), options)

            once(against, method, constrained)


def _asked(fold: Fold, least: float) -> dict[str, Any]:
    return {"rates": {"tpr": asked_share(least, fold.positive_anchors)}, "shuffle": False}


def _trained(fold: Fold, tune: Callable[[], Chosen], options: dict[str, Any]) -> dict[str, Any]:
    """Tune and train one method in one fold; its rates on the rows held out."""
    started = time.perf_counter()
    chosen = tune()
    tuned = time.perf_counter()
    # The thesis's C belongs to ‖w‖² + C Σ ξ, twice the objective here.
    costs = {"C_positive": chosen.C_positive / 2, "C_negative": chosen.C_negative / 2}
    options = {"gamma": chosen.gamma, **costs, **options}
    model = ConstrainedSVC(kernel="rbf", standardize=False, **options).fit(fold.X, fold.positive)
    return {
        **rates(model.predict(fold.X_held_out), fold.positive_held_out),
        "C_positive": chosen.C_positive,
        "C_negative": chosen.C_negative,
        "gamma": chosen.gamma,
        "inner criterion": chosen.criterion,
        "share asked": options.get("rates", {}).get("tpr"),
        "share of anchors": model.rates_.get("tpr"),
        "objective": model.result_.objective,
        "gap": model.result_.gap,
        "tuning, s": round(tuned - started, 2),
        "training, s": round(time.perf_counter() - tuned, 2),
    }


def _chosen(row: dict[str, Any]) -> Chosen:
    """What was chosen in a fold that has been measured."""
    return Chosen(row["C_positive"], row["C_negative"], row["gamma"], row["inner criterion"])


def _exact(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Solve the constrained machines of the first folds exactly, within a time limit each."""
    target = found["targets"]["measured"]
    folds = folds_of(*rows_of(wanted["name"]), found["settings"])[: wanted["folds"]]
    heuristic = target["methods"]["constrained"][: wanted["folds"]]
    rows = []
    for fold, row in zip(folds, heuristic, strict=True):
        options = {"method": "exact", "time_limit": wanted["seconds"]}
        options |= _asked(fold, target["TPR"])
        rows.append(_trained(fold, lambda row=row: _chosen(row), options))
        print(
            f"exact: {row['objective']:.4f} → {rows[-1]['objective']:.4f}, "
            f"gap {row['gap']:.3f} → {rows[-1]['gap']:.3f}",
            flush=True,
        )
    return {"seconds a machine": wanted["seconds"], "folds": rows}


if __name__ == "__main__":
    parser = docs_options(__doc__, TABLE_2_2)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--inner-folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure what the file has, too")
    parser.add_argument("--exact", choices=TABLE_2_2, metavar="NAME")
    parser.add_argument("--exact-folds", type=int, default=2)
    parser.add_argument("--exact-seconds", type=float, default=30.0)
    given = parser.parse_args()
    main(
        given.names,
        {"folds": given.folds, "inner folds": given.inner_folds, "seed": given.seed},
        given.docs,
        again=given.again,
        exact=None
        if given.exact is None
        else {"name": given.exact, "folds": given.exact_folds, "seconds": given.exact_seconds},
    )
