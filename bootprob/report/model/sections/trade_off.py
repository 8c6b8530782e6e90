"""The figure of control: sensitivity against specificity, and the point that was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.svg import COLORS, Picture, draw_picture, percent_axis
from bootprob.report.wording import percent

__all__ = ["trade_off"]

NEGATIVE, POSITIVE, INK, QUIET, VOTE, FAINT = COLORS.values()

# Key of the rates in the report's content -> label, colour, marker, whether it is filled.
_POINTS = {
    "without_control": ("without control", VOTE, "D", False),
    "held_out": ("held-out rows", POSITIVE, "s", False),
    "out_of_bag": ("under control", INK, "o", True),
}


def trade_off(model: dict[str, Any], name: str) -> Picture | None:
    """Sensitivity against specificity over all thresholds, with rates wanted and reached."""
    control = model["control"]
    if control is None:
        return None
    tpr, tnr = control["rates"]
    curve = control["curve"]
    points = [key for key in _POINTS if tpr[key] is not None]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        _draw_wanted(ax, tpr["wanted"], tnr["wanted"])
        ax.plot(curve["specificity"], curve["sensitivity"], color=NEGATIVE, linewidth=1.4, zorder=2)
        for key in points:
            _draw_point(ax, key, tpr[key], tnr[key])
        ax.set(
            xlim=(1.03, -0.03),
            ylim=(-0.03, 1.03),
            xlabel="specificity (true negative rate)",
            ylabel="sensitivity (true positive rate)",
        )
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(percent_axis(0))
        ax.legend(loc="lower right", handletextpad=0.2, borderaxespad=0.2)

    said = "; ".join(
        f"{_POINTS[key][0]}: sensitivity {_reached(tpr[key])}, specificity {_reached(tnr[key])}"
        for key in reversed(points)
    )
    wanted = " and ".join(
        f"{label} of at least {100 * rate['wanted']:g}\u202f%"
        for label, rate in (("a sensitivity", tpr), ("a specificity", tnr))
        if rate["wanted"] is not None
    )
    alt = (
        f"Curve of sensitivity against specificity, out of bag, for all thresholds. Wanted: "
        f"{wanted}. {said[0].upper()}{said[1:]}."
    )
    reached = [(_POINTS[key][0].capitalize(), tpr[key], tnr[key]) for key in reversed(points)]
    return draw_picture(draw, 4.1, name, alt, _tables(curve, reached))


def _draw_wanted(ax: Axes, tpr: float | None, tnr: float | None) -> None:
    """Lines at the rates wanted; what lies beyond both keeps them."""
    line: dict[str, Any] = {"color": QUIET, "linewidth": 0.8, "linestyle": (0, (3, 2)), "zorder": 1}
    if tpr is not None:
        ax.axhline(tpr, **line)
    if tnr is not None:
        ax.axvline(tnr, **line)
    ax.fill_between(
        [1.03, -0.03 if tnr is None else tnr],
        -0.03 if tpr is None else tpr,
        1.03,
        color=FAINT,
        alpha=0.35,
        linewidth=0,
        zorder=0,
    )


def _draw_point(ax: Axes, key: str, tpr: dict[str, float], tnr: dict[str, float]) -> None:
    label, colour, marker, filled = _POINTS[key]
    x, y = tnr["value"], tpr["value"]
    crossed: dict[str, Any] = {}
    if key != "without_control":  # the same curve: a cross there would say nothing of the choice
        crossed["xerr"] = np.abs([[x - tnr["lower"]], [tnr["upper"] - x]])
        crossed["yerr"] = np.abs([[y - tpr["lower"]], [tpr["upper"] - y]])
    ax.errorbar(
        x,
        y,
        **crossed,
        linestyle="none",
        elinewidth=1.0,
        marker=marker,
        markersize=6.0,
        color=colour,
        mfc=colour if filled else "white",
        label=label,
        zorder=4 if filled else 3,
    )


def _reached(rate: dict[str, float]) -> str:
    return f"{percent(rate['value'])} ({percent(rate['lower'])} to {percent(rate['upper'])})"


def _tables(
    curve: dict[str, Any], points: list[tuple[str, dict[str, Any], dict[str, Any]]]
) -> tuple[FigureTable, ...]:
    """The points of the figure of control, and its curve."""
    labels, *rates = zip(*points, strict=True)
    both = ("Sensitivity", "Specificity")
    reached = (
        Column.of(heading, [rate[name] for rate in of_points], percent)
        for rate_name, of_points in zip(both, rates, strict=True)
        for heading, name in ((rate_name, "value"), ("from", "lower"), ("to", "upper"))
    )
    along = (Column.of(name, curve[name.lower()], percent) for name in both)
    return (
        FigureTable("Rates reached", (Column("", list(labels)), *reached)),
        FigureTable("Rates at any threshold", tuple(along)),
    )
