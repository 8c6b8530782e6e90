"""What later rows have told of a model, and what of it was changed by them."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    return {"history": of.model.history_ or []}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["history"] for model in content["models"])


SECTION = Section("updates", "Since the fit", _content, is_shown=_is_shown)
