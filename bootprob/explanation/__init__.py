"""Why a probability is what it is: what each column does to it, with intervals."""

from bootprob.explanation.column_curves import PartialDependence, partial_dependence
from bootprob.explanation.column_importance import PermutationImportance, permutation_importance
from bootprob.explanation.row_contributions import Contributions, contributions

__all__ = [
    "Contributions",
    "PartialDependence",
    "PermutationImportance",
    "contributions",
    "partial_dependence",
    "permutation_importance",
]
