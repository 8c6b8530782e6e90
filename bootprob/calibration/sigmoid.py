"""From scores to probabilities: calibrators fitted on out-of-bag scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

__all__ = ["Isotonic", "Sigmoid"]

Floats = NDArray[np.float64]

_CONSTANT = 1e-12  # relative spread below which scores differ by rounding alone


@dataclass(frozen=True)
class Sigmoid:
    """``logit p = slope · score + intercept``, with its Fisher information.

    J. Platt, "Probabilistic outputs for support vector machines", 1999, with the targets
    ``(N₊ + 1)/(N₊ + 2)`` and ``1/(N₋ + 2)`` that keep the fit finite on separable scores;
    numerics after H.-T. Lin, C.-J. Lin, R. Weng, Machine Learning 68 (2007) 267–276.

    Attributes
    ----------
    slope, intercept : float
        Of the logit; the slope is never negative: scores that point the wrong way out of bag
        say nothing, and every row then gets the base rate.
    information : ndarray, shape (2, 2)
        Fisher information of (slope, intercept).
    """

    slope: float
    intercept: float
    information: Floats

    @classmethod
    def fit(cls, scores: Floats, positive: NDArray[np.bool_], weight: Floats) -> Self:
        """Fit by maximum likelihood on out-of-bag scores.

        Parameters
        ----------
        scores : ndarray, shape (n,)
        positive : ndarray of bool, shape (n,)
        weight : ndarray, shape (n,)
            Row weights; they count as if rows were repeated.
        """
        targets = _platt_targets(positive, weight)
        base = np.log((weight[positive].sum() + 1) / (weight[~positive].sum() + 1))
        center = np.average(scores, weights=weight)
        spread = np.sqrt(np.average(np.square(scores - center), weights=weight))
        if spread <= _CONSTANT * np.abs(scores).max():
            return cls._with_information(0.0, base, scores, weight)
        unit = (scores - center) / spread
        design = np.stack([unit, np.ones_like(unit)])

        def loss(parameters: Floats) -> tuple[float, Floats]:
            logit = parameters @ design
            value = weight @ (np.logaddexp(0.0, logit) - targets * logit)
            return value, design @ (weight * (expit(logit) - targets))

        def hessian(parameters: Floats) -> Floats:
            p = expit(parameters @ design)
            return (design * (weight * p * (1 - p))) @ design.T + 1e-12 * np.eye(2)

        start = np.array([0.0, base])
        slope, intercept = minimize(
            loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-8}
        ).x
        if slope < 0:
            slope, intercept = np.float64(0.0), base
        slope, intercept = slope / spread, intercept - slope * center / spread
        return cls._with_information(slope, intercept, scores, weight)

    @classmethod
    def _with_information(
        cls, slope: float, intercept: float, scores: Floats, weight: Floats
    ) -> Self:
        p = expit(slope * scores + intercept)
        design = np.stack([scores, np.ones_like(scores)])
        return cls(float(slope), float(intercept), (design * (weight * p * (1 - p))) @ design.T)

    def centered(self, scores: Floats, weight: Floats) -> Self:
        """Return the same sigmoid for scores moved by ``intercept / slope``: 0 is one half then.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            The scores it was fitted to, moved.
        weight : ndarray, shape (n,)
            Row weights.
        """
        return self._with_information(self.slope, 0.0, scores, weight)

    def predict(self, scores: Floats) -> Floats:
        """Probabilities of the positive class, same shape as `scores`."""
        return expit(self.slope * scores + self.intercept)

    def logit_variance(self, scores: Floats) -> Floats:
        """Variance of the logit from the fit itself: ``gᵀ I⁻¹ g`` with ``g = (score, 1)``."""
        g = np.stack([scores, np.ones_like(scores)])
        return np.einsum("i...,ij,j...->...", g, np.linalg.pinv(self.information), g)


@dataclass(frozen=True)
class Isotonic:
    """Non-decreasing piecewise linear calibration (scikit-learn's IsotonicRegression).

    Fitted to Platt's targets, so that no probability is 0 or 1: no finite sample shows that.

    Attributes
    ----------
    scores, probabilities : ndarray, shape (k,)
        The knots; constant beyond the first and the last.
    """

    scores: Floats
    probabilities: Floats

    @classmethod
    def fit(cls, scores: Floats, positive: NDArray[np.bool_], weight: Floats) -> Self:
        """Fit on out-of-bag scores; parameters as for `Sigmoid.fit`."""
        regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        regression.fit(scores, _platt_targets(positive, weight), sample_weight=weight)
        return cls(regression.X_thresholds_, regression.y_thresholds_)

    def predict(self, scores: Floats) -> Floats:
        """Probabilities of the positive class, same shape as `scores`."""
        return np.interp(scores, self.scores, self.probabilities)


def _platt_targets(positive: NDArray[np.bool_], weight: Floats) -> Floats:
    mass_positive, mass_negative = weight[positive].sum(), weight[~positive].sum()
    return np.where(positive, (mass_positive + 1) / (mass_positive + 2), 1 / (mass_negative + 2))
