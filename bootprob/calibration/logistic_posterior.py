"""Logistic regression on a few columns with a normal prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.runtime.arrays import Floats

__all__ = ["logistic_posterior"]

_STEPS, _SMALL = 50, 1e-10


def logistic_posterior(
    design: Floats, share: NDArray[Any], weight: Floats, mean: Floats, prior: Floats
) -> tuple[Floats, Floats, float]:
    """Posterior of ``logit p = design · θ`` with θ normal before, by Laplace's approximation.

    Parameters
    ----------
    design : ndarray, shape (k, d)
    share : ndarray, shape (k,)
        Labels, or shares of the positive class where a row stands for several.
    weight : ndarray, shape (k,)
        How many rows each stands for.
    mean : ndarray, shape (d,)
    prior : ndarray, shape (d, d)
        Covariance, positive definite.

    Returns
    -------
    mode : ndarray, shape (d,)
    covariance : ndarray, shape (d, d)
    evidence : float
        Log marginal likelihood.
    """
    precision = np.linalg.inv(prior)

    def value(theta: Floats) -> float:
        eta = design @ theta
        loss = weight @ (np.logaddexp(0.0, eta) - share * eta)
        return float(-loss - (theta - mean) @ precision @ (theta - mean) / 2)

    theta, height = mean, value(mean)
    for _ in range(_STEPS):
        p = expit(design @ theta)
        gradient = design.T @ (weight * (share - p)) - precision @ (theta - mean)
        hessian = (design.T * (weight * p * (1 - p))) @ design + precision
        step = np.linalg.solve(hessian, gradient)
        while (reached := value(theta + step)) < height - _SMALL and np.abs(step).max() > _SMALL:
            step = step / 2
        theta, height = theta + step, reached
        if np.abs(step).max() < _SMALL:
            break
    p = expit(design @ theta)
    information = (design.T * (weight * p * (1 - p))) @ design
    evidence = height - np.linalg.slogdet(np.eye(len(mean)) + prior @ information)[1] / 2
    return theta, np.linalg.inv(information + precision), float(evidence)
