"""Can a probability be taken at its word? Stated against observed."""

from __future__ import annotations

from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bootprob.displays.reliability import ReliabilityDisplay
from bootprob.displays.style import COLORS, percent_axis
from bootprob.metrics.calibration_bands import CalibrationBand, calibration_band, has_band
from bootprob.metrics.logistic_calibration import calibration_line, logistic_line
from bootprob.metrics.reliability import ReliabilityCurve, reliability_curve
from bootprob.metrics.tests_of_calibration import calibration_tests
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import count, percent, probability, short

__all__ = ["SECTION", "diagram", "reliability"]

INK, QUIET, VOTE = (COLORS[name] for name in ("ink", "quiet", "vote"))
_N_PROBABILITY_BINS = 20
_TENTHS = np.arange(11) / 10
_STYLES: dict[str, dict[str, Any]] = {
    "vote": {"color": VOTE, "marker": "D", "mfc": "white", "ms": 5.0},
    "probability": {"color": INK, "marker": "o", "ms": 5.5},
}


def _content(of: Measured) -> dict[str, Any]:
    positive = of.model.y_ == 1
    vote = reliability(of, positive, of.model.oob_vote_proba_[:, 1])
    calibrated = of.model.calibration is not None
    of_probability = reliability(of, positive, of.probability) if calibrated else None
    return {
        "reliability": {"probability": of_probability, "vote": vote},
        "calibration_line": _line(of, positive) if calibrated else None,
        "calibration_tests": _held_out_tests(of) if calibrated else None,
    }


def _line(of: Measured, positive: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Calibration slope and in the large, out of bag; None where there is no slope."""
    model, known = of.model, np.isfinite(of.probability) & (of.model.sample_weight_ > 0)
    y, p, weights = positive[known], of.probability[known], model.sample_weight_[known]
    if np.isnan(logistic_line(y.astype(float), p, weights).slope):
        return None
    groups = None if model.groups_ is None else model.groups_[known]
    found = calibration_line(y, p, weights, of.level, groups=groups)
    return {name: asdict(each) for name, each in found.items()}


def _held_out_tests(of: Measured) -> dict[str, Any] | None:
    """Tests of calibration on rows that took no part in training; None without such rows."""
    if of.held_out is None:
        return None
    p = np.asarray(of.model.predict_proba(of.held_out.X))[:, 1]
    found = calibration_tests(of.held_out.positive_rows(of.model), p)
    return {name: asdict(each) for name, each in found.items()}


def reliability(of: Measured, y: NDArray[np.bool_], p: NDArray[np.float64]) -> dict[str, Any]:
    """Observed frequency of some rows against their stated probability, and how both spread."""
    weights = of.model.sample_weight_
    seen = ~np.isnan(p)
    counts, edges = np.histogram(
        np.clip(p[seen], 0, 1), bins=_N_PROBABILITY_BINS, range=(0, 1), weights=weights[seen]
    )
    groups, band = of.model.groups_, None
    if has_band(weights * seen, groups):
        found = calibration_band(y, p, weights, of.level, groups=groups)
        band = asdict(found) | {"miscalibrated": found.miscalibrated, "crosses": found.crosses}
        lower, upper = found.at(_TENTHS)
        band["tenths"] = {"stated": _TENTHS, "lower": lower, "upper": upper}
    return {
        "band": band,
        "bins": asdict(reliability_curve(y, p, weights, level=of.level, groups=groups)),
        "distribution": {"edges": edges, "share": counts / counts.sum()},
    }


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    calibrated = of.model["calibration"] is not None
    stated: Literal["probability", "vote"] = "probability" if calibrated else "vote"
    return {"reliability": diagram(of.model["reliability"], stated, of.name("r"), of.classes[1])}


def diagram(
    curves: dict[str, Any], of: Literal["probability", "vote"], name: str, positive: str
) -> Picture:
    """Observed frequency against stated probability, with the spread of the probabilities."""
    curve, style = curves[of], _STYLES[of]
    label = "vote share" if of == "vote" else "calibrated"

    def draw(figure: Figure) -> None:
        top, bottom = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [5, 1], "hspace": 0.09}
        )
        if curve["band"]:
            ReliabilityDisplay(_band(curve["band"])).plot(top, color=style["color"])
        else:
            found = {name: np.asarray(values) for name, values in curve["bins"].items()}
            ReliabilityDisplay(ReliabilityCurve(**found)).plot(top, **style)
        distribution = curve["distribution"]
        bottom.stairs(
            np.asarray(distribution["share"]),
            np.asarray(distribution["edges"]),
            fill=True,
            color=style["color"],
        )
        top.set(xlabel="")
        top.tick_params(axis="x", bottom=False)
        bottom.axhline(0, color=QUIET, linewidth=0.6)
        bottom.spines[["left", "bottom"]].set_visible(False)
        bottom.set(yticks=[], ylabel="rows", xlabel=f"probability stated for {short(positive)}")
        bottom.xaxis.set_major_formatter(percent_axis(0))

    listed = ", ".join(
        f"{p:.1%} stated and {o:.1%} observed"
        for p, o in zip(curve["bins"]["probability"], curve["bins"]["observed"], strict=True)
    )
    alt = f"Reliability diagram. {label.capitalize()}, by groups of rows: {listed}."
    if curve["band"]:
        wrong = ", ".join(f"{a:.1%} to {b:.1%}" for a, b in curve["band"]["miscalibrated"])
        alt += (
            f" The band {f'excludes the diagonal at {wrong}' if wrong else 'holds the diagonal'}."
        )
    return draw_picture(draw, 4.3, name, alt, _tables(curve, label.capitalize()))


def _band(found: dict[str, Any]) -> CalibrationBand:
    kept = {each.name: found[each.name] for each in fields(CalibrationBand)}
    arrays = {name: np.asarray(v) for name, v in kept.items() if isinstance(v, list)}
    return CalibrationBand(**(kept | arrays))


def _tables(curve: dict[str, Any], label: str) -> tuple[FigureTable, ...]:
    """Groups of rows with what was stated and observed, and how many rows were given what.

    A share of votes can be certain; no probability can.
    """
    bins, edges = curve["bins"], percent(curve["distribution"]["edges"], 0)
    written = probability if label == "Calibrated" else percent
    return (
        *([] if curve["band"] is None else [_band_table(curve["band"]["tenths"], label)]),
        FigureTable(
            f"Groups of rows, {label.lower()}",
            (
                Column.of("Stated", bins["probability"], written),
                Column.of("Rows", bins["n_rows"], count),
                Column.of("Observed", bins["observed"], percent),
                Column.of("Interval from", bins["lower"], percent),
                Column.of("to", bins["upper"], percent),
            ),
        ),
        FigureTable(
            "Share of the rows",
            (
                Column("Given a probability of", [f"{a} to {b}" for a, b in pairwise(edges)]),
                Column.of(label, curve["distribution"]["share"], percent, 2),
            ),
        ),
    )


def _band_table(tenths: dict[str, list[float | None]], label: str) -> FigureTable:
    """The band at every tenth probability."""
    return FigureTable(
        f"Band of observed frequencies, {label.lower()}",
        (
            Column.of("Stated", tenths["stated"], percent, 0),
            Column.of("Observed from", tenths["lower"], percent),
            Column.of("to", tenths["upper"], percent),
        ),
    )


SECTION = Section("calibration", "Calibration", _content, _pictures)
