"""Which columns are worth measuring.

- `KernelAlignmentSelector`: the best few columns for an RBF kernel, proven by bounds.
- `CostSensitiveSelector`: the cheapest columns with which a hyperplane keeps stated rates.
- `ParetoSVC`: all rules that trade a large margin for a low cost of measuring, to choose from
  (extra ``bootprob[mip]``).
- `selection_stability`: how often a choice comes again, and what choosing once hides.

The selectors state costs alike (`FeatureCosts`): of each column, and shared by some. They all say
what they found, how good it can still be and since when (`SelectionResult`, `ParetoFront`). Guide:
docs/feature_selection.md.
"""

from bootprob.optimization.search_result import Found, SelectionResult
from bootprob.selection.alignment.selector import KernelAlignmentSelector
from bootprob.selection.cost_sensitive.selector import CostSensitiveSelector
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto.front import ParetoFront, ParetoPoint
from bootprob.selection.pareto.svc import ParetoSVC
from bootprob.selection.stability import SelectionStability, selection_stability

__all__ = [
    "CostSensitiveSelector",
    "FeatureCosts",
    "Found",
    "KernelAlignmentSelector",
    "ParetoFront",
    "ParetoPoint",
    "ParetoSVC",
    "SelectionResult",
    "SelectionStability",
    "selection_stability",
]
