"""Calibrators that might follow: Jeffreys' prior in place of Platt's targets.

Platt's targets move every row a little towards the other class: as if each class had one more row
of the wrong kind, spread over all scores. Where the scores hardly overlap these rows, and not the
data, set the slope, and nothing gets much more certain than 1 / (N + 2). Jeffreys' prior adds half
a row to each class for each parameter, where the leverage is, near the boundary. D. Firth,
Biometrika 80 (1993) 27–38; G. Heinze, M. Schemper, Statistics in Medicine 21 (2002) 2409–2419.
"""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["CANDIDATES", "JeffreysBoth", "JeffreysSigmoid", "fit_jeffreys"]

Floats = NDArray[np.float64]

_STEPS = 200
_LONGEST = 5.0  # of a Newton step, for columns of unit spread


def fit_jeffreys(columns: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Slopes, none negative, and intercept that maximise ``log likelihood + ½ log det I``.

    I is the Fisher information of the parameters. Finite for any scores. Of all choices of columns
    whose free slopes are positive the likeliest of the largest size is taken, as
    `bootprob.calibration.logistic.fit_logistic` does.

    Parameters
    ----------
    columns : ndarray, shape (k, n)
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        They count as if rows were repeated.

    Returns
    -------
    ndarray, shape (k + 1,)
        The intercept is the last.
    """
    center = np.average(columns, axis=1, weights=weight)[:, None]
    spread = np.sqrt(np.average(np.square(columns - center), axis=1, weights=weight))
    usable = np.flatnonzero(spread > 1e-12 * np.abs(columns).max(axis=1))
    for size in range(len(usable), -1, -1):
        fits = []
        for chosen in map(list, combinations(usable, size)):
            unit = (columns[chosen] - center[chosen]) / spread[chosen, None]
            design = np.vstack([unit, np.ones_like(weight)])
            free = _free_fit(design, positive, weight)
            if (free[:-1] >= 0).all():
                found = np.zeros(len(columns) + 1)
                found[chosen] = free[:-1] / spread[chosen]
                found[-1] = free[-1] - found[:-1] @ center[:, 0]
                fits.append((_loss(free, design, positive, weight), found))
        if fits:
            return min(fits, key=lambda fit: fit[0])[1]
    raise AssertionError("the intercept alone is always allowed")


def _free_fit(design: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Newton's method on the modified score ``Σ w (y − p) + h (½ − p)``, h the leverages."""
    parameters = np.zeros(len(design))
    mass = weight[positive].sum()
    parameters[-1] = np.log((mass + 0.5) / (weight.sum() - mass + 0.5))
    value = _penalised(parameters, design, positive, weight)
    for _ in range(_STEPS):
        p = expit(parameters @ design)
        curvature = weight * p * (1 - p)
        inverse = np.linalg.pinv((design * curvature) @ design.T, hermitian=True)
        leverage = np.einsum("in,ij,jn->n", design, inverse, design) * curvature
        step = inverse @ (design @ (weight * (positive - p) + leverage * (0.5 - p)))
        step *= min(1.0, _LONGEST / max(np.abs(step).max(), 1e-300))
        while np.abs(step).max() > 1e-10:
            tried = _penalised(parameters + step, design, positive, weight)
            if tried <= value:
                break
            step /= 2
        else:
            break
        parameters, value = parameters + step, tried
    return parameters


def _loss(parameters: Floats, design: Floats, positive: NDArray[np.bool_], weight: Floats) -> float:
    logit = parameters @ design
    return float(weight @ np.logaddexp(0.0, np.where(positive, -logit, logit)))


def _penalised(
    parameters: Floats, design: Floats, positive: NDArray[np.bool_], weight: Floats
) -> float:
    p = expit(parameters @ design)
    _, log_determinant = np.linalg.slogdet((design * (weight * p * (1 - p))) @ design.T)
    return _loss(parameters, design, positive, weight) - log_determinant / 2


class JeffreysSigmoid:
    """``logit p = a · score + c`` with Jeffreys' prior.

    Parameters
    ----------
    coefficients : ndarray
        a and c.
    """

    needs_votes: ClassVar[bool] = False

    def __init__(self, coefficients: Floats) -> None:
        self.coefficients = coefficients

    @classmethod
    def fit(
        cls, scores: Floats, positive: NDArray[np.bool_], weight: Floats, vote_logits: Floats
    ) -> Self:
        """Fit on out-of-bag quantities, as a `bootprob.calibration.Calibrator`."""
        return cls(fit_jeffreys(cls._columns(scores, vote_logits), positive, weight))

    def predict(self, scores: Floats, vote_logits: Floats) -> Floats:
        """Probabilities of the positive class."""
        columns = self._columns(scores, vote_logits)
        return expit(self.coefficients[:-1] @ columns + self.coefficients[-1])

    @staticmethod
    def _columns(scores: Floats, vote_logits: Floats) -> Floats:
        return scores[None]


class JeffreysBoth(JeffreysSigmoid):
    """``logit p = a · score + b · logit(vote share) + c`` with Jeffreys' prior."""

    needs_votes: ClassVar[bool] = True

    @staticmethod
    def _columns(scores: Floats, vote_logits: Floats) -> Floats:
        return np.stack([scores, vote_logits])


CANDIDATES = {"sigmoid, Jeffreys": JeffreysSigmoid, "sigmoid-both, Jeffreys": JeffreysBoth}
