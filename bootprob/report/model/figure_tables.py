"""The numbers of the figures of a model's report, as tables for the page."""

from __future__ import annotations

from typing import Any

from bootprob.report.figure_table import Cell, FigureTable
from bootprob.report.wording import count, number, percent, probability

__all__ = [
    "grid_table",
    "histogram_tables",
    "reliability_tables",
    "trade_off_tables",
]


def reliability_tables(
    curves: list[tuple[str, dict[str, Any]]], votes: str
) -> tuple[FigureTable, ...]:
    """Groups of rows with what was stated and observed, and how many rows were given what.

    Parameters
    ----------
    curves : list of tuple
        Name and entry of the content's "reliability", of each curve drawn.
    votes : str
        Name of the curve of vote shares, which can be certain; probabilities cannot.
    """
    groups = []
    for label, curve in curves:
        bins, text = curve["bins"], percent if label == votes else probability
        for k, stated in enumerate(bins["probability"]):
            shares = (_share(bins[name][k]) for name in ("observed", "lower", "upper"))
            groups.append(
                (Cell(label), _count(bins["n_rows"][k]), Cell(text(stated), stated), *shares)
            )
    drawn = [(label, curve["distribution"]) for label, curve in curves]
    edges = drawn[0][1]["edges"]
    strip = [
        (_between(edges, k), *(_share(each["share"][k], 2) for _, each in drawn))
        for k in range(len(edges) - 1)
    ]
    return (
        FigureTable(
            "Groups of rows",
            ("Probability", "Rows", "Stated", "Observed", "Interval from", "to"),
            tuple(groups),
        ),
        FigureTable(
            "Share of the rows",
            ("Given a probability of", *(label for label, _ in drawn)),
            tuple(strip),
        ),
    )


def grid_table(grid: dict[str, Any]) -> FigureTable:
    """Accuracy and weight of each C, or each pair of C and γ.

    Parameters
    ----------
    grid : dict
        The content's "grid".
    """
    gamma = grid["gamma"]
    rows = []
    for k, C in enumerate(grid["C"]):
        setting = [_number(C)] if gamma is None else [_number(C), _number(gamma[k])]
        accuracy = (grid[name][k] for name in ("accuracy", "accuracy_tenth", "accuracy_ninetieth"))
        rows.append((*setting, *map(_share, accuracy), _share(grid["weight"][k])))
    of_samples = ("Accuracy", "A tenth of the samples below", "A tenth above")
    settings = ("C",) if gamma is None else ("C", "γ")
    return FigureTable("Accuracy and weight", (*settings, *of_samples, "Weight"), tuple(rows))


def histogram_tables(
    histograms: dict[str, Any], classes: tuple[str, str]
) -> tuple[FigureTable, ...]:
    """The rows of the histograms, and how many scores each has where.

    Parameters
    ----------
    histograms : dict
        The content's "histograms", with rows.
    classes : tuple of str
        Names of the negative and the positive class.
    """
    rows, edges = histograms["rows"], histograms["edges"]
    about = tuple(
        (
            Cell(count(row["row"]), row["row"]),
            Cell(classes[int(row["positive"])]),
            Cell(row["reason"]),
            Cell(probability(row["probability"]), row["probability"]),
            _share(row["vote"]),
            _count(row["n_scores"]),
            _signed(row["mean"]),
            _signed(row["standard_deviation"]),
            _share(row["share_above_threshold"]),
        )
        for row in rows
    )
    counts = tuple(
        (_signed(edges[k]), _signed(edges[k + 1]), *(_count(row["counts"][k]) for row in rows))
        for k in range(len(edges) - 1)
        if any(row["counts"][k] for row in rows)
    )
    headings = ("Row", "Truth", "Chosen for the", "Probability", "Vote share", "Scores")
    return (
        FigureTable(
            "Rows of the histograms",
            (*headings, "Mean", "Standard deviation", "Share above 0"),
            about,
        ),
        FigureTable(
            "Scores between two values",
            ("Score from", "to", *(f"Row {row['row']}" for row in rows)),
            counts,
        ),
    )


def trade_off_tables(
    curve: dict[str, Any], points: list[tuple[str, dict[str, Any], dict[str, Any]]]
) -> tuple[FigureTable, ...]:
    """The points of the figure of control, and its curve.

    Parameters
    ----------
    curve : dict
        The content's "curve" of control.
    points : list of tuple
        What each point is, its true positive and its true negative rate.
    """
    named = []
    for label, *rates in points:
        shares = (rate[name] for rate in rates for name in ("value", "lower", "upper"))
        named.append((Cell(label), *map(_share, shares)))
    along = zip(curve["sensitivity"], curve["specificity"], strict=True)
    interval = ("from", "to")
    return (
        FigureTable(
            "Rates reached",
            ("", "Sensitivity", *interval, "Specificity", *interval),
            tuple(named),
        ),
        FigureTable(
            "Rates at any threshold",
            ("Sensitivity", "Specificity"),
            tuple(tuple(map(_share, pair)) for pair in along),
        ),
    )


def _share(value: float, digits: int = 1) -> Cell:
    return Cell(percent(value, digits), value)


def _count(value: float) -> Cell:
    return Cell(count(value), value)


def _number(value: float) -> Cell:
    return Cell(number(value), value)


def _signed(value: float) -> Cell:
    return Cell(f"{value:.2f}".replace("-", "−"), value)


def _between(edges: list[float], k: int) -> Cell:
    return Cell(f"{percent(edges[k], 0)} to {percent(edges[k + 1], 0)}")
