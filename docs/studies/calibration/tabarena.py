"""Credit-g and diabetes by TabArena's protocol: ten times three folds, area under the ROC curve.

    python -m docs.studies.calibration.tabarena [NAME ...] [--classifiers CLASSIFIER ...]

Each classifier on each of 30 splits, kept as `classifier_comparison` keeps folds; what is complete
goes to docs/results/classifiers/tabarena.json, and docs/calibration.md shows it. The splits are
drawn by seed: TabArena's are those of its OpenML tasks, stratified likewise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold

from docs.studies.calibration import classifiers
from docs.studies.calibration.comparison import KEPT
from docs.studies.calibration.document import main as write_document
from docs.studies.calibration.store import Store
from docs.studies.calibration.tabarena_table import FILE, TABLES
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import load, save

__all__ = ["REPEATS", "THIRDS", "main"]

REPEATS, THIRDS = 10, 3
"""Of TabArena for tables of fewer than 2,500 rows (Erickson et al., 2025, arXiv:2506.16791)."""

SEED = 0


def main(
    names: Iterable[str],
    chosen: Sequence[str],
    docs: Path = DOCS,
    kept: Path = KEPT,
    *,
    seconds: float = math.inf,
) -> None:
    """Measure what is missing and write the document; arguments as in `classifier_comparison`."""
    classifiers.check_set_up(chosen)
    started = time.perf_counter()
    path = docs / "results" / "classifiers" / FILE
    splitter = RepeatedStratifiedKFold(n_splits=THIRDS, n_repeats=REPEATS, random_state=SEED)
    for name in those_at_hand(names):
        X, positive = LOADERS[name]()
        store = Store(kept, f"{name}-tabarena", {"seed": SEED, "rows": len(X)})
        splits = list(splitter.split(X, positive))
        for classifier in chosen:
            methods = classifiers.CLASSIFIERS[classifier].methods(classifier)
            if set(methods) <= _areas(load(path), name).keys():
                continue
            areas: dict[str, list[float]] = {method: [] for method in methods}
            for number, (training, held_out) in enumerate(splits):
                if not store.has(classifier, number):
                    if time.perf_counter() - started > seconds:
                        print(f"{name}: out of time; wrote {write_document(docs)}")
                        return
                    rows = X[training], positive[training], X[held_out]
                    store.put(classifier, number, classifiers.measure(classifier, *rows, seed=SEED))
                _, by, _ = store.get(classifier, number)
                for method in methods:
                    area = roc_auc_score(positive[held_out], by[method])
                    areas[method].append(round(float(area), 6))
            results = load(path)
            _areas(results, name).update(areas)
            save(path, "make calibration", results)
            print(f"{name:14s} {classifier:28s} {time.perf_counter() - started:8.1f} s", flush=True)
    print(f"wrote {write_document(docs)}")


def _areas(results: dict[str, Any], name: str) -> dict[str, list[float]]:
    return results.setdefault("tables", {}).setdefault(name, {})


if __name__ == "__main__":
    parser = docs_options(__doc__, tuple(TABLES))
    every = tuple(classifiers.CLASSIFIERS)
    parser.add_argument("--classifiers", nargs="+", metavar="CLASSIFIER", choices=every)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no split after these"
    )
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER")
    given = parser.parse_args()
    chosen = given.classifiers or every
    main(given.names, chosen, given.docs, given.kept, seconds=60 * given.minutes)
