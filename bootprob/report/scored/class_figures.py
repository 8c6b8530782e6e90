"""The figures of the report of a table scored by a model of several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bootprob.displays.style import COLORS, percent_axis
from bootprob.report.scored.figures import draw_probabilities
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import percent, short

__all__ = ["DRAWN", "distributions", "given"]

NEGATIVE, _, INK, _, _, FAINT = COLORS.values()

DRAWN = 12
"""Classes with a figure of their own; the numbers of all are in the tables."""


def given(content: dict[str, Any]) -> Picture:
    """Share of the rows that each class is given, beside what its probabilities expect."""
    classes = content["classes"][::-1]
    y = np.arange(len(classes))
    share, expected, lower, upper = (
        np.array([each[name] for each in classes])
        for name in ("share_given", "expected", "expected_lower", "expected_upper")
    )
    trained = [each["in_training"] for each in classes]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.barh(y, share, height=0.62, color=NEGATIVE, alpha=0.75, label="given")
        ax.hlines(y, lower, upper, color=INK, linewidth=1.4)
        ax.plot(expected, y, "o", color=INK, markersize=4.4, label="expected")
        if trained[0] is not None:
            old = [each["training"] for each in trained]
            ax.vlines(old, y - 0.42, y + 0.42, color=INK, linewidth=1.4, label="in training")
        ax.set_yticks(y, [short(each["name"]) for each in classes])
        ax.set(xlim=(0, None), ylim=(-0.7, len(y) - 0.3), xlabel="share of rows")
        ax.xaxis.set_major_locator(MaxNLocator(5))  # whose labels have decimals
        ax.xaxis.set_major_formatter(percent_axis())
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, handlelength=1.2)

    listed = "; ".join(
        f"{each['name']} {percent(each['share_given'])} of the rows, expected "
        f"{percent(each['expected'])}"
        for each in reversed(classes)
    )
    return draw_picture(draw, 1.0 + 0.27 * len(y), "g", f"Classes that rows are given: {listed}.")


def distributions(content: dict[str, Any]) -> dict[str, Picture]:
    """Histogram of the probabilities of each class, with that of the training rows if known."""
    return {f"class_{k}": _histogram(each, k) for k, each in enumerate(content["classes"][:DRAWN])}


def _histogram(of_class: dict[str, Any], k: int) -> Picture:
    scored = of_class["probabilities"]["scored"]["histogram"]

    def draw(figure: Figure) -> None:
        name = short(of_class["name"])
        draw_probabilities(figure.subplots(), of_class["probabilities"], f"probability of {name}")

    listed = ", ".join(
        f"{percent(s)} between {percent(a, 0)} and {percent(b, 0)}"
        for a, b, s in zip(scored["edges"][:-1], scored["edges"][1:], scored["share"], strict=True)
        if s
    )
    said = f"Histogram of the probabilities of {of_class['name']}: {listed}."
    return draw_picture(draw, 2.4, f"c{k}", said)
