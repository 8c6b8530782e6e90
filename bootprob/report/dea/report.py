"""The report of a benchmarking study: its numbers, its figures, one page."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from bootprob.dea.selection.summary import summarise_curve
from bootprob.dea.study.content import (
    cross_content,
    curve_content,
    efficiency_content,
    game_content,
    panel_content,
)
from bootprob.dea.study.figure_data import (
    contribution_curve,
    efficiency_histograms,
    output_correlations,
    support_histograms,
)
from bootprob.dea.study.study import BenchmarkStudy
from bootprob.report.dea import efficiency_figures as dea_figures
from bootprob.report.dea.figures import ORANGE, box_plots, contributions, histogram_panels
from bootprob.report.dea.figures import correlation_matrix as matrix_picture
from bootprob.report.page import check_page, render, write_page
from bootprob.report.plain import plain
from bootprob.report.svg import Picture
from bootprob.report.wording import decimal

__all__ = ["FORMAT_VERSION", "dea_content", "write_dea_report"]

FORMAT_VERSION = 1


def write_dea_report(
    study: BenchmarkStudy,
    path: str | os.PathLike[str],
    *,
    title: str,
    source: str | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Write a self-contained report on a benchmarking study, and its numbers beside it.

    The page needs no network and runs no script. It holds the units' names and amounts.

    Parameters
    ----------
    study : BenchmarkStudy
        What `bootprob.dea.benchmark_study` found.
    path : path-like
        The HTML file; the numbers go to the same name with the suffix ``.json``. Existing files
        are replaced, each in one step.
    title : str
        Heading of the report.
    source : str, optional
        Name of the table.
    command : str, optional
        Command line that made the study, shown at the end.

    Returns
    -------
    dict
        The numbers.

    Raises
    ------
    DataError
        If `path` cannot be written or ends in ``.json``.

    Examples
    --------
    >>> from bootprob.dea import Panel
    >>> toy = Panel.of([1, 1, 1], [[5, 2, 1], [4, 4, 2], [1, 1, 6]], units=["A", "B", "C"])
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bootprob.dea import benchmark_study
    >>> from bootprob.report import write_dea_report
    >>> study = benchmark_study(toy, n_replicates=0)
    >>> with TemporaryDirectory() as folder:
    ...     numbers = write_dea_report(study, Path(folder, "clinics.html"), title="Clinics")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['clinics.html', 'clinics.json']
    >>> numbers["selection"]["size"]
    3
    """
    page, numbers = check_page(path)
    content = dea_content(study, title=title, source=source, command=command)
    html = render(
        "dea/page.html", content, pictures=_pictures(study, content), numbers_name=numbers.name,
        data_units=[unit["unit"] for unit in content["efficiency"]["units"]],
        chosen_correlations=_of_chosen(content["selection"]), largest_changes=_largest_changes,
        amount=_amount, score=decimal, signed=_signed,
    )  # fmt: skip
    write_page(page, numbers, html, content)
    return content


def dea_content(
    study: BenchmarkStudy, *, title: str, source: str | None = None, command: str | None = None
) -> dict[str, Any]:
    """Collect everything that the report says: plain dictionaries, lists, numbers and text.

    Parameters as for `write_dea_report`; what does not exist is None, so that JSON can hold it.
    """
    panel = study.result.panel
    cross = {"refused": study.no_cross}
    if study.crossed is not None:
        cross |= cross_content(study.crossed)
    content = {
        "format": {"name": "bootprob report of a benchmarking study", "version": FORMAT_VERSION},
        "title": title,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "data": {"name": source} | panel_content(panel),
        "efficiency": efficiency_content(study.result, study.interval)
        | {"no_intervals": study.no_interval},
        "cross": cross,
        "selection": None if study.curve is None else _selection(study),
    }
    return plain(content)


def _selection(study: BenchmarkStudy) -> dict[str, Any]:
    curve, panel = study.curve, study.result.panel
    assert curve is not None
    chosen = {len(one.features): one for one in curve.selections}[study.size or curve.sizes[0]]
    matrix = output_correlations(panel, chosen.features)
    histograms = efficiency_histograms(curve)
    found: dict[str, Any] = {
        "time_limit": study.time_limit,
        "size": study.size,
        "curve": curve_content(curve),
        "histograms": {
            "sizes": histograms.sizes, "edges": histograms.edges, "counts": histograms.counts
        },
        "correlations": {
            "outputs": matrix.names,
            "matrix": matrix.matrix,
            "chosen": [matrix.names[o] for o in matrix.chosen],
        },
        "games": [
            game_content(game, panel, with_gains=size == study.size)
            for size, game in study.games.items()
        ],
        "support": None,
    }  # fmt: skip
    if study.games:
        support = support_histograms(study.games)
        found["support"] = {
            "sizes": support.sizes, "edges": support.edges, "counts": support.counts
        }  # fmt: skip
    return found


def _pictures(study: BenchmarkStudy, content: dict[str, Any]) -> dict[str, Picture]:
    pictures = {
        "scores": dea_figures.scores(content["efficiency"]),
        "peers": dea_figures.peers(content["efficiency"]),
        "weights": dea_figures.weights(content["efficiency"]),
    }
    if study.crossed is not None:
        pictures["cross"] = dea_figures.cross(content["cross"])
    if study.curve is None:
        return pictures
    values = contribution_curve(study.curve)
    chosen = {len(one.features): one for one in study.curve.selections}[study.size or 1]
    matrix = output_correlations(study.result.panel, chosen.features)
    pictures |= {
        "curve": contributions(values, "c"),
        "boxes": box_plots(summarise_curve(study.curve), values, "b"),
        "histograms": histogram_panels(
            efficiency_histograms(study.curve), "h", quantity="efficiency", things="units"
        ),
        "correlations": matrix_picture(matrix, "o"),
        "correlations_chosen": matrix_picture(matrix.of_chosen, "oc"),
    }
    if study.games:
        pictures["support"] = histogram_panels(
            support_histograms(study.games), "s", quantity="units in favour, per cent",
            things="own selections", color=ORANGE,
        )  # fmt: skip
    return pictures


def _of_chosen(selection: dict[str, Any] | None) -> list[list[float]]:
    if selection is None:
        return []
    known = selection["correlations"]
    places = [known["outputs"].index(name) for name in known["chosen"]]
    return [[known["matrix"][row][column] for column in places] for row in places]


def _largest_changes(columns: list[dict[str, Any]], at_most: int = 5) -> list[dict[str, Any]]:
    """Columns whose targets are furthest from their amounts, in parts of the latter."""
    usable = [one for one in columns if one["amount"] and one["target"] is not None]
    changed = [one for one in usable if abs(one["target"] / one["amount"] - 1) >= 5e-4]
    return sorted(changed, key=lambda one: -abs(one["target"] / one["amount"] - 1))[:at_most]


def _amount(value: float | None) -> str:
    """Write an amount of any size with four digits or more: 0.01234, 12.34, 1,234, 123,456."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def _signed(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")
