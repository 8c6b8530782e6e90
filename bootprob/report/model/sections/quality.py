"""How good are the probabilities? Metrics with intervals, and rows by truth and decision."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.out_of_bag_metrics import out_of_bag_intervals
from bootprob.ensemble.out_of_bag_proba import controlled_decisions
from bootprob.metrics.intervals import metric_intervals
from bootprob.metrics.intraclass import intraclass_correlation
from bootprob.metrics.reliability import calibration_error_by_chance
from bootprob.report.model.sections.section import Measured, Section

__all__ = ["SECTION"]


def _content(of: Measured) -> dict[str, Any]:
    model, probability = of.model, of.probability
    y, weights = model.y_, model.sample_weight_
    decided = controlled_decisions(model)
    decided = probability > 0.5 if decided is None else decided
    by_chance, by_chance_upper = calibration_error_by_chance(
        probability, weights, groups=model.groups_, correlation=_correlation(of)
    )
    of_votes = metric_intervals(
        y, model.oob_vote_proba_[:, 1], weights, of.level, groups=model.groups_
    )
    return {
        "metrics": {k: asdict(m) for k, m in out_of_bag_intervals(model, of.level).items()},
        "decision_threshold": model.decision_threshold_,
        "vote_metrics": {k: asdict(m) for k, m in of_votes.items()},
        "calibration_error_by_chance": {"mean": by_chance, "upper": by_chance_upper},
        "confusion": _confusion(y == 1, decided, np.isfinite(probability) & (weights > 0)),
    }


def _correlation(of: Measured) -> float:
    """Of the labels of a group's rows."""
    model, known = of.model, np.isfinite(of.probability) & (of.model.sample_weight_ > 0)
    if model.groups_ is None:
        return 0.0
    rows = model.y_ == 1, of.probability, model.sample_weight_, model.groups_
    return intraclass_correlation(*(each[known] for each in rows))


def _confusion(
    positive: NDArray[np.bool_], decided: NDArray[np.bool_], known: NDArray[np.bool_]
) -> dict[str, int]:
    """Rows, not weights, by true class and decision; rows never out of bag are left out."""
    return {
        "true_positive": int((decided & positive & known).sum()),
        "false_negative": int((~decided & positive & known).sum()),
        "false_positive": int((decided & ~positive & known).sum()),
        "true_negative": int((~decided & ~positive & known).sum()),
    }


SECTION = Section("quality", "Quality", _content)
