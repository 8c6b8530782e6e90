"""Numbers and names as a reader wants them, the same in figures and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from math import floor, log10
from typing import Any, Protocol, overload

__all__ = [
    "count",
    "day",
    "decimal",
    "fine_probability",
    "number",
    "percent",
    "probability",
    "scientific",
    "short",
]


class Writer(Protocol):
    """Writes one value, or each of a column; None, of what is not finite, as a dash."""

    @overload
    def __call__(self, value: float | None, *digits: int) -> str: ...

    @overload
    def __call__(self, value: Iterable[float | None], *digits: int) -> list[str]: ...


def _writer(write: Callable[..., str]) -> Writer:
    @wraps(write)
    def written(value: Any, *digits: int) -> Any:
        if isinstance(value, Iterable):
            return ["–" if each is None else write(each, *digits) for each in value]
        return "–" if value is None else write(value, *digits)

    return written


def short(text: str, length: int = 28) -> str:
    """Cut a name that would not fit a figure; the page shows it in full."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


@_writer
def number(value: float) -> str:
    """Write a grid value in few characters: 0.031, 0.5, 16, 1e+06."""
    return f"{value:.2g}" if value < 100 else f"{value:.4g}"


@_writer
def decimal(value: float, digits: int = 3) -> str:
    """Write a number with its sign as a reader knows it: −0.250."""
    return f"{value:.{digits}f}".replace("-", "−")


@_writer
def percent(value: float, digits: int = 1) -> str:
    """Write a share as a percentage."""
    return f"{100 * value:.{digits}f}\u202f%"


@_writer
def probability(value: float) -> str:
    """Write a probability as a percentage that never claims certainty by rounding."""
    if value < 0.0005:
        return "< 0.1\u202f%"
    return "> 99.9\u202f%" if value > 0.9995 else percent(value)


@_writer
def fine_probability(value: float) -> str:
    """Write a probability as a percentage to three significant digits of its distance from 0 or 1.

    0.420 %, 4.20 %, 42.0 %, 99.580 %; no more than four decimals.
    """
    nearest = 100 * min(value, 1 - value)
    if nearest < 0.00005:
        return "< 0.0001\u202f%" if value < 0.5 else "> 99.9999\u202f%"
    return percent(value, min(4, max(1, 2 - floor(log10(nearest)))))


@_writer
def count(value: float) -> str:
    """Write a number of things with separators: 11,000."""
    return f"{value:,.0f}"


@_writer
def scientific(value: float) -> str:
    """Write a small number as 1.0 × 10⁻⁷."""
    if value == 0:
        return "0"
    digits, exponent = f"{value:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}\u202f×\u202f10{power}"


def day(time: str) -> str:
    """Write a time in ISO format, UTC, for a reader."""
    return f"{datetime.fromisoformat(time):%d %B %Y, %H:%M} UTC".lstrip("0")
