"""Everything that a loaded model can be asked, and what must hold of every answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob import BootstrapSVC
from bootprob.ensemble.conformal import conformal_p_values
from bootprob.ensemble.out_of_bag_metrics import out_of_bag_class_intervals
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.exceptions import BootprobError
from bootprob.intervals import OF_SCORES, OF_VOTES
from bootprob.metrics.intervals import MetricInterval
from bootprob.tables.model import TableModel
from bootprob_gpu import InputError
from mixed_tables import credit_table

__all__ = ["ask"]

Question = Callable[[], str]

_ROUNDING = 1e-9


def ask(model: BootstrapSVC | TableModel, rng: np.random.Generator) -> tuple[bool, str]:
    """Ask a model about rows within a million standard deviations, and about its own.

    Returns
    -------
    refused : bool
        Whether the model itself answered something with a typed error. (What is not for models of
        its kind is not counted.)
    violation : str
        What is wrong with an answer, or nothing.
    """
    svc = model.svc if isinstance(model, TableModel) else model
    rows = rng.normal(size=(4, svc.n_features_in_))
    rows[3] *= 1e6
    level = float(rng.choice([0.5, 0.95, 1 - 1e-9]))
    refused = False
    questions = _of_rows(svc, svc.center_ + svc.scale_ * rows, level, rng)
    questions |= _of_fit(svc, level, metrics=rng.random() < 0.4)  # the slowest by far
    if isinstance(model, TableModel):
        table = credit_table(4, seed=int(rng.integers(2**31)))
        questions["table"] = lambda: _of_table(model, table, level)
    for name, question in questions.items():
        try:
            wrong = question()
        except (BootprobError, InputError):
            refused = True
        else:
            if wrong:
                return refused, f"{name} {wrong}"
    return refused, ""


def _evidence(entry: dict[str, Any]) -> str:
    found = np.array([*entry["e_values"].values()])
    return "" if np.isfinite(found).all() and (found >= 1).all() else f"is {found}"


def _of_rows(
    svc: BootstrapSVC, X: NDArray[np.float64], level: float, rng: np.random.Generator
) -> dict[str, Question]:
    several = len(svc.classes_) > 2
    methods = OF_PROBABILITIES if svc.calibration is not None else ()
    if not several:
        methods += OF_VOTES
    elif methods:
        methods = tuple(name for name in methods if name != "venn-abers")
    of_class = getattr(svc, "recalibration_", None) is not None
    p_values = partial(conformal_p_values, svc, X, class_conditional=of_class)
    questions: dict[str, Question] = {
        "probability": lambda: _probability(svc.predict_proba(X)),
        "votes": lambda: _probability(svc.vote_proba(X)),
        "score": lambda: _finite(svc.decision_function(X)),
        "label": lambda: "is no class" * (not np.isin(svc.predict(X), svc.classes_).all()),
        "p-value": lambda: _share(p_values()),
        "p-value of the ensemble": lambda: _share(p_values(weights="ensemble")),
        "set": lambda: (
            "is of no shape"
            * (svc.prediction_sets(X, class_conditional=of_class).shape != (4, len(svc.classes_)))
        ),
    }
    if getattr(svc, "monitor_", None) is not None:
        labels = svc.classes_[rng.integers(2, size=len(X))]
        questions["evidence"] = lambda: _evidence(svc.watched(X, labels).history_[-1])
    for name in methods:
        found = partial(svc.proba_interval, X, level, name)
        questions[f"interval {name!r}"] = partial(_asked, _interval, found, share=name != "wald")
    if several:
        return questions
    questions["summary"] = lambda: _summary(svc.summarize(X, level))
    for name in OF_SCORES:
        found = partial(svc.score_interval, X, level, name)
        questions[f"score interval {name!r}"] = partial(_asked, _interval, found, share=False)
    return questions


def _limits(found: dict[str, MetricInterval]) -> np.ndarray:
    return np.array([(each.value, each.lower, each.upper) for each in found.values()])


def _of_fit(svc: BootstrapSVC, level: float, *, metrics: bool) -> dict[str, Question]:
    """What a model says of its own rows, where NaN is for rows that were never out of bag."""
    if len(svc.classes_) > 2:
        found = partial(out_of_bag_class_intervals, svc, level)
        return {"metrics": lambda: _finite(_limits(found()))} if metrics else {}
    known = np.isfinite(svc.oob_decision_function_) & np.isfinite(svc.oob_score_variance_)
    known &= np.isfinite(svc.oob_jackknife_variance_) & np.isfinite(svc.oob_proba_).all(axis=1)
    questions: dict[str, Question] = {}
    if metrics:
        questions["metrics"] = lambda: _finite(_limits(svc.metric_intervals(level)))
    if svc.calibration is not None:
        for name in ("corrected", "normal", "jackknife", "venn-abers"):
            found = partial(svc.oob_proba_interval, level, name)
            questions[f"out-of-bag interval {name!r}"] = partial(
                _asked, lambda bounds: _interval(bounds[known]), found
            )
    return questions


def _of_table(model: TableModel, table: Any, level: float) -> str:
    found = model.predict(table, level, sets=0.9)
    gaps = bool(found.isna().any(axis=None))
    return _finite(found.select_dtypes("f").to_numpy()) or "has gaps" * gaps


def _asked(check: Callable[..., str], found: Callable[[], Any], **options: Any) -> str:
    return check(found(), **options)


def _finite(numbers: NDArray[np.float64]) -> str:
    return "" if np.isfinite(numbers).all() else "is not finite"


def _share(numbers: NDArray[np.float64]) -> str:
    within = bool(((numbers >= -_ROUNDING) & (numbers <= 1 + _ROUNDING)).all())
    return _finite(numbers) or "is not between 0 and 1" * (not within)


def _probability(numbers: NDArray[np.float64]) -> str:
    return _share(numbers) or "does not sum to 1" * (not np.allclose(numbers.sum(axis=1), 1))


def _interval(bounds: NDArray[np.float64], *, share: bool = True) -> str:
    upside_down = (bounds[..., 0] > bounds[..., 1]).any()
    return (_share if share else _finite)(bounds) or "is upside down" * bool(upside_down)


def _summary(found: dict[str, NDArray[Any]]) -> str:
    return (
        _share(found["probability"])
        or _finite(found["probability_interval"])
        or _finite(found["score"])
        or _interval(found["score_interval"], share=False)
    )
