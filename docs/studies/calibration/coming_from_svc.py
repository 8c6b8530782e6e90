"""`SVC(probability=True)`, what scikit-learn wants in its place, and `BootstrapSVC` side by side.

    python -m docs.studies.calibration.coming_from_svc

Five stratified folds of tables of scikit-learn. Writes docs/results/coming_from_svc.json and the
table of docs/coming_from_svc.md. Time is that of the processor: a busy machine hardly changes it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import BootstrapSVC
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.study_results import save
from gpu.benchmarks.common.tables import figures, in_place, markdown

__all__ = ["METHODS", "PAGE", "RESULTS", "main", "measure", "table_of"]

RESULTS = DOCS / "results" / "coming_from_svc.json"
PAGE = DOCS / "coming_from_svc.md"
_COMMAND = "python -m docs.studies.calibration.coming_from_svc"


def _svc(**given: Any) -> Any:
    return make_pipeline(StandardScaler(), SVC(**given))


METHODS: dict[str, Callable[[], ClassifierMixin]] = {
    "`SVC(probability=True)`": lambda: _svc(probability=True, random_state=0),
    "`CalibratedClassifierCV(SVC(), ensemble=False)`": lambda: CalibratedClassifierCV(
        _svc(), ensemble=False
    ),
    '`BootstrapSVC(effort="low")`': lambda: BootstrapSVC(effort="low", random_state=0),
    "`BootstrapSVC()`": lambda: BootstrapSVC(random_state=0),
}


def _diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


def _digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    return X[kept], (y[kept] == 8).astype(int)


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "diabetes above the median": _diabetes,
    "digits, 3 or 8": _digits,
}


def measure(make: Callable[[], Any], X: Any, y: Any, folds: int = 5) -> dict[str, Any]:
    """What one method makes of all rows, each by a model that has not seen it.

    Returns
    -------
    dict
        Log-loss, Brier score, rows whose predicted class is not the more probable one, and seconds
        of the processor for a fit and its probabilities.
    """
    probability, decided, seconds = np.empty(len(y)), np.empty(len(y), dtype=int), 0.0
    splits = StratifiedKFold(folds, shuffle=True, random_state=0)
    for train, test in splits.split(X, y):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The `probability` parameter", FutureWarning)
            model = make().fit(X[train], y[train])
            probability[test] = model.predict_proba(X[test])[:, 1]
        seconds += time.process_time() - began
        decided[test] = model.predict(X[test])
    return {
        "log_loss": float(log_loss(y, probability)),
        "brier_score": float(brier_score_loss(y, probability)),
        "contradictions": int(((probability > 0.5) != decided).sum()),
        "seconds": seconds / folds,
    }


def table_of(results: dict[str, Any]) -> str:
    """The table of the page."""
    rows = []
    for name, found in results["tables"].items():
        for method, said in found["methods"].items():
            rows.append(
                [
                    f"{name}, {found['rows']} × {found['columns']}",
                    method,
                    f"{said['log_loss']:.3f}",
                    f"{said['brier_score']:.4f}",
                    str(said["contradictions"]),
                    figures(said["seconds"], 2),
                ]
            )
    header = ["table", "", "log-loss", "Brier score", "contradictions", "seconds a fit"]
    return markdown(header, rows)


def main() -> None:
    results: dict[str, Any] = {"tables": {}}
    _svc().fit(
        *load_breast_cancer(return_X_y=True)
    )  # what is loaded or compiled once is not a fit's
    BootstrapSVC(n_bootstraps=20, effort="low").fit(*load_breast_cancer(return_X_y=True))
    for name, made in TABLES.items():
        X, y = made()
        results["tables"][name] = {
            "rows": len(X),
            "columns": X.shape[1],
            "methods": {method: measure(make, X, y) for method, make in METHODS.items()},
        }
        print(name, results["tables"][name], flush=True)
    save(RESULTS, _COMMAND, results)
    text = PAGE.read_text(encoding="utf-8")
    text = in_place(text, "<!-- table -->\n", "<!-- end -->", f"\n{table_of(results)}\n\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
