"""Statistics of residuals beside those of labels drawn from the probabilities themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats

__all__ = ["drawn_residuals", "smallest_p_value", "tail_p_values"]

_DRAWS = 999
_TAIL = 100  # draws that tell how fast the tail falls


def drawn_residuals(positive: NDArray[np.bool_], probability: Floats) -> Floats:
    """``y − p`` of the labels, and of labels drawn from the probabilities, shape (1000, n).

    Always the same draws: a test is part of the model and must not depend on its seed.
    """
    generator = np.random.default_rng(0)
    drawn = generator.uniform(size=(_DRAWS, len(positive))) < probability
    return np.vstack([positive, drawn]) - probability


def smallest_p_value(statistics: Floats) -> float:
    """How often the least of k p-values is as small with drawn labels.

    P. Westfall, S. Young, "Resampling-Based Multiple Testing", 1993, section 2.3.

    Parameters
    ----------
    statistics : ndarray, shape (1000, k)
        Squares or quadratic forms of `drawn_residuals`, in their order.
    """
    surprise = -np.log(tail_p_values(statistics).min(axis=1))
    return float(tail_p_values(surprise[:, None])[0, 0])


def tail_p_values(statistics: Floats) -> Floats:
    """How often drawn labels reach each of the statistics; same shape, (1000, k).

    The tenth that is largest, and what is beyond, are taken as exponential, as the tails of
    quadratic forms are: that tells small p-values more precisely than counts do, and reaches
    smaller ones (T. Knijnenburg, L. Wessels, M. Reinders, I. Shmulevich, Bioinformatics 25 (2009)
    i161–i168, who fit a Pareto distribution; this is its exponential member).
    """
    n = len(statistics)
    ordered = np.sort(statistics, axis=0)
    start = ordered[-_TAIL - 1]
    excess = (ordered[-_TAIL:] - start).mean(axis=0)
    found = np.empty_like(statistics)
    for k, values in enumerate(statistics.T):
        found[:, k] = 1 - np.searchsorted(ordered[:, k], values) / n
        if excess[k] > 0:
            far = values > start[k]
            found[far, k] = _TAIL / n * np.exp((start[k] - values[far]) / excess[k])
    return found
