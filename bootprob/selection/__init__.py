"""Which columns are worth measuring."""

from bootprob.selection.alignment_selector import KernelAlignmentSelector
from bootprob.selection.cost_sensitive_selector import CostSensitiveSelector
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto_front import ParetoFront, ParetoPoint
from bootprob.selection.pareto_svc import ParetoSVC
from bootprob.selection.results import Found, SelectionResult

__all__ = [
    "CostSensitiveSelector",
    "FeatureCosts",
    "Found",
    "KernelAlignmentSelector",
    "ParetoFront",
    "ParetoPoint",
    "ParetoSVC",
    "SelectionResult",
]
