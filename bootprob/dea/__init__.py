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
    from bootprob.dea.joint_selection import select_outputs, selection_curve
    from bootprob.dea.panel import Panel, PanelError
    from bootprob.dea.selection_game import (
        SelectionGame,
        SupportedSelection,
        play_selection_game,
        supported_selection,
    )
    from bootprob.dea.selection_results import JointSelection, SelectionCurve, UnitSelection
    from bootprob.dea.single_selection import select_for_unit
    from bootprob.dea.subset_efficiencies import SubsetEfficiencies

__all__ = [
    "Certificate",
    "CrossEfficiency",
    "EfficiencyInterval",
    "EfficiencyResult",
    "InfeasibleSelectionError",
    "JointSelection",
    "Panel",
    "PanelError",
    "SelectionCurve",
    "SelectionGame",
    "SelectionRules",
    "SubsetEfficiencies",
    "SupportedSelection",
    "UnitSelection",
    "cross_efficiency",
    "efficiency",
    "efficiency_interval",
    "play_selection_game",
    "select_for_unit",
    "select_outputs",
    "selection_curve",
    "supported_selection",
]

_LATER = {
    "Certificate": "bootprob.dea.efficiency_certificate",
    "CrossEfficiency": "bootprob.dea.cross_efficiencies",
    "EfficiencyInterval": "bootprob.dea.efficiency_intervals",
    "EfficiencyResult": "bootprob.dea.efficiency_result",
    "InfeasibleSelectionError": "bootprob.dea.constraints",
    "JointSelection": "bootprob.dea.selection_results",
    "Panel": "bootprob.dea.panel",
    "PanelError": "bootprob.dea.panel",
    "SelectionCurve": "bootprob.dea.selection_results",
    "SelectionGame": "bootprob.dea.selection_game",
    "SelectionRules": "bootprob.dea.constraints",
    "SubsetEfficiencies": "bootprob.dea.subset_efficiencies",
    "SupportedSelection": "bootprob.dea.selection_game",
    "UnitSelection": "bootprob.dea.selection_results",
    "cross_efficiency": "bootprob.dea.cross_efficiencies",
    "efficiency": "bootprob.dea.efficiency_scores",
    "efficiency_interval": "bootprob.dea.efficiency_intervals",
    "play_selection_game": "bootprob.dea.selection_game",
    "select_for_unit": "bootprob.dea.single_selection",
    "select_outputs": "bootprob.dea.joint_selection",
    "selection_curve": "bootprob.dea.joint_selection",
    "supported_selection": "bootprob.dea.selection_game",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'bootprob.dea' has no attribute {name!r}")
