"""How do models of earlier rows do on later ones? From what `fit` measured, with times."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    return {"later_rows": of.model.later_rows_}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["later_rows"] for model in content["models"])


SECTION = Section("later", "Later rows", _content, is_shown=_is_shown)
