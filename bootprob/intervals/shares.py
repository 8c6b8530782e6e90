"""Intervals of shares of rows, and how many rows weighted ones are worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bootprob.intervals.votes import wilson
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["effective_rows", "exact_interval", "in_effective_rows", "wilson_interval"]


def effective_rows(weight: NDArray[np.floating[Any]], groups: Groups | None = None) -> float:
    """How many rows of equal weight tell as much as these: ``(Σ w)² / Σ w²`` (Kish).

    With groups, how many groups, each with the weight of its rows: as if all rows of a group were
    the same.
    """
    if not weight.any():
        return 0.0
    weight = sums_of_groups(weight, groups)
    share = weight / weight.max()  # squares of very small weights are 0
    return float(share.sum()) ** 2 / float(np.square(share).sum())


def in_effective_rows(weight: Floats) -> Floats:
    """The same weights with the sum of `effective_rows`: how many rows each tells as much as."""
    return weight * (effective_rows(weight) / weight.sum())


def exact_interval(share: float, n_rows: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share, which covers at least as often as it says.

    C. J. Clopper, E. S. Pearson, Biometrika 26 (1934) 404–413.

    Parameters
    ----------
    share : float
        In [0, 1].
    n_rows : float
        Number of rows, or the effective number.
    level : float
    """
    tail, hits = (1 - level) / 2, share * n_rows
    misses = n_rows - hits
    # Sums of weights are not exact; a share of 0 or 1 has no bound on that side.
    lower = 0.0 if share <= 0 else float(stats.beta.ppf(tail, hits, misses + 1))
    upper = 1.0 if share >= 1 else float(stats.beta.ppf(1 - tail, hits + 1, misses))
    return lower, upper


def wilson_interval(share: Floats, n_rows: Floats, level: float) -> Floats:
    """Wilson intervals (k, 2) that rounding has not pushed past their share or out of [0, 1]."""
    bounds = wilson(share, n_rows, level).clip(0, 1)
    return np.column_stack([np.minimum(bounds[:, 0], share), np.maximum(bounds[:, 1], share)])
