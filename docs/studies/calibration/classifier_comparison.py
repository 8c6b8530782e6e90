"""Probabilities of ours beside those of the classifiers that users would take instead.

    python -m docs.studies.calibration.classifier_comparison [NAME ...]
        [--classifiers CLASSIFIER ...] [--rows 3000] [--minutes M] [--again]

Table by table, the smallest first, each classifier on each of ten folds: what is done is kept at
once in a folder (`--kept`), and a run that was ended goes on after it. A classifier that is
done with a table goes to docs/results/classifiers/, which has for each table a CSV file, a row for
each of its own, with the fold and the probability that each method gave to the class that the row
has, and in tables.json what it cost. What these files have with the same settings is not
measured again, so that another classifier is compared with what was measured before. At the end
docs/calibration.md is written.

Everything runs on one thread, ours and the peers alike: OMP_NUM_THREADS must be 1.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from bootprob.runtime.arrays import Bools
from bootprob.runtime.files import replace_when_complete
from docs.studies.calibration import classifiers
from docs.studies.calibration.comparison import KEPT, NAMES, cut_down, splits
from docs.studies.calibration.document import main as write_document
from docs.studies.calibration.store import Store
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.environment import describe
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save

__all__ = ["COMMAND", "FILE", "FOLDER", "main"]

FOLDER = "classifiers"
FILE = "tables.json"
COMMAND = "make calibration"
DIGITS = 8  # of a probability


def main(
    names: Iterable[str],
    chosen: Sequence[str],
    given: dict[str, int],
    docs: Path = DOCS,
    kept: Path = KEPT,
    *,
    seconds: float = math.inf,
    again: bool = False,
) -> None:
    """Measure what is missing and write the document; arguments as `study_results` says.

    Parameters
    ----------
    chosen : sequence of str
        Classifiers. With `again` those that are measured again.
    given : dict
        "rows" (a larger table is cut down to so many) and "seed".
    kept : Path
        Where probabilities of each fold are kept.
    """
    classifiers.check_set_up(chosen)
    started = time.perf_counter()
    found = {n: cut_down(*LOADERS[n](), given["rows"], given["seed"]) for n in those_at_hand(names)}
    by_size = sorted(found.items(), key=lambda table: table[1][0].size)
    for slow in (False, True):
        for name, (X, positive) in by_size:
            settings = {"seed": given["seed"], "rows": len(X)}
            results = Results(docs / "results" / FOLDER, name, X.shape[1], settings)
            for classifier in chosen:
                asked = classifiers.CLASSIFIERS[classifier]
                if asked.slow != slow or not asked.takes(X.shape[1]):
                    continue
                if not again and results.has(classifier):
                    continue
                store = Store(kept, f"{name}-classifiers", settings)
                folds = splits(X, positive, given["seed"])
                for number, (training, held_out) in enumerate(folds):
                    if not again and store.has(classifier, number):
                        continue
                    if time.perf_counter() - started > seconds:
                        print(f"{name}: out of time; wrote {write_document(docs)}")
                        return
                    measured = classifiers.measure(
                        classifier,
                        X[training],
                        positive[training],
                        X[held_out],
                        seed=given["seed"],
                        scored=X if number == 0 else None,
                    )
                    store.put(classifier, number, measured)
                results.put(classifier, positive, folds, store)
                taken = time.perf_counter() - started
                print(f"{name:14s} {classifier:28s} {taken:8.1f} s", flush=True)
    print(f"wrote {write_document(docs)}")


class Results:
    """The files of a table.

    Parameters
    ----------
    folder : Path
    name : str
        Of the table.
    columns : int
        The table has.
    settings : dict
        What the files have with others is forgotten.
    """

    def __init__(self, folder: Path, name: str, columns: int, settings: dict[str, int]) -> None:
        self._folder = folder
        self._name = name
        self._new = {"settings": settings, "columns": columns, "classifiers": {}}

    def has(self, classifier: str) -> bool:
        """Whether a classifier is done with the table."""
        return classifier in self._entry()["classifiers"]

    def put(
        self, classifier: str, positive: Bools, folds: list[tuple[Any, Any]], store: Store
    ) -> None:
        """Write what the store has of a classifier."""
        methods = classifiers.CLASSIFIERS[classifier].methods(classifier)
        entry = self._entry()
        path = self._folder / f"{self._name}.csv"
        if entry["classifiers"]:
            table = pd.read_csv(path)
        else:
            table = pd.DataFrame({"fold": 0, "positive": positive.astype(int)})
        columns = {method: np.empty(len(positive)) for method in methods}
        measured, chosen = [], []
        for number, (_, held_out) in enumerate(folds):
            of_fold, by, choice = store.get(classifier, number)
            table.loc[held_out, "fold"] = number
            for method, values in columns.items():
                values[held_out] = np.where(positive[held_out], by[method], 1 - by[method])
            measured.append(of_fold)
            chosen.append(choice)
        table = table.assign(**columns)
        made = describe([classifiers.distribution(classifier)])
        entry["classifiers"][classifier] = {
            "date": made["date"],
            "commit": made["commit"],
            "uncommitted changes": made["uncommitted changes"],
            "version": made["versions"][classifiers.distribution(classifier)],
            "load": round(median(float(each["load"]) for each in measured), 1),
            "chosen": dict(Counter(chosen)),
            "fit": {m: _short(median(each[f"fit {m}"] for each in measured)) for m in methods},
            "predict": {m: _short(measured[0][f"predict {m}"]) for m in methods},
        }
        if all(f"out of bag {classifier}" in each for each in measured):
            entry["classifiers"][classifier]["out of bag"] = [
                round(float(each[f"out of bag {classifier}"]), 6) for each in measured
            ]
        self._folder.mkdir(parents=True, exist_ok=True)
        with replace_when_complete(path) as file:
            table.to_csv(file, index=False, float_format=f"%.{DIGITS}g", lineterminator="\n")
        whole = load(self._folder / FILE)
        whole.setdefault("data sets", {})[self._name] = entry
        save(self._folder / FILE, COMMAND, whole)

    def _entry(self) -> dict[str, Any]:
        found = load(self._folder / FILE).get("data sets", {}).get(self._name, {})
        return found if found.get("settings") == self._new["settings"] else self._new


def _short(seconds: float) -> float:
    """Three significant digits."""
    return float(f"{seconds:.3g}")


if __name__ == "__main__":
    parser = docs_options(__doc__, NAMES)
    every = tuple(classifiers.CLASSIFIERS)
    parser.add_argument("--classifiers", nargs="+", metavar="CLASSIFIER", choices=every)
    parser.add_argument("--rows", type=int, default=3000, help="of a larger table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fold after these")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER")
    given = parser.parse_args()
    main(
        given.names,
        given.classifiers or every,
        {"rows": given.rows, "seed": given.seed},
        given.docs,
        given.kept,
        seconds=60 * given.minutes,
        again=given.again,
    )
