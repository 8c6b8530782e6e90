"""How sure is it of a single row? Widths of the intervals of each class, on rows set aside."""

from __future__ import annotations

from typing import Any

import numpy as np

from bootprob.ensemble.scoring.table_rows import some_rows
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]

_MOST_ROWS = 2000  # of which widths are looked at: more would not be told from these


def _content(of: Measured) -> dict[str, Any]:
    """Of the true class of each row, and of each class over all rows; None without such rows."""
    if of.held_out is None:
        return {"widths": None}
    X, codes = of.held_out.X, of.held_out.codes(of.model)
    rows = np.unique(np.linspace(0, len(codes) - 1, _MOST_ROWS).round().astype(int))
    X, method = some_rows(X, rows), of.model.interval
    found = np.diff(of.model.proba_interval(X, of.level, method), axis=2)[..., 0]
    of_classes = [
        {"all": _quantiles(found[:, k]), "own": _quantiles(found[codes[rows] == k, k])}
        for k in range(len(of.model.classes_))
    ]
    return {"widths": {"n_rows": len(rows), "method": method, "classes": of_classes}}


def _quantiles(widths: Any) -> dict[str, Any] | None:
    if not len(widths):
        return None
    median, ninetieth = np.quantile(widths, [0.5, 0.9])
    return {"n_rows": len(widths), "median": median, "ninetieth": ninetieth}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["widths"] for model in content["models"])


SECTION = Section(
    "widths", "Widths of intervals", _content, is_shown=_is_shown, folder="class_sections"
)
