"""Pairwise coupling: from probabilities of every pair of classes to those of all K classes.

For each pair of classes a binary model says ``r_ij``, the probability of class i given that the
class is i or j. A vector ``p`` with ``p_i / (p_i + p_j) = r_ij`` for all pairs mostly does not
exist; both methods find the one that is nearest, each in its own sense.

- `"wu-lin-weng"`: minimises ``Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²`` subject to ``Σ p = 1``, a linear
  system; T.-F. Wu, C.-J. Lin, R. C. Weng, JMLR 5 (2004) 975–1005, second method, (21).
- `"hastie-tibshirani"`: minimises the Kullback–Leibler divergence
  ``Σ_{i<j} [r_ij log(r_ij / μ_ij) + r_ji log(r_ji / μ_ji)]`` with ``μ_ij = p_i / (p_i + p_j)``;
  T. Hastie, R. Tibshirani, Annals of Statistics 26 (1998) 451–471, with equal weights. Solved by
  Newton's method on ``log p``, in which the objective is convex.
"""

from __future__ import annotations

from itertools import combinations
from math import isqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["Coupling", "class_pairs", "couple", "coupling_derivative", "number_of_classes"]

Coupling = Literal["wu-lin-weng", "hastie-tibshirani"]

_LEAST = 1e-10  # the divergence has no minimum where a class never wins against any other
_STEPS = 200
_STEEPEST = 1e-11  # of the sum of wins less what is expected, at a solution
_LARGEST_STEP = 5.0  # of log p


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """All pairs (i, j) with i < j, in the order (0, 1), (0, 2), …, (1, 2), …."""
    return list(combinations(range(n_classes), 2))


def number_of_classes(n_pairs: int) -> int:
    """K for ``K (K − 1) / 2`` pairs.

    Raises
    ------
    DataError
        If no number of classes has so many pairs.
    """
    K = (1 + isqrt(1 + 8 * n_pairs)) // 2
    if n_pairs < 1 or n_pairs != K * (K - 1) // 2:
        raise DataError(
            f"There are {n_pairs} pairs, which is not K (K − 1) / 2 for any number of classes K; "
            "give one for every pair of classes."
        )
    return K


def couple(second: ArrayLike, method: Coupling = "wu-lin-weng") -> Floats:
    """Probabilities of K classes from those of their pairs.

    Parameters
    ----------
    second : array_like, shape (m, K (K − 1) / 2)
        For each pair (i, j) of `class_pairs` the probability of its second class j, given that the
        class is i or j; as column 1 of a binary classifier's `predict_proba`. From 0 to 1, both
        included.
    method : {"wu-lin-weng", "hastie-tibshirani"}, default "wu-lin-weng"

    Returns
    -------
    ndarray, shape (m, K)
        Not negative, rows sum to 1. For two classes exactly ``(1 − second, second)``.

    Raises
    ------
    DataError
        For anything but probabilities of all pairs, or an unknown method.

    Examples
    --------
    >>> p = couple([[0.75, 0.75, 0.5]])[0]
    >>> [round(float(each), 9) for each in p]
    [0.142857143, 0.428571429, 0.428571429]
    """
    second, K = _checked(second, method)
    if K == 2:
        return np.concatenate([1 - second, second], axis=1)
    p = np.empty((len(second), K))
    for rows in row_blocks(len(second), 4 * K * K):
        r = _matrix(second[rows], K)
        p[rows] = _least_squares(r) if method == "wu-lin-weng" else _least_divergence(r)
    return p


def coupling_derivative(second: ArrayLike, p: Floats, method: Coupling = "wu-lin-weng") -> Floats:
    """Derivative of the coupled probabilities with respect to the logits of the pairs.

    In closed form, by differentiating the optimality conditions.

    Parameters
    ----------
    second : array_like, shape (m, K (K − 1) / 2)
        As for `couple`.
    p : ndarray, shape (m, K)
        What `couple` makes of it.
    method : {"wu-lin-weng", "hastie-tibshirani"}, default "wu-lin-weng"

    Returns
    -------
    ndarray, shape (m, K, K (K − 1) / 2)
        ``∂p_k / ∂ logit(second of pair)``; 0 where that is 0 or 1. Sums over the classes are 0.

    Raises
    ------
    DataError
        As for `couple`.
    """
    second, K = _checked(second, method)
    speed = second * (1 - second)  # of the second's probability when its logit grows
    if K == 2:
        return np.stack([-speed, speed], axis=1)
    if method == "wu-lin-weng":
        return _derivative_of_least_squares(_matrix(second, K), p, speed)
    inside = (second >= _LEAST) & (second <= 1 - _LEAST)
    return _derivative_of_least_divergence(p, speed * inside)


def _checked(second: ArrayLike, method: str) -> tuple[Floats, int]:
    if method not in get_args(Coupling):
        raise DataError(f"method is {method!r}; give 'wu-lin-weng' or 'hastie-tibshirani'.")
    try:
        values = np.asarray(second, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"Probabilities of pairs are no table of numbers ({error}).") from None
    if values.ndim != 2:
        raise DataError(
            f"Probabilities of pairs have shape {values.shape}; give rows × pairs of classes."
        )
    K = number_of_classes(values.shape[1])
    if not ((values >= 0) & (values <= 1)).all():  # NaN neither
        wrong = values[~((values >= 0) & (values <= 1))][0]
        raise DataError(f"Probabilities of pairs hold {wrong:g}; give numbers from 0 to 1.")
    return values, K


def _matrix(second: Floats, K: int) -> Floats:
    """``r_ij``, shape (m, K, K); 0 on the diagonal."""
    i, j = np.transpose(class_pairs(K))
    r = np.zeros((len(second), K, K))
    r[:, i, j], r[:, j, i] = 1 - second, second
    return r


def _bordered(r: Floats) -> Floats:
    """``[Q, 1; 1ᵀ, 0]`` of the optimality conditions, shape (m, K + 1, K + 1).

    Never singular: ``Q v = 0`` forces ``r_ji v_i = r_ij v_j`` for all pairs, so all entries of v
    have one sign, and a sum of 0 leaves nothing of it.
    """
    m, K, _ = r.shape
    system = np.ones((m, K + 1, K + 1))
    system[:, :K, :K] = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(K)
    system[:, diagonal, diagonal] = np.square(r).sum(axis=1)
    system[:, K, K] = 0.0
    return system


def _least_squares(r: Floats) -> Floats:
    """Wu, Lin and Weng's second method, by the linear system (21)."""
    m, K, _ = r.shape
    right = np.zeros((m, K + 1, 1))
    right[:, K] = 1.0
    # The solution is not negative (their theorem 2) but for rounding.
    p = np.maximum(np.linalg.solve(_bordered(r), right)[:, :K, 0], 0.0)
    return p / p.sum(axis=1, keepdims=True)


def _derivative_of_least_squares(r: Floats, p: Floats, speed: Floats) -> Floats:
    """From ``Q dp + 1 dβ = −dQ p`` and ``Σ dp = 0``."""
    m, K, _ = r.shape
    i, j = np.transpose(class_pairs(K))
    of_first, of_second = r[:, i, j], r[:, j, i]
    pairs = np.arange(len(i))
    right = np.zeros((m, K + 1, len(i)))
    # d r_ji = speed, d r_ij = −speed; Q_ii holds r_ji², Q_jj holds r_ij², and Q_ij = −r_ij r_ji.
    right[:, i, pairs] = -speed * (2 * of_second * p[:, i] + (of_second - of_first) * p[:, j])
    right[:, j, pairs] = speed * (2 * of_first * p[:, j] + (of_first - of_second) * p[:, i])
    return np.asarray(np.linalg.solve(_bordered(r), right)[:, :K], dtype=np.float64)


def _least_divergence(r: Floats) -> Floats:
    """Hastie and Tibshirani's coupling, by a damped Newton method on ``log p``."""
    _, K, _ = r.shape
    off = ~np.eye(K, dtype=bool)
    r = np.where(off, np.clip(r, _LEAST, 1 - _LEAST), 0.0)
    wins = r.sum(axis=2)
    # The least squares solution in logits, which is exact where the pairs agree.
    theta = np.where(off, np.log(np.where(off, r, 1.0)) - np.log1p(-r), 0.0).sum(axis=2) / K
    left = np.arange(len(r))
    for _ in range(_STEPS):
        mu = _expected(theta[left])
        gradient = wins[left] - mu.sum(axis=2)
        at_work = np.abs(gradient).max(axis=1) > _STEEPEST
        left, mu, gradient = left[at_work], mu[at_work], gradient[at_work]
        if len(left) == 0:
            p = np.exp(theta - theta.max(axis=1, keepdims=True))
            return p / p.sum(axis=1, keepdims=True)
        step = np.linalg.solve(_laplacian(mu), gradient[..., None])[..., 0]
        # Halved where the slope at its end points back by more than it rose at its start.
        step *= np.minimum(1.0, _LARGEST_STEP / np.abs(step).max(axis=1, keepdims=True))
        rise = (gradient * step).sum(axis=1)
        for _ in range(60):
            there = wins[left] - _expected(theta[left] + step).sum(axis=2)
            too_far = (there * step).sum(axis=1) < -0.5 * rise
            if not too_far.any():
                break
            step[too_far] *= 0.5
            rise[too_far] *= 0.5
        theta[left] += step
    raise ArithmeticError(
        f"Hastie–Tibshirani coupling of {len(left)} rows did not converge; use 'wu-lin-weng'."
    )


def _expected(theta: Floats) -> Floats:
    """``μ_ij = p_i / (p_i + p_j)``, shape (m, K, K); 0 on the diagonal."""
    mu = 0.5 * (1 + np.tanh(0.5 * (theta[:, :, None] - theta[:, None, :])))
    diagonal = np.arange(theta.shape[1])
    mu[:, diagonal, diagonal] = 0.0
    return mu


def _laplacian(mu: Floats) -> Floats:
    """Second derivative of the divergence in ``log p``, made regular along ``1``."""
    information = mu * mu.transpose(0, 2, 1)
    diagonal = np.arange(mu.shape[1])
    total = information.sum(axis=2)
    laplacian = -information
    laplacian[:, diagonal, diagonal] = total
    return laplacian + total.mean(axis=1)[:, None, None]


def _derivative_of_least_divergence(p: Floats, speed: Floats) -> Floats:
    """From ``L dθ = Σ_j dr_ij`` with the Laplacian L, and ``dp = p ∘ (dθ − Σ p dθ)``."""
    m, K = p.shape
    i, j = np.transpose(class_pairs(K))
    pairs = np.arange(len(i))
    right = np.zeros((m, K, len(i)))
    right[:, i, pairs], right[:, j, pairs] = -speed, speed
    with np.errstate(divide="ignore"):
        theta = np.log(p)
    d_theta = np.linalg.solve(_laplacian(_expected(theta)), right)
    return p[:, :, None] * (d_theta - (p[:, :, None] * d_theta).sum(axis=1, keepdims=True))
