"""What control of a rate has come to: for the command line and for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.ensemble.fitted import as_fitted
from bootprob.ensemble.state import State, state_of
from bootprob.metrics.decision_rates import ClassRate, decision_rates, rates_between
from bootprob.metrics.rates import OF_TWO_CLASSES, RateFloor
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "ControlledClassRate",
    "ControlledRate",
    "class_rates",
    "class_rates_under_control",
    "rates_under_control",
]


@dataclass(frozen=True)
class ControlledRate:
    """One of the rates of a model under control.

    Attributes
    ----------
    rate : {"tpr", "tnr", "ppv", "npv", "decided"}
    floor : RateFloor or None
        What was asked for; None for a class that was not controlled.
    required_share : float or None
        Share of the rows at hand that had to be right for it.
    out_of_bag : ClassRate or None
        Reached by the replicates that did not see a row; None where no row is decided so.
    without_control : ClassRate or None
        What they would reach where the calibrated probability is one half; None where no row would
        be decided so, or the machines themselves were constrained or decisions are made by votes,
        and it is not known.
    """

    rate: str
    floor: RateFloor | None
    required_share: float | None
    out_of_bag: ClassRate | None
    without_control: ClassRate | None


def rates_under_control(model: Any, level: float = 0.95) -> list[ControlledRate]:
    """Rates of a fitted model; empty without control.

    The true positive and the true negative rate, controlled or not, and then what else is
    controlled. An undecided row is no mistake in its class.

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
    between = getattr(state, "undecided_between_", None)
    if between is None:
        between = (as_fitted(model).decision_threshold_,) * 2
    reached = _rates(state, between, level)
    known = model.control == "threshold" and model.calibration is not None
    without = _rates(state, (0.5, 0.5), level) if known else {}
    return [
        ControlledRate(
            rate=rate,
            floor=_floor(found[rate]) if rate in found else None,
            required_share=found[rate]["required_share"] if rate in found else None,
            out_of_bag=reached[rate],
            without_control=without.get(rate),
        )
        for rate in ("tpr", "tnr", *(name for name in OF_TWO_CLASSES[2:] if name in found))
    ]


@dataclass(frozen=True)
class ControlledClassRate:
    """Share of the rows of one of several classes that are given it.

    Attributes
    ----------
    asked : dict or None
        Its entry of `controlled_rates_`; None for a class that was not controlled.
    out_of_bag, without_control : ClassRate or None
        Reached by the replicates that did not see a row, and by the most probable class of all;
        None of a class without rows that were out of bag.
    """

    asked: dict[str, Any] | None
    out_of_bag: ClassRate | None
    without_control: ClassRate | None


def class_rates_under_control(model: Any, level: float = 0.95) -> list[ControlledClassRate]:
    """The rates of all of several classes, in their order; empty without control.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted, of several classes.
    level : float, default 0.95
        Level of the intervals.
    """
    state = state_of(model)
    if state.class_offsets_ is None:
        return []
    known = np.isfinite(state.oob_proba_).all(axis=1)
    weight, K = np.where(known, state.sample_weight_, 0.0), len(state.classes_)
    reached, without = (
        class_rates(state.y_, scores.argmax(axis=1), weight, K, level, state.groups_)
        for scores in (state.oob_decision_function_, state.oob_proba_)
    )
    asked = {entry["class"]: entry for entry in state.controlled_rates_}
    return [ControlledClassRate(asked.get(k), reached[k], without[k]) for k in range(K)]


def class_rates(
    codes: NDArray[np.integer],
    decided: NDArray[np.integer],
    weight: Floats,
    n_classes: int,
    level: float,
    groups: Groups | None = None,
) -> list[ClassRate | None]:
    """Share of the rows of each class that are given it; None for a class without rows.

    Parameters
    ----------
    codes, decided : ndarray of int, shape (n,)
        True classes and decisions.
    weight, level, groups
        As for `bootprob.metrics.decision_rates.decision_rates`.
    n_classes : int
    """
    found: list[ClassRate | None] = []
    for k in range(n_classes):
        own = (codes == k) & (weight > 0)
        if not own.any() or own[weight > 0].all():
            found.append(None)
            continue
        found.append(decision_rates(codes == k, decided == k, weight, level, groups)["tpr"])
    return found


def _floor(entry: dict[str, object]) -> RateFloor:
    names = ("rate", "at_least", "confidence", "bound")
    return RateFloor(*(entry[name] for name in names))  # type: ignore[arg-type]


def _rates(state: State, between: Sequence[float], level: float) -> dict[str, ClassRate | None]:
    probability = state.oob_proba_[:, 1]
    weight = np.where(np.isfinite(probability), state.sample_weight_, 0.0)
    return rates_between(state.y_ == 1, probability, between, weight, level, state.groups_)
