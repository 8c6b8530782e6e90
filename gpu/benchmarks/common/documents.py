"""Markdown documents from templates."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpu.benchmarks.common.places import ROOT
from gpu.benchmarks.common.tables import figures

__all__ = ["render"]


def render(template: str, /, **values: Any) -> str:
    """Fill a template, which may round by the filter `figures`; a name it lacks is an error.

    Parameters
    ----------
    template : str
        Its path in the repository, such as "gpu/benchmarks/benchmarks.md.jinja".
    **values
        What the template shows.
    """
    environment = Environment(
        loader=FileSystemLoader(ROOT),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["figures"] = figures
    return environment.get_template(template).render(**values)
