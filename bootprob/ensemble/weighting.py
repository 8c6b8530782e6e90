"""Weights of the models of the grid in the ensemble."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from bootprob.calibration.logistic import fit_each, fit_logistic, platt_targets
from bootprob.runtime.arrays import Floats

__all__ = [
    "accuracy_weights",
    "log_loss_weights",
    "log_losses",
    "pooled_weights",
    "tempered_weights",
]

_TEMPERED = 0.25  # of the excess loss, where kernels compete
_EVEN = 2.0  # times relative entropy, in units of a row's log-loss
_MOST_STEPS = 1000


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
    return _by_excess(log_losses(scores, positive, weight))


def tempered_weights(total_loss: Floats) -> Floats:
    """Weights of models that differ in more than C: ``ω_r ∝ exp(−(loss_r − min loss) / 4)``.

    Losses of one table's rows tell models apart less than independent ones would: of kernels that
    are about as good the best of many is the luckiest. A quarter of the evidence (P. Grünwald, T.
    van Ommen, Bayesian Anal. 12 (2017) 1069–1103, on tempering) keeps all that are close.

    Parameters
    ----------
    total_loss : ndarray, shape (R,)
        From `log_losses`.

    Returns
    -------
    weights : ndarray, shape (R,)
        Sum 1.
    """
    return _by_excess(total_loss * _TEMPERED)


def pooled_weights(scores: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Weights with which models of several kernels do best together, kept near equal ones.

    They minimise ``Σ_i log-loss_i(a Σ_r ω_r s_ir + b) + 2 Σ_r ω_r log(R ω_r)`` over ω, a ≥ 0 and b,
    with the mean out-of-bag scores s and Platt's targets: stacking (L. Breiman, Machine Learning 24
    (1996) 49–64), where each model counts by what it adds to the others, with the relative entropy
    of equal weights, as few rows cannot tell many models apart.

    Parameters are those of `log_loss_weights`; the sum of `weight` is the number of rows.

    Returns
    -------
    weights : ndarray, shape (R,)
        Sum 1.
    """
    n_models, targets = scores.shape[1], platt_targets(positive, weight)
    unit = float(scores.mean(axis=1).std()) or 1.0
    scores = scores / unit

    def penalized(unknown: Floats) -> tuple[float, Floats]:
        logs, slope, intercept = log_softmax(unknown[:-2]), *unknown[-2:]
        weights = np.exp(logs)
        pooled = scores @ weights
        logit = slope * pooled + intercept
        loss = weight @ (np.logaddexp(0.0, logit) - targets * logit)
        excess = weight * (expit(logit) - targets)
        of_weights = slope * (excess @ scores) + _EVEN * logs
        gradient = weights * (of_weights - of_weights @ weights)
        entropy = _EVEN * (weights @ logs)  # but for a constant
        return float(loss + entropy), np.array([*gradient, excess @ pooled, excess.sum()])

    equal = scores.mean(axis=1)
    slopes, intercept = fit_logistic(equal[None], targets, weight, jeffreys=False)
    found = minimize(
        penalized,
        np.array([*np.zeros(n_models), *slopes, intercept]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * n_models + [(0.0, None), (None, None)],
        options={"maxiter": _MOST_STEPS, "maxfun": 10 * _MOST_STEPS, "ftol": 0.0, "gtol": 1e-8},
    )
    return np.exp(np.asarray(log_softmax(found.x[:-2])))


def log_losses(scores: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Log-loss, summed over the rows, of a sigmoid fitted to each column of scores; shape (R,).

    Parameters are those of `log_loss_weights`.
    """
    total_loss = np.empty(scores.shape[1])
    fits = fit_each(scores.T, positive.astype(np.float64), weight)
    for r, (column, slope, intercept) in enumerate(zip(scores.T, *fits, strict=True)):
        logit = slope * column + intercept
        total_loss[r] = weight @ np.logaddexp(0.0, np.where(positive, -logit, logit))
    return total_loss


def _by_excess(loss: Floats) -> Floats:
    likelihood = np.exp(-(loss - loss.min()))
    return likelihood / likelihood.sum()
