"""Docstrings as the reference shows them: as they are at run time, with links to pages of docs."""

from __future__ import annotations

import importlib
import inspect
import re
from operator import attrgetter
from typing import Any

import griffe

from docs.site.docstring_text import each_by_itself, with_links

__all__ = ["RunTimeDocstrings"]

_FILLED_IN = re.compile(r"^ *\([a-z ]+\)$", re.MULTILINE)  # by bootprob, on import


class RunTimeDocstrings(griffe.Extension):
    """Takes what the sources cannot say from what is imported, and links pages that are named."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if not obj.docstring or not obj.docstring.value:
            return
        text = obj.docstring.value
        if _FILLED_IN.search(text):
            within = obj.path.removeprefix(f"{obj.module.path}.")
            found = attrgetter(within)(importlib.import_module(obj.module.path))
            text = inspect.getdoc(found) or text
        text = text.replace(
            ", shape (", ",\N{NO-BREAK SPACE}shape ("
        )  # else read as a call of Python
        obj.docstring.value = with_links(each_by_itself(text))
