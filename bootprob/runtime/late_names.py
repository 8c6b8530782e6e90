"""Public names of a package that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["late_names"]


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping of str to str
        Module of each name, from the package on: ``{"CostMatrix": "matrix"}``.
    """

    def attribute(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
