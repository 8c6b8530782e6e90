"""What the default costs: its fit, and probabilities and intervals of many rows and of one.

    python -m gpu.benchmarks.default_speed [NAME ...]

`BootstrapSVC()` on tables of the papers, saved and loaded before it scores; beside it LightGBM,
tuned by five folds and calibrated by scikit-learn, on the same cores in the same run. Rows to score
are those of the table, moved a little. Writes docs/results/default_speed.json and the table in
docs/adaptive.md.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV

from bootprob import BootstrapSVC, load, save
from bootprob.runtime.arrays import Bools, Floats
from bootprob.runtime.files import replace_when_complete
from gpu.benchmarks.common import study_results
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.datasets import LOADERS, those_at_hand
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.tables import figures, in_place, markdown

__all__ = ["main", "measure", "table_of"]

FILE = "default_speed.json"
COMMAND = "make default-speed"
TABLES = ("wisconsin", "german")
MANY = 20_000
GRID = {"n_estimators": [100, 300], "learning_rate": [0.03, 0.1], "num_leaves": [7, 31]}
FOLDS = 5


def measure(X: Floats, positive: Bools, n_rows: int = MANY) -> dict[str, Any]:
    """Seconds of both on a table.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    positive : ndarray of bool, shape (n,)
    n_rows : int
        Rows to score, where they are many.
    """
    from lightgbm import LGBMClassifier

    rng = np.random.default_rng(0)
    rows = X[rng.integers(len(X), size=n_rows)]
    rows = rows + 0.05 * X.std(axis=0) * rng.normal(size=rows.shape)
    search = GridSearchCV(
        LGBMClassifier(random_state=0, n_jobs=1, verbose=-1),
        GRID, scoring="neg_log_loss", cv=FOLDS, refit=False, n_jobs=os.cpu_count(),
    )  # fmt: skip

    def tuned() -> CalibratedClassifierCV:
        best = search.fit(X, positive).best_params_
        peer = search.estimator.set_params(**best)
        return CalibratedClassifierCV(peer, cv=FOLDS, n_jobs=os.cpu_count()).fit(X, positive)

    tuned()  # starts the processes that it works in
    peer, of_peer = _timed(tuned)
    model, of_ours = _timed(lambda: BootstrapSVC(random_state=0).fit(X, positive))
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.bootprob")
        model, of_loading = _timed(lambda: load(Path(folder) / "model.bootprob"))
    asked = {
        "probability": model.predict_proba,
        "interval": model.proba_interval,
        "peer": peer.predict_proba,
    }
    return {
        "size": list(X.shape),
        "load": round(os.getloadavg()[0], 1),
        "fit": of_ours,
        "fit of the peer": of_peer,
        "loading": of_loading,
        "models": model.n_replicates_ * len(model.weights_),
        "many": {name: _best(each, rows, 5) for name, each in asked.items()},
        "one": {name: _best(each, rows[:1], 200) for name, each in asked.items()},
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _best(method: Callable[[Floats], Any], rows: Floats, times: int) -> float:
    """Seconds of the quickest call, after one that makes ready."""
    method(rows)
    return min(_timed(lambda: method(rows))[1] for _ in range(times))


def table_of(results: dict[str, Any]) -> str:
    """The table in docs/adaptive.md."""
    lines = []
    for name, found in results["tables"].items():
        n, p = found["size"]
        many, one = found["many"], found["one"]
        lines.append([
            f"{name}, {n:,} × {p}",
            f"{figures(found['fit'])} s, {found['models']:,} models",
            f"{figures(found['fit'] / found['fit of the peer'])}",
            f"{figures(many['probability'])} s, {figures(many['interval'])} s",
            f"{figures(many['probability'] / many['peer'])}",
            f"{figures(1e3 * one['probability'])} ms, {figures(1e3 * one['interval'])} ms",
            f"{figures(one['probability'] / one['peer'])}",
        ])  # fmt: skip
    header = [
        "table", "fit", "by LightGBM's", f"{MANY:,} rows: probability, interval", "by LightGBM's",
        "one row: probability, interval", "by LightGBM's",
    ]  # fmt: skip
    return markdown(header, lines)


def main(names: Iterable[str] = TABLES, docs: Path = DOCS) -> None:
    """Measure, and write both files.

    Parameters
    ----------
    names : iterable of str
        Of `TABLES`; those that are not at hand are left out.
    docs : Path
        Holds results/ and adaptive.md.
    """
    path, page = docs / "results" / FILE, docs / "adaptive.md"
    results = study_results.load(path)
    for name in those_at_hand(names):
        X, positive = LOADERS[name]()
        found = measure(np.asarray(X, dtype=float), positive)
        print(name, json.dumps(found), flush=True)
        results.setdefault("tables", {})[name] = found
        study_results.save(path, COMMAND, results)
    text = in_place(
        page.read_text(encoding="utf-8"),
        f"<!-- {COMMAND} -->\n",
        "<!-- end -->",
        f"\n{table_of(results)}\n\n",
    )
    with replace_when_complete(page) as file:
        file.write(text.encode())


if __name__ == "__main__":
    given = docs_options(__doc__, TABLES).parse_args()
    main(given.names, given.docs)
