"""Which columns are worth measuring."""

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
