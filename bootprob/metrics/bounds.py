"""Bounds of single metrics, each from its formula alone."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import norm

from bootprob.intervals.replicates import bca_share
from bootprob.intervals.shares import effective_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = [
    "auc_score_interval",
    "bca",
    "bca_or_student",
    "calibration_error_interval",
    "concordance",
    "expanded_level",
    "quantile_of_few",
    "unseen_share",
]

Bounds = tuple[float, float]

_DRAWS = 10_000
_FEWEST = 2.0  # units that say anything of how they vary
_FEWEST_TO_RESAMPLE = 5 - 1e-9  # effective numbers round
_ROUNDING = 1e-9
_CLOSEST_TO_ONE = 1 - 1e-12


def bca(estimate: float, replicates: Floats, influence: Floats, level: float) -> Bounds:
    """Bias-corrected and accelerated bootstrap interval.

    B. Efron, J. American Statistical Association 82 (1987) 171–185: percentiles of the replicates
    at ``Φ(z0 + (z0 + z) / (1 − a (z0 + z)))``, with ``z0`` from the share of replicates below
    the estimate and the acceleration ``a = Σ u³ / (6 (Σ u²)^(3/2))``.

    Parameters
    ----------
    estimate : float
    replicates : ndarray, shape (b,)
        Of a bootstrap over rows.
    influence : ndarray, shape (n,)
        u, what a little more weight on each row adds to the estimate, in any unit.
    level : float
    """
    b = len(replicates)
    same = np.abs(replicates - estimate) <= _ROUNDING * np.ptp(replicates)  # often, of few groups
    below = (np.sum((replicates < estimate) & ~same) + np.sum(same) / 2) / b
    z0 = norm.ppf(np.clip(below, 1 / (2 * b), 1 - 1 / (2 * b)))
    largest = np.abs(influence).max()
    u = influence / largest if largest > 0 else influence  # whatever the unit, cubes are finite
    squares = np.square(u).sum()
    acceleration = (u**3).sum() / (6 * squares**1.5) if squares > 0 else 0.0
    # With a handful of rows the transformation would turn round.
    shares = np.array([(1 - level) / 2, (1 + level) / 2])
    ranks = bca_share(shares, z0, acceleration, 0.1)
    lower, upper = np.quantile(replicates, ranks)
    return float(lower), float(upper)


def bca_or_student(
    estimate: float, replicates: Floats, influence: Floats, level: float, n_units: float
) -> tuple[float, float, str]:
    """BCa bounds at `expanded_level`, and "bca"; of fewer than five units Student's, "student".

    Percentiles do not reach beyond the best and the worst unit, which hold the mean of so few at
    any level with probability ``1 − 2^(1 − n)`` or so.

    Parameters
    ----------
    n_units : float
        As for `quantile_of_few`; the others are as for `bca`.
    """
    if n_units < _FEWEST_TO_RESAMPLE:
        reach = quantile_of_few(level, n_units) * float(replicates.std(ddof=1))
        return estimate - reach, estimate + reach, "student"
    return *bca(estimate, replicates, influence, expanded_level(level, n_units)), "bca"


def quantile_of_few(level: float, n_units: float) -> float:
    """How many bootstrap standard deviations bounds are from an estimate: 1.96 of many units.

    Resamples of n units vary by (n − 1) / n of what they should, and how much they vary is known no
    better than by n − 1 degrees of freedom: ``t_(n−1) √(n / (n − 1))`` with Student's quantile.

    Parameters
    ----------
    level : float
    n_units : float
        Rows or groups that are drawn, or the effective number.
    """
    n = max(n_units, _FEWEST)
    return float(stats.t.ppf((1 + level) / 2, n - 1) * np.sqrt(n / (n - 1)))


def expanded_level(level: float, n_units: float) -> float:
    """The level at which percentiles of a bootstrap over so few units reach as far.

    T. Hesterberg's expanded percentiles, Am. Stat. 69 (2015) 371–386.
    """
    return min(float(1 - 2 * norm.sf(quantile_of_few(level, n_units))), _CLOSEST_TO_ONE)


def concordance(y: Floats, p: Floats, weights: Floats) -> Floats:
    """Weighted share of the rows of the other class on the right side of each row, shape (n,).

    Ties count one half. The mean over either class is the AUC. y is 0 or 1, with rows of both.
    """
    _, group = np.unique(p, return_inverse=True)
    right = np.empty(len(y))
    for label in (0, 1):
        others = np.bincount(group, weights * (y != label))
        below = (np.cumsum(others) - others / 2) / others.sum()
        rows = y == label
        right[rows] = (below if label else 1 - below)[group[rows]]
    return right


def auc_score_interval(auc: float, n_positive: float, n_negative: float, level: float) -> Bounds:
    """Newcombe's score interval of an AUC, which has a width at 0 and 1 as well.

    All θ with ``|AUC − θ| ≤ z √V(θ)`` and Hanley and McNeil's variance for exponential scores,
    ``V = θ (1 − θ) (1 + N (1 − θ)/(2 − θ) + N θ/(1 + θ)) / (n₊ n₋)``, ``N = (n₊ + n₋)/2 − 1``:
    R. G. Newcombe, Statistics in Medicine 25 (2006) 559–573, method 5.
    Numbers of rows may be effective ones.
    """
    z, pairs = norm.ppf((1 + level) / 2), n_positive * n_negative
    more = max((n_positive + n_negative) / 2 - 1, 0.0)

    def beyond(theta: float) -> float:
        spread = 1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return abs(auc - theta) - z * np.sqrt(theta * (1 - theta) * spread / pairs)

    lower = 0.0 if auc <= 0 else float(brentq(beyond, 0.0, min(auc, _CLOSEST_TO_ONE)))
    upper = 1.0 if auc >= 1 else float(brentq(beyond, max(auc, 1 - _CLOSEST_TO_ONE), 1.0))
    return lower, upper


def calibration_error_interval(
    estimate: float,
    y: Floats,
    p: Floats,
    weights: Floats,
    members: Floats,
    level: float,
    seed: int,
    groups: Groups | None = None,
) -> Bounds:
    """Interval of a calibration error from how far its bins can be off, ``estimate ± q``.

    With ``d_k`` the deviations seen in the bins, ``δ_k`` the true ones, and both weighted by the
    share of the bin, ``|Σ |d_k| − Σ |δ_k|| ≤ Σ |d_k − δ_k|``, whatever the ``δ_k`` are; q is the
    quantile of the right side for normal ``d_k − δ_k``. Their variance is the larger of what the
    rows show and what the probabilities say, as a bin of a few certain rows shows none.

    Parameters
    ----------
    estimate : float
    y, p, weights : ndarray, shape (n,)
    members : ndarray, shape (n, bins)
        Which bin each row is in, 0 or 1.
    level : float
    seed : int
        Of the 10,000 normal draws.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together, whose deviations add up.
    """
    total = weights.sum()
    off = members * (weights * (y - p))[:, None]
    if groups is not None:
        off = np.stack([np.bincount(groups, column) for column in off.T], axis=1)
    seen, stated = np.square(off).sum(axis=0), (np.square(weights) * p * (1 - p)) @ members
    deviation = np.sqrt(np.maximum(seen, stated)) / total
    draws = np.random.default_rng(seed).normal(size=(_DRAWS, len(deviation)))
    q = np.quantile(np.abs(draws * deviation).sum(axis=1), level)
    q = max(float(q), unseen_share(effective_rows(weights, groups), level))
    return max(0.0, estimate - q), min(1.0, estimate + q)


def unseen_share(n_rows: float, level: float) -> float:
    """Largest share of a population of which n rows may show none, ``1 − (α/2)^(1/n)``.

    Clopper and Pearson's upper bound for a share of 0, at ``α = 1 − level``.
    """
    return float(-np.expm1(np.log((1 - level) / 2) / n_rows))
