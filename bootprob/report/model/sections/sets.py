"""Which classes cannot be excluded? Prediction sets of the training rows and of rows set aside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.conformal import prediction_sets, sets_of
from bootprob.ensemble.out_of_bag_sets import out_of_bag_p_values
from bootprob.intervals.shares import effective_rows, exact_interval
from bootprob.report.model.sections.section import Measured, Section
from bootprob.runtime.groups import Groups

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    """How large sets are and how often they hold the true class, of all rows and of each class."""
    p_values, model, held_out = out_of_bag_p_values(of.model), of.model, of.held_out
    if p_values is None:
        return {"sets": None}
    known = np.isfinite(p_values).all(axis=1)
    if not known.any():
        return {"sets": None}
    groups = None if model.groups_ is None else model.groups_[known]
    left_out = sets_of(p_values[known], of.level)
    found = {"level": of.level, "out_of_bag": _told(left_out, model.y_[known], of.level, groups)}
    found["held_out"] = None
    if held_out is not None:
        sets = prediction_sets(model, held_out.X, of.level)
        found["held_out"] = _told(sets, held_out.codes(model), of.level)
    return {"sets": found}


def _told(
    sets: NDArray[np.bool_], codes: NDArray[np.integer], level: float, groups: Groups | None = None
) -> list[dict[str, Any]]:
    """Of all rows, and of those of each class."""
    every = np.ones(len(codes), dtype=bool)
    members = [every, *(codes == k for k in range(sets.shape[1]))]
    return [_of_rows(sets, codes, rows, level, groups) for rows in members]


def _of_rows(
    sets: NDArray[np.bool_],
    codes: NDArray[np.integer],
    rows: NDArray[np.bool_],
    level: float,
    groups: Groups | None,
) -> dict[str, Any]:
    n = int(rows.sum())
    if n == 0:
        return {"n_rows": 0}
    sizes, covered = sets[rows].sum(axis=1), sets[rows, codes[rows]]
    n_rows = effective_rows(np.ones(n), None if groups is None else groups[rows])
    lower, upper = exact_interval(float(covered.mean()), n_rows, level)
    return {
        "n_rows": n,
        "none": float((sizes == 0).mean()),
        "one": float((sizes == 1).mean()),
        "several": float((sizes > 1).mean()),
        "mean_size": float(sizes.mean()),
        "covered": {"value": float(covered.mean()), "lower": lower, "upper": upper},
    }


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["sets"] for model in content["models"])


SECTION = Section("sets", "Prediction sets", _content, is_shown=_is_shown)
