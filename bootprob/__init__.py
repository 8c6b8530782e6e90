"""Class probabilities from bootstrapped support vector machines, with intervals.

Begin with `BootstrapSVC`: a scikit-learn estimator that takes arrays and data frames. Around a
classifier of your own: `BootstrapClassifier`. `save` and `load` keep models in files. Decisions by
what mistakes cost: `CostSensitiveClassifier`. Which method is for what: docs/which_method.md. All
of it, one part after another: docs/guide.md.
"""

from typing import TYPE_CHECKING

from bootprob.exceptions import (
    BootprobError,
    ConstantColumnWarning,
    CopiedRowsWarning,
    DataError,
    DoubtfulTableWarning,
    FewRowsWarning,
    GridEdgeWarning,
    LackOfFitWarning,
    LaterRowsWarning,
    ModelFileError,
    UnattainableRateError,
)
from bootprob.runtime.late_names import late_names
from bootprob.runtime.version import __version__

if TYPE_CHECKING:
    from bootprob.constrained import ConstrainedSVC
    from bootprob.constrained.convex_svc import ConvexConstrainedSVC
    from bootprob.costs.classifier import CostSensitiveClassifier
    from bootprob.costs.matrix import CostMatrix
    from bootprob.ensemble.classifier import BootstrapClassifier
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.ensemble.sensitivity import probability_sensitivity
    from bootprob.persistence.save_load import load, save
    from bootprob.preparation.grids import DEFAULT_C

__all__ = [
    "DEFAULT_C",
    "BootprobError",
    "BootstrapClassifier",
    "BootstrapSVC",
    "ConstantColumnWarning",
    "ConstrainedSVC",
    "ConvexConstrainedSVC",
    "CopiedRowsWarning",
    "CostMatrix",
    "CostSensitiveClassifier",
    "DataError",
    "DoubtfulTableWarning",
    "FewRowsWarning",
    "GridEdgeWarning",
    "LackOfFitWarning",
    "LaterRowsWarning",
    "ModelFileError",
    "UnattainableRateError",
    "__version__",
    "load",
    "probability_sensitivity",
    "save",
]

# torch and scikit-learn take seconds to load; `bootprob --help` needs neither.
__getattr__ = late_names(
    __name__,
    {
        "BootstrapClassifier": "ensemble.classifier",
        "BootstrapSVC": "ensemble.estimator",
        "ConstrainedSVC": "constrained",
        "ConvexConstrainedSVC": "constrained.convex_svc",
        "CostMatrix": "costs.matrix",
        "CostSensitiveClassifier": "costs.classifier",
        "DEFAULT_C": "preparation.grids",
        "load": "persistence.save_load",
        "probability_sensitivity": "ensemble.sensitivity",
        "save": "persistence.save_load",
    },
)
