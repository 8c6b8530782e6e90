"""The figures of a report, drawn from the report's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from bootprob.report.model.figure_tables import grid_table, histogram_tables, reliability_tables
from bootprob.report.svg import COLORS, Picture, draw_picture
from bootprob.report.wording import number, percent, probability, short

__all__ = ["grid", "histograms", "intervals", "reliability"]

NEGATIVE, POSITIVE, INK, QUIET, VOTE, FAINT = COLORS.values()
_NEGLIGIBLE = 0.0005  # a weight that would be shown as 0.0 %


def reliability(model: dict[str, Any], name: str, positive: str) -> Picture:
    """Observed frequency against stated probability, with the spread of the probabilities.

    Parameters
    ----------
    model : dict
        An entry of ``content["models"]``.
    name : str
        Prefix of all ids in the SVG; must differ between the figures of a page.
    positive : str
        Name of the positive class.
    """
    labels = {"vote": "vote share", "probability": "calibrated"}
    curves = [
        (key, label, model["reliability"][key])
        for key, label in labels.items()
        if model["reliability"][key] is not None
    ]
    style = {
        "vote": {"color": VOTE, "marker": "D", "mfc": "white", "ms": 5.0},
        "probability": {"color": INK, "marker": "o", "ms": 5.5},
    }

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [5, 1], "hspace": 0.09}
        )
        top.plot([0, 1], [0, 1], color=FAINT, linewidth=1.0, zorder=0)
        for key, label, curve in curves:
            bins = {field: np.asarray(values) for field, values in curve["bins"].items()}
            x, y = bins["probability"], bins["observed"]
            top.errorbar(
                x,
                y,
                yerr=[y - bins["lower"], bins["upper"] - y],
                linestyle="none",
                elinewidth=0.9,
                label=label,
                **style[key],
            )
            edges = np.asarray(curve["distribution"]["edges"])
            share = np.asarray(curve["distribution"]["share"])
            up = 1 if key == "probability" or len(curves) == 1 else -1
            bottom.stairs(up * share, edges, fill=True, color=style[key]["color"])
        top.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed frequency")
        top.yaxis.set_major_formatter(_percent_axis(0))
        top.tick_params(axis="x", bottom=False)
        top.legend(loc="upper left", handletextpad=0.2, borderaxespad=0.2)
        bottom.axhline(0, color=QUIET, linewidth=0.6)
        bottom.spines[["left", "bottom"]].set_visible(False)
        bottom.set(yticks=[], ylabel="rows", xlabel=f"probability stated for {short(positive)}")
        bottom.xaxis.set_major_formatter(_percent_axis(0))

    sentences = []
    for _, label, curve in curves:
        pairs = zip(curve["bins"]["probability"], curve["bins"]["observed"], strict=True)
        listed = ", ".join(f"{p:.1%} stated and {o:.1%} observed" for p, o in pairs)
        sentences.append(f"{label.capitalize()}, by groups of rows: {listed}.")
    drawn = [(label.capitalize(), curve) for _, label, curve in curves]
    tables = reliability_tables(drawn, votes=labels["vote"].capitalize())
    return draw_picture(draw, 4.3, name, "Reliability diagram. " + " ".join(sentences), tables)


def grid(model: dict[str, Any], name: str, models: list[dict[str, Any]]) -> Picture:
    """Out-of-bag accuracy and ensemble weight per C; as two maps where γ has a grid too.

    Parameters
    ----------
    model, name
        As in `reliability`.
    models : list of dict
        All models of the page: their figures share the scales of accuracy and weight.
    """
    values = model["grid"]
    lowest = min(min(other["grid"]["accuracy_tenth"]) for other in models)
    highest = max(max(other["grid"]["accuracy_ninetieth"]) for other in models)
    heaviest = max(max(other["grid"]["weight"]) for other in models)
    margin = 0.06 * max(highest - lowest, 0.01)
    gammas = sorted(set(values["gamma"] or []))
    if len(gammas) > 1:
        return _grid_maps(values, gammas, name)
    labels = [number(c) for c in values["C"]]
    x = np.arange(len(labels))
    accuracy, weight = np.asarray(values["accuracy"]), np.asarray(values["weight"])
    lower, upper = np.asarray(values["accuracy_tenth"]), np.asarray(values["accuracy_ninetieth"])

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [1.4, 1], "hspace": 0.16}
        )
        top.vlines(x, lower, upper, color=FAINT, linewidth=4.0)
        top.plot(x, accuracy, color=INK, marker="o", markersize=4.5, linewidth=0.9)
        top.set(ylabel="accuracy", ylim=(lowest - margin, highest + margin))
        top.yaxis.set_major_formatter(_percent_axis())
        top.tick_params(axis="x", bottom=False)
        bottom.bar(x, weight, width=0.7, color=NEGATIVE)
        bottom.plot(
            x[weight < _NEGLIGIBLE],
            np.zeros((weight < _NEGLIGIBLE).sum()),
            linestyle="none",
            marker="x",
            color=VOTE,
            markersize=4.0,
            clip_on=False,
        )
        bottom.set(ylabel="weight", xlabel="C", ylim=(0, 1.06 * heaviest))
        bottom.yaxis.set_major_formatter(_percent_axis(0))
        step = 1 + max(map(len, labels)) * len(labels) // 45  # what fits without touching
        bottom.set_xticks(x[::step], labels[::step])

    listed = "; ".join(
        f"C = {c}: accuracy {a:.1%}, weight {w:.1%}"
        for c, a, w in zip(labels, accuracy, weight, strict=True)
    )
    alt = f"Out-of-bag accuracy and weight for each C. {listed}."
    return draw_picture(draw, 3.3, name, alt, (grid_table(values),))


def _grid_maps(values: dict[str, Any], gammas: list[float], name: str) -> Picture:
    """Two maps, γ down and C across, every cell with its number."""
    costs = sorted(set(values["C"]))
    shape = len(gammas), len(costs)
    row = np.searchsorted(gammas, values["gamma"])
    column = np.searchsorted(costs, values["C"])
    accuracy, weight = np.full(shape, np.nan), np.full(shape, np.nan)
    accuracy[row, column], weight[row, column] = values["accuracy"], values["weight"]
    labels = [number(c) for c in costs]
    step = 1 + max(map(len, labels)) * len(labels) // 45  # what fits without touching

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.48 / len(gammas)})
        titles = ("accuracy out of bag, %", "weight, %")
        for ax, cells, title in zip(axes, (accuracy, weight), titles, strict=True):
            shade = ax.pcolormesh(
                np.arange(len(costs) + 1) - 0.5,
                np.arange(len(gammas) + 1) - 0.5,
                cells,
                cmap="Blues",
                edgecolors="white",
                linewidth=1.0,
            )
            shade.set_clim(np.nanmin(cells), np.nanmax(cells) + 1e-9)
            middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
            for (i, j), cell in np.ndenumerate(cells):
                colour = "white" if cell > middle else INK
                text = f"{100 * cell:.0f}" if cell >= _NEGLIGIBLE else "·"
                ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=7.5)
            ax.set_title(title, loc="left")
            ax.set_yticks(range(len(gammas)), [number(g) for g in gammas])
            ax.set_ylabel("γ")
            ax.spines[:].set_visible(False)
            ax.tick_params(length=0)
        axes[-1].set_xticks(range(0, len(costs), step), labels[::step])
        axes[-1].set_xlabel("C")

    listed = "; ".join(
        f"C = {number(c)}, γ = {number(g)}: accuracy {a:.1%}, weight {w:.1%}"
        for c, g, a, w in zip(
            values["C"], values["gamma"], values["accuracy"], values["weight"], strict=True
        )
    )
    alt = f"Out-of-bag accuracy and weight for each C and γ. {listed}."
    return draw_picture(draw, 1.6 + 0.42 * len(gammas), name, alt, (grid_table(values),))


def histograms(model: dict[str, Any], name: str, classes: tuple[str, str]) -> Picture | None:
    """Scores of a few rows over the replicates that did not see them, with the threshold.

    Parameters
    ----------
    model, name
        As in `reliability`.
    classes : tuple of str
        Names of the negative and the positive class.

    Returns
    -------
    Picture or None
        None where no row has enough scores for a histogram.
    """
    values = model["histograms"]
    edges, rows = np.asarray(values["edges"]), values["rows"]
    half = values["score_at_one_half"]
    if not rows:
        return None
    dashed = (
        half is not None and abs(half) > edges[1] - edges[0] and edges[0] < half < edges[-1]
    )  # where it can be told from 0
    on_white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}

    def draw(figure: Figure) -> None:
        for ax, row in zip(
            figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0], rows, strict=True
        ):
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
                f"vote {percent(row['vote'])}\nprobability {probability(row['probability'])}",
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
    alt, tables = f"Histograms of scores. {listed}", histogram_tables(values, classes)
    return draw_picture(draw, 0.5 + 1.0 * len(rows), name, alt, tables)


def intervals(model: dict[str, Any], name: str, classes: tuple[str, str]) -> Picture:
    """Intervals of scores and of probabilities for the sampled rows, with the true class.

    Parameters
    ----------
    model, name, classes
        As in `histograms`.
    """
    rows = model["intervals"]["rows"]
    height = np.arange(len(rows))
    positive = np.array([row["positive"] for row in rows], dtype=bool)
    calibrated = model["calibration"] is not None
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
        if calibrated:
            lower, upper = column("vote_interval_wald").T
            right.hlines(height - 0.33, lower, upper, color=VOTE, linewidth=1.0)
        left.set_yticks(height, [str(row["row"]) for row in rows])
        left.set(ylabel="row", xlabel="score", ylim=(-0.8, len(rows) - 0.3))
        right.set(xlim=(-0.06, 1.06), xlabel=f"probability of {short(classes[1], 20)}")
        right.xaxis.set_major_formatter(_percent_axis(0))
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


def _percent_axis(decimals: int | None = None) -> PercentFormatter:
    return PercentFormatter(1, decimals=decimals, symbol="\u202f%")
