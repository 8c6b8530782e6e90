"""Intervals between quantiles of mixtures of normal distributions."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from bootprob.runtime.arrays import Floats

__all__ = ["of_mixture"]


_HALVINGS = 50


def of_mixture(parts: Floats, weight: Floats, level: float) -> Floats:
    """Quantiles that leave ``(1 − level) / 2`` on either side.

    Parameters
    ----------
    parts : ndarray, shape (m, g, 2)
        Mean and standard deviation of each part, for each of m mixtures.
    weight : ndarray, shape (g,)
        Of the parts; sums to 1.
    level : float
        Confidence level.

    Returns
    -------
    ndarray, shape (m, 2)
    """
    mean, deviation = np.moveaxis(parts, -1, 0)
    found = np.empty((len(parts), 2))
    for side, share in enumerate(((1 - level) / 2, (1 + level) / 2)):
        ends = mean + ndtri(share) * deviation
        lower, upper = ends.min(axis=1), ends.max(axis=1)  # it lies between those of the parts
        for _ in range(_HALVINGS if len(weight) > 1 else 0):
            middle = (lower + upper) / 2
            below = ndtr((middle[:, None] - mean) / deviation) @ weight < share
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        found[:, side] = (lower + upper) / 2
    return found
