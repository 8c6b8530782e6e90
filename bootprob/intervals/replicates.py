"""Bootstrap intervals from replicates of a quantity, each from its formula alone."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from bootprob.intervals.levels import check_level
from bootprob.runtime.arrays import Floats

__all__ = ["basic", "bca", "bca_share", "percentile", "studentised"]


def percentile(replicates: Floats, level: float) -> Floats:
    """Percentiles of the replicates, shape (n, 2), for replicates of shape (n, B); (2,) of (B,).

    Parameters
    ----------
    replicates : ndarray, shape (n, B) or (B,)
        Values of the B replicates.
    level : float
        Nominal confidence, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import percentile
    >>> replicates = np.arange(101.0)[None]
    >>> percentile(replicates, 0.9)
    array([[ 5., 95.]])
    """
    tail = (1 - check_level(level)) / 2
    return np.quantile(replicates, [tail, 1 - tail], axis=-1).T


def basic(replicates: Floats, level: float, center: Floats | None = None) -> Floats:
    """Basic bootstrap interval, thesis (3.6), shape (n, 2), for replicates of shape (n, B).

    ``(2 f̂ − f*_(1−α/2), 2 f̂ − f*_(α/2))`` with ``f̂`` the mean of the replicates, or `center`,
    shape (n,).

    Parameters
    ----------
    replicates : ndarray, shape (n, B)
        Values of the B replicates.
    level : float
        Nominal confidence, between 0 and 1.
    center : ndarray, shape (n,), optional
        The estimate; default the mean of the replicates.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import basic
    >>> replicates = np.arange(101.0)[None]
    >>> basic(replicates, 0.9, center=np.array([40.0]))
    array([[-15.,  75.]])
    """
    if center is None:
        center = replicates.mean(axis=-1)
    return 2 * center[:, None] - percentile(replicates, level)[:, ::-1]


def bca(
    replicates: Floats, level: float, acceleration: Floats, center: Floats | None = None
) -> Floats:
    """Bias-corrected and accelerated percentiles, shape (n, 2).

    B. Efron, J. American Statistical Association 82 (1987) 171–185: the percentiles
    ``Φ(z₀ + (z₀ + z) / (1 − â (z₀ + z)))`` with ``z₀ = Φ⁻¹`` of the share of replicates below the
    estimate, and z the normal quantiles of the level.

    Parameters
    ----------
    replicates : ndarray, shape (n, B)
        Values of the B replicates.
    level : float
        Nominal confidence, between 0 and 1.
    acceleration : ndarray, shape (n,)
        â, a sixth of the skewness of the rows' influences.
    center : ndarray, shape (n,), optional
        The estimate; default the mean of the replicates.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import bca
    >>> replicates = np.arange(101.0)[None]
    >>> bca(replicates, 0.9, acceleration=np.zeros(1)).round(1)
    array([[ 5., 95.]])
    """
    if center is None:
        center = replicates.mean(axis=-1)
    B = replicates.shape[-1]
    below = (replicates < center[:, None]).sum(axis=-1)
    ties = (replicates == center[:, None]).sum(axis=-1)
    # Half a replicate on either side keeps z₀ finite where all of them lie on one.
    z0 = ndtri((below + 0.5 * ties + 0.5) / (B + 1))
    tail = (1 - check_level(level)) / 2
    ordered = np.sort(replicates, axis=-1)
    bounds = np.empty((len(replicates), 2))
    for side, share in enumerate((tail, 1 - tail)):
        # Beyond 1 / â the formula turns back; such a percentile is the outermost replicate.
        bounds[:, side] = _ordered_quantile(ordered, bca_share(share, z0, acceleration, 1e-3))
    bounds[np.isnan(ordered[:, -1])] = np.nan  # as of the other intervals
    return bounds


def bca_share(
    share: Floats | float, z0: Floats | float, acceleration: Floats | float, least: float
) -> Floats:
    """Share of the replicates below the bound whose nominal share this is.

    ``Φ(z₀ + (z₀ + z) / (1 − â (z₀ + z)))``, with a denominator of `least` at least.
    """
    moved = z0 + ndtri(share)
    return ndtr(z0 + moved / np.maximum(1 - acceleration * moved, least))


def studentised(replicates: Floats, level: float, deviation: Floats) -> Floats:
    """Bootstrap-t interval, shape (n, 2): ``(f̂ − s t*_(1−α/2), f̂ − s t*_(α/2))``.

    ``t* = (f* − f̂) / sd(f*)`` and s the standard error of the mean score f̂ from the
    jackknife-after-bootstrap (B. Efron, J. Royal Statistical Society B 54 (1992) 83–127), which
    unlike ``sd(f*)`` is that of the mean over the replicates. Where it is 0, for replicates too
    few to tell, ``sd(f*)`` stands in.

    Parameters
    ----------
    replicates : ndarray, shape (n, B)
        Values of the B replicates.
    level : float
        Nominal confidence, between 0 and 1.
    deviation : ndarray, shape (n,)
        s.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import studentised
    >>> replicates = np.arange(101.0)[None]
    >>> studentised(replicates, 0.9, deviation=np.array([2.0])).round(2)
    array([[46.93, 53.07]])
    """
    center, spread = replicates.mean(axis=-1), replicates.std(axis=-1, ddof=1)
    ratio = np.where(spread > 0, np.where(deviation > 0, deviation, spread), 0.0)
    ratio = np.divide(ratio, spread, out=np.zeros_like(ratio), where=spread > 0)
    quantiles = percentile(replicates - center[:, None], level)
    return center[:, None] - ratio[:, None] * quantiles[:, ::-1]


def _ordered_quantile(ordered: Floats, share: Floats) -> Floats:
    """One quantile for each row of ordered replicates, interpolated as `numpy.quantile` does."""
    position = share * (ordered.shape[-1] - 1)
    lower = np.floor(position).astype(np.intp)
    upper = np.minimum(lower + 1, ordered.shape[-1] - 1)
    rows = np.arange(len(ordered))
    part = position - lower
    start, end = ordered[rows, lower], ordered[rows, upper]
    return np.minimum(start + part * (end - start), end)  # between them, also where they are equal
