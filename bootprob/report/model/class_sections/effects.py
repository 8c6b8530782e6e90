"""What do the probabilities of the classes depend on? Importance of columns, and curves."""

from __future__ import annotations

from typing import Any

from bootprob.report.model.column_effects import class_effects
from bootprob.report.model.sections.effects import curves, importance
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture

__all__ = ["SECTION"]

_CLASSES = 6  # with curves


def _content(of: Measured) -> dict[str, Any]:
    given = of.model, of.explained, of.training, of.held_out, of.level
    return {"effects": class_effects(*given, _CLASSES)}


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    effects = of.model["effects"]
    if effects is None:
        return {}
    names = [each["name"] for each in of.content["data"]["classes"]]
    found: dict[str, Picture | None] = {
        f"dependence_{k}": curves(own, of.name(f"d{k}-"), names[k])
        for k, own in enumerate(effects["classes"])
        if own
    }
    return found | {"importance": importance(effects["importance"], of.name("w"))}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["effects"] for model in content["models"])


SECTION = Section(
    "effects", "Effects of columns", _content, _pictures, _is_shown, folder="class_sections"
)
