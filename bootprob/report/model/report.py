"""The report of fitted models: one HTML file, and its numbers as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from bootprob.report.model.content import report_content, sections_of
from bootprob.report.model.sections.section import Drawn
from bootprob.report.page import check_page, render, write_page

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel


def write_report(
    models: Mapping[str, BootstrapSVC],
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str | None = None,
    held_out: HeldOut | None = None,
    training: Any = None,
    table: TableModel | None = None,
    by: str | ArrayLike | None = None,
) -> dict[str, Any]:
    """Write a self-contained report on fitted models, and its numbers beside it.

    The page needs no network and runs no script; it holds row numbers, labels, scores and
    probabilities of twenty rows, but no feature values of rows: curves of columns go from one
    quantile to another, or along values that several rows share. All numbers are out of bag, but
    for contributions of columns, which are of the whole model, and for those that are said to be
    of held-out rows. Apart from the time of writing, the same models give the same bytes.

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
    training : array_like or data frame, optional
        The rows of `fit`, in their order: what probabilities depend on is then shown out of bag.
        Models of curved kernels keep them; for others it is shown of held-out rows, if there are.
    table : TableModel, optional
        Of which the one model is (`TableModel.svc_with_class_names`): its columns are explained
        then, what became of them is told, and it is what `training` is given to.

    by : str or array_like, shape (n,), optional
        Subgroups to measure by themselves: a column of `training` or of the held-out table, which
        the model need not know, or values of the training rows. Of two classes.

    Returns
    -------
    dict
        The numbers, of which `bootprob.report.card_of` makes a model card.

    Raises
    ------
    DataError
        If `path` cannot be written or ends in ``.json``, there is no model, the models were
        fitted to different rows, the rows set aside cannot be used, or no table at hand has the
        column of subgroups.
    sklearn.exceptions.NotFittedError
        If a model is not fitted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bootprob import BootstrapSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two species of three
    >>> model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
    >>> from bootprob.report import write_report
    >>> with TemporaryDirectory() as folder:
    ...     numbers = write_report({"linear": model}, Path(folder, "a.html"), title="Two species")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.html', 'a.json']
    >>> numbers["title"]
    'Two species'
    """
    page, numbers = check_page(path)
    content = report_content(
        models,
        title=title,
        command=command,
        held_out=held_out,
        training=training,
        table=table,
        by=by,
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
