"""What control of a rate has come to: for the command line and for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration import Sigmoid
from bootprob.decision_rates import ClassRate, decision_rates
from bootprob.rates import RateFloor

if TYPE_CHECKING:
    from bootprob.estimator import BootstrapSVC

__all__ = [
    "ControlledRate",
    "calibrated_out_of_bag",
    "odds_factor",
    "rates_under_control",
]

Floats = NDArray[np.float64]


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


def rates_under_control(model: BootstrapSVC, level: float = 0.95) -> list[ControlledRate]:
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
    found = {entry["rate"]: entry for entry in model.controlled_rates_}
    reached = _rates(model, model.oob_proba_[:, 1], level)
    calibrated = calibrated_out_of_bag(model) if model.control == "threshold" else None
    without = {} if calibrated is None else _rates(model, calibrated, level)
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


def calibrated_out_of_bag(model: BootstrapSVC) -> Floats | None:
    """Out-of-bag probabilities of the positive class, calibrated, whatever is controlled.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.

    Returns
    -------
    ndarray, shape (n,), or None
        NaN for a row that was never out of bag; None for a model without calibration.
    """
    if model.calibration is None:
        return None
    if model.control is None:
        return model.oob_proba_[:, 1]
    sigmoid = Sigmoid(*model.sigmoid_, model.sigmoid_information_)  # control goes with no other
    return sigmoid.predict(model.oob_decision_function_ + model.score_threshold_)


def odds_factor(model: BootstrapSVC) -> float | None:
    """By how much control multiplies the odds of the positive class, for every row.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted.

    Returns
    -------
    float or None
        None for votes, which have no such number.
    """
    if model.calibration is None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(-model.sigmoid_[0] * model.score_threshold_))


def _floor(entry: dict[str, object]) -> RateFloor:
    names = ("rate", "at_least", "confidence", "bound")
    return RateFloor(*(entry[name] for name in names))  # type: ignore[arg-type]


def _rates(model: BootstrapSVC, probability: Floats, level: float) -> dict[str, ClassRate]:
    weight = np.where(np.isfinite(probability), model.sample_weight_, 0.0)
    return decision_rates(model.y_ == 1, probability > 0.5, weight, level)
