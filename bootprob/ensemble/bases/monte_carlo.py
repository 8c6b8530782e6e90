"""How far a mean over few replicates is from that over all that there could be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration import Sigmoid
from bootprob.calibration.coupling import class_pairs
from bootprob.ensemble.bases.class_scores import of_pair
from bootprob.runtime.arrays import Floats

__all__ = ["monte_carlo_error"]


def monte_carlo_error(
    scores: Floats,
    counts: NDArray[np.unsignedinteger[Any]],
    codes: NDArray[np.intp],
    weight: Floats,
) -> float:
    """Standard error of a row's probability over the replicates, root mean square over the rows.

    ``sqrt(mean_i (a p_i (1 − p_i) s_i)² / B)``, with s_i the standard deviation over the replicates
    that left row i out of its score, averaged over the grid, and a the slope of the sigmoid that
    makes probabilities p_i of mean scores. Of several classes the largest over the pairs.

    Parameters
    ----------
    scores : ndarray, shape (n, R, B, 1) or (n, R, B, K)
        Out-of-bag scores; 0 in bag.
    counts : ndarray of int, shape (B, n)
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    weight : ndarray, shape (n,)
        Row weights.

    Returns
    -------
    float
        Infinite where no row has two scores.
    """
    outside, worst = counts.T == 0, 0.0
    times = outside.sum(axis=1)
    for first, second in class_pairs(int(codes.max()) + 1):
        own = (weight > 0) & (times > 1) & np.isin(codes, (first, second))
        if not own.any():
            return np.inf
        of_rows = of_pair(scores[own], first, second).mean(axis=1)
        left_out, n = outside[own], times[own]
        mean = (of_rows * left_out).sum(axis=1) / n
        variance = (np.square(of_rows - mean[:, None]) * left_out).sum(axis=1) / (n - 1)
        sigmoid = Sigmoid.fit(mean, codes[own] == second, weight[own])
        p = sigmoid.predict(mean)
        squares = np.square(sigmoid.slope * p * (1 - p)) * variance / len(counts)
        worst = max(worst, float(np.sqrt(np.average(squares, weights=weight[own]))))
    return worst
