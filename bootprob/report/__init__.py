"""Reports for people who did not train the model: one HTML file, and its numbers as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from bootprob.exceptions import DataError
from bootprob.files import check_output, replace_when_complete
from bootprob.report import figures, wording
from bootprob.report.content import report_content
from bootprob.report.svg import COLORS
from bootprob.report.trade_off import trade_off

if TYPE_CHECKING:
    from bootprob.estimator import BootstrapSVC
    from bootprob.held_out import HeldOut

__all__ = ["write_report"]


def write_report(
    models: Mapping[str, BootstrapSVC],
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str | None = None,
    held_out: HeldOut | None = None,
) -> None:
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

    Raises
    ------
    DataError
        If `path` cannot be written or ends in ``.json``, there is no model, the models were
        fitted to different rows, or the rows set aside cannot be used.
    sklearn.exceptions.NotFittedError
        If a model is not fitted.
    """
    page = check_output(path)
    numbers = page.with_suffix(".json")
    if numbers == page:
        raise DataError(f"{path} is where the numbers would go; end the name in .html.")
    check_output(numbers)
    content = report_content(models, title=title, command=command, held_out=held_out)
    html = _render(content, numbers.name)
    as_json = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    for target, text in ((numbers, as_json + "\n"), (page, html)):
        with replace_when_complete(target) as file:
            file.write(text.encode())


def _render(content: dict[str, Any], numbers_name: str) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(wording, name) for name in wording.__all__})
    classes = content["data"]["negative_class"], content["data"]["positive_class"]
    pictures = [
        {
            "reliability": figures.reliability(model, f"r{k}", classes[1]),
            "grid": figures.grid(model, f"g{k}", content["models"]),
            "histograms": figures.histograms(model, f"h{k}", classes),
            "intervals": figures.intervals(model, f"i{k}", classes),
            "trade_off": trade_off(model, f"t{k}"),
        }
        for k, model in enumerate(content["models"])
    ]
    template = environment.get_template("template.html")
    return template.render(
        content, pictures=pictures, colors=COLORS, numbers_name=numbers_name, svg=Markup
    )
