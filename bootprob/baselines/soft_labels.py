"""Empirical posterior of rows: the share of a class among the training rows nearby."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["neighbours"]


_ROUNDING = 1e-9  # relative; distances that equal r but for rounding are within r


def neighbours(
    rows: Floats, training: Floats, positive: NDArray[np.bool_], r: float
) -> tuple[Floats, Floats]:
    """Count the training rows within a distance r of each row, and the positive ones among them.

    Rows are (m, p) and (n, p), distances Euclidean; the positive ones come first, (m,) both.
    """
    n_positive, n_all = np.empty(len(rows)), np.empty(len(rows))
    reach = r * (1 + _ROUNDING)
    for block in row_blocks(len(rows), len(training)):
        near = cdist(rows[block], training) <= reach
        n_positive[block] = np.count_nonzero(near & positive, axis=1)
        n_all[block] = np.count_nonzero(near, axis=1)
    return n_positive, n_all
