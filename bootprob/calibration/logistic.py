"""Logistic regression on a few out-of-bag quantities, with slopes that are never negative."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit

from bootprob.runtime.arrays import Floats

__all__ = [
    "STEEPEST",
    "check_coefficients",
    "fit_each",
    "fit_logistic",
    "information",
    "platt_targets",
]

STEEPEST = 1e30
"""Slope of a logit; the scores that it is of have a spread near 1."""


_CONSTANT = 1e-12  # relative spread below which values differ by rounding alone
_LEAST_MASS = 1e-3  # rows of a class, by weight, below which they say nothing of slopes
_NONE = 1e-290  # information below which there is none
_SAME = 1e-9  # least eigenvalue of a correlation matrix whose columns differ by more than that


def platt_targets(positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Platt's targets ``(N₊ + 1)/(N₊ + 2)`` and ``1/(N₋ + 2)``, shape (n,).

    They keep every fit finite: no finite sample shows that a probability is 0 or 1.
    """
    positive = np.asarray(positive, dtype=bool)  # 0 and 1 would be taken for places
    mass_positive, mass_negative = weight[positive].sum(), weight[~positive].sum()
    return np.where(positive, (mass_positive + 1) / (mass_positive + 2), 1 / (mass_negative + 2))


def fit_logistic(
    columns: Floats, targets: Floats, weight: Floats, *, jeffreys: bool = True
) -> tuple[Floats, float]:
    """Fit ``logit p = slopes · columns + intercept`` with ``slopes ≥ 0``.

    Maximises the log-likelihood plus Jeffreys' prior, ``½ log det I`` with I the Fisher
    information of the parameters. It takes the first-order bias out of the logits, and keeps them
    finite where the columns separate the classes. D. Firth, Biometrika 80 (1993) 27–38;
    G. Heinze, M. Schemper, Statistics in Medicine 21 (2002) 2409–2419.

    Of the largest choices of columns whose unconstrained slopes are positive the likeliest is
    taken; without the prior that is the constrained optimum. Columns without spread get slope 0,
    and of columns that say the same all but one; all do where a class weighs less than a thousandth
    of a row, as with class weights of 1 to 10⁷.

    Parameters
    ----------
    columns : ndarray, shape (k, n)
        A few of them: all subsets are tried.
    targets : ndarray, shape (n,)
        Labels 0 and 1, or in between.
    weight : ndarray, shape (n,)
        Row weights; they count as if rows were repeated.
    jeffreys : bool, default=True
        Whether to add the prior. Without it targets must not be 0 or 1 throughout.

    Returns
    -------
    slopes : ndarray, shape (k,)
    intercept : float
    """
    mass = weight @ targets
    if min(mass, weight.sum() - mass) < _LEAST_MASS:
        return np.zeros(len(columns)), _base(targets, weight, jeffreys=jeffreys)
    center, deviation, spread = _standardised(columns, weight)
    usable = np.flatnonzero(spread > _CONSTANT * np.abs(columns).max(axis=1))
    for size in range(len(usable), 0, -1):
        fits = []
        for chosen in map(list, combinations(usable, size)):
            unit = deviation[chosen] / spread[chosen, None]
            if np.linalg.eigvalsh(unit @ (unit * weight).T)[0] < _SAME * weight.sum():
                continue
            fits.append((*_free_fit(unit, targets, weight, jeffreys=jeffreys), chosen))
        allowed = [fit for fit in fits if (fit[1][:-1] >= 0).all()]
        if allowed:
            _, parameters, chosen = min(allowed, key=lambda fit: fit[0])
            slopes = np.zeros(len(columns))
            slopes[chosen] = parameters[:-1] / spread[chosen]
            return slopes, float(parameters[-1] - slopes @ center)
    return np.zeros(len(columns)), _base(targets, weight, jeffreys=jeffreys)


def fit_each(columns: Floats, targets: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """`fit_logistic` for each column by itself: slopes and intercepts, shape (k,).

    All in one search, whose loss is the sum of theirs: it takes about as long as for one column.
    """
    slopes = np.zeros(len(columns))
    intercepts = np.full(len(columns), _base(targets, weight, jeffreys=True))
    mass = weight @ targets
    if min(mass, weight.sum() - mass) < _LEAST_MASS:
        return slopes, intercepts
    center, deviation, spread = _standardised(columns, weight)
    usable = np.flatnonzero(spread > _CONSTANT * np.abs(columns).max(axis=1, initial=0.0))
    if not len(usable):
        return slopes, intercepts
    unit = deviation[usable] / spread[usable, None]

    def fitted(parameters: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        slope, intercept = parameters.reshape(2, len(unit), 1)
        logit = slope * unit + intercept
        p = expit(logit)
        spread = weight * p * (1 - p)
        return logit, p, spread, spread.sum(axis=1, keepdims=True)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logit, p, spread, total = fitted(parameters)
        apart = unit - (spread * unit).sum(axis=1, keepdims=True) / np.maximum(total, _NONE)
        about = (spread * np.square(apart)).sum(axis=1, keepdims=True)
        value = ((np.logaddexp(0.0, logit) - targets * logit) @ weight).sum()
        with np.errstate(divide="ignore"):  # far out, where no row says anything
            value -= np.log(total * about).sum() / 2
        leverage = 1 / np.maximum(total, _NONE) + np.square(apart) / np.maximum(about, _NONE)
        gradient = weight * (p - targets) + spread * leverage * (p - 0.5)
        return float(value), np.concatenate([(gradient * unit).sum(axis=1), gradient.sum(axis=1)])

    def hessian(parameters: Floats) -> Floats:
        _, _, spread, total = fitted(parameters)
        of_slope, of_both = (spread * np.square(unit)).sum(axis=1), (spread * unit).sum(axis=1)
        matrix = np.block([[np.diag(of_slope), np.diag(of_both)],
                           [np.diag(of_both), np.diag(total[:, 0])]])  # fmt: skip
        return matrix + 1e-12 * np.eye(len(matrix))

    found = _minimum(loss, hessian, np.repeat([0.0, intercepts[0]], len(unit)))
    slope, intercept = found.x.reshape(2, len(unit))
    rising = usable[slope >= 0]
    slopes[rising] = slope[slope >= 0] / spread[rising]
    intercepts[rising] = intercept[slope >= 0] - slopes[rising] * center[rising]
    return slopes, intercepts


def information(columns: Floats, logit: Floats, weight: Floats) -> Floats:
    """Fisher information of (slopes, intercept), shape (k + 1, k + 1)."""
    p = expit(logit)
    design = np.vstack([columns, np.ones_like(logit)])
    return (design * (weight * p * (1 - p))) @ design.T


def _free_fit(
    unit: Floats, targets: Floats, weight: Floats, *, jeffreys: bool
) -> tuple[float, Floats]:
    """Loss and parameters, intercept last, without constraint."""
    design = np.vstack([unit, np.ones_like(targets)])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logit = parameters @ design
        p = expit(logit)
        value = float(weight @ (np.logaddexp(0.0, logit) - targets * logit))
        gradient = weight * (p - targets)
        if jeffreys:
            spread = weight * p * (1 - p)
            matrix = (design * spread) @ design.T
            value -= float(np.linalg.slogdet(matrix)[1]) / 2
            solved = np.linalg.pinv(matrix, hermitian=True) @ design
            gradient += spread * (design * solved).sum(axis=0) * (p - 0.5)  # spread: leverages
        return value, design @ gradient

    def hessian(parameters: Floats) -> Floats:
        # Of the likelihood alone: the prior's is of smaller order.
        p = expit(parameters @ design)
        return (design * (weight * p * (1 - p))) @ design.T + 1e-12 * np.eye(len(design))

    start = np.zeros(len(design))
    start[-1] = _base(targets, weight, jeffreys=jeffreys)
    found = _minimum(loss, hessian, start)
    return float(found.fun), found.x


def _minimum(
    loss: Callable[[Floats], tuple[float, Floats]],
    hessian: Callable[[Floats], Floats],
    start: Floats,
) -> OptimizeResult:
    """Of a loss with its gradient."""
    return minimize(
        loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-8}
    )


def _standardised(columns: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Means (k,), deviations from them (k, n), and standard deviations (k,)."""
    center = np.average(columns, axis=1, weights=weight)
    deviation = columns - center[:, None]
    return center, deviation, np.sqrt(np.average(np.square(deviation), axis=1, weights=weight))


def _base(targets: Floats, weight: Floats, *, jeffreys: bool) -> float:
    """Logit of the base rate; with the prior of an intercept alone, half a row more per class."""
    mass, half = weight @ targets, 0.5 if jeffreys else 0.0
    return float(np.log((mass + half) / (weight.sum() - mass + half)))


def check_coefficients(name: str, numbers: Floats, n_slopes: int = 0) -> None:
    """Check those of a file; a ValueError says what does not make sense.

    Parameters
    ----------
    name : str
    numbers : ndarray
    n_slopes : int, default 0
        The first ones, which are at least 0.
    """
    if not np.abs(numbers).max() <= STEEPEST:
        raise ValueError(f"{name} has numbers that are too large")
    if not (numbers[:n_slopes] >= 0).all():
        raise ValueError(f"{name} fall")
