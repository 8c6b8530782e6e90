"""Variance of a mean over bootstrap replicates, from the replicates themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = [
    "acceleration",
    "after_bootstrap_gram",
    "after_bootstrap_variance",
    "counts_gram",
    "jackknife_variance",
]

Counts = NDArray[np.unsignedinteger[Any]]


def counts_gram(counts: Counts, used: NDArray[np.bool_]) -> Floats:
    """Gram matrix of centred counts, ``Σ_i (N_bi − N̄_i)(N_ci − N̄_i)``, shape (B, B).

    With it the infinitesimal jackknife of a row takes no second look at the counts.

    Parameters
    ----------
    counts : ndarray of int, shape (B, n)
        How often each replicate holds each training row.
    used : ndarray of bool, shape (n,)
        Training rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import counts_gram
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), 200)  # 200 samples of 30 rows
    >>> used = np.ones(30, dtype=bool)
    >>> scores = (counts @ rng.normal(size=30))[None] / 30  # means of the samples
    >>> counts_gram(counts, used).shape
    (200, 200)
    """
    gram = np.zeros((len(counts), len(counts)))
    for block in _blocks(counts, used):
        block -= block.mean(axis=0)
        gram += block @ block.T
    return gram


def after_bootstrap_gram(counts: Counts, used: NDArray[np.bool_]) -> Floats:
    """``Σ_i o_i o_iᵀ`` with ``o_bi = [N_bi = 0] / Σ_c [N_ci = 0]``, shape (B, B).

    With centred replicates d, ``(n − 1)/n · dᵀ · gram · d`` is the jackknife-after-bootstrap
    variance. Rows that every replicate holds do not count. Parameters as for `counts_gram`.

    Parameters
    ----------
    counts : ndarray of int, shape (B, n)
        How often each replicate holds each training row.
    used : ndarray of bool, shape (n,)
        Training rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import after_bootstrap_gram
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), 200)  # 200 samples of 30 rows
    >>> used = np.ones(30, dtype=bool)
    >>> scores = (counts @ rng.normal(size=30))[None] / 30  # means of the samples
    >>> after_bootstrap_gram(counts, used).shape
    (200, 200)
    """
    gram = np.zeros((len(counts), len(counts)))
    for block in _blocks(counts, used):
        outside = (block == 0).astype(np.float64)
        times = outside.sum(axis=0)
        outside = outside[:, times > 0] / times[times > 0]
        gram += outside @ outside.T
    return gram


def jackknife_variance(
    scores: Floats, gram: Floats, outside: NDArray[np.bool_] | None = None
) -> Floats:
    """Infinitesimal jackknife of mean scores, less its Monte-Carlo bias, shape (m,).

    ``Σ_i Cov_b(N_bi, f_b)² − (tr G / B²) Var_b f_b`` with the Gram matrix G of centred counts;
    the second term is what independent counts would give on average, ``n/B · Var_b f_b`` for
    counts of variance 1. S. Wager, T. Hastie, B. Efron, J. Machine Learning Research 15 (2014)
    1625–1651. Never below 0.

    Parameters
    ----------
    scores : ndarray, shape (m, B)
        Replicate scores.
    gram : ndarray, shape (B, B)
        From `counts_gram`.
    outside : ndarray of bool, shape (m, B), optional
        Which replicates the mean of each row is over; default all. NaN for a row with none.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import counts_gram, jackknife_variance
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), 200)  # 200 samples of 30 rows
    >>> used = np.ones(30, dtype=bool)
    >>> scores = (counts @ rng.normal(size=30))[None] / 30  # means of the samples
    >>> jackknife_variance(scores, counts_gram(counts, used)).shape
    (1,)
    """
    diagonal = np.diagonal(gram)
    if outside is None:
        deviation = scores - scores.mean(axis=1, keepdims=True)
        number: Any = scores.shape[1]
        noise = diagonal.sum()
    else:
        number = outside.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (scores * outside).sum(axis=1) / number
        deviation = np.where(outside, scores - mean[:, None], 0.0)
        noise = outside @ diagonal
    squares = ((deviation @ gram) * deviation).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.square(deviation).sum(axis=1) / number
        return np.maximum((squares - noise * spread) / np.square(number, dtype=np.float64), 0.0)


def after_bootstrap_variance(
    scores: Floats, gram: Floats, n_rows: int, share: float = 1.0
) -> Floats:
    """Jackknife-after-bootstrap of mean scores, less its Monte-Carlo bias, shape (m,).

    ``(n − 1)/n Σ_i (f̄_(i) − f̄)² − (e − 1) n/B · Var_b f_b`` with ``f̄_(i)`` the mean over the
    replicates without row i; Wager, Hastie and Efron as above. Never below 0.

    Parameters
    ----------
    scores : ndarray, shape (m, B)
        Of each replicate.
    gram : ndarray, shape (B, B)
        From `after_bootstrap_gram`.
    n_rows : int
        Training rows of positive weight, n.
    share : float, default 1.0
        Rows that a sample draws, m, as a share of n: e is then ``e^(m/n)``.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import after_bootstrap_gram, after_bootstrap_variance
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), 200)  # 200 samples of 30 rows
    >>> used = np.ones(30, dtype=bool)
    >>> scores = (counts @ rng.normal(size=30))[None] / 30  # means of the samples
    >>> after_bootstrap_variance(scores, after_bootstrap_gram(counts, used), 30).shape
    (1,)
    """
    B = scores.shape[1]
    deviation = scores - scores.mean(axis=1, keepdims=True)
    squares = ((deviation @ gram) * deviation).sum(axis=1)
    noise = (np.e**share - 1) * n_rows / B * np.square(deviation).mean(axis=1)
    return np.maximum((n_rows - 1) / n_rows * squares - noise, 0.0)


def acceleration(scores: Floats, counts: Counts, used: NDArray[np.bool_]) -> Floats:
    """BCa's acceleration ``Σ_i U_i³ / (6 (Σ_i U_i²)^(3/2))``, shape (m,).

    ``U_i = Cov_b(N_bi, f_b)`` is the influence of training row i, as in the infinitesimal
    jackknife. Parameters as for `jackknife_variance` and `counts_gram`.

    Parameters
    ----------
    scores : ndarray, shape (m, B)
        Replicate scores.
    counts : ndarray of int, shape (B, n)
        How often each replicate holds each training row.
    used : ndarray of bool, shape (n,)
        Training rows of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import acceleration
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.multinomial(30, np.full(30, 1 / 30), 200)  # 200 samples of 30 rows
    >>> used = np.ones(30, dtype=bool)
    >>> scores = (counts @ rng.normal(size=30))[None] / 30  # means of the samples
    >>> acceleration(scores, counts, used).shape
    (1,)
    """
    deviation = scores - scores.mean(axis=1, keepdims=True)
    largest = np.abs(deviation).max(axis=1, keepdims=True)
    # In units of the largest, as the cubes of very large scores are not finite.
    deviation = np.divide(deviation, largest, out=np.zeros_like(deviation), where=largest > 0)
    squares, cubes = np.zeros(len(scores)), np.zeros(len(scores))
    for block in _blocks(counts, used):
        influence = deviation @ (block - block.mean(axis=0)) / scores.shape[1]
        squares += np.square(influence).sum(axis=1)
        cubes += (np.square(influence) * influence).sum(axis=1)
    spread = 6 * squares**1.5
    return np.divide(cubes, spread, out=np.zeros_like(cubes), where=spread > 0)


def _blocks(counts: Counts, used: NDArray[np.bool_]) -> Iterator[Floats]:
    rows = np.flatnonzero(used)
    for block in row_blocks(len(rows), len(counts)):
        yield counts[:, rows[block]].astype(np.float64)
