"""What the table was made of: each column, what became of its gaps, and what was left out."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.sections.section import Measured, Section
from bootprob.tables.model import TableModel

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    """None of a model of a matrix. No values are in it: a level may be somebody's name."""
    explained = of.explained
    if isinstance(explained, TableModel):
        preprocessor = explained.preprocessor
    else:
        preprocessor = explained.preprocessor_
    if preprocessor is None:
        return {"columns": None}
    levels, missing = preprocessor.levels_, preprocessor.missing_
    used = [
        {
            "name": name,
            "kind": kind,
            "n_levels": len(levels[name]) if name in levels else None,
            "n_missing": None if missing is None else missing[name],
            "filled_with": "the most frequent one" if name in levels else "the median",
        }
        for name, kind in preprocessor.kinds_.items()
    ]
    left_out = [{"name": name, "reason": reason} for name, reason in preprocessor.dropped_.items()]
    return {"columns": {"used": used, "left_out": left_out}}


def _is_shown(content: dict[str, Any]) -> bool:
    return content["models"][0]["columns"] is not None


SECTION = Section("columns", "Columns", _content, is_shown=_is_shown)
