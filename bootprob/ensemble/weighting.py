"""Weights of the models of the grid in the ensemble."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.logistic import fit_each
from bootprob.runtime.arrays import Floats

__all__ = ["accuracy_weights", "log_loss_weights"]


def accuracy_weights(accuracy: Floats, tolerance: float) -> Floats:
    """Squared out-of-bag accuracies of the models close to the best, thesis (3.3).

    ``J = {j : acc_j ≥ max_l acc_l − ε}`` and ``ω_j = acc_j² / Σ_{l ∈ J} acc_l²``.

    Parameters
    ----------
    accuracy : ndarray, shape (R,)
        Out-of-bag accuracy of each model, averaged over the replicates.
    tolerance : float
        ε, in units of accuracy.

    Returns
    -------
    weights : ndarray, shape (R,)
        Sum 1, zero outside J.
    """
    best = accuracy.max()
    squares = np.where(accuracy >= best - tolerance, np.square(accuracy), 0.0)
    if squares.sum() == 0:  # every answer of every model is wrong
        return np.full(len(accuracy), 1.0 / len(accuracy))
    return squares / squares.sum()


def log_loss_weights(scores: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Weights by the log-loss of out-of-bag scores: ``ω_r ∝ exp(−n (loss_r − min loss))``.

    `loss_r` is the mean log-loss of a sigmoid fitted to the mean out-of-bag scores of model r.

    Parameters
    ----------
    scores : ndarray, shape (n, R)
        Mean out-of-bag score of each row under each model.
    positive : ndarray of bool, shape (n,)
        Which rows belong to the positive class.
    weight : ndarray, shape (n,)
        Row weights of mean 1.

    Returns
    -------
    weights : ndarray, shape (R,)
        Sum 1.
    """
    total_loss = np.empty(scores.shape[1])
    fits = fit_each(scores.T, positive.astype(np.float64), weight)
    for r, (column, slope, intercept) in enumerate(zip(scores.T, *fits, strict=True)):
        logit = slope * column + intercept
        total_loss[r] = weight @ np.logaddexp(0.0, np.where(positive, -logit, logit))
    likelihood = np.exp(-(total_loss - total_loss.min()))
    return likelihood / likelihood.sum()
