"""The numbers of a figure, as a table for the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Self

from bootprob.report.wording import Writer

__all__ = ["Column", "FigureTable"]

Cell = tuple[str, float | None]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    heading : str
    texts : list of str
        What its cells show.
    values : list of float or None, optional
        Of numbers, these in full precision.
    """

    heading: str
    texts: list[str]
    values: list[float | None] | None = None

    @classmethod
    def of(cls, heading: str, values: list[float | None], write: Writer, *digits: int) -> Self:
        """Numbers, as one of `bootprob.report.wording` writes them."""
        return cls(heading, write(values, *digits), values)

    @property
    def cells(self) -> Iterator[Cell]:
        """Each text with its number, None for a text that is none."""
        return zip(self.texts, self.values or repeat(None), strict=False)


@dataclass(frozen=True)
class FigureTable:
    """A table beside a figure.

    Attributes
    ----------
    label : str
        What it holds, for screen readers.
    columns : tuple of Column
        All of one length; the first tells its rows apart.
    """

    label: str
    columns: tuple[Column, ...]

    @property
    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """The cells, row by row."""
        return zip(*(column.cells for column in self.columns), strict=True)
