"""Command lines of what fills docs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from gpu.benchmarks.common.places import DOCS

__all__ = ["docs_options"]


def docs_options(
    doc: str | None, names: Iterable[str | int] = (), metavar: str = "NAME"
) -> argparse.ArgumentParser:
    """A parser with ``--docs FOLDER`` and, if there are any, names: all where none is given.

    Parameters
    ----------
    doc : str
        The module's docstring, which is the help.
    names : iterable of str or of int
        To choose from; `names` of what is parsed.
    metavar : str
        What one is called.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = list(names)

    def chosen(text: str) -> str | int:
        name = type(every[0])(text)
        if name not in every:
            raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(map(str, every))}")
        return name

    if every:
        parser.add_argument("names", nargs="*", metavar=metavar, type=chosen, default=every)
    parser.add_argument("--docs", type=Path, default=DOCS, metavar="FOLDER")
    return parser
