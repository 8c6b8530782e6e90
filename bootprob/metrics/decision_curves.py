"""Net benefit of deciding by a threshold: decision curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bootprob.exceptions import DataError
from bootprob.metrics.reliability import check_rows, numbers_of_rows
from bootprob.runtime.arrays import Floats

__all__ = ["checked_thresholds", "net_benefit", "net_benefits"]


def net_benefit(
    y: ArrayLike, p: ArrayLike, thresholds: ArrayLike, weights: ArrayLike | None = None
) -> Floats:
    """Net benefit of treating the rows whose probability reaches a threshold.

    ``true positives / n − t / (1 − t) · false positives / n`` (A. Vickers, E. Elkin, Medical
    Decision Making 26 (2006) 565–574): what a decision is worth, in true positives, to someone who
    would treat at a probability of t. To treat no one has a net benefit of 0.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one.
    p : array_like, shape (n,)
        Probability of the positive class; rows with NaN are left out. A row is treated where
        ``p >= t``, but never at p = 0, as by R's dcurves; all ones have the curve of treating
        everyone.
    thresholds : array_like, shape (k,)
        From 0 to less than 1.
    weights : array_like, shape (n,), optional
        Row weights.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    DataError
        For thresholds outside [0, 1), or as of `reliability_curve`.

    Examples
    --------
    >>> from bootprob.metrics import net_benefit
    >>> net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], [0.5]).tolist()
    [0.0]
    """
    thresholds = checked_thresholds(thresholds)
    y, p, weights, _ = check_rows(y, p, weights)
    return net_benefits(y, p[None], thresholds, weights)[0]


def net_benefits(y: Floats, p: Floats, thresholds: Floats, weights: Floats) -> Floats:
    """The same for several probabilities (B, n) of checked rows, shape (B, k)."""
    odds = thresholds / (1 - thresholds)
    gained, lost = weights * y, weights * (1 - y)
    found = np.empty((len(p), len(thresholds)))
    for of_one, own in zip(found, p, strict=True):
        order = np.argsort(own, kind="stable")
        start = np.searchsorted(own[order], np.maximum(thresholds, np.nextafter(0, 1)))
        true, false = (np.append(np.cumsum(w[order][::-1])[::-1], 0.0) for w in (gained, lost))
        of_one[:] = true[start] - odds * false[start]
    return found / weights.sum()


def checked_thresholds(thresholds: ArrayLike) -> Floats:
    """Thresholds as a vector; a DataError for others than numbers from 0 to less than 1."""
    found = numbers_of_rows("thresholds", thresholds)
    if found.ndim != 1 or not len(found) or not ((found >= 0) & (found < 1)).all():
        raise DataError("thresholds must be a vector of numbers from 0 to less than 1.")
    return found
