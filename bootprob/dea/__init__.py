"""Benchmarking of decision-making units by data envelopment analysis, thesis chapter 5."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bootprob.dea.constraints import InfeasibleSelectionError, SelectionRules
    from bootprob.dea.cross_efficiencies import CrossEfficiency, cross_efficiency
    from bootprob.dea.efficiency_certificate import Certificate
    from bootprob.dea.efficiency_intervals import EfficiencyInterval, efficiency_interval
    from bootprob.dea.efficiency_result import EfficiencyResult
    from bootprob.dea.efficiency_scores import efficiency
    from bootprob.dea.figure_data import (
        ContributionCurve,
        Histograms,
        OutputCorrelations,
        contribution_curve,
        efficiency_histograms,
        output_correlations,
        support_histograms,
    )
    from bootprob.dea.joint_selection import select_outputs, selection_curve
    from bootprob.dea.output_selector import OutputSelector
    from bootprob.dea.panel import Panel, PanelError
    from bootprob.dea.selection_game import (
        SelectionGame,
        SupportedSelection,
        play_selection_game,
        supported_selection,
    )
    from bootprob.dea.selection_results import JointSelection, SelectionCurve, UnitSelection
    from bootprob.dea.selection_summary import (
        EfficiencyDistribution,
        SelectionSummary,
        suggested_size,
        summarise_curve,
    )
    from bootprob.dea.single_selection import select_for_unit
    from bootprob.dea.study import BenchmarkStudy, benchmark_study
    from bootprob.dea.subset_efficiencies import SubsetEfficiencies

__all__ = [
    "BenchmarkStudy",
    "Certificate",
    "ContributionCurve",
    "CrossEfficiency",
    "EfficiencyDistribution",
    "EfficiencyInterval",
    "EfficiencyResult",
    "Histograms",
    "InfeasibleSelectionError",
    "JointSelection",
    "OutputCorrelations",
    "OutputSelector",
    "Panel",
    "PanelError",
    "SelectionCurve",
    "SelectionGame",
    "SelectionRules",
    "SelectionSummary",
    "SubsetEfficiencies",
    "SupportedSelection",
    "UnitSelection",
    "benchmark_study",
    "contribution_curve",
    "cross_efficiency",
    "efficiency",
    "efficiency_histograms",
    "efficiency_interval",
    "output_correlations",
    "play_selection_game",
    "select_for_unit",
    "select_outputs",
    "selection_curve",
    "suggested_size",
    "summarise_curve",
    "support_histograms",
    "supported_selection",
]

_LATER = {
    "BenchmarkStudy": "bootprob.dea.study",
    "Certificate": "bootprob.dea.efficiency_certificate",
    "ContributionCurve": "bootprob.dea.figure_data",
    "CrossEfficiency": "bootprob.dea.cross_efficiencies",
    "EfficiencyDistribution": "bootprob.dea.selection_summary",
    "EfficiencyInterval": "bootprob.dea.efficiency_intervals",
    "EfficiencyResult": "bootprob.dea.efficiency_result",
    "Histograms": "bootprob.dea.figure_data",
    "InfeasibleSelectionError": "bootprob.dea.constraints",
    "JointSelection": "bootprob.dea.selection_results",
    "OutputCorrelations": "bootprob.dea.figure_data",
    "OutputSelector": "bootprob.dea.output_selector",
    "Panel": "bootprob.dea.panel",
    "PanelError": "bootprob.dea.panel",
    "SelectionCurve": "bootprob.dea.selection_results",
    "SelectionGame": "bootprob.dea.selection_game",
    "SelectionRules": "bootprob.dea.constraints",
    "SelectionSummary": "bootprob.dea.selection_summary",
    "SubsetEfficiencies": "bootprob.dea.subset_efficiencies",
    "SupportedSelection": "bootprob.dea.selection_game",
    "UnitSelection": "bootprob.dea.selection_results",
    "benchmark_study": "bootprob.dea.study",
    "contribution_curve": "bootprob.dea.figure_data",
    "cross_efficiency": "bootprob.dea.cross_efficiencies",
    "efficiency": "bootprob.dea.efficiency_scores",
    "efficiency_histograms": "bootprob.dea.figure_data",
    "efficiency_interval": "bootprob.dea.efficiency_intervals",
    "output_correlations": "bootprob.dea.figure_data",
    "play_selection_game": "bootprob.dea.selection_game",
    "select_for_unit": "bootprob.dea.single_selection",
    "select_outputs": "bootprob.dea.joint_selection",
    "selection_curve": "bootprob.dea.joint_selection",
    "suggested_size": "bootprob.dea.selection_summary",
    "summarise_curve": "bootprob.dea.selection_summary",
    "support_histograms": "bootprob.dea.figure_data",
    "supported_selection": "bootprob.dea.selection_game",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'bootprob.dea' has no attribute {name!r}")
