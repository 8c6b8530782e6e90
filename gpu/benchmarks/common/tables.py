"""Tables and numbers of documents, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["NONE", "NOT_MEASURED", "figures", "in_place", "markdown"]

NONE, NOT_MEASURED = "–", "…"
"""What stands where there is no number, and where there is none yet."""


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figures(value: object, digits: int = 3) -> str:
    """A number to so many significant digits, without an exponent; a dash for anything else."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def in_place(text: str, begin: str, end: str, table: str) -> str:
    """The text of a document with a table between two marks, the first `end` after `begin`.

    Raises
    ------
    ValueError
        The document has no such place, or several.
    """
    before, *others = text.split(begin)
    if len(others) != 1 or end not in others[0]:
        raise ValueError(f"The document has {len(others)} places {begin.strip()} … {end.strip()}.")
    return f"{before}{begin}{table}{end}{others[0].partition(end)[2]}"
