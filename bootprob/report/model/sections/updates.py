"""What later rows have told of a model, and what of it was changed by them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bootprob.metrics.intervals import metric_intervals
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    now = None
    if of.now is not None and of.held_out is not None:
        positive = of.held_out.positive_rows(of.now)
        probability = of.now.predict_proba(of.held_out.X)[:, 1]
        decided = probability > of.now.decision_threshold_
        found = metric_intervals(positive, probability, level=of.level, decided=decided)
        now = {name: asdict(each) for name, each in found.items()}
    return {"history": of.model.history_ or [], "held_out_now": now}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["history"] for model in content["models"])


SECTION = Section("updates", "Since the fit", _content, is_shown=_is_shown)
