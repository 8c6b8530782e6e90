"""The sections of a model's report, in the order of the page."""

from bootprob.report.model.sections import (
    calibration,
    columns,
    control,
    convergence,
    made,
    quality,
    rows,
    settings,
    votes,
)
from bootprob.report.model.sections.section import Section

__all__ = ["SECTIONS"]

SECTIONS = (
    Section("summary", "In short"),
    quality.SECTION,
    control.SECTION,
    calibration.SECTION,
    columns.SECTION,
    settings.SECTION,
    rows.SECTION,
    Section("meaning", "Meaning of the intervals"),
    convergence.SECTION,
    made.SECTION,
    votes.SECTION,
)
