"""The sections of the report of a model of several classes, in the order of the page."""

from bootprob.report.model.class_sections import (
    calibration,
    control,
    effects,
    pairs,
    quality,
    stability,
    widths,
)
from bootprob.report.model.sections import columns, convergence, later, made, sets
from bootprob.report.model.sections.section import Section

__all__ = ["SECTIONS_OF_CLASSES"]

SECTIONS_OF_CLASSES = (
    Section("summary", "In short", folder="class_sections"),
    quality.SECTION,
    later.SECTION,
    control.SECTION,
    calibration.SECTION,
    stability.SECTION,
    effects.SECTION,
    sets.SECTION,
    widths.SECTION,
    pairs.SECTION,
    Section("meaning", "Meaning of the intervals", folder="class_sections"),
    columns.SECTION,
    convergence.SECTION,
    made.SECTION,
)
