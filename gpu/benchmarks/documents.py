"""Markdown documents from the templates beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tables import figures

__all__ = ["render"]


def render(template: str, /, **values: Any) -> str:
    """Fill a template, which may round by the filter `figures`; a name it lacks is an error.

    Parameters
    ----------
    template : str
        Its file name.
    **values
        What the template shows.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["figures"] = figures
    return environment.get_template(template).render(**values)
