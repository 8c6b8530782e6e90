"""Tables of many rows by the default, beside LightGBM: log-loss, intervals, time and memory.

    python -m gpu.benchmarks.large_tables [NAME ...] [--sizes 5000x20 30000x100 500000x30]

Tables are drawn from truths that are written here, and 20,000 further rows are kept for the
log-loss. Each fit runs alone in a process of its own, whose peak memory is told. Ours has what
threads torch takes; LightGBM, with its defaults and with 200 trees at a learning rate of .05, has
one: where others use the machine, threads that wait for each other spin. A case
that the file holds already is not measured again. Writes docs/results/large_tables.json and
docs/large_tables.md.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.runtime.arrays import Floats
from gpu.benchmarks.common import documents
from gpu.benchmarks.common.command_line import docs_options
from gpu.benchmarks.common.environment import describe
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import save

__all__ = ["TRUTHS", "main", "table"]

FILE = "large_tables.json"
COMMAND = "make large-tables"
SIZES = ("5000x20", "30000x100", "500000x30")
NEW_ROWS = 20_000
METHODS = ("bootprob", "LightGBM", "LightGBM, 200 trees")


def _mixed(rng: np.random.Generator, X: Floats) -> Floats:
    steps = 1.5 * (X[:, 6] > 0.5) - (X[:, 7] < -0.3)
    straight = 0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.5 * X[:, 2] - 0.5
    return straight + X[:, 3] * X[:, 4] + 0.7 * X[:, 5] * X[:, 0] + steps


def _friedman(rng: np.random.Generator, X: Floats) -> Floats:
    """J. Friedman, Annals of Statistics 19 (1991) 1–67, on uniform columns, as a logit."""
    U = expit(1.7 * X)  # about uniform
    bent = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * np.square(U[:, 2] - 0.5)
    return (bent + 10 * U[:, 3] + 5 * U[:, 4] - 14.4) / 2.5


def _linear(rng: np.random.Generator, X: Floats) -> Floats:
    return X @ rng.normal(size=X.shape[1]) * 1.5 / np.sqrt(X.shape[1])


def _nothing_alone(rng: np.random.Generator, X: Floats) -> Floats:
    """No column says anything alone."""
    return 3 * np.sin(2 * X[:, 0]) * np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]


TRUTHS = {
    "mixed": _mixed,
    "Friedman": _friedman,
    "linear": _linear,
    "nothing alone": _nothing_alone,
}
CLUSTERS = "clusters"
NAMES = (*TRUTHS, CLUSTERS)


def table(name: str, n: int, p: int) -> tuple[Floats, NDArray[np.intp], Floats | None]:
    """Rows, labels, and the true logit where there is one; of "clusters" there is none."""
    if name == CLUSTERS:
        from sklearn.datasets import make_classification

        X, y = make_classification(
            n, p, n_informative=10, n_redundant=5, n_clusters_per_class=4, flip_y=0.05,
            class_sep=0.8, random_state=0,
        )  # fmt: skip
        return X, y, None
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    logit = TRUTHS[name](rng, X)
    return X, (rng.uniform(size=n) < expit(logit)).astype(np.intp), logit


def measure(method: str, name: str, n: int, p: int) -> dict[str, Any]:
    """Fit in this process, and say what came of it."""
    X, y, logit = table(name, n + NEW_ROWS, p)
    train, new = slice(0, n), slice(n, None)
    model: Any
    if method == "bootprob":
        from bootprob import BootstrapSVC

        model = BootstrapSVC(random_state=0)
    else:
        from lightgbm import LGBMClassifier

        options = {"n_estimators": 200, "learning_rate": 0.05} if "200" in method else {}
        model = LGBMClassifier(verbose=-1, n_jobs=1, random_state=0, **options)
    started, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X[train], y[train])
    found: dict[str, Any] = {
        "seconds": time.perf_counter() - started,
        "CPU seconds": time.process_time() - spent,
        "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "warnings": sorted({each.category.__name__ for each in said}),
    }
    probability = model.predict_proba(X[new])[:, 1]
    found["log-loss"] = _log_loss(probability, y[new])
    if logit is not None:
        found["least log-loss"] = _log_loss(expit(logit[new]), y[new])
    if method == "bootprob":
        known = model.oob_proba_[:, 1]
        found["out-of-bag log-loss"] = _log_loss(known[np.isfinite(known)], y[train])
        found["kernels"] = model.kernel_weights_
        found["samples"] = [model.n_replicates_, model.n_drawn_ or n]
        started = time.perf_counter()
        lower, upper = model.proba_interval(X[new])[:, 1].T
        found["seconds of intervals"] = time.perf_counter() - started
        found["width"] = float((upper - lower).mean())
        if logit is not None:
            truth = expit(logit[new])
            found["coverage"] = float(((lower <= truth) & (truth <= upper)).mean())
    return found


def _log_loss(probability: Floats, y: NDArray[np.intp]) -> float:
    return float(-np.log(np.where(y == 1, probability, 1 - probability)).mean())


def main(names: Sequence[str], sizes: Sequence[str] = SIZES, docs: Path = DOCS) -> None:
    """Measure what the file has not, and write the document.

    Parameters
    ----------
    names : sequence of str
        Tables, of `NAMES`.
    sizes : sequence of str
        Such as "30000x100".
    docs : Path
        Holds results/; the document is written there.
    """
    file = docs / "results" / FILE
    cases = json.loads(file.read_text(encoding="utf-8"))["cases"] if file.exists() else []
    for size in sizes:
        for name in names:
            for method in METHODS:
                case = {"size": size, "table": name, "method": method}
                if any(case.items() <= each.items() for each in cases):
                    continue
                asked = [method, name, *size.split("x")]
                command = [sys.executable, "-m", "gpu.benchmarks.large_tables", "--alone", *asked]
                made = {"load": round(os.getloadavg()[0], 1), "commit": describe(())["commit"]}
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                cases.append(case | json.loads(done.stdout.splitlines()[-1]) | made)
                print(cases[-1], flush=True)
                save(file, COMMAND, {"cases": cases})
    rows = [
        [each for each in cases if (each["size"], each["table"]) == key]
        for key in sorted({(each["size"], each["table"]) for each in cases}, key=_place)
    ]
    template = "gpu/benchmarks/large_tables.md.jinja"
    documents.write(docs / "large_tables.md", template, rows=rows, cases=cases)


def _place(key: tuple[str, str]) -> tuple[list[int], int]:
    """Where a size and a table stand on the page."""
    size, name = key
    return [int(number) for number in size.split("x")], NAMES.index(name)


if __name__ == "__main__":
    parser = docs_options(__doc__, NAMES)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="NxP")
    if sys.argv[1:2] == ["--alone"]:
        method, name, n, p = sys.argv[2:]
        print(json.dumps(measure(method, name, int(n), int(p))))
    else:
        given = parser.parse_args()
        main(given.names, given.sizes, given.docs)
