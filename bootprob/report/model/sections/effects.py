"""What do the probabilities depend on? Importance of columns, curves, and why of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bootprob.displays.columns import (
    ContributionsDisplay,
    ImportanceDisplay,
    PartialDependenceDisplay,
)
from bootprob.explanation.column_curves import PartialDependence
from bootprob.explanation.column_importance import PermutationImportance
from bootprob.explanation.row_contributions import Contributions
from bootprob.report.figure_table import Column, FigureTable
from bootprob.report.model.column_effects import column_effects
from bootprob.report.model.sections.section import Drawn, Measured, Section
from bootprob.report.svg import Picture, draw_picture
from bootprob.report.wording import decimal, fine_probability, number, probability, short

__all__ = ["SECTION", "curves", "importance"]

_DRAWN = 12  # columns of the figure of importance
_LOWEST = 1.9  # inches of a picture
_TICKS = 6  # numbers of a curve that are ticks
_OF_ROW = 6  # columns of a row in its figure


def _content(of: Measured) -> dict[str, Any]:
    found = column_effects(of.model, of.explained, of.training, of.held_out, of.level)
    return {"effects": found}


def _pictures(of: Drawn) -> dict[str, Picture | None]:
    effects = of.model["effects"]
    if effects is None:
        return {}
    return {
        "importance": importance(effects["importance"], of.name("w")),
        "dependence": curves(effects["dependence"], of.name("d"), of.classes[1]),
        "contributions": _contributions(effects["contributions"], of.name("e"), of.classes),
    }


def importance(found: dict[str, Any], name: str) -> Picture:
    """The most important columns with their intervals."""
    rows = found["columns"]
    shown = PermutationImportance(
        columns=[short(row["column"], 20) for row in rows],
        importances=np.array([[row["importance"]] for row in rows]),
        interval=np.array([[row["lower"], row["upper"]] for row in rows]),
        **{key: found[key] for key in ("metric", "baseline", "n_rows", "held_out", "level")},
    )

    def draw(figure: Figure) -> None:
        ImportanceDisplay(shown, _DRAWN).plot(figure.subplots())

    listed = ", ".join(
        f"{row['column']} {row['importance']:.3f} ({row['lower']:.3f} to {row['upper']:.3f})"
        for row in rows[:_DRAWN]
    )
    table = FigureTable(
        "Importance of columns",
        (
            Column("Column", [row["column"] for row in rows]),
            *(
                Column.of(heading, [row[key] for row in rows], decimal, 4)
                for heading, key in (
                    ("Rise of the log-loss", "importance"),
                    ("Interval from", "lower"),
                    ("to", "upper"),
                )
            ),
        ),
    )
    alt = f"Rise of the log-loss when a column is permuted: {listed}."
    height = max(_LOWEST, 0.7 + 0.22 * min(len(rows), _DRAWN))
    return draw_picture(draw, height, name, alt, (table,))


def curves(found: list[dict[str, Any]], name: str, label: str) -> Picture:
    """The mean probability of a class by the value of each of a few columns."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(found), 1, squeeze=False)[:, 0]
        for ax, curve in zip(axes, found, strict=True):
            values = np.array(curve["values"], dtype="M8[D]" if curve["of_dates"] else None)
            if curve["of_levels"]:
                values = np.array([short(each, 12) for each in curve["values"]], dtype=object)
            ends = np.array(curve["log_odds"]), np.array(curve["interval"])
            shown = PartialDependence(short(curve["column"]), values, *ends)
            PartialDependenceDisplay(shown).plot(ax)
            ax.set_ylabel("")
            if not _in_words(curve) and len(values) <= _TICKS:
                ax.set_xticks(values)
        figure.supylabel(f"probability of {short(label, 24)}", fontsize=9)

    listed = "; ".join(
        f"{curve['column']}: {probability(curve['probability'][0])} at {values[0]} to "
        f"{probability(curve['probability'][-1])} at {values[-1]}"
        for curve, values in zip(found, map(_written, found), strict=True)
    )
    tables = tuple(_table(curve) for curve in found)
    alt = f"Mean probability by the value of a column. {listed}."
    return draw_picture(draw, 0.5 + 1.45 * len(found), name, alt, tables)


def _written(curve: dict[str, Any]) -> list[str]:
    """The values of a curve."""
    return curve["values"] if _in_words(curve) else number(curve["values"])


def _in_words(curve: dict[str, Any]) -> bool:
    return bool(curve["of_levels"] or curve["of_dates"])


def _table(curve: dict[str, Any]) -> FigureTable:
    """The points of a curve."""
    column, ends = curve["column"], list(zip(*curve["probability_interval"], strict=True))
    values = curve["values"]
    first = Column(column, values) if _in_words(curve) else Column.of(column, values, number)
    of_probability = (
        ("Probability", curve["probability"]),
        ("Interval from", ends[0]),
        ("to", ends[1]),
    )
    columns = (Column.of(heading, list(of), fine_probability) for heading, of in of_probability)
    return FigureTable(f"Probability by {column}", (first, *columns))


def _contributions(
    rows: list[dict[str, Any]], name: str, classes: tuple[str, str]
) -> Picture | None:
    """What the columns contribute to the log-odds of each of a few rows."""
    if not rows:
        return None
    n_columns = min(_OF_ROW, len(rows[0]["columns"]))

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for ax, row in zip(axes, rows, strict=True):
            every = row["columns"]
            ContributionsDisplay(
                Contributions(
                    [short(each["column"], 20) for each in every],
                    np.array([[each["contribution"] for each in every]]),
                    np.array([[[each["lower"], each["upper"]] for each in every]]),
                    row["base"],
                    np.array([row["probability"]]),
                    np.zeros((1, len(every))),
                ),
                n_columns=n_columns,
            ).plot(ax)
            truth = short(classes[int(row["positive"])], 20)
            said = f"row {row['row']}: {truth}, probability {probability(row['probability'])}"
            ax.set_title(said, loc="left", fontweight="bold")
            if row is not rows[-1]:
                ax.set_xlabel("")

    listed = " ".join(
        f"Row {row['row']}, in truth {classes[int(row['positive'])]}: "
        + ", ".join(f"{each['column']} {each['contribution']:+.2f}" for each in row["columns"][:3])
        + "."
        for row in rows
    )
    flat = [(row, each) for row in rows for each in row["columns"]]
    table = FigureTable(
        "Contributions to the log-odds",
        (
            Column.of("Row", [row["row"] for row, _ in flat], decimal, 0),
            Column("Column", [each["column"] for _, each in flat]),
            *(
                Column.of(heading, [each[key] for _, each in flat], decimal, 2)
                for heading, key in (
                    ("Contribution", "contribution"),
                    ("Interval from", "lower"),
                    ("to", "upper"),
                )
            ),
        ),
    )
    alt = f"Contributions of columns to the log-odds of single rows. {listed}"
    height = max(_LOWEST, 0.4 + (0.4 + 0.19 * n_columns) * len(rows))
    return draw_picture(draw, height, name, alt, (table,))


def _is_shown(content: dict[str, Any]) -> bool:
    return any(model["effects"] for model in content["models"])


SECTION = Section("effects", "Effects of columns", _content, _pictures, _is_shown)
