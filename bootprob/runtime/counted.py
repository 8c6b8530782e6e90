"""A number of things in words, for messages and pages."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: float, one: str, several: str | None = None) -> str:
    """Write a whole number before what it counts.

    Parameters
    ----------
    n : int, or a whole float
    one : str
        What is said of 1, with its verb if there is one.
    several : str, optional
        What is said of other numbers; by default `one` with an s.

    Examples
    --------
    >>> counted(1, "row"), counted(11_000, "row")
    ('1 row', '11,000 rows')
    >>> counted(1, "row is", "rows are")
    '1 row is'
    """
    return f"{n:,.0f} {one if n == 1 else several or one + 's'}"
