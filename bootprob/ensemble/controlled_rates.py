"""What control of a rate has come to: for the command line and for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.ensemble.state import State, state_of
from bootprob.metrics.decision_rates import ClassRate, decision_rates
from bootprob.metrics.rates import RateFloor

__all__ = ["ControlledRate", "rates_under_control"]


@dataclass(frozen=True)
class ControlledRate:
    """One of the two rates of a model under control.

    Attributes
    ----------
    rate : {"tpr", "tnr"}
    floor : RateFloor or None
        What was asked for; None for the class that was not controlled.
    required_share : float or None
        Share of the rows at hand that had to be right for it.
    out_of_bag : ClassRate
        Reached by the replicates that did not see a row.
    without_control : ClassRate or None
        What they would reach where the calibrated probability is one half; None where the
        machines themselves were constrained or decisions are made by votes, and it is not known.
    """

    rate: str
    floor: RateFloor | None
    required_share: float | None
    out_of_bag: ClassRate
    without_control: ClassRate | None


def rates_under_control(model: Any, level: float = 0.95) -> list[ControlledRate]:
    """Both rates of a fitted model, the true positive rate first; empty without control.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.
    level : float, default 0.95
        Level of the intervals.
    """
    if model.control is None:
        return []
    state = state_of(model)
    found = {entry["rate"]: entry for entry in state.controlled_rates_}
    reached = _rates(state, model.decision_threshold_, level)
    known = model.control == "threshold" and model.calibration is not None
    without = _rates(state, 0.5, level) if known else {}
    return [
        ControlledRate(
            rate=rate,
            floor=_floor(found[rate]) if rate in found else None,
            required_share=found[rate]["required_share"] if rate in found else None,
            out_of_bag=reached[rate],
            without_control=without.get(rate),
        )
        for rate in ("tpr", "tnr")
    ]


def _floor(entry: dict[str, object]) -> RateFloor:
    names = ("rate", "at_least", "confidence", "bound")
    return RateFloor(*(entry[name] for name in names))  # type: ignore[arg-type]


def _rates(state: State, threshold: float, level: float) -> dict[str, ClassRate]:
    probability = state.oob_proba_[:, 1]
    weight = np.where(np.isfinite(probability), state.sample_weight_, 0.0)
    return decision_rates(state.y_ == 1, probability > threshold, weight, level, state.groups_)
