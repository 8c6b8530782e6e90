"""Texts of docstrings as the reference's parser and pages need them."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["each_by_itself", "with_links"]

_DOCS = Path(__file__).parents[1]
_PARAMETERS = re.compile(r"(?ms)^Parameters\n-+\n.*?(?=^\w[\w ]*\n-+$|\Z)")
_TOGETHER = re.compile(r"(?m)^((?:[*\w]+, )+[*\w]+)\n((?: {4}.*\n?)+)")


def with_links(text: str) -> str:
    """Pages of docs that a docstring names, as links from a page of the reference.

    Parameters
    ----------
    text : str
        Of the docstring.
    """
    return re.sub(r"docs/(\w+)\.md", _link, text)


def _link(named: re.Match[str]) -> str:
    page = _DOCS / f"{named[1]}.md"
    title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return f"[{title}](../{named[1]}.md)"


def each_by_itself(text: str) -> str:
    """Parameters described together, one by one: griffe gives all of them the type of the first.

    Parameters
    ----------
    text : str
        Of the docstring.
    """
    return _PARAMETERS.sub(lambda section: _TOGETHER.sub(_apart, section[0]), text)


def _apart(together: re.Match[str]) -> str:
    description = together[2] if together[2].endswith("\n") else together[2] + "\n"
    return "".join(f"{name}\n{description}" for name in together[1].split(", "))
