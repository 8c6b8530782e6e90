"""Markdown documents from templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bootprob.runtime.files import replace_when_complete
from gpu.benchmarks.common.places import ROOT
from gpu.benchmarks.common.tables import figures

__all__ = ["render", "write"]


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


def write(path: Path, template: str, /, **values: Any) -> Path:
    """Fill a template into a file, which is there as a whole or as it was; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_when_complete(path) as file:
        file.write(render(template, **values).encode())
    return path
