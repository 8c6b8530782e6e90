"""The papers' own probability: shares of votes, beside what was observed."""

from __future__ import annotations

from bootprob.report.model.sections.calibration import diagram
from bootprob.report.model.sections.section import Drawn, Section
from bootprob.report.svg import Picture

__all__ = ["SECTION"]


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    if of.model["calibration"] is None:  # then the section on calibration shows them
        return {}
    return {"votes": diagram(of.model["reliability"], "vote", of.name("v"), of.classes[1])}


SECTION = Section("votes", "Appendix: votes", pictures=_pictures)
