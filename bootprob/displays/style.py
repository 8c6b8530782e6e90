"""Colours, axes of shares, and where a figure is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import PercentFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["COLORS", "Display", "percent_axis"]

# Told apart by people with any of the usual colour deficiencies, and in grey on paper.
COLORS = {
    "negative": "#2a6fa8",
    "positive": "#c2500c",
    "ink": "#1d2733",
    "quiet": "#59636e",
    "vote": "#7d8690",
    "faint": "#c9d0d7",
}
_ROUNDING = 1e-9


class _Shares(PercentFormatter):
    def __call__(self, x: float, pos: int | None = None) -> str:
        return super().__call__(x, pos) if -_ROUNDING <= x <= 1 + _ROUNDING else ""


def percent_axis(decimals: int | None = None) -> PercentFormatter:
    """Ticks of an axis of shares; none below 0 or above 1, where a margin has some."""
    return _Shares(1, decimals=decimals, symbol="\u202f%")


class Display:
    """What displays have in common.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _on(self, ax: Axes | None) -> Axes:
        """The axis given, or one of a new figure; keeps it."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        self.ax_, self.figure_ = ax, ax.get_figure()  # type: ignore[assignment]
        return ax
