"""Whole numbers that are given as parameters."""

from __future__ import annotations

from numbers import Integral

from bootprob.exceptions import DataError

__all__ = ["checked_whole"]


def checked_whole(name: str, value: object, least: int) -> int:
    """Check a parameter that is a whole number, `least` or more; returns it.

    Examples
    --------
    >>> checked_whole("n_repeats", 5, 1)
    5

    Raises
    ------
    DataError
        It is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise DataError(f"{name} is {value!r}; give a whole number, {least} or more.")
    return int(value)
