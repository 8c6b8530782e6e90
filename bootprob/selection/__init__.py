"""Which columns are worth measuring."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Benchmarking of units (`bootprob.dea`) uses modules of this package that need no torch.
_LATER = {
    "CostSensitiveSelector": "bootprob.selection.cost_sensitive_selector",
    "FeatureCosts": "bootprob.selection.feature_costs",
    "Found": "bootprob.selection.results",
    "KernelAlignmentSelector": "bootprob.selection.alignment_selector",
    "ParetoFront": "bootprob.selection.pareto_front",
    "ParetoPoint": "bootprob.selection.pareto_front",
    "ParetoSVC": "bootprob.selection.pareto_svc",
    "SelectionResult": "bootprob.selection.results",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'bootprob.selection' has no attribute {name!r}")
