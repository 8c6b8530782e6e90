"""Intervals between quantiles of mixtures of normal distributions."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from bootprob.intervals.levels import check_level
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["CLOSEST", "NODES", "WEIGHTS", "deviation_of_mixture", "logit_of_mixture", "of_mixture"]


_MEANS_AT_ONCE = 2**14  # of parts: what is made of them stays in a cache
_STEPS = 200  # of Newton, or halvings where these leave what is known or are slow
_CLOSE = 1e-13  # step, relative to the logit, that is none
_ROOT = np.sqrt(2 * np.pi)
NODES, WEIGHTS = np.polynomial.hermite.hermgauss(32)
WEIGHTS = WEIGHTS / np.sqrt(np.pi)  # a normal variable takes its mean + √2 s · node with these
CLOSEST = 1e-12
"""To 0 and 1: no probability of which a logit is taken is closer."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import of_mixture
    >>> one_normal = np.array([[[0.0, 1.0]]])
    >>> of_mixture(one_normal, np.ones(1), 0.95).round(2)
    array([[-1.96,  1.96]])
    """
    level, found = check_level(level), np.empty((len(parts), 2))
    for rows in row_blocks(len(parts), 2 * len(weight), _MEANS_AT_ONCE):
        both = np.concatenate([parts[rows], parts[rows]])
        share = np.repeat([(1 - level) / 2, (1 + level) / 2], len(both) // 2)
        found[rows] = _quantiles(both, weight, share).reshape(2, -1).T
    return found


def _quantiles(parts: Floats, weight: Floats, share: Floats) -> Floats:
    """Those that leave shares (m,) below, shape (m,)."""
    mean, deviation = np.moveaxis(parts, -1, 0)
    ends = mean + ndtri(share)[:, None] * deviation
    lower, upper = ends.min(axis=1), ends.max(axis=1)  # it lies between those of the parts
    found = np.einsum("ij,j->i", ends, weight)  # of a row, whatever rows are with it
    if len(weight) == 1:
        return found
    at, last, steps = found.copy(), upper - lower, 1 / deviation
    left = np.arange(len(found))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            apart = (at[:, None] - mean) * steps
            above = np.einsum("ij,j->i", ndtr(apart), weight) - share
            lower, upper = np.where(above < 0, at, lower), np.where(above < 0, upper, at)
            density = np.einsum("ij,j->i", np.exp(-np.square(apart) / 2) * steps, weight) / _ROOT
            newton = at - above / density
            quick = (lower <= newton) & (newton <= upper) & (np.abs(newton - at) <= last / 2)
            before, at = at, np.where(quick, newton, (lower + upper) / 2)
            found[left], last = at, np.abs(at - before)
            far = last > _CLOSE * (1 + np.abs(at))
            if not far.any():
                break
            if not far.all():  # few take many steps
                known = (left, at, last, lower, upper, mean, steps, share)
                left, at, last, lower, upper, mean, steps, share = (each[far] for each in known)
    return found


def logit_of_mixture(parts: Floats, weight: Floats) -> Floats:
    """Logit of the mean probability, where logits are mixtures; shape (m,).

    ``logit Σ_g w_g E expit(N(m_g, s_g²))``, by Gauss-Hermite quadrature. Parameters are the first
    two of `of_mixture`.
    """
    found = np.empty(len(parts))
    for rows in row_blocks(len(parts), len(weight) * len(NODES)):
        mean, deviation = np.moveaxis(parts[rows], -1, 0)
        at_nodes = mean[..., None] + np.sqrt(2) * deviation[..., None] * NODES
        found[rows] = expit(at_nodes) @ WEIGHTS @ weight
    return logit(found.clip(CLOSEST, 1 - CLOSEST))


def deviation_of_mixture(parts: Floats, weight: Floats) -> Floats:
    """Standard deviation of each mixture, shape (m,); parameters as of `logit_of_mixture`."""
    mean, deviation = np.moveaxis(parts, -1, 0)
    center = mean @ weight
    return np.sqrt((np.square(deviation) + np.square(mean - center[:, None])) @ weight)
