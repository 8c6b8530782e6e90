"""Confidence intervals for probabilities and for scores, each from its formula alone."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bootprob.calibration import Sigmoid
from bootprob.exceptions import DataError

__all__ = [
    "OF_SCORES",
    "OF_VOTES",
    "basic",
    "check_level",
    "check_method",
    "logit_normal",
    "of_votes",
    "percentile",
    "wald",
    "wilson",
]

Floats = NDArray[np.float64]
Votes = NDArray[np.floating] | NDArray[np.integer] | int

OF_SCORES = ("normal", "replicate")
OF_VOTES = ("wald", "wilson")


def check_level(level: float) -> float:
    """Check that a confidence level lies strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise DataError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    return float(level)


def check_method(method: str, *, calibrated: bool) -> str:
    """Check the name of an interval for probabilities.

    Parameters
    ----------
    method : str
    calibrated : bool
        Whether the probabilities are calibrated; intervals of scores need that.
    """
    if method not in OF_SCORES + OF_VOTES:
        raise DataError(f"method is {method!r}; give 'normal', 'replicate', 'wald' or 'wilson'.")
    if method in OF_SCORES and not calibrated:
        raise DataError(
            f"method={method!r} describes calibrated probabilities, and this model has "
            "calibration=None; use 'wald' or 'wilson', or fit with calibration='sigmoid'."
        )
    return method


def of_votes(
    vote: Floats, n_votes: Votes, level: float, method: str, *, clip: bool = False
) -> Floats:
    """Interval of a vote share by "wald" or "wilson", shape (n, 2)."""
    if method == "wald":
        return wald(vote, n_votes, level, clip=clip)
    return wilson(vote, n_votes, level)


def wald(vote: Floats, n_votes: Votes, level: float, *, clip: bool = False) -> Floats:
    """Interval of a vote share by the largest binomial variance, thesis (3.5).

    ``p̂ ± z √(¼ / B)``. Its width does not depend on ``p̂``: a row with all votes on one side
    gets the same width as any other, and the bounds pass 0 or 1.

    Parameters
    ----------
    vote : ndarray, shape (n,)
        Vote shares.
    n_votes : int or ndarray, shape (n,)
        B, the number of replicates that voted.
    level : float
        Confidence level.
    clip : bool, default False
        Cut the bounds at 0 and 1.

    Returns
    -------
    ndarray, shape (n, 2)
    """
    half = _z(level) * np.sqrt(0.25 / n_votes)
    bounds = np.stack([vote - half, vote + half], axis=-1)
    return np.clip(bounds, 0.0, 1.0) if clip else bounds


def wilson(vote: Floats, n_votes: Votes, level: float) -> Floats:
    """Wilson's score interval of a vote share, shape (n, 2); parameters as for `wald`.

    E. B. Wilson, J. American Statistical Association 22 (1927) 209–212.
    """
    z2 = _z(level) ** 2
    center = (vote + z2 / (2 * n_votes)) / (1 + z2 / n_votes)
    spread = np.sqrt(vote * (1 - vote) / n_votes + z2 / (4 * np.square(n_votes)))
    half = np.sqrt(z2) * spread / (1 + z2 / n_votes)
    return np.stack([center - half, center + half], axis=-1)


def percentile(replicates: Floats, level: float) -> Floats:
    """Percentiles of the replicates, shape (n, 2), for replicates of shape (n, B)."""
    tail = (1 - level) / 2
    return np.quantile(replicates, [tail, 1 - tail], axis=-1).T


def basic(replicates: Floats, level: float) -> Floats:
    """Basic bootstrap interval, thesis (3.6), shape (n, 2), for replicates of shape (n, B).

    ``(2 f̂ − f*_(1−α/2), 2 f̂ − f*_(α/2))`` with ``f̂`` the mean of the replicates.
    """
    center = 2 * replicates.mean(axis=-1, keepdims=True)
    return center - percentile(replicates, level)[:, ::-1]


def logit_normal(
    probability: Floats, score: Floats, variance: Floats, sigmoid: Sigmoid, level: float
) -> Floats:
    """Normal interval on the logit: spread of the replicates plus the calibrator's own.

    ``logit p ± z √(a² Var_b f_b(x) + gᵀ I⁻¹ g)`` with ``a`` the slope of the sigmoid, ``f_b(x)``
    the replicate scores, ``g = (f̄(x), 1)`` and ``I`` the sigmoid's Fisher information.

    Parameters
    ----------
    probability : ndarray, shape (n,)
        Calibrated probabilities, the centre.
    score, variance : ndarray, shape (n,)
        Mean and variance of the replicate scores.
    sigmoid : Sigmoid
        The calibrator that turns scores into logits.
    level : float
        Confidence level.

    Returns
    -------
    ndarray, shape (n, 2)
    """
    total = sigmoid.slope**2 * variance + sigmoid.logit_variance(score)
    center, half = logit(probability), _z(level) * np.sqrt(total)
    return np.stack([expit(center - half), expit(center + half)], axis=-1)


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)
