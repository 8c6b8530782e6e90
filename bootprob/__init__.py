"""Class probabilities from bootstrapped support vector machines, with intervals."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bootprob.exceptions import (
    BootprobError,
    ConstantColumnWarning,
    CopiedRowsWarning,
    DataError,
    LackOfFitWarning,
    ModelFileError,
    UnattainableRateError,
)

if TYPE_CHECKING:
    from bootprob.constrained import ConstrainedSVC
    from bootprob.convex_constraints import ConvexConstrainedSVC
    from bootprob.cost_sensitive import CostSensitiveClassifier
    from bootprob.costs import CostMatrix
    from bootprob.estimator import BootstrapSVC
    from bootprob.grids import DEFAULT_C
    from bootprob.sensitivity import probability_sensitivity

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_C",
    "BootprobError",
    "BootstrapSVC",
    "ConstantColumnWarning",
    "ConstrainedSVC",
    "ConvexConstrainedSVC",
    "CopiedRowsWarning",
    "CostMatrix",
    "CostSensitiveClassifier",
    "DataError",
    "LackOfFitWarning",
    "ModelFileError",
    "UnattainableRateError",
    "probability_sensitivity",
]

# torch and scikit-learn take seconds to load; `bootprob --help` needs neither.
_LATER = {
    "BootstrapSVC": "bootprob.estimator",
    "ConstrainedSVC": "bootprob.constrained",
    "ConvexConstrainedSVC": "bootprob.convex_constraints",
    "CostMatrix": "bootprob.costs",
    "CostSensitiveClassifier": "bootprob.cost_sensitive",
    "DEFAULT_C": "bootprob.grids",
    "probability_sensitivity": "bootprob.sensitivity",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'bootprob' has no attribute {name!r}")
