"""Row weights without their unit: metrics know shares of them alone."""

from __future__ import annotations

import numpy as np

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["without_unit"]

_LARGEST_RATIO = 1e150  # products of two weights are still numbers, however rows are drawn


def without_unit(weights: Floats) -> Floats:
    """The same weights over a power of two, which rounds nothing, so that the largest is 1 to 2.

    Sums and squares of what is left neither overflow nor vanish.

    Parameters
    ----------
    weights : ndarray, shape (n,)
        Positive and finite.

    Raises
    ------
    DataError
        The largest is more than 1e150 times the smallest.
    """
    smallest, largest = weights.min(), weights.max()
    if smallest < largest / _LARGEST_RATIO:
        raise DataError(
            f"weights are from {smallest:.3g} to {largest:.3g}, which is further apart than can be "
            "computed with; give rows that count for nothing the weight 0."
        )
    found: Floats = np.ldexp(weights, 1 - int(np.frexp(largest)[1]))
    return found
