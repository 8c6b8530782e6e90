"""The figures of the report of a scored table, drawn from the report's own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bootprob.displays.style import COLORS, percent_axis
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import percent, probability, short

__all__ = ["deciles", "distribution", "draw_probabilities", "undecided", "widths"]

NEGATIVE, POSITIVE, INK, QUIET, VOTE, FAINT = COLORS.values()

_DASHED = (0, (2, 2))
_N_DRAWN = 20


def distribution(content: dict[str, Any]) -> Picture:
    """Histogram of the probabilities, with that of the training rows where it is known."""
    scored = content["probabilities"]["scored"]["histogram"]
    threshold = content["decisions"]["threshold"]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        draw_probabilities(ax, content["probabilities"], _of_positive(content))
        if threshold is not None:
            ax.axvline(threshold, color=INK, linewidth=0.8, linestyle=_DASHED)

    listed = ", ".join(
        f"{percent(s)} between {percent(a, 0)} and {percent(b, 0)}"
        for a, b, s in zip(scored["edges"][:-1], scored["edges"][1:], scored["share"], strict=True)
    )
    return draw_picture(draw, 2.9, "d", f"Histogram of the probabilities of the rows: {listed}.")


def draw_probabilities(ax: Axes, probabilities: Mapping[str, Any], label: str) -> None:
    """Histogram of the probabilities of scored rows, and of the training rows where it is known."""
    scored, training = probabilities["scored"]["histogram"], probabilities["training"]
    edges, share = np.asarray(scored["edges"]), np.asarray(scored["share"])
    ax.stairs(share, edges, fill=True, color=NEGATIVE, alpha=0.75, label="scored rows")
    if training is not None:
        old = np.asarray(training["histogram"]["share"])
        ax.stairs(old, edges, color=INK, linewidth=1.3, label="training rows, out of bag")
        ax.set_ylim(0, 1.3 * max(share.max(), old.max()))  # room for the legend
        ax.legend(loc="upper left", ncols=2, handlelength=1.2, columnspacing=1.2)
    ax.set(xlim=(-0.02, 1.02), ylabel="share of rows", xlabel=label)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(percent_axis())


def widths(content: dict[str, Any]) -> Picture:
    """Width of the intervals against the probability, and the histogram of the widths."""
    bins = content["widths"]["by_probability"]
    histogram = content["widths"]["histogram"]
    middle = np.array([(b["from"] + b["to"]) / 2 for b in bins])
    tenth, median, ninetieth = (
        np.array([b[name] for b in bins]) for name in ("tenth", "median", "ninetieth")
    )

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(2, 1, gridspec_kw={"height_ratios": [1.6, 1]})
        top.vlines(middle, tenth, ninetieth, color=FAINT, linewidth=4.0)
        top.plot(middle, median, color=INK, marker="o", markersize=4.5, linestyle="none")
        top.set(
            xlim=(-0.02, 1.02), ylim=(0, None), ylabel="width of interval",
            xlabel=_of_positive(content),
        )  # fmt: skip
        bottom.stairs(histogram["share"], histogram["edges"], fill=True, color=VOTE)
        used = np.flatnonzero(np.asarray(histogram["share"]) > 0)
        bottom.set(
            xlim=(0, histogram["edges"][used[-1] + 1]), ylabel="rows", xlabel="width of interval"
        )
        for axis in (top.xaxis, top.yaxis, bottom.xaxis, bottom.yaxis):
            axis.set_major_formatter(percent_axis())

    listed = "; ".join(
        f"probabilities from {percent(b['from'], 0)} to {percent(b['to'], 0)}: "
        f"median {percent(b['median'])}"
        for b in bins
    )
    return draw_picture(draw, 4.2, "w", f"Widths of the intervals by probability. {listed}.")


def undecided(content: dict[str, Any]) -> Picture | None:
    """Intervals of the undecided rows with most to lose; None where there is no such row."""
    rows = content["decisions"]["listed"][:_N_DRAWN][::-1]
    if not rows:
        return None
    height = np.arange(len(rows))
    positive = np.array([row["positive"] for row in rows])
    p, lower, upper = (
        np.array([row[name] for row in rows]) for name in ("probability", "lower", "upper")
    )

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        threshold = content["decisions"]["threshold"]
        if threshold is not None:
            ax.axvline(threshold, color=INK, linewidth=0.8, linestyle=_DASHED)
        for side, colour, marker in ((positive, POSITIVE, "D"), (~positive, NEGATIVE, "o")):
            ax.hlines(height[side], lower[side], upper[side], color=colour, linewidth=1.6)
            ax.plot(p[side], height[side], marker, color=colour, markersize=4.4)
        ax.set_yticks(height, [f"{row['row']:,}" for row in rows])
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.8, len(rows) - 0.3), ylabel="row")
        ax.set_xlabel(_of_positive(content))
        ax.xaxis.set_major_formatter(percent_axis())
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)

    listed = "; ".join(
        f"row {row['row']}: {probability(row['probability'])}, from {probability(row['lower'])} to "
        f"{probability(row['upper'])}"
        for row in reversed(rows)
    )
    return draw_picture(draw, 0.65 + 0.2 * max(len(rows), 4), "u", f"Undecided rows. {listed}.")


def deciles(content: dict[str, Any]) -> Picture | None:
    """Share of the scored rows in each tenth of the training rows; None without a model."""
    if content["drift"] is None:
        return None
    bins = content["drift"]["bins"]
    x = np.arange(len(bins))
    new, old = (np.array([b[name] for b in bins]) for name in ("scored", "training"))

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.bar(x, new, width=0.72, color=NEGATIVE, alpha=0.75, label="scored rows")
        ax.hlines(old, x - 0.46, x + 0.46, color=INK, linewidth=1.6, label="training rows")
        ax.legend(loc="best")
        ax.set(ylabel="share of rows", ylim=(0, 1.15 * max(new.max(), old.max())))
        ax.set_xticks(x, [_up_to(b) for b in bins], rotation=45, ha="right")
        ax.set_xlabel("out-of-bag probability of the training rows, up to")
        ax.yaxis.set_major_formatter(percent_axis())

    listed = "; ".join(
        f"up to {_up_to(b)}: {percent(b['scored'])} scored, {percent(b['training'])} training"
        for b in bins
    )
    return draw_picture(draw, 3.0, "q", f"Rows by tenths of the training rows. {listed}.")


def _up_to(of_bin: dict[str, Any]) -> str:
    return "more" if of_bin["to"] is None else probability(of_bin["to"])


def _of_positive(content: dict[str, Any]) -> str:
    name = content["classes"]["positive"]
    return "probability" if name is None else f"probability of {short(name)}"
