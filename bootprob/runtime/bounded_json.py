"""JSON from a stranger, of bounded extent."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

__all__ = ["CONTAINERS", "DEPTH", "DIGITS", "ENTRIES", "parse"]

DEPTH = 50
"""Lists and objects within each other that `parse` accepts."""

CONTAINERS = 200_000
"""Lists and objects that `parse` accepts in all."""

ENTRIES = 750_000
"""Commas and colons outside of text that `parse` accepts."""

DIGITS = 1_000
"""Digits of a number that `parse` accepts; reading takes a time that grows as their square."""

# These look at each character once, whatever the text: what is left open goes to the end, and
# digits are counted from the first of a number only.
_TEXT = re.compile(r'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_LONG = re.compile(rf"(?<![0-9])[0-9]{{{DIGITS + 1}}}")
_LARGE = re.compile(r"[eE][+]?[0-9]{3}|(?<![0-9])[0-9]{200}")  # may be beyond 1.8e308, with e99


def parse(text: str) -> Any:
    """Read JSON from a stranger.

    Raises
    ------
    ValueError
        The text is no JSON, or beyond `DEPTH`, `CONTAINERS`, `ENTRIES` or `DIGITS`, or has an
        object with the same name twice, a number that is not finite, or half a character.

    Examples
    --------
    >>> parse('{"a": [1e999]}')
    Traceback (most recent call last):
        ...
    ValueError: 1e999 is not finite
    """
    skeleton = _TEXT.sub("", text)
    _check_extent(skeleton)
    found = json.loads(
        text,
        object_pairs_hook=_distinct,
        parse_float=_finite if _LARGE.search(skeleton) else None,  # calling it is slow
        parse_constant=_refuse,
    )
    if "\\u" in text:  # lone surrogates, which nothing could print or write again
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _check_extent(skeleton: str) -> None:
    """Refuse JSON, all text taken out of it, that is too long or too deep."""
    brackets = re.sub(r"[^\[\]{}]++", "", skeleton)
    opened = brackets.count("[") + brackets.count("{")
    if max(opened, len(brackets) - opened) > CONTAINERS:  # text that only closes them is no better
        raise ValueError(f"there are more than {CONTAINERS} lists and objects")
    if skeleton.count(",") + skeleton.count(":") > ENTRIES:
        raise ValueError(f"there are more than {ENTRIES} entries")
    if _LONG.search(skeleton):
        raise ValueError(f"a number has more than {DIGITS} digits")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH:
            raise ValueError(f"lists and objects are more than {DEPTH} deep")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same name twice")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is not finite")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
