"""Intervals on tables of others, where the truth is what a model learned from their labels.

    OMP_NUM_THREADS=1 python -m docs.studies.coverage.learned_truths FOLDER
        [--tables 24] [--rows 1000] [--seed 3] [--jobs 2] [--again]

Columns are as they come, ties, tails and correlations included, and so is what labels depend on, as
far as a model finds it. FOLDER and its tables are those of
`docs.studies.calibration.random_tables`, in another random order. Models of four shapes are fitted
to a table's own labels; each is a truth, from which other labels are drawn. Two thirds of the rows
are for training, and intervals are asked of the others. Writes docs/results/learned_truths.json,
table after table, and the tables of docs/learned_truths.md. A run that was ended goes on where it
was.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from bootprob.runtime.arrays import Bools, Floats
from docs.studies.calibration.random_tables import (
    Drawn,
    command_line,
    drawn_tables,
    measured_tables,
    write_tables,
)
from docs.studies.coverage.known_truth import KnownTruth
from docs.studies.coverage.other_intervals import measure
from docs.studies.coverage.other_intervals_page import WANTED
from gpu.benchmarks.common.places import DOCS
from gpu.benchmarks.common.tables import NONE, markdown

__all__ = ["COMPARED", "PAGE", "RESULTS", "SHAPES", "main", "measured", "tables_of"]

RESULTS = DOCS / "results" / "learned_truths.json"
PAGE = DOCS / "learned_truths.md"
_COMMAND = "python -m docs.studies.coverage.learned_truths"

COMPARED = ("BootstrapSVC", "BART", "Gaussian process", "LightGBM, bootstrap", "logistic, Wald")
_OURS, _WARNINGS = COMPARED[0], ("LackOfFitWarning", "FewRowsWarning")

TRAINED = 2 / 3  # of the rows
OF_A_CLASS = 20  # training rows, at least
SURE = 1e-9  # nearer to 0 or 1 no probability of a truth is, so that it has a logit
SHORT = 0.85  # coverage of nominal 95 % that a user should have been warned of


def _tuned(model: Any, **grid: list[Any]) -> GridSearchCV:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring="neg_log_loss", cv=folds)


def _logistic(*steps: Any, **grid: list[Any]) -> GridSearchCV:
    model = make_pipeline(StandardScaler(), *steps, LogisticRegression(max_iter=5000))
    return _tuned(model, logisticregression__C=[10.0**k for k in range(-3, 3)], **grid)


def _boosting() -> GridSearchCV:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(learning_rate=0.05, n_jobs=1, verbose=-1, random_state=0)
    return _tuned(model, n_estimators=[25, 50, 100, 200], num_leaves=[3, 7, 15])


SHAPES = {
    "a plane": _logistic,
    "a curve for each column": lambda: _logistic(
        SplineTransformer(n_knots=4, degree=2, knots="quantile", extrapolation="linear")
    ),
    "a smooth surface": lambda: _logistic(
        Nystroem(n_components=150, random_state=0), nystroem__gamma=[0.003, 0.01, 0.03, 0.1]
    ),
    "boosted trees": _boosting,
}
"""Models by what their probabilities look like over the columns, tuned by log-loss."""


def main(given: argparse.Namespace) -> None:
    """Measure what is missing and write the page, by a `command_line`."""
    settings = {"rows": given.rows, "seed": given.seed}
    drawn = _fitting(drawn_tables(given.folder, given.rows, given.seed))
    results = measured_tables(RESULTS, _COMMAND, settings, drawn, measured, given)
    write_tables(PAGE, tables_of(results))


def _fitting(tables: Iterator[tuple[str, Drawn]]) -> Iterator[tuple[str, Drawn]]:
    """Those with so many rows of a class that a third of them may be set aside."""
    for name, (X, positive) in tables:
        if TRAINED * min(positive.sum(), (~positive).sum()) >= OF_A_CLASS:
            yield name, (X, positive)


def measured(X: Floats, positive: Bools, seed: int) -> dict[str, Any]:
    """What each method does on truths learned from a table, of which a third is set aside.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    positive : ndarray, shape (n,)
    seed : int
        Of labels and of what is set aside.

    Returns
    -------
    dict
        Training "rows", "columns", and "truths": by shape and method "coverage" and mean "width" of
        the intervals or the "failure", "seconds" and "warnings". A shape whose labels have fewer
        than `OF_A_CLASS` training rows of a class is not there.
    """
    truths = {}
    for number, (shape, make) in enumerate(SHAPES.items()):
        truth = _learned(shape, make(), X, positive)
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(X))
        training, new = np.split(order, [round(TRAINED * len(X))])
        y = (random.uniform(size=len(X)) < truth.probability(X)).astype(np.int64)
        if min(y[training].sum(), (1 - y[training]).sum()) < OF_A_CLASS:
            continue
        drawn = 0, X[training], y[training], X[new]
        truths[shape] = {name: _of(measure(name, truth, drawn)) for name in COMPARED}
    return {"rows": round(TRAINED * len(X)), "columns": X.shape[1], "truths": truths}


def _learned(shape: str, search: GridSearchCV, X: Floats, positive: Bools) -> KnownTruth:
    model = search.fit(X, positive)

    def predictor(rows: Floats) -> Floats:
        p = model.predict_proba(rows)[:, 1].clip(SURE, 1 - SURE)
        return np.log(p / (1 - p))  # joblib's workers do not know SciPy's functions of this module

    return KnownTruth(shape, len(X), X.shape[1], predictor)


def _of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a method on one truth."""
    kept = {"seconds": found["seconds"], "warnings": [*found["warnings"]]}
    if "failure" in found:
        return kept | {"failure": found["failure"]}
    true, lower, upper = found["true"], found["lower"], found["upper"]
    covered = (lower <= true) & (true <= upper)
    return kept | {
        "coverage": round(float(covered.mean()), 4),
        "width": round(float((upper - lower).mean()), 4),
    }


def tables_of(results: Mapping[str, Any]) -> dict[str, str]:
    """The tables of the page by the name of their places."""
    found = {
        shape: [t["truths"][shape] for t in results["tables"].values() if shape in t["truths"]]
        for shape in SHAPES
    }
    found["all"] = [each for of_shape in found.values() for each in of_shape]
    lines = [
        [name, *(_coverage_and_width(each, name) for each in found.values())] for name in COMPARED
    ]
    header = ["", *(f"{shape} ({len(each)})" for shape, each in found.items())]
    warned = [
        [f"`{_OURS}` covers {what}", *(_warned(each, low, high) for each in found.values())]
        for what, low, high in (
            ("less than 85 %", 0.0, SHORT),
            ("85 to 93 %", SHORT, WANTED),
            ("93 % or more", WANTED, 1.01),
        )
    ]
    return {"coverage": markdown(header, lines), "warned": markdown(header, warned)}


def _coverage_and_width(truths: Sequence[Mapping[str, Any]], name: str) -> str:
    """Means of those that have an interval, and how many have none."""
    whole = [each[name] for each in truths if "failure" not in each[name]]
    coverage, width = (np.array([each[key] for each in whole]) for key in ("coverage", "width"))
    chance = coverage.std(ddof=1) / len(whole) ** 0.5 if len(whole) > 1 else np.nan
    failed = len(truths) - len(whole)
    found = f"{coverage.mean():.3f} ± {chance:.3f} / {width.mean():.3f}"
    return found + (f" ({failed} failed)" if failed else "")


def _warned(truths: Sequence[Mapping[str, Any]], low: float, high: float) -> str:
    """How many of the truths that are covered so often, and of which of them a warning told."""
    found = [each[_OURS] for each in truths if low <= each[_OURS]["coverage"] < high]
    told = sum(not set(_WARNINGS).isdisjoint(each["warnings"]) for each in found)
    return f"{len(found)}, warned of {told}" if found else NONE


if __name__ == "__main__":
    main(command_line(__doc__, tables=24, seed=3))
