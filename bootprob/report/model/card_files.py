"""Model cards as files: Markdown with fields that model hubs read, a page, or numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bootprob.exceptions import DataError
from bootprob.report.model.card import card_of, check_skops
from bootprob.report.model.card_sections import NOT_TOLD
from bootprob.report.page import render
from bootprob.report.plain import plain
from bootprob.runtime.files import check_output, replace_when_complete
from bootprob.runtime.version import __version__

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.tables.model import TableModel

__all__ = ["SUFFIXES", "card_numbers", "check_card_file", "hub_fields", "write_card"]

SUFFIXES = (".md", ".markdown", ".html", ".htm", ".json")
FORMAT = {"name": "bootprob model card", "version": 1}
_OF_MODEL = (
    "kernel", "classifier", "n_bootstraps", "n_models", "n_parameter_values", "calibration",
    "kernel_weights", "metrics", "calibration_line", "calibration_tests", "decision_threshold",
    "control", "later_rows", "held_out", "stability", "subgroups", "history", "sets",
    "lack_of_fit", "remarks", "convergence", "provenance",
)  # fmt: skip
_PER_ROW = {"stability": ("rows", "net_benefit", "tenths")}
_HUB_METRICS = {
    "accuracy": "accuracy", "brier_score": "brier_score", "log_loss": "log_loss", "auc": "roc_auc",
}  # fmt: skip


def check_card_file(path: str | os.PathLike[str]) -> Path:
    """Refuse a file that a card cannot be written to, before any work is done.

    Raises
    ------
    DataError
        Its suffix is none of `SUFFIXES`, it cannot be written, or skops is not installed.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: the name of a model card must end in .md, .html or .json.")
    check_skops()
    return check_output(path)


def write_card(
    content: dict[str, Any],
    svc: BootstrapSVC,
    path: str | os.PathLike[str],
    *,
    table_model: TableModel | None = None,
    file: str | os.PathLike[str] | None = None,
    intended_use: str | None = None,
) -> None:
    """Write the card of the numbers of a report on one model, as the suffix of the file says.

    Parameters
    ----------
    content : dict
        What `write_report` returned, of one model.
    svc : BootstrapSVC or BootstrapClassifier
        The model itself.
    path : path-like
        ``.md``: Markdown, headed by the fields that the Hugging Face hub reads of model cards.
        ``.html``: the same as a page that needs no network. ``.json``: its numbers, as
        docs/model_card.schema.json says.
    table_model, file, intended_use
        As of `bootprob.report.card_of`.

    Raises
    ------
    DataError
        As `check_card_file`, or there are several models.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from bootprob import BootstrapSVC
    >>> from bootprob.report import write_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X[:, :2], y)
    >>> with TemporaryDirectory() as folder:
    ...     content = write_report({"linear": svc}, Path(folder, "r.html"), title="Tumours")
    ...     write_card(content, svc, Path(folder, "card.md"))
    ...     Path(folder, "card.md").read_text().splitlines()[1]
    'library_name: "bootprob"'
    """
    target = check_card_file(path)
    card = card_of(content, svc, table_model=table_model, file=file, intended_use=intended_use)
    kind = Path(path).suffix.lower()
    if kind == ".json":
        written = json.dumps(card_numbers(content, intended_use), indent=1) + "\n"
    elif kind in (".html", ".htm"):
        written = _page(content["title"], card.render())
    else:
        fields = "".join(
            f"{name}: {json.dumps(value)}\n" for name, value in hub_fields(content).items()
        )
        written = f"---\n{fields}---\n\n{card.render()}"
    with replace_when_complete(target) as opened:
        opened.write(written.encode())


def card_numbers(content: Mapping[str, Any], intended_use: str | None = None) -> dict[str, Any]:
    """What a card says as numbers, without those of single rows; docs/model_card.schema.json.

    Parameters
    ----------
    content : mapping
        What `write_report` returned, of one model.
    intended_use : str, optional
        Its author's words.
    """
    [entry] = content["models"]
    found = {name: entry.get(name) for name in _OF_MODEL}
    for name, parts in _PER_ROW.items():
        if found[name] is not None:
            found[name] = {k: v for k, v in found[name].items() if k not in parts}
    return plain(
        {
            "format": FORMAT,
            "bootprob": __version__,
            "title": content["title"],
            "written": content["written"],
            "intended_use": intended_use,
            "level": content["level"],
            "data": content["data"],
            "model": found,
            "not_told": list(NOT_TOLD),
            "signatures": [],
        }
    )


def hub_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the head of a card that the Hugging Face hub reads, with out-of-bag metrics."""
    [entry] = content["models"]
    title = content["title"]
    metrics = [
        {
            "type": kind,
            "value": entry["metrics"][name]["value"],
            "name": f"{name}, out of bag",
        }
        for name, kind in _HUB_METRICS.items()
        if name in entry["metrics"]
    ]
    task = {"type": "tabular-classification", "name": "Tabular classification"}
    data = {"name": f"Training table of {title}", "type": "tabular"}
    return {
        "library_name": "bootprob",
        "pipeline_tag": "tabular-classification",
        "tags": ["bootprob", "calibration", "tabular-classification", "uncertainty"],
        "metrics": [each["type"] for each in metrics],
        "model-index": [
            {"name": title, "results": [{"task": task, "dataset": data, "metrics": metrics}]}
        ],
    }


def _page(title: str, markdown: str) -> str:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    html = html.replace("</table>", "</table></div>")
    return render("model/card.html", {"title": title}, body=Markup(html))
