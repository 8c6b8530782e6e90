"""Documentation of the estimator that follows from declarations: attributes, methods by name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from bootprob.ensemble.declarations import Attribute
from bootprob.ensemble.state import TwoClassState, declared

__all__ = ["attributes", "filled", "listed"]


def listed(named: Mapping[str, Any]) -> list[str]:
    """Items of a list in a docstring, from whatever has a `doc`."""
    return [f'- "{name}": {" ".join(each.doc.split())}' for name, each in named.items()]


def attributes(of: Literal["machines", "classifiers"] = "machines") -> list[str]:
    """Entries of the section on the fitted attributes."""
    named = declared(TwoClassState, of).items()
    return [f"{name} : {_shown(each)}\n{each.doc}" for name, each in named]


def filled(text: str, place: str, entries: Iterable[str]) -> str:
    """Put entries where a docstring has a line for them.

    Parameters
    ----------
    text : str
    place : str
        The line.
    entries : iterable of str
        Lines, the last of which is wrapped; all but the first are indented.
    """
    line = next(line for line in text.splitlines() if line.strip() == place)
    indent = line[: -len(line.lstrip())]
    return text.replace(line, "\n".join(_wrapped(each, indent) for each in entries))


def _wrapped(entry: str, indent: str) -> str:
    *first, last = entry.split("\n", 1)
    inner = indent + ("    " if first else "  ")
    whole = re.sub("``.*?``", lambda code: code[0].replace(" ", "\xa0"), " ".join(last.split()))
    lines = textwrap.wrap(
        whole,
        100,
        initial_indent=inner if first else indent,
        subsequent_indent=inner,
        break_on_hyphens=False,
    )
    return "\n".join([*(indent + each for each in first), *lines]).replace("\xa0", " ")


def _shown(attribute: Attribute) -> str:
    """The type of an attribute, as numpydoc has it."""
    if attribute.shown:
        return attribute.shown
    if attribute.form is not None:
        kind = " of int" if attribute.form.kinds == "i" else ""
        shown = f"ndarray{kind}, shape {' or '.join(map(_axes, attribute.form.shapes))}"
        if attribute.of_several is not None:
            shown += f", or {_axes(attribute.of_several.shapes[0])} of several classes"
    elif attribute.parts is not None:
        shown = "dict of ndarray"
    else:
        assert attribute.kind is not None
        shown = attribute.kind.__name__
    return shown + (" or None" if attribute.absent == "None" else "")


def _axes(shape: str) -> str:
    return f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
