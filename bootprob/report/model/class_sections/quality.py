"""How good are the probabilities of several classes? All together, and each against the rest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.out_of_bag_metrics import out_of_bag_class_intervals
from bootprob.metrics.class_intervals import class_metric_intervals
from bootprob.metrics.intervals import metric_intervals
from bootprob.metrics.intraclass import intraclass_correlation
from bootprob.metrics.reliability import calibration_error_by_chance
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION", "decided_out_of_bag"]


def decided_out_of_bag(of: Measured) -> NDArray[np.intp]:
    """The class that each training row is given by the replicates that did not see it, (n,)."""
    return np.argmax(of.model.oob_decision_function_, axis=1)


def _content(of: Measured) -> dict[str, Any]:
    model, decided = of.model, decided_out_of_bag(of)
    known = np.isfinite(of.probability).all(axis=1) & (model.sample_weight_ > 0)
    metrics = out_of_bag_class_intervals(model, of.level)
    K = len(model.classes_)
    return {
        "metrics": {name: asdict(metric) for name, metric in metrics.items()},
        "classes": [_of_class(of, k, decided == k) for k in range(K)],
        "confusion": _confusion(model.y_[known], decided[known], K),
        "held_out": _held_out(of),
    }


def _of_class(of: Measured, k: int, decided: NDArray[np.bool_]) -> dict[str, Any] | None:
    """One class against the rest; None where no row of it, or of the rest, was out of bag."""
    model, p, own = of.model, of.probability[:, k], of.model.y_ == k
    counted = np.isfinite(p) & (model.sample_weight_ > 0)
    if not own[counted].any() or own[counted].all():
        return None
    weight, groups = model.sample_weight_, model.groups_
    found = metric_intervals(own, p, weight, of.level, decided=decided, groups=groups)
    correlation = 0.0
    if groups is not None:
        rows = own[counted], p[counted], weight[counted], groups[counted]
        correlation = intraclass_correlation(*rows)
    mean, upper = calibration_error_by_chance(p, weight, groups=groups, correlation=correlation)
    given = decided & counted
    return {
        "n_rows": int((own & counted).sum()),
        "n_decided": int(given.sum()),
        "n_right": int((own & given).sum()),
        "metrics": {name: asdict(metric) for name, metric in found.items()},
        "calibration_error_by_chance": {"mean": mean, "upper": upper},
    }


def _confusion(codes: NDArray[np.integer], decided: NDArray[np.integer], K: int) -> list[list[int]]:
    """Rows, not weights, by true class and decision."""
    return np.bincount(codes * K + decided, minlength=K * K).reshape(K, K).tolist()


def _held_out(of: Measured) -> dict[str, Any] | None:
    """Metrics on rows set aside, and what they are decided to be; None where there are none."""
    model, held_out = of.model, of.held_out
    if held_out is None:
        return None
    codes, probability = held_out.codes(model), model.predict_proba(held_out.X)
    decided = _positions(model.classes_, model.predict(held_out.X))
    metrics = class_metric_intervals(codes, probability, level=of.level, decided=decided)
    return {
        "n_rows": len(codes),
        "n_of_class": np.bincount(codes, minlength=len(model.classes_)),
        "metrics": {name: asdict(metric) for name, metric in metrics.items()},
        "confusion": _confusion(codes, decided, len(model.classes_)),
    }


def _positions(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    place = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in labels.tolist()])


SECTION = Section("quality", "Quality", _content, folder="class_sections")
