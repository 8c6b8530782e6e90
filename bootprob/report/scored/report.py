"""The report of a scored table: one HTML file, and its numbers as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bootprob.exceptions import DataError
from bootprob.report.page import check_page, render, write_page
from bootprob.report.scored import class_figures, figures
from bootprob.report.scored.class_content import class_content
from bootprob.report.scored.content import scored_content
from bootprob.report.scored.table import ScoredTable

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
    encoding: str | None = None,
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
        What ``bootprob predict`` or ``bootprob score`` wrote; of any size. Of several classes
        ``p_X``, ``low_X``, ``high_X`` of each and ``label``.
    path : path-like
        The HTML file; the numbers go to the same name with the suffix ``.json``. Existing files
        are replaced, each in one step.
    model, input_table, encoding, costs, level, id_column, n_listed, title, command, progress
        As for `bootprob.report.scored.content.scored_content`; costs, `id_column` and `n_listed`
        are of two classes.

    Returns
    -------
    dict
        The numbers.

    Raises
    ------
    DataError
        If `path` cannot be written or is the table, or as `scored_content` and
        `bootprob.report.scored.class_content.class_content` say.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.tables import TableModel
    >>> table = load_iris(as_frame=True).frame[50:]  # two species of three
    >>> model = TableModel.fit(table, "target", kernel="linear", n_bootstraps=20, random_state=0)
    >>> from bootprob.report import write_scored_report
    >>> with TemporaryDirectory() as folder:
    ...     scored = Path(folder, "scored.csv")
    ...     model.predict(table).to_csv(scored, index=False)
    ...     numbers = write_scored_report(scored, Path(folder, "scored.html"))
    >>> numbers["table"]["n_rows"], numbers["classes"]["positive"]
    (100, '2')
    """
    page, numbers = check_page(path)
    told: dict[str, Any] = {
        "model": model,
        "input_table": input_table,
        "encoding": encoding,
        "level": level,
        "title": title,
        "command": command,
        "progress": progress,
    }
    source = ScoredTable(table, id_column)
    if source.of_several_classes:
        if costs is not None or id_column is not None:
            raise DataError(
                f"{source.path} was scored by a model of several classes: leave out costs, which "
                "are of two, and the column that tells listed rows apart, as none are listed."
            )
        content = class_content(source, **told)
        pictures = {"classes": class_figures.given(content)}
        pictures |= class_figures.distributions(content)
        template = "scored/class_page.html"
    else:
        content = scored_content(table, costs=costs, id_column=id_column, n_listed=n_listed, **told)
        names = ("distribution", "widths", "undecided", "deciles")
        pictures = {name: getattr(figures, name)(content) for name in names}
        template = "scored/page.html"
    html = render(template, content, pictures=pictures, numbers_name=numbers.name)
    write_page(page, numbers, html, content)
    return content
