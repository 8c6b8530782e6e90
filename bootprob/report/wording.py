"""Numbers and names as a reader wants them, the same in figures and on the page."""

from __future__ import annotations

from datetime import datetime

__all__ = ["count", "day", "number", "percent", "probability", "scientific", "short"]


def short(text: str, length: int = 28) -> str:
    """Cut a name that would not fit a figure; the page shows it in full."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def number(value: float) -> str:
    """Write a grid value in few characters: 0.031, 0.5, 16, 1e+06."""
    return f"{value:.2g}" if value < 100 else f"{value:.4g}"


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share as a percentage, and what is not finite as a dash."""
    return "–" if value is None else f"{100 * value:.{digits}f}\u202f%"


def probability(value: float) -> str:
    """Write a probability as a percentage that never claims certainty by rounding."""
    if value < 0.0005:
        return "< 0.1\u202f%"
    return "> 99.9\u202f%" if value > 0.9995 else percent(value)


def count(value: float) -> str:
    """Write a number of things with separators: 11,000."""
    return f"{value:,.0f}"


def scientific(value: float | None) -> str:
    """Write a small number as 1.0 × 10⁻⁷, and what is not finite as a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    digits, exponent = f"{value:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}\u202f×\u202f10{power}"


def day(time: str) -> str:
    """Write a time in ISO format, UTC, for a reader."""
    return f"{datetime.fromisoformat(time):%d %B %Y, %H:%M} UTC".lstrip("0")
