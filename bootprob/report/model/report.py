"""The report of fitted models: one HTML file, and its numbers as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bootprob.report.model.content import report_content, sections_of
from bootprob.report.model.sections.section import Drawn
from bootprob.report.page import check_page, render, write_page

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.held_out import HeldOut


def write_report(
    models: Mapping[str, BootstrapSVC],
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str | None = None,
    held_out: HeldOut | None = None,
    preprocessor: TablePreprocessor | None = None,
) -> dict[str, Any]:
    """Write a self-contained report on fitted models, and its numbers beside it.

    The page needs no network and runs no script; it holds row numbers, labels, scores and
    probabilities of twenty rows, but no feature values. All numbers are out of bag, but for those
    that are said to be of held-out rows. Apart from the time of writing, the same models give the
    same bytes.

    Parameters
    ----------
    models : mapping of str to BootstrapSVC
        Label to fitted model, such as ``{"linear": m1, "rbf": m2}``; all fitted to the same rows.
    path : path-like
        The HTML file; the numbers go to the same name with the suffix ``.json``. Existing files
        are replaced, each in one step.
    title : str
        Heading of the report.
    command : str, optional
        Command line that made the models, shown at the end.
    held_out : HeldOut, optional
        Rows with known labels that took no part in training; the models are measured on them
        too.
    preprocessor : TablePreprocessor, optional
        Of a `TableModel`, so that the page tells what became of its columns; a model that was
        fitted on a data frame has its own.

    Returns
    -------
    dict
        The numbers, of which `bootprob.report.card_of` makes a model card.

    Raises
    ------
    DataError
        If `path` cannot be written or ends in ``.json``, there is no model, the models were
        fitted to different rows, or the rows set aside cannot be used.
    sklearn.exceptions.NotFittedError
        If a model is not fitted.
    """
    page, numbers = check_page(path)
    content = report_content(
        models, title=title, command=command, held_out=held_out, preprocessor=preprocessor
    )
    write_page(page, numbers, _render(content, numbers.name), content)
    return content


def _render(content: dict[str, Any], numbers_name: str) -> str:
    pictures, sections = [], sections_of(len(content["data"]["classes"]))
    for number in range(len(content["models"])):
        of = Drawn(content, number)
        pictures.append({k: v for each in sections for k, v in each.pictures(of).items()})
    return render(
        "model/page.html",
        content,
        sections=[section for section in sections if section.is_shown(content)],
        pictures=pictures,
        numbers_name=numbers_name,
    )
