"""Why a probability is what it is: what each column does to it, with intervals.

- `contributions`: what each column adds to the log-odds of a row (Shapley values).
- `partial_dependence`: the probability along the values of a column.
- `permutation_importance`: how much worse probabilities become without a column.

Guide: docs/explanations.md.
"""

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
