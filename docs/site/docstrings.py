"""Docstrings as the reference shows them: as they are at run time, with links to pages of docs."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

__all__ = ["RunTimeDocstrings"]

_DOCS = Path(__file__).parents[1]
_FILLED_IN = ("(fitted state)", "(calibrations)")  # by bootprob, on import


class RunTimeDocstrings(griffe.Extension):
    """Takes what the sources cannot say from the imported class, and links pages that are named."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if not obj.docstring or not obj.docstring.value:
            return
        text = obj.docstring.value
        if any(mark in text for mark in _FILLED_IN) and obj.is_class:
            text = (
                inspect.getdoc(getattr(importlib.import_module(obj.module.path), obj.name)) or text
            )
        text = text.replace(
            ", shape (", ",\N{NO-BREAK SPACE}shape ("
        )  # else read as a call of Python
        obj.docstring.value = re.sub(r"docs/(\w+)\.md", _link, text)


def _link(named: re.Match[str]) -> str:
    page = _DOCS / f"{named[1]}.md"
    title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return f"[{title}](../{named[1]}.md)"
