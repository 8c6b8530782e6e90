"""What each stage of a fit, and predictions, are told: the parameters that they read.

`BootstrapSVC` documents them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from bootprob.calibration.coupling import Coupling
from bootprob_gpu import Kernel

__all__ = [
    "NO_CONTROL",
    "CalibrationSpec",
    "ControlSpec",
    "FitSpec",
    "PredictionSpec",
    "PreparationSpec",
    "ScheduleSpec",
]


NO_CONTROL: dict[str, None] = {"control": None, "rates": None, "confidence": None}
"""Parameters of a model that controls no rate."""


class _OfParameters:
    """A spec whose fields are called as the parameters are."""

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Take one's own of all parameters; those that are not there keep their default."""
        named = {each.name for each in fields(cls)} & parameters.keys()  # type: ignore[arg-type]
        return cls(**{name: parameters[name] for name in named})


@dataclass(frozen=True)
class PreparationSpec(_OfParameters):
    """How a table becomes what machines see."""

    kernel: Kernel | Literal["auto"]
    effort: str
    C: float | ArrayLike | None
    gamma: str | float | ArrayLike
    degree: int
    coef0: float
    feature_map: Literal["nystroem", "random-features"] | None
    n_components: int
    n_bootstraps: int
    standardize: str | None
    random_state: int | np.random.RandomState | None
    device: str
    memory_limit: int | None
    whole_samples: bool = False  # and all of them, of whatever table: those of classifiers beside


@dataclass(frozen=True)
class ControlSpec(_OfParameters):
    """Which rates must hold, and how they are made to."""

    control: str | None
    rates: Mapping[Any, float] | None
    confidence: float | None
    bound: str
    control_method: str
    time_limit: float


@dataclass(frozen=True)
class CalibrationSpec(_OfParameters):
    """How the models of the grid are weighted, and scores become probabilities."""

    weighting: str
    accuracy_tolerance: float
    calibration: str | None
    coupling: Coupling


@dataclass(frozen=True)
class ScheduleSpec(_OfParameters):
    """Who trains the machines, to which precision, and what is seen and kept of it."""

    tol: float | None
    dtype: str
    memory_limit: int | None
    n_jobs: int | None
    checkpoint: str | None
    verbose: int


@dataclass(frozen=True)
class FitSpec:
    """All that a fit is told beside the data."""

    preparation: PreparationSpec
    control: ControlSpec
    calibration: CalibrationSpec
    schedule: ScheduleSpec
    class_weight: str | dict[Any, float] | None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """Sort all parameters of an estimator."""
        return cls(
            PreparationSpec.of(parameters),
            ControlSpec.of(parameters),
            CalibrationSpec.of(parameters),
            ScheduleSpec.of(parameters),
            parameters["class_weight"],
        )


@dataclass(frozen=True)
class PredictionSpec(_OfParameters):
    """How a fitted model answers."""

    calibration: str | None
    interval: str
    device: str = "auto"
    dtype: str = "float64"
    memory_limit: int | None = None
