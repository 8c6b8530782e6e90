"""Figures of models, after scikit-learn's Display convention: an axis in, an axis out.

``from_estimator`` draws a fitted model, ``from_predictions`` the probabilities of any; ``ax=`` says
where, ``ax_`` and ``figure_`` are where it was drawn. `ReliabilityDisplay`, `IntervalDisplay`,
`ControlDisplay` and `StabilityDisplay` show a model, `ContributionsDisplay`, `ImportanceDisplay`
and `PartialDependenceDisplay` its columns (docs/explanations.md).
"""

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
