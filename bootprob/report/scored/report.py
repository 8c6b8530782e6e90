"""The report of a scored table: one HTML file, and its numbers as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bootprob.report.page import check_page, render, write_page
from bootprob.report.scored import figures
from bootprob.report.scored.content import scored_content

if TYPE_CHECKING:
    from bootprob.costs.matrix import CostMatrix
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel


def write_scored_report(
    table: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    model: BootstrapSVC | TableModel | None = None,
    input_table: str | os.PathLike[str] | None = None,
    costs: CostMatrix | None = None,
    level: float = 0.95,
    id_column: str | None = None,
    n_listed: int = 50,
    title: str | None = None,
    command: str | None = None,
    progress: Callable[[int], None] = lambda n_rows: None,
) -> dict[str, Any]:
    """Write a self-contained report on a scored table, and its numbers beside it.

    Parameters
    ----------
    table : path-like
        What ``bootprob predict`` or ``bootprob score`` wrote; of any size.
    path : path-like
        The HTML file; the numbers go to the same name with the suffix ``.json``. Existing files
        are replaced, each in one step.
    model, input_table, costs, level, id_column, n_listed, title, command, progress
        As for `bootprob.report.scored.content.scored_content`.

    Returns
    -------
    dict
        The numbers.

    Raises
    ------
    DataError
        If `path` cannot be written or is the table, or as `scored_content` says.
    """
    page, numbers = check_page(path)
    content = scored_content(
        table,
        model=model,
        input_table=input_table,
        costs=costs,
        level=level,
        id_column=id_column,
        n_listed=n_listed,
        title=title,
        command=command,
        progress=progress,
    )
    names = ("distribution", "widths", "undecided", "deciles")
    pictures = {name: getattr(figures, name)(content) for name in names}
    html = render("scored/page.html", content, pictures=pictures, numbers_name=numbers.name)
    write_page(page, numbers, html, content)
    return content
