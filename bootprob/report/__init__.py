"""Reports for people who did not train the model: one HTML file, and its numbers as JSON.

- `write_report`: of fitted models; `write_scored_report`: of a table that was scored;
  `write_dea_report`: of a benchmarking study.
- `model_card`, `card_of` and `write_card`: a model card in Markdown (extra ``bootprob[skops]``).

A page loads nothing and runs nothing. Guide: docs/reports.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.report.dea.figures import box_plots, correlation_matrix
    from bootprob.report.dea.report import write_dea_report
    from bootprob.report.model.card import card_of, model_card
    from bootprob.report.model.card_files import write_card
    from bootprob.report.model.report import write_report
    from bootprob.report.scored.report import write_scored_report

__all__ = [
    "box_plots",
    "card_of",
    "correlation_matrix",
    "model_card",
    "write_card",
    "write_dea_report",
    "write_report",
    "write_scored_report",
]

__getattr__ = late_names(
    __name__,
    {
        "box_plots": "dea.figures",
        "card_of": "model.card",
        "correlation_matrix": "dea.figures",
        "model_card": "model.card",
        "write_card": "model.card_files",
        "write_dea_report": "dea.report",
        "write_report": "model.report",
        "write_scored_report": "scored.report",
    },
)
