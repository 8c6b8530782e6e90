"""The figures of a benchmarking report that are of efficiencies, drawn from its own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bootprob.displays.style import COLORS, percent_axis
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import short

__all__ = ["cross", "peers", "scores", "weights"]

BLUE, ORANGE, INK, QUIET, GREY, FAINT = COLORS.values()

_NAMED = 40  # units that get a line of their own
_BARS = 20
_COLUMNS = 8


def scores(efficiency: dict[str, Any]) -> Picture:
    """Score and interval of each unit, the best at the top; by rank where there are many."""
    inward = efficiency["orientation"] == "input"
    units = [unit for unit in efficiency["units"] if unit["score"] is not None]
    units.sort(key=lambda unit: (unit["score"] if inward else -unit["score"], unit["unit"]))
    named = len(units) <= _NAMED
    height = np.arange(len(units))
    values = np.array([unit["score"] for unit in units])
    efficient = np.array([unit["efficient"] for unit in units], dtype=bool)
    bounds = [unit["interval"] for unit in units]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.axvline(1, color=FAINT, linewidth=1.0, zorder=0)
        for place, bound in enumerate(bounds):
            if bound is not None and bound["lower"] is not None and bound["upper"] is not None:
                ax.hlines(
                    place, bound["lower"], bound["upper"], color=GREY,
                    linewidth=2.2 if named else max(0.5, 110 / len(units)),
                )  # fmt: skip
        size = 4.2 if named else 2.2
        for which, color, marker in ((efficient, ORANGE, "D"), (~efficient, BLUE, "o")):
            ax.plot(
                values[which], height[which], marker, color=color, markersize=size,
                markeredgewidth=0,
            )  # fmt: skip
        ax.set(
            xlabel="efficiency" if inward else "score: times the outputs that could be had",
            ylim=(-0.8, len(units) - 0.2),
        )
        if named:
            ax.set_yticks(height, [short(unit["unit"], 22) for unit in units])
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0)
        else:
            ax.set_ylabel("units, the least efficient below")
            ax.set_yticks([])

    listed = "; ".join(
        f"{unit['unit']} {unit['score']:.3f}"
        + (
            f" ({unit['interval']['lower']:.3f} to {unit['interval']['upper']:.3f})"
            if unit["interval"] and unit["interval"]["lower"] and unit["interval"]["upper"]
            else ""
        )
        for unit in reversed(units)
    )
    tall = 0.65 + 0.19 * max(len(units), 4) if named else 4.6
    return draw_picture(draw, tall, "e", f"Efficiency of each unit. {listed}.")


def peers(efficiency: dict[str, Any]) -> Picture:
    """How many units each efficient unit is a peer of, the first twenty."""
    counted = efficiency["n_peer_of"][:_BARS][::-1]
    height = np.arange(len(counted))

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.barh(height, [one["count"] for one in counted], height=0.66, color=ORANGE, alpha=0.85)
        ax.set_yticks(height, [short(one["unit"], 22) for one in counted])
        ax.set(xlabel="units that it is a peer of, itself included", ylim=(-0.7, None))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)

    listed = "; ".join(f"{one['unit']} {one['count']}" for one in reversed(counted))
    tall = 0.6 + 0.19 * max(len(counted), 3)
    return draw_picture(draw, tall, "p", f"How often each unit is a peer. {listed}.")


def weights(efficiency: dict[str, Any]) -> Picture:
    """What share of the weighted inputs, and outputs, each column makes up, mean over the units.

    The eight largest of each side.
    """
    sides = efficiency["shares"]
    drawn = {
        side: sorted(found, key=lambda one: -one["share"])[:_COLUMNS][::-1]
        for side, found in sides.items()
    }
    rows = [len(drawn[side]) for side in ("outputs", "inputs")]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": rows})
        for ax, side, color in zip(axes, ("outputs", "inputs"), (ORANGE, BLUE), strict=True):
            found = drawn[side]
            height = np.arange(len(found))
            ax.barh(height, [one["share"] for one in found], height=0.62, color=color, alpha=0.85)
            ax.set_yticks(height, [short(one["name"], 22) for one in found])
            ax.set(xlim=(0, 1), ylim=(-0.6, len(found) - 0.4))
            ax.set_title(side, loc="left", pad=3)
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0)
        axes[1].set_xlabel("mean share of the weighted sum")
        axes[1].xaxis.set_major_formatter(percent_axis())

    listed = "; ".join(
        f"{one['name']} {one['share']:.1%}" for side in drawn.values() for one in reversed(side)
    )
    tall = 1.0 + 0.22 * max(sum(rows), 4)
    return draw_picture(draw, tall, "v", f"Mean share of each column. {listed}.")


def cross(content: dict[str, Any]) -> Picture:
    """Efficiency at the unit's own weights against its mean at all units' weights."""
    units = content["units"]
    own, mean = (np.array([unit[name] for unit in units]) for name in ("own", "cross"))

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        low = max(0.0, min(own.min(), mean.min()) - 0.05)
        ax.plot([low, 1], [low, 1], color=FAINT, linewidth=1.0, zorder=0)
        ax.plot(own, mean, "o", color=BLUE, markersize=4, alpha=0.75, markeredgewidth=0)
        furthest = sorted(range(len(units)), key=lambda k: mean[k] - own[k])[:3]
        best = int(np.argmax(mean))
        for k in dict.fromkeys([best, *furthest]):
            ax.annotate(
                short(units[k]["unit"], 18), (own[k], mean[k]), xytext=(-5, 0),
                textcoords="offset points", ha="right", va="center", fontsize=8, color=INK,
            )  # fmt: skip
        ax.set(
            xlim=(low - 0.02, 1.02), ylim=(low - 0.02, 1.02),
            xlabel="efficiency at its own weights", ylabel="mean at all units' weights",
        )  # fmt: skip

    listed = "; ".join(f"{unit['unit']} {unit['own']:.3f}, {unit['cross']:.3f}" for unit in units)
    return draw_picture(
        draw, 3.6, "x", f"Own efficiency and cross-efficiency of each unit. {listed}."
    )
