"""Benchmarking of decision-making units by data envelopment analysis, thesis chapter 5.

Begin with a `Panel`: K units (clinics, branches, grid companies), N inputs that they use and M
outputs that they make.

- `efficiency`: the part of its inputs that each unit needs if it works as the best do; with peers,
  targets, slacks and weights, and a `Certificate` that proves each score.
- `efficiency_interval`: how sure a score is. `cross_efficiency`: every unit by the weights of all.
- `select_outputs`: the p outputs to judge all units by; `selection_curve` and `suggested_size`: how
  many. `select_for_unit`: those that suit one unit. `OutputSelector`: the same for scikit-learn.
- `play_selection_game`: who would object to a selection; `supported_selection`: the best that
  enough units accept.
- `benchmark_study`: all of it in one call; `bootprob.report.write_dea_report` makes a page of it.

Numbers such as (5.19) are formulas of the thesis. x and y are amounts of inputs and outputs, α and
β their weights, λ the shares of peers, θ and φ scores. Mixed-integer programs need the extra
``bootprob[mip]``. Guides: docs/dea.md, docs/dea_selection.md and docs/dea_command_line.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.dea.efficiencies.certificate import Certificate
    from bootprob.dea.efficiencies.cross import CrossEfficiency, cross_efficiency
    from bootprob.dea.efficiencies.intervals import EfficiencyInterval, efficiency_interval
    from bootprob.dea.efficiencies.result import EfficiencyResult
    from bootprob.dea.efficiencies.scores import efficiency
    from bootprob.dea.panel import Panel, PanelError
    from bootprob.dea.selection.game import (
        SelectionGame,
        SupportedSelection,
        play_selection_game,
        supported_selection,
    )
    from bootprob.dea.selection.joint import select_outputs, selection_curve
    from bootprob.dea.selection.results import JointSelection, SelectionCurve, UnitSelection
    from bootprob.dea.selection.rules import InfeasibleSelectionError, SelectionRules
    from bootprob.dea.selection.selector import OutputSelector
    from bootprob.dea.selection.single import select_for_unit
    from bootprob.dea.selection.subsets import SubsetEfficiencies
    from bootprob.dea.selection.summary import (
        EfficiencyDistribution,
        SelectionSummary,
        suggested_size,
        summarise_curve,
    )
    from bootprob.dea.study.figure_data import (
        ContributionCurve,
        Histograms,
        OutputCorrelations,
        contribution_curve,
        efficiency_histograms,
        output_correlations,
        support_histograms,
    )
    from bootprob.dea.study.study import BenchmarkStudy, benchmark_study

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

__getattr__ = late_names(
    __name__,
    {
        "BenchmarkStudy": "study.study",
        "Certificate": "efficiencies.certificate",
        "ContributionCurve": "study.figure_data",
        "CrossEfficiency": "efficiencies.cross",
        "EfficiencyDistribution": "selection.summary",
        "EfficiencyInterval": "efficiencies.intervals",
        "EfficiencyResult": "efficiencies.result",
        "Histograms": "study.figure_data",
        "InfeasibleSelectionError": "selection.rules",
        "JointSelection": "selection.results",
        "OutputCorrelations": "study.figure_data",
        "OutputSelector": "selection.selector",
        "Panel": "panel",
        "PanelError": "panel",
        "SelectionCurve": "selection.results",
        "SelectionGame": "selection.game",
        "SelectionRules": "selection.rules",
        "SelectionSummary": "selection.summary",
        "SubsetEfficiencies": "selection.subsets",
        "SupportedSelection": "selection.game",
        "UnitSelection": "selection.results",
        "benchmark_study": "study.study",
        "contribution_curve": "study.figure_data",
        "cross_efficiency": "efficiencies.cross",
        "efficiency": "efficiencies.scores",
        "efficiency_histograms": "study.figure_data",
        "efficiency_interval": "efficiencies.intervals",
        "output_correlations": "study.figure_data",
        "play_selection_game": "selection.game",
        "select_for_unit": "selection.single",
        "select_outputs": "selection.joint",
        "selection_curve": "selection.joint",
        "suggested_size": "selection.summary",
        "summarise_curve": "selection.summary",
        "support_histograms": "study.figure_data",
        "supported_selection": "selection.game",
    },
)
