"""Whether residuals of probabilities go with a column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bootprob.runtime.arrays import Floats

__all__ = ["column_residuals"]

_SAME = 1e-9  # share of a column's sum of squares that rounding leaves


def column_residuals(
    rows: Floats, positive: NDArray[np.bool_], probability: Floats, weight: Floats
) -> tuple[float, int | None]:
    """Score tests of each column in ``logit p' = a + b · logit p + c x_j``, with a and b fitted.

    Parameters
    ----------
    rows : ndarray, shape (k, p)
    positive : ndarray of bool, shape (k,)
    probability : ndarray, shape (k,)
        Within (0, 1); intercept and slope are taken for fitted to these rows.
    weight : ndarray, shape (k,)
        Of the rows, positive; they count as if rows were repeated.

    Returns
    -------
    p_value : float
        Of the largest, times the number of columns that vary (Bonferroni); at most 1.
    column : int or None
        Which it is; None where no column varies.
    """
    logit = np.log(probability) - np.log1p(-probability)
    spread = weight * probability * (1 - probability)
    known = np.stack([np.ones_like(logit), logit]) * np.sqrt(spread)
    columns = (rows - np.average(rows, axis=0, weights=spread)) * np.sqrt(spread)[:, None]
    basis = np.linalg.svd(known.T, full_matrices=False)[0]
    left = columns - basis @ (basis.T @ columns)
    squares = np.square(left).sum(axis=0)
    varies = squares > _SAME * np.square(columns).sum(axis=0)
    varies &= squares > 0
    if not varies.any():
        return 1.0, None
    residuals = np.sqrt(weight) * (positive - probability)
    residuals = residuals / np.sqrt(probability * (1 - probability))
    statistic = np.abs(residuals @ left[:, varies]) / np.sqrt(squares[varies])
    worst = int(np.argmax(statistic))
    p_value = 2 * norm.sf(statistic[worst]) * np.count_nonzero(varies)
    return float(min(p_value, 1.0)), int(np.flatnonzero(varies)[worst])
