"""Figures of models, after scikit-learn's Display convention: an axis in, an axis out."""

from bootprob.displays.columns import (
    ContributionsDisplay,
    ImportanceDisplay,
    PartialDependenceDisplay,
)
from bootprob.displays.control import ControlDisplay
from bootprob.displays.intervals import IntervalDisplay
from bootprob.displays.reliability import ReliabilityDisplay
from bootprob.displays.stability import StabilityDisplay

__all__ = [
    "ContributionsDisplay",
    "ControlDisplay",
    "ImportanceDisplay",
    "IntervalDisplay",
    "PartialDependenceDisplay",
    "ReliabilityDisplay",
    "StabilityDisplay",
]
