"""Intervals between quantiles of mixtures of normal distributions."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["CLOSEST", "NODES", "WEIGHTS", "deviation_of_mixture", "logit_of_mixture", "of_mixture"]


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
    """
    mean, deviation = np.moveaxis(parts, -1, 0)
    share = np.array([[(1 - level) / 2], [(1 + level) / 2]])
    ends = mean + ndtri(share)[..., None] * deviation  # (2, m, g)
    lower, upper = ends.min(axis=2), ends.max(axis=2)  # it lies between those of the parts
    at, last = ends @ weight, upper - lower
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for _ in range(_STEPS if len(weight) > 1 else 0):
            apart = (at[..., None] - mean) / deviation
            above = ndtr(apart) @ weight - share
            lower, upper = np.where(above < 0, at, lower), np.where(above < 0, upper, at)
            density = (np.exp(-np.square(apart) / 2) / deviation) @ weight / _ROOT
            newton = at - above / density
            quick = (lower <= newton) & (newton <= upper) & (np.abs(newton - at) <= last / 2)
            before, at = at, np.where(quick, newton, (lower + upper) / 2)
            last = np.abs(at - before)
            if (last <= _CLOSE * (1 + np.abs(at))).all():
                break
    return at.T


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
