"""Whether what a model learnt since its fit makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.monitoring.bins import CENTERS

__all__ = ["check_updates"]

_STEEPEST = 1e3  # slope or intercept of a logit by a logit
_MOST_ENTRIES = 100_000
_PARTS = {"recalibration_": 3, "monitor_": 6}


def check_updates(
    arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any], parts: Mapping[str, set[str]]
) -> None:
    """Check the recalibration, the monitor and the history of a state of two classes.

    Raises
    ------
    TypeError, ValueError
        Says what does not make sense.
    """
    for name, complete in _PARTS.items():
        if len(parts[name]) not in (0, complete):
            raise TypeError(f"{name} is not complete")
    if parts["recalibration_"]:
        coefficients = arrays["recalibration_.coefficients"]
        if not (np.abs(coefficients).max() <= _STEEPEST and coefficients[1] >= 0):
            raise ValueError("recalibration_ has coefficients that are none")
        for name in ("covariance", "replaced"):
            covariance = arrays[f"recalibration_.{name}"]
            if not (covariance.diagonal() >= 0).all() or not np.abs(covariance).max() <= 1e12:
                raise ValueError(f"{name} of recalibration_ is none")
    if parts["monitor_"]:
        _check_monitor({name: arrays[f"monitor_.{name}"] for name in parts["monitor_"]})
    history = values.get("history_") or []
    if len(history) > _MOST_ENTRIES or not all(isinstance(each, dict) for each in history):
        raise TypeError("history_ has entries that are none")


def _check_monitor(of: Mapping[str, NDArray[Any]]) -> None:
    if len(of["rows"]) != len(CENTERS):
        raise ValueError("monitor_ has other bins than those of logits")
    if not (of["positives"] <= of["rows"]).all():
        raise ValueError("monitor_ has more positive rows than rows")
    if not all(np.abs(of[name]).max() <= 1e15 for name in ("rows", "pool", "numerators")):
        raise ValueError("monitor_ has numbers that are too large")
    if not 0 < of["capital"].sum() <= 1e6:
        raise ValueError("monitor_ has a capital that is none")
    calibration, scale, drift = of["values"].tolist()
    if not (calibration >= 1 and drift >= 1 and abs(scale) <= 1e15):
        raise ValueError("monitor_ has e-values that are none")
