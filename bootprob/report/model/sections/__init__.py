"""The sections of a model's report, in the order of the page."""

from bootprob.report.model.sections import (
    calibration,
    columns,
    control,
    convergence,
    effects,
    later,
    made,
    quality,
    rows,
    sets,
    settings,
    stability,
    subgroups,
    updates,
    votes,
)
from bootprob.report.model.sections.section import Section

__all__ = ["SECTIONS"]

SECTIONS = (
    Section("summary", "In short"),
    quality.SECTION,
    later.SECTION,
    updates.SECTION,
    control.SECTION,
    calibration.SECTION,
    stability.SECTION,
    subgroups.SECTION,
    effects.SECTION,
    settings.SECTION,
    rows.SECTION,
    sets.SECTION,
    Section("meaning", "Meaning of the intervals"),
    columns.SECTION,
    convergence.SECTION,
    made.SECTION,
    votes.SECTION,
)
