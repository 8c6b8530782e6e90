"""Rows in order of time as blocks of neighbours, which are drawn and left out like groups.

H. Künsch, Annals of Statistics 17 (1989) 1217–1241, for blocks that touch and do not overlap E.
Carlstein, Annals of Statistics 14 (1986) 1171–1179.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

__all__ = ["block_length", "later_from", "time_blocks"]

_LEAST_BLOCKS = 20
_OF_ALL = 10  # the last of so many parts are later rows

Ranks = NDArray[np.int64]


def time_blocks(ranks: Ranks, length: float) -> Groups:
    """Number blocks of about so many rows, in order of time; rows of an instant share theirs.

    Parameters
    ----------
    ranks : ndarray of int, shape (n,)
        Which instant each row is from.
    length : float
        Rows of a block; instants of more rows are blocks of their own.

    Returns
    -------
    ndarray of int, shape (n,)
        From 0 on, without gaps.
    """
    n = len(ranks)
    n_blocks = max(1, int(n / length))
    before = np.searchsorted(np.sort(ranks), ranks)
    alone = np.bincount(ranks) > length  # instants, which part the blocks before and after them
    parted = 2 * np.cumsum(alone) - alone
    key = before * n_blocks // n * (2 * len(alone) + 1) + parted[ranks]
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


def block_length(ranks: Ranks, codes: NDArray[np.intp]) -> float:
    """How many rows a block should have, by how long labels stay alike.

    The length at which the variance of a mean has the least error, ``(G / g)^(2/3) n^(1/3)`` with
    ``g = Σ λ(k) R(k)`` and ``G = Σ λ(k) |k| R(k)``, where R are autocovariances and λ a window
    that ends where they vanish: D. Politis, H. White, Econometric Reviews 23 (2004) 53–70, with the
    correction of Patton, Politis and White, ibid. 28 (2009) 372–375, and for blocks that do not
    overlap the variance 3/2 times as large (S. Lahiri, Annals of Statistics 27 (1999) 386–404).
    It is of labels, which hang together at least where the columns do not explain them. At least
    n^(1/3) rows, where labels do not hang together, and so few that there are 20 blocks.

    Parameters
    ----------
    ranks : ndarray of int, shape (n,)
    codes : ndarray of int, shape (n,)
        Classes, numbered from 0.
    """
    n = len(ranks)
    least = n ** (1 / 3)
    in_order = codes[np.argsort(ranks, kind="stable")]
    covariance = _autocovariance(in_order)
    correlation = covariance / max(covariance[0], np.finfo(float).tiny)
    negligible = 2 * np.sqrt(np.log10(n) / n)
    run = max(5, int(np.ceil(np.sqrt(np.log10(n)))))
    small = np.abs(correlation[1:]) < negligible
    ends = np.flatnonzero(np.convolve(small, np.ones(run), "valid") == run)
    longest = len(correlation) - 1
    reach = min(2 * max(1, int(ends[0]) if len(ends) else longest), longest)
    lags = np.arange(-reach, reach + 1)
    window = np.clip(2 * (1 - np.abs(lags) / reach), 0, 1) * correlation[np.abs(lags)]
    spectrum, moment = window.sum(), (np.abs(lags) * window).sum()
    fitting = (max(moment, 0) / spectrum) ** (2 / 3) * least if spectrum > 0 else least
    return float(min(max(least, fitting), max(1.0, n / _LEAST_BLOCKS)))


def later_from(ranks: Ranks) -> int:
    """The instant from which on rows are the last tenth, as nearly as instants stay whole.

    Parameters
    ----------
    ranks : ndarray of int, shape (n,)
        Of two instants or more.
    """
    ordered = np.sort(ranks)
    n = len(ordered)
    wanted = n - max(1, n // _OF_ALL)
    starts = np.flatnonzero(np.diff(ordered)) + 1  # of all instants but the first
    return int(ordered[starts[np.argmin(np.abs(starts - wanted))]])


def _autocovariance(codes: NDArray[np.intp]) -> Floats:
    """Of the indicators of all classes together, at lags from 0 to about 2 √n."""
    from scipy.signal import correlate  # a third of the time that our own modules take to load

    n = len(codes)
    longest = min(n - 1, 2 * int(np.ceil(np.sqrt(n))) + 10)
    found = np.zeros(longest + 1)
    for code in range(int(codes.max()) + 1):
        apart = (codes == code) - (codes == code).mean()
        found += correlate(apart, apart, method="fft")[n - 1 : n + longest] / n
    return found
