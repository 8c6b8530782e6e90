"""The figure of control: sensitivity against specificity, and the point that was chosen."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from bootprob.displays.control import ControlDisplay
from bootprob.metrics.decision_rates import TradeOff
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import percent

__all__ = ["trade_off"]

# Key of the rates in the report's content -> label.
_POINTS = {
    "without_control": "without control",
    "held_out": "held-out rows",
    "out_of_bag": "under control",
}


def trade_off(model: dict[str, Any], name: str) -> Picture | None:
    """Sensitivity against specificity over all thresholds, with rates wanted and reached."""
    control = model["control"]
    if control is None:
        return None
    tpr, tnr, *_ = control["rates"]
    curve = control["curve"]
    points = [key for key in _POINTS if tpr[key] is not None]

    def draw(figure: Figure) -> None:
        ControlDisplay(
            TradeOff(curve["sensitivity"], curve["specificity"]),
            (tpr["wanted"], tnr["wanted"]),
            {_POINTS[key]: (_ends(tpr[key]), _ends(tnr[key])) for key in points},
        ).plot(figure.subplots())

    said = "; ".join(
        f"{_POINTS[key]}: sensitivity {_reached(tpr[key])}, specificity {_reached(tnr[key])}"
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
    reached = [(_POINTS[key].capitalize(), tpr[key], tnr[key]) for key in reversed(points)]
    return draw_picture(draw, 4.1, name, alt, _tables(curve, reached))


def _ends(rate: dict[str, float]) -> tuple[float, float, float]:
    return rate["value"], rate["lower"], rate["upper"]


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
        FigureTable("Rates reached", (Column("Choice", list(labels)), *reached)),
        FigureTable("Rates at any threshold", tuple(along)),
    )
