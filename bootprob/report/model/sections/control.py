"""What a report says of controlled rates: wanted, reached, and what became of the other class."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bootprob.ensemble.controlled_rates import ControlledRate, rates_under_control
from bootprob.metrics.decision_rates import ClassRate, rates_between, trade_off
from bootprob.metrics.intervals import metric_intervals
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.model.sections.trade_off import trade_off as trade_off_picture
from bootprob.report.svg import Picture

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC

__all__ = ["SECTION"]

_SAME = 1e-6  # relative gap below which a constraint cost nothing: the solver's tolerance


def _content(of: Measured) -> dict[str, Any]:
    return {"control": _control(of), "held_out": _held_out(of)}


def _control(of: Measured) -> dict[str, Any] | None:
    """Rates, the curve that they lie on, and what control does to decisions and machines."""
    model, level, held_out = of.model, of.level, of.held_out
    if model.control is None:
        return None
    set_aside: dict[str, ClassRate | None] = {}
    if held_out is not None:
        positive = held_out.positive_rows(model)
        between = getattr(model, "undecided_between_", None)
        if between is None:
            between = (model.decision_threshold_,) * 2
        probability = model.predict_proba(held_out.X)[:, 1]
        set_aside = rates_between(positive, probability, between, np.ones(len(positive)), level)
    scores = model.oob_decision_function_
    if model.calibration is None:
        scores = model.oob_vote_proba_[:, 1]  # which decide
    return {
        "method": model.control,
        "rates": [
            _rate(rate, set_aside.get(rate.rate)) for rate in rates_under_control(model, level)
        ],
        "undecided_between": getattr(model, "undecided_between_", None),
        "curve": asdict(trade_off(model.y_ == 1, scores, model.sample_weight_)),
        "machines": _machines(model),
    }


def _held_out(of: Measured) -> dict[str, Any] | None:
    """Metrics of a model on rows set aside, or None where there are none."""
    model, level, held_out = of.model, of.level, of.held_out
    if held_out is None:
        return None
    positive = held_out.positive_rows(model)
    probability = model.predict_proba(held_out.X)[:, 1]
    decided = probability > model.decision_threshold_
    metrics = metric_intervals(positive, probability, level=level, decided=decided)
    return {
        "n_rows": len(positive),
        "n_positive": int(positive.sum()),
        "metrics": {name: asdict(metric) for name, metric in metrics.items()},
    }


def _rate(rate: ControlledRate, set_aside: ClassRate | None) -> dict[str, Any]:
    floor = rate.floor
    return {
        "rate": rate.rate,
        "wanted": None if floor is None else floor.at_least,
        "confidence": None if floor is None else floor.confidence,
        "bound": None if floor is None else floor.bound,
        "required_share": rate.required_share,
        "out_of_bag": None if rate.out_of_bag is None else asdict(rate.out_of_bag),
        "without_control": None if rate.without_control is None else asdict(rate.without_control),
        "held_out": None if set_aside is None else asdict(set_aside),
    }


def _machines(model: BootstrapSVC) -> dict[str, Any] | None:
    """What constraints on the machines cost them, at most."""
    gap = model.control_gap_
    if gap is None:
        return None
    return {
        "n_machines": int(gap.size),
        "n_without_cost": int((gap <= _SAME).sum()),
        "median_gap": float(np.median(gap)),
        "ninetieth_gap": float(np.quantile(gap, 0.9)),
        "largest_gap": float(gap.max()),
    }


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    return {"trade_off": trade_off_picture(of.model, of.name("t"))}


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["control"] for model in content["models"])


SECTION = Section("control", "Rates under control", _content, _pictures, _is_shown)
