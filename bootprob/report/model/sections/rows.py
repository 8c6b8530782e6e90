"""How steady is the answer for a single row? Its scores and its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bootprob.displays.style import COLORS, percent_axis
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.row_samples import row_histograms, row_intervals
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import count, decimal, percent, probability, short

__all__ = ["SECTION"]

NEGATIVE, POSITIVE, INK, QUIET, _, FAINT = COLORS.values()


def _content(of: Measured) -> dict[str, Any]:
    return {
        "histograms": row_histograms(of.model),
        "intervals": row_intervals(of.model, of.level),
    }


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    return {
        "histograms": _histograms(of.model, of.name("h"), of.classes),
        "intervals": _intervals(of.model, of.name("i"), of.classes),
    }


def _histograms(model: dict[str, Any], name: str, classes: tuple[str, str]) -> Picture | None:
    """Scores of a few rows over the replicates that did not see them, with the threshold."""
    values = model["histograms"]
    edges, rows = np.asarray(values["edges"]), values["rows"]
    half = values["score_at_one_half"]
    if not rows:
        return None
    dashed = (
        half is not None and abs(half) > edges[1] - edges[0] and edges[0] < half < edges[-1]
    )  # where it can be told from 0
    on_white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    stated = probability([row["probability"] for row in rows])

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for ax, row, p in zip(axes, rows, stated, strict=True):
            share = np.asarray(row["counts"]) / row["n_scores"]
            zero = int(np.argmin(np.abs(edges)))  # the threshold is an edge of a bin
            ax.stairs(share[:zero], edges[: zero + 1], fill=True, color=NEGATIVE)
            ax.stairs(share[zero:], edges[zero:], fill=True, color=POSITIVE)
            ax.axvline(0, color=INK, linewidth=1.0)
            if dashed:
                ax.axvline(half, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
            truth = short(classes[int(row["positive"])], 30)
            ax.set_title(f"row {row['row']}: {truth}", loc="left", pad=2, y=1.02, fontweight="bold")
            # On the side that the heap leaves free.
            side = 0.0 if row["mean"] > (edges[0] + edges[-1]) / 2 else 1.0
            ax.text(
                side,
                0.97,
                f"probability {p}",
                transform=ax.transAxes,
                ha="left" if side < 0.5 else "right",
                va="top",
                color=QUIET,
                linespacing=1.4,
                bbox=on_white if dashed else None,
            )
            ax.set(yticks=[], ylim=(0, 1.08 * share.max()))
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="x", bottom=row is rows[-1])
        ax.set_xlabel("score, one per bootstrap sample")

    listed = " ".join(
        f"Row {row['row']}, in truth {classes[int(row['positive'])]}, chosen for the "
        f"{row['reason']}: {row['n_scores']} scores, mean {row['mean']:.2f}, standard deviation "
        f"{row['standard_deviation']:.2f}, {row['share_above_threshold']:.1%} above 0."
        for row in rows
    )
    alt, tables = f"Histograms of scores. {listed}", _tables(values, classes)
    return draw_picture(draw, 0.5 + 1.0 * len(rows), name, alt, tables)


def _intervals(model: dict[str, Any], name: str, classes: tuple[str, str]) -> Picture:
    """Intervals of scores and of probabilities for the sampled rows, with the true class."""
    rows = model["intervals"]["rows"]
    height = np.arange(len(rows))
    positive = np.array([row["positive"] for row in rows], dtype=bool)
    threshold = model["decision_threshold"]

    def column(key: str) -> NDArray[np.float64]:
        return np.array([row[key] for row in rows], dtype=float)  # None becomes NaN

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.07})
        left.axvline(0, color=INK, linewidth=0.8)
        right.axvline(threshold, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
        for of_class, colour, marker in ((positive, POSITIVE, "D"), (~positive, NEGATIVE, "o")):
            for ax, what in ((left, "score"), (right, "probability")):
                centre = column(what)[of_class]
                lower, upper = column(f"{what}_interval")[of_class].T
                ax.plot(centre, height[of_class], marker, color=colour, markersize=4.4)
                ax.hlines(height[of_class], lower, upper, color=colour, linewidth=1.6)
        left.set_yticks(height, [str(row["row"]) for row in rows])
        left.set(ylabel="row", xlabel="score", ylim=(-0.8, len(rows) - 0.3))
        right.set(xlim=(-0.06, 1.06), xlabel=f"probability of {short(classes[1], 20)}")
        right.xaxis.set_major_formatter(percent_axis(0))
        right.set_xticks([0, 0.5, 1])
        for ax in (left, right):
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0)
            ax.set_axisbelow(True)
            ax.grid(axis="y", color=FAINT, linewidth=0.4)

    alt = (
        f"Score and probability of {len(rows)} rows with their intervals, coloured by true class; "
        "the numbers are in the table below the figure."
    )
    return draw_picture(draw, 0.65 + 0.2 * max(len(rows), 4), name, alt)


def _tables(histograms: dict[str, Any], classes: tuple[str, str]) -> tuple[FigureTable, ...]:
    """The rows of the histograms, and how many scores each has where."""
    rows, edges = histograms["rows"], histograms["edges"]
    filled = [k for k in range(len(edges) - 1) if any(row["counts"][k] for row in rows)]

    def column(key: str) -> list[Any]:
        return [row[key] for row in rows]

    return (
        FigureTable(
            "Rows of the histograms",
            (
                Column.of("Row", column("row"), count),
                Column("Truth", [classes[int(positive)] for positive in column("positive")]),
                Column("Chosen for the", column("reason")),
                Column.of("Probability", column("probability"), probability),
                Column.of("Scores", column("n_scores"), count),
                Column.of("Mean", column("mean"), decimal, 2),
                Column.of("Standard deviation", column("standard_deviation"), decimal, 2),
                Column.of("Share above 0", column("share_above_threshold"), percent),
            ),
        ),
        FigureTable(
            "Scores between two values",
            (
                Column.of("Score from", [edges[k] for k in filled], decimal, 2),
                Column.of("to", [edges[k + 1] for k in filled], decimal, 2),
                *(
                    Column.of(f"Row {row['row']}", [row["counts"][k] for k in filled], count)
                    for row in rows
                ),
            ),
        ),
    )


SECTION = Section("rows", "Single rows", _content, _pictures)
