"""Can a probability be taken at its word? Stated against observed."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bootprob.metrics.reliability import reliability_curve
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import COLORS, Picture, draw_picture, percent_axis
from bootprob.report.wording import count, percent, probability, short

__all__ = ["SECTION"]

NEGATIVE, POSITIVE, INK, QUIET, VOTE, FAINT = COLORS.values()
_N_PROBABILITY_BINS = 20


def _content(of: Measured) -> dict[str, Any]:
    vote = _reliability(of, of.model.oob_vote_proba_[:, 1])
    calibrated = of.model.calibration is not None
    of_probability = _reliability(of, of.probability) if calibrated else None
    return {"reliability": {"probability": of_probability, "vote": vote}}


def _reliability(of: Measured, p: NDArray[np.float64]) -> dict[str, Any]:
    y, weights = of.model.y_, of.model.sample_weight_
    seen = ~np.isnan(p)
    counts, edges = np.histogram(
        np.clip(p[seen], 0, 1), bins=_N_PROBABILITY_BINS, range=(0, 1), weights=weights[seen]
    )
    return {
        "bins": asdict(reliability_curve(y, p, weights, level=of.level, groups=of.model.groups_)),
        "distribution": {"edges": edges, "share": counts / counts.sum()},
    }


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    return {"reliability": _diagram(of.model, of.name("r"), of.classes[1])}


def _diagram(model: dict[str, Any], name: str, positive: str) -> Picture:
    """Observed frequency against stated probability, with the spread of the probabilities."""
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
        top.yaxis.set_major_formatter(percent_axis(0))
        top.tick_params(axis="x", bottom=False)
        top.legend(loc="upper left", handletextpad=0.2, borderaxespad=0.2)
        bottom.axhline(0, color=QUIET, linewidth=0.6)
        bottom.spines[["left", "bottom"]].set_visible(False)
        bottom.set(yticks=[], ylabel="rows", xlabel=f"probability stated for {short(positive)}")
        bottom.xaxis.set_major_formatter(percent_axis(0))

    sentences = []
    for _, label, curve in curves:
        pairs = zip(curve["bins"]["probability"], curve["bins"]["observed"], strict=True)
        listed = ", ".join(f"{p:.1%} stated and {o:.1%} observed" for p, o in pairs)
        sentences.append(f"{label.capitalize()}, by groups of rows: {listed}.")
    drawn = [(label.capitalize(), curve) for _, label, curve in curves]
    tables = _tables(drawn, votes=labels["vote"].capitalize())
    return draw_picture(draw, 4.3, name, "Reliability diagram. " + " ".join(sentences), tables)


def _tables(curves: list[tuple[str, dict[str, Any]]], votes: str) -> tuple[FigureTable, ...]:
    """Groups of rows with what was stated and observed, and how many rows were given what.

    A share of votes, the curve of which is called `votes`, can be certain; no probability can.
    """

    def groups(name: str) -> list[Any]:
        return [value for _, curve in curves for value in curve["bins"][name]]

    named, stated = [], []
    for label, curve in curves:
        means = curve["bins"]["probability"]
        named += [label] * len(means)
        stated += percent(means) if label == votes else probability(means)
    edges = percent(curves[0][1]["distribution"]["edges"], 0)
    strip = (Column.of(label, each["distribution"]["share"], percent, 2) for label, each in curves)
    return (
        FigureTable(
            "Groups of rows",
            (
                Column("Probability", named),
                Column.of("Rows", groups("n_rows"), count),
                Column("Stated", stated, groups("probability")),
                Column.of("Observed", groups("observed"), percent),
                Column.of("Interval from", groups("lower"), percent),
                Column.of("to", groups("upper"), percent),
            ),
        ),
        FigureTable(
            "Share of the rows",
            (
                Column("Given a probability of", [f"{a} to {b}" for a, b in pairwise(edges)]),
                *strip,
            ),
        ),
    )


SECTION = Section("calibration", "Calibration", _content, _pictures)
