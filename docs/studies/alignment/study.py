"""The study of Tamura, Takano and Miyashiro (2022), and what it could not solve.

    python -m docs.studies.alignment.study [--repetitions 10] [--again] [--only PART ...]

Parts: "tables" (2 to 5), "beyond", "synthetic" (6 to 9) and "document". Writes
docs/results/alignment_study.json, job after job, and docs/alignment_study.md; what the file has is
not measured again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC, LinearSVC

from bootprob.runtime.arrays import Bools, Floats
from bootprob.selection import KernelAlignmentSelector
from bootprob.selection.alignment.alignment import sigest_gamma
from docs.studies.alignment.data import clusters_on_cubes, prepared
from docs.studies.alignment.numbers import PRINTED, STOPPED
from docs.studies.alignment.rivals import CHOOSE
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.study_results import load, save, standardised

__all__ = ["main", "render", "search", "synthetic"]

FILE = "alignment_study.json"
PARTS = ("tables", "beyond", "synthetic", "document")
TEST_ROWS = 5000
SYNTHETIC = [
    (expansion, theta, n, p)
    for expansion in (25.0, 100.0)
    for theta in (3, 5)
    for n in (50, 100)
    for p in (10, 30)
]
BEYOND = [
    *[("parkinsons", 7, beta) for beta in (0.25, 1.0, 4.0)],
    *[("wisconsin", theta, 1.0) for theta in (3, 5, 7)],
    ("1,000 synthetic rows", 3, 1.0),
]


def search(X: Floats, y: Bools, theta: int, beta: float, seconds: float | None) -> dict[str, Any]:
    """Choose columns, and say what was found in how much time."""
    cpu = time.process_time()
    selector = KernelAlignmentSelector(theta, gamma_factor=beta, time_limit=seconds).fit(X, y)
    result = selector.result_
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "status": result.status,
        "features": list(result.features),
        "evaluated": result.n_evaluated,
        "seconds": result.seconds,
        "cpu seconds": time.process_time() - cpu,
    }


def synthetic(
    expansion: float, theta: int, n: int, p: int, repetitions: int
) -> dict[str, dict[str, list[float]]]:
    """Accuracy on new rows and F1 of the columns chosen, each repetition's."""
    found: dict[str, dict[str, list[float]]] = {
        name: {"accuracy": [], "F1": [], "chosen": [], "cpu seconds": []} for name in CHOOSE
    }
    for repetition in range(repetitions):
        rng = np.random.default_rng([int(expansion), theta, n, repetition])
        X, y = clusters_on_cubes(rng, n + TEST_ROWS, theta, p, expansion)
        train, test = slice(0, n), slice(n, None)
        centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
        X = (X - centre) / spread
        gamma = sigest_gamma(X[train], theta)
        for name, choose in CHOOSE.items():
            cpu = time.process_time()
            support = choose(X[train], y[train], theta)
            seconds = time.process_time() - cpu
            machine = (
                LinearSVC(C=1.0, max_iter=100_000) if name == "MILO-L" else SVC(C=1.0, gamma=gamma)
            )
            if support.any():
                machine.fit(X[train][:, support], y[train])
                accuracy = machine.score(X[test][:, support], y[test])
            else:  # the larger class
                accuracy = np.mean(y[test] == (y[train].mean() > 0.5))
            hits = support[:theta].sum()
            values = (
                accuracy,
                2 * hits / (theta + support.sum()),
                support.sum(),
                seconds,
            )
            for key, value in zip(found[name], values, strict=True):
                found[name][key].append(float(value))
    return found


def render(results: dict[str, Any]) -> str:
    """Text of docs/alignment_study.md."""
    return documents.render(
        "docs/studies/alignment/study.md.jinja",
        results=results,
        printed=PRINTED,
        stopped=STOPPED,
        beyond=BEYOND,
        synthetic=SYNTHETIC,
        key=_key,
        mean=lambda values: float(np.mean(values)),
        error=lambda values: float(np.std(values, ddof=1) / np.sqrt(len(values))),
    )


def _key(*parts: object) -> str:
    return " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)


def _rows(name: str) -> tuple[Floats, Bools]:
    if name == "wisconsin":
        X, benign = load_breast_cancer(return_X_y=True)
        return X, benign == 0
    if name == "1,000 synthetic rows":
        X, y = clusters_on_cubes(np.random.default_rng(0), 1000, 5, 30, 25.0)
        return standardised(X), y
    return prepared(name)


def main(parts: list[str], repetitions: int, seconds: float, again: bool, docs: Path) -> None:
    """Measure what is not there yet, and write the document."""
    path = docs / "results" / FILE
    results = {} if again else load(path)
    command = "python -m docs.studies.alignment.study"

    def keep(part: str, key: str, found: Any) -> None:
        results.setdefault(part, {})[key] = found
        save(path, command, results)
        print(part, key, found if part != "synthetic" else "", flush=True)

    if "tables" in parts:
        for name, cells in PRINTED.items():
            for theta, beta in cells:
                key = _key(name, theta, beta)
                if key not in results.get("tables", {}):
                    keep("tables", key, search(*prepared(name), theta, beta, None))
    if "beyond" in parts:
        for name, theta, beta in BEYOND:
            key = _key(name, theta, beta)
            if key not in results.get("beyond", {}):
                keep("beyond", key, search(*_rows(name), theta, beta, seconds))
    if "synthetic" in parts:
        for case in SYNTHETIC:
            key = _key(*case)
            done = results.get("synthetic", {}).get(key)
            if done is None or len(done["RFE-K"]["F1"]) < repetitions:
                keep("synthetic", key, synthetic(*case, repetitions))
    if "document" in parts:
        (docs / "alignment_study.md").write_text(render(load(path)), encoding="utf-8")


if __name__ == "__main__":
    parser = docs_options(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each job beyond")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    given = parser.parse_args()
    main(given.only, given.repetitions, given.seconds, given.again, given.docs)
