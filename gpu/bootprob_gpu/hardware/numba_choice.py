"""Whether Numba can be had; where it cannot, plain torch does what it compiles for a CPU."""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module

__all__ = ["numba_error", "numba_loads"]

_LOGGER = logging.getLogger("bootprob_gpu")  # shows warnings on standard error by default


def numba_loads() -> bool:
    """Whether Numba can be imported; a line in the log says once that it cannot.

    The package depends on it. Machines lent for their GPU may lack it all the same, or have a NumPy
    that it does not know yet.
    """
    return numba_error() is None


@cache
def numba_error() -> ImportError | None:
    """Why it cannot be imported."""
    try:
        import_module("numba")
    except ImportError as error:
        _LOGGER.warning(
            "Numba cannot be loaded (%s): plain torch does its work on the CPU, many times more "
            "slowly; `pip install numba` mends that.",
            error,
        )
        return error
    return None
