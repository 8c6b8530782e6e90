"""Rates of classes under control: wanted, reached, and what the other classes pay."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from bootprob.ensemble.controlled_rates import class_rates, class_rates_under_control
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    model, held_out = of.model, of.held_out
    rates = class_rates_under_control(model, of.level)
    if not rates:
        return {"control": None}
    set_aside: list[Any] = [None] * len(rates)
    if held_out is not None:
        codes = held_out.codes(model)
        decided = model.decision_function(held_out.X).argmax(axis=1)
        set_aside = class_rates(codes, decided, np.ones(len(codes)), len(rates), of.level)
    return {
        "control": {
            "method": model.control,
            "offsets": model.class_offsets_,
            "rates": [
                {
                    "class": str(label),
                    "wanted": rate.asked and rate.asked["at_least"],
                    "confidence": rate.asked and rate.asked["confidence"],
                    "bound": rate.asked and rate.asked["bound"],
                    "required_share": rate.asked and rate.asked["required_share"],
                    "out_of_bag": rate.out_of_bag and asdict(rate.out_of_bag),
                    "without_control": rate.without_control and asdict(rate.without_control),
                    "held_out": aside and asdict(aside),
                }
                for label, rate, aside in zip(model.classes_, rates, set_aside, strict=True)
            ],
        }
    }


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["control"] for model in content["models"])


SECTION = Section(
    "control", "Rates under control", _content, is_shown=_is_shown, folder="class_sections"
)
