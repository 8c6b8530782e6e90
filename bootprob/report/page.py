"""What all reports share: two files that belong together, and how a page is rendered."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bootprob.displays.style import COLORS
from bootprob.exceptions import DataError
from bootprob.report import wording
from bootprob.runtime.counted import counted
from bootprob.runtime.files import check_output, replace_when_complete

__all__ = ["check_page", "render", "write_page"]


def check_page(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Where a page of HTML goes, and the numbers beside it; refuses what cannot be written.

    Raises
    ------
    DataError
        If one of them cannot be written, or `path` ends in ``.json``.
    """
    page = check_output(path)
    numbers = page.with_suffix(".json")
    if numbers == page:
        raise DataError(f"{path} is where the numbers would go; end the name in .html.")
    check_output(numbers)
    return page, numbers


def render(template: str, content: dict[str, Any], **context: Any) -> str:
    """Fill a template of this folder; text is escaped, and a name that is missing is an error.

    The entries of `content`, the numbers of a report, are names of the template, as others given.
    """
    template_of = _templates().get_template
    return template_of(template).render(content, colors=COLORS, svg=Markup, **context)


@cache
def _templates() -> jinja2.Environment:
    """Each template is compiled once in a process."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    environment.filters.update({name: getattr(wording, name) for name in wording.__all__})
    return environment


def write_page(page: Path, numbers: Path, html: str, content: dict[str, Any]) -> None:
    """Write a page and its numbers; neither takes its place before both are on the disk."""
    as_json = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with replace_when_complete(page) as file:
        file.write(html.encode())
        file.flush()
        with replace_when_complete(numbers) as beside:
            beside.write(f"{as_json}\n".encode())
