"""The numbers of a figure, as a table for the page."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cell", "FigureTable"]


@dataclass(frozen=True)
class Cell:
    """What stands in a table: the text and, of a number, the number in full precision."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class FigureTable:
    """A table beside a figure.

    Attributes
    ----------
    label : str
        What it holds, for screen readers.
    columns : tuple of str
        Headings; the first is that of the rows.
    rows : tuple of tuple of Cell
    """

    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
