"""Colours, axes of shares, and where a figure is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from bootprob.ensemble.state import two_class_state
from bootprob.exceptions import DataError
from bootprob.tables.model import TableModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["COLORS", "Display", "percent_axis", "positives", "rows_of"]

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


def positives(y_true: Any) -> NDArray[np.bool_]:
    """Which rows are of the positive class, of numbers 0 and 1, or of booleans.

    Raises
    ------
    DataError
        It holds anything else.
    """
    y = np.asarray(y_true)
    if y.dtype.kind not in "biuf" or not np.isin(y, (0, 1)).all():
        raise DataError("y_true must hold 1 for the positive class and 0 for the other alone.")
    return y.astype(bool)


def rows_of(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, NDArray[np.bool_] | None]:
    """What answers for a model, rows as it takes them, and which are of its positive class.

    Parameters
    ----------
    estimator : BootstrapSVC or TableModel
    X, y : array_like or data frame
        Rows and their classes; None for none.

    Raises
    ------
    DataError
        The model is of several classes, or y holds others than its own.
    """
    svc, classes = estimator, None
    if isinstance(estimator, TableModel):
        svc, classes = estimator.svc, estimator.target.labels
        X = None if X is None else estimator.preprocessor.encode(X, estimator.encoder).X
    known = two_class_state(svc, "figures").classes_
    known = known if classes is None else np.array(classes)
    if y is None:
        return svc, X, None
    given = np.asarray(y)
    if not np.isin(given, known).all():
        shown = ", ".join(map(str, known))
        raise DataError(f"y holds other classes than those of the model, which are {shown}.")
    return svc, X, given == known[1]


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
        if not isinstance(ax, Axes):
            raise DataError(f"ax is of the type {type(ax).__name__}; give one Axes of a figure.")
        self.ax_, self.figure_ = ax, ax.get_figure()  # type: ignore[assignment]
        return ax
