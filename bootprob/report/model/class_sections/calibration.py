"""Can the probability of a class be taken at its word? Each class against the rest."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bootprob.report.model.sections.calibration import diagram, reliability
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture

__all__ = ["SECTION"]

_DRAWN = 12  # classes with a figure; the numbers of all are in the JSON


def _content(of: Measured) -> dict[str, Any]:
    classes, counted = range(len(of.model.classes_)), of.model.sample_weight_ > 0
    if not np.isfinite(of.probability[counted]).any():
        return {"reliability": [None for _ in classes]}
    curves = [reliability(of, of.model.y_ == k, of.probability[:, k]) for k in classes]
    return {"reliability": curves}


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    stated: Literal["probability", "vote"] = (
        "vote" if of.model["calibration"] is None else "probability"
    )
    names = [each["name"] for each in of.content["data"]["classes"]]
    return {
        f"reliability_{k}": curve and diagram({stated: curve}, stated, of.name(f"r{k}-"), name)
        for k, (curve, name) in enumerate(
            zip(of.model["reliability"][:_DRAWN], names, strict=False)
        )
    }


SECTION = Section("calibration", "Calibration", _content, _pictures, folder="class_sections")
