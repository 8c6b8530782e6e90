"""The numbers of a figure, as a table for the page."""

from __future__ import annotations

from dataclasses import dataclass

from bootprob.report.wording import count, number, percent

__all__ = [
    "Cell",
    "FigureTable",
    "between_cell",
    "count_cell",
    "number_cell",
    "share_cell",
    "signed_cell",
]


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


def share_cell(value: float, digits: int = 1) -> Cell:
    """A share in per cent."""
    return Cell(percent(value, digits), value)


def count_cell(value: float) -> Cell:
    """A number of things."""
    return Cell(count(value), value)


def number_cell(value: float) -> Cell:
    """A parameter."""
    return Cell(number(value), value)


def signed_cell(value: float) -> Cell:
    """A number with two decimals and its sign."""
    return Cell(f"{value:.2f}".replace("-", "−"), value)


def between_cell(edges: list[float], k: int) -> Cell:
    """From an edge to the next, in per cent."""
    return Cell(f"{percent(edges[k], 0)} to {percent(edges[k + 1], 0)}")
