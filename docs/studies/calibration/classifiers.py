"""What users would take instead: classifiers by name, plain and calibrated; how one is measured.

A classifier that is to be compared is a line of `OURS` or of `PEERS`. Peers are packages of their
own, imported where they are trained.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.runtime.arrays import Bools, Floats
from docs.studies.calibration.methods import CALIBRATED, tuned_svc

__all__ = [
    "BLOCK",
    "CLASSIFIERS",
    "INNER_FOLDS",
    "OURS",
    "PACKAGES",
    "PEERS",
    "SCORED",
    "WIDEST",
    "Classifier",
    "check_set_up",
    "distribution",
    "measure",
    "seconds_of_scoring",
]

INNER_FOLDS = 5
"""Of searches and of CalibratedClassifierCV."""

SCORED = 100_000
"""Rows of which the time of prediction is given."""

BLOCK = 5_000
"""Rows that are predicted at a time."""

PATIENCE = 10.0
"""Seconds of prediction after which no block is begun; the rest is in proportion."""

WIDEST = 1_000
"""Columns beyond which CatBoost, which takes minutes for a small fit of 7,000, and explainable
boosting, which looks at all pairs, are not asked."""

SMALL_STEPS: dict[str, Any] = {"n_estimators": 200, "learning_rate": 0.03}

Make = Callable[[int], Any]
"""An estimator that is not fitted, from a seed."""

Search = Callable[[Floats, Bools, StratifiedKFold, int], tuple[Any, str]]
"""An estimator that is not fitted and what was chosen, from training rows, inner folds and seed."""


@dataclass(frozen=True)
class Classifier:
    """A model with its search, and the calibrations that are put around it.

    Attributes
    ----------
    search : callable
        See `Search`.
    plain : bool
        Whether the probabilities of the model itself are compared.
    calibrations : tuple of str
        Of `CALIBRATED`. What the search found is calibrated, it is not searched again.
    package : str, optional
        What must be installed.
    widest : int, optional
        Tables with more columns are left out.
    slow : bool
        Whether it is measured after all others on all tables, which are shown without it till then.
    """

    search: Search
    plain: bool = True
    calibrations: tuple[str, ...] = ()
    package: str | None = None
    widest: int | None = None
    slow: bool = False

    def methods(self, name: str) -> list[str]:
        """Names of what is compared, by the name of the classifier."""
        plain = [name] if self.plain else []
        return plain + [f"{name}, {calibration}" for calibration in self.calibrations]

    def takes(self, columns: int) -> bool:
        """Whether it is asked about tables of so many columns."""
        return self.widest is None or columns <= self.widest


def _as_it_is(make: Make) -> Search:
    return lambda X, positive, splitter, seed: (make(seed), "")


def _tuned(make: Make, grid: Mapping[str, list[Any]]) -> Search:
    """The grid's member with the lowest log-loss over the inner folds."""

    def search(X: Floats, positive: Bools, splitter: Any, seed: int) -> tuple[Any, str]:
        model = make(seed)
        found = GridSearchCV(model, dict(grid), scoring="neg_log_loss", cv=splitter, refit=False)
        best = found.fit(X, positive).best_params_
        chosen = ", ".join(f"{key.rpartition('__')[2]} {value:g}" for key, value in best.items())
        return model.set_params(**best), chosen

    return search


def _svc(kernel: str) -> Search:
    """The SVC of the comparison of calibrations."""

    def search(X: Floats, positive: Bools, splitter: Any, seed: int) -> tuple[Any, str]:
        svc, C = tuned_svc(X, positive, kernel, splitter)
        return svc, f"C {C:g}"

    return search


def _ours(slow: bool = False, **options: Any) -> Classifier:
    return Classifier(_as_it_is(lambda seed: BootstrapSVC(random_state=seed, **options)), slow=slow)


def _lightgbm(**options: Any) -> Make:
    def make(seed: int) -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1, **options)

    return make


def _catboost(**options: Any) -> Make:
    def make(seed: int) -> Any:
        from catboost import CatBoostClassifier

        fixed = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
        return CatBoostClassifier(random_seed=seed, **fixed, **options)

    return make


def _around(make: Callable[[int], Any], samples: int) -> Classifier:
    """Ours around classifiers of others."""

    def around(seed: int) -> Any:
        return BootstrapClassifier(make(seed), n_bootstraps=samples, random_state=seed)

    return Classifier(_as_it_is(around), package="lightgbm", slow=True)


def _several(seed: int) -> list[Any]:
    """Kernels, trees and a plane."""
    svc, forest = BootstrapSVC(effort="low"), RandomForestClassifier(100, n_jobs=1)
    return [svc, _lightgbm(**SMALL_STEPS)(seed), forest, _logistic(seed)]


def _explainable_boosting(seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed, n_jobs=1)


def _logistic(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000, random_state=seed))


def _stack(seed: int) -> Any:
    """Both kinds of boosting, a forest and a plane, joined by what is out of fold.

    As AutoGluon joins models (N. Erickson et al., arXiv:2003.06505), but that a logistic regression
    finds their weights.
    """
    catboost = _catboost(iterations=200, learning_rate=SMALL_STEPS["learning_rate"])
    models = {
        "LightGBM": _lightgbm(**SMALL_STEPS)(seed),
        "CatBoost": catboost(seed),
        "forest": RandomForestClassifier(500, n_jobs=1, random_state=seed),
        "logistic": _logistic(seed),
    }
    return StackingClassifier(
        list(models.items()),
        LogisticRegression(max_iter=5000),
        cv=StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed),
        stack_method="predict_proba",
    )


def _boosting(
    name: str,
    package: str,
    make: Callable[..., Make],
    trees: str,
    leaves: str,
    sizes: list[int],
    widest: int | None = None,
) -> dict[str, Classifier]:
    """Boosting as it is, with small steps, and tuned; each calibrated too."""
    slow: dict[str, Any] = {trees: 200, "learning_rate": 0.03}
    grid = {trees: [100, 300], "learning_rate": [0.03, 0.1], leaves: sizes}
    searches = {
        name: _as_it_is(make()),
        f"{name}, small steps": _as_it_is(make(**slow)),
        f"{name}, tuned": _tuned(make(), grid),
    }
    options: dict[str, Any] = {"calibrations": (SIGMOID,), "package": package, "widest": widest}
    return {key: Classifier(search, **options) for key, search in searches.items()}


SIGMOID = "sigmoid, ensemble"
"""scikit-learn's default."""

OURS = {
    "BootstrapSVC": _ours(),
    "BootstrapSVC, linear": _ours(kernel="linear"),
    "BootstrapSVC, RBF": _ours(slow=True, kernel="rbf", gamma="grid"),
    "BootstrapClassifier, LightGBM": _around(_lightgbm(**SMALL_STEPS), 50),
    "BootstrapClassifier, four kinds": _around(_several, 30),
}
"""Estimators of this package; the first is the default."""

PEERS = {
    **_boosting("LightGBM", "lightgbm", _lightgbm, "n_estimators", "num_leaves", [7, 31]),
    **_boosting("CatBoost", "catboost", _catboost, "iterations", "depth", [4, 6], widest=WIDEST),
    "HistGradientBoosting": Classifier(
        _as_it_is(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
        calibrations=(SIGMOID,),
    ),
    "random forest": Classifier(
        _as_it_is(lambda seed: RandomForestClassifier(500, n_jobs=1, random_state=seed)),
        calibrations=(SIGMOID,),
    ),
    "logistic regression": Classifier(_as_it_is(_logistic)),
    "logistic regression, tuned": Classifier(
        _tuned(_logistic, {"logisticregression__C": [10.0**k for k in range(-3, 4)]})
    ),
    "stack of four": Classifier(_as_it_is(_stack), package="catboost", widest=WIDEST, slow=True),
    "explainable boosting": Classifier(
        _as_it_is(_explainable_boosting), package="interpret", widest=WIDEST, slow=True
    ),
    "linear SVC": Classifier(_svc("linear"), plain=False, calibrations=tuple(CALIBRATED)),
    "RBF SVC": Classifier(_svc("rbf"), plain=False, calibrations=tuple(CALIBRATED)),
}
"""What users would take instead."""

CLASSIFIERS = OURS | PEERS

PACKAGES = {"lightgbm": "lightgbm", "catboost": "catboost", "interpret": "interpret-core"}
"""Distributions of the modules that peers need."""


def distribution(name: str) -> str:
    """What is to be installed for a classifier, and whose version counts."""
    if name in OURS:
        return "bootprob"
    package = CLASSIFIERS[name].package
    return "scikit-learn" if package is None else PACKAGES[package]


def check_set_up(names: Iterable[str]) -> None:
    """Leave the program unless it has one thread and what these classifiers need is installed."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("Times are those of one thread: set OMP_NUM_THREADS=1.")
    packages = {CLASSIFIERS[name].package for name in names} - {None}
    missing = sorted(PACKAGES[each] for each in packages if each and find_spec(each) is None)
    if missing:
        raise SystemExit(f"Not installed: {', '.join(missing)}; install the extra 'bench'.")


def measure(
    name: str, X: Floats, positive: Bools, X_new: Floats, *, seed: int, scored: Floats | None = None
) -> dict[str, Any]:
    """Search, train and predict with a classifier, plain and calibrated.

    Parameters
    ----------
    name : str
        Of `CLASSIFIERS`.
    X, positive : ndarray, shape (n, p) and (n,)
        Training rows.
    X_new : ndarray, shape (m, p)
        Rows held out.
    seed : int
        Of the model and of the inner folds.
    scored : ndarray, shape (r, p), optional
        Rows that are repeated to `SCORED`, to measure the time of prediction.

    Returns
    -------
    dict
        For each method "p " and its name: probabilities of the rows held out; "fit " and its
        name: seconds of this process's cores from the search to the fitted model; "predict ", if
        asked for, likewise. "out of bag ": log-loss of ours on the training rows, each left out.
        "chosen" by the search; wall-clock "seconds" and "load" of it all.

    Raises
    ------
    ArithmeticError
        A probability is not a number.
    """
    classifier = CLASSIFIERS[name]
    splitter = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed)
    began, started = time.perf_counter(), time.process_time()
    model, chosen = classifier.search(X, positive, splitter, seed)
    searching = time.process_time() - started
    found: dict[str, Any] = {"chosen": chosen}
    models = {name: model} if classifier.plain else {}
    for calibration in classifier.calibrations:
        models[f"{name}, {calibration}"] = CalibratedClassifierCV(
            model, cv=splitter, **CALIBRATED[calibration]
        )
    for method, estimator in models.items():
        started = time.process_time()
        fitted = estimator.fit(X, positive)
        found[f"fit {method}"] = searching + time.process_time() - started
        probability = np.asarray(fitted.predict_proba(X_new))[:, 1]
        if not np.isfinite(probability).all():
            raise ArithmeticError(f"{method} gave probabilities that are no numbers.")
        found[f"p {method}"] = probability
        if name in OURS:
            found[f"out of bag {method}"] = log_loss(positive, fitted.oob_proba_[:, 1])
        if scored is not None:
            found[f"predict {method}"] = seconds_of_scoring(fitted, scored)
    return found | {
        "seconds": round(time.perf_counter() - began, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def seconds_of_scoring(fitted: Any, X: Floats) -> float:
    """Seconds of a core to predict `SCORED` rows, those of X again and again, block by block.

    After `PATIENCE` no block is begun, and the time is that of the rows done, in proportion.
    """
    done, seconds = 0, 0.0
    while done < SCORED and seconds < PATIENCE:
        block = X[np.arange(done, min(done + BLOCK, SCORED)) % len(X)]
        started = time.process_time()
        fitted.predict_proba(block)
        seconds += time.process_time() - started
        done += len(block)
    return seconds * SCORED / done
