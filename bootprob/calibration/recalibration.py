"""Probabilities of a fitted model moved to what new rows say: other base rates, other logits."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logit

from bootprob.calibration.logistic_posterior import logistic_posterior
from bootprob.calibration.logits import logits_of
from bootprob.runtime.arrays import Floats

__all__ = ["Recalibration", "base_rate_of_scores"]

# How far a table may have moved, as standard deviations of the logit and of its slope. Each pair is
# tried, and counts as much as the new labels speak for it; before, each step farther counts half.
_SHIFTS = (0.0, 0.25, 0.5, 1.0, 2.0)
_SLOPES = (0.0, 0.1, 0.3)
_FARTHER = np.log(0.5)
_LEAST = 1e-9  # of a prior variance, and of divisors
_ROW, _EDGE = 0.5, 1e-9
_OUTWARD = np.array([-1.0, 1.0])  # for lower bounds and upper ones


@dataclass(frozen=True)
class Recalibration:
    """``logit p' = intercept + slope · logit p``, and how sure that is.

    Attributes
    ----------
    coefficients : ndarray, shape (2,)
        Intercept and slope; the slope is never negative.
    covariance : ndarray, shape (2, 2)
        Of them; 0 of a base rate that is known.
    replaced : ndarray, shape (2, 2)
        What of it the intervals of the model hold already: what was open before the labels.
    """

    coefficients: Floats = field(default_factory=lambda: np.array([0.0, 1.0]))
    covariance: Floats = field(default_factory=lambda: np.zeros((2, 2)))
    replaced: Floats = field(default_factory=lambda: np.zeros((2, 2)))

    @classmethod
    def of_base_rates(cls, before: float, after: float, variance: float = 0.0) -> Self:
        """Of classes that look as they did and are more or less frequent (prior shift).

        Bayes' rule: the odds of every row change as those of the base rate. M. Saerens, P. Latinne,
        C. Decaestecker, Neural Computation 14 (2002) 21–41, (2.4).

        Parameters
        ----------
        before, after : float
            Shares of the positive class, within (0, 1).
        variance : float, default 0.0
            Of the logit of `after`.
        """
        shift = float(logit(after) - logit(before))
        return cls(np.array([shift, 1.0]), np.diag([variance, 0.0]))

    @classmethod
    def of_labels(
        cls,
        logits: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        start: Recalibration,
        replaced: Floats,
    ) -> Self:
        """Learn from labelled rows, beginning with what is known before them.

        The posterior of intercept and slope under normal priors around `start`, wider by what the
        table may have moved: a grid of standard deviations of both, weighted by marginal likelihood
        (Laplace) times ½ for each step from none. Few labels leave the model as it is, or move its
        base rate alone.

        Parameters
        ----------
        logits : ndarray, shape (k,)
            Of the probabilities before any recalibration.
        positive : ndarray of bool, shape (k,)
        weight : ndarray, shape (k,)
            Positive; they count as if rows were repeated.
        start : Recalibration
            What holds before.
        replaced : ndarray, shape (2, 2)
            What of its covariance the intervals of the model hold.
        """
        # A slope turns about the mean logit, or it would move the base rate.
        moving = np.array([[1.0, np.average(logits, weights=weight)], [0.0, 1.0]])
        design = np.stack([np.ones_like(logits), logits - moving[0, 1]], axis=1)
        mean, known = moving @ start.coefficients, moving @ start.covariance @ moving.T
        found = []
        for shift, slope in product(_SHIFTS, _SLOPES):
            prior = known + np.diag(np.square([shift, slope]) + _LEAST)
            found.append(logistic_posterior(design, positive, weight, mean, prior))
        steps = [i + j for i, j in product(range(len(_SHIFTS)), range(len(_SLOPES)))]
        evidences = np.array([evidence for *_, evidence in found])
        share = np.exp(log_softmax(evidences + _FARTHER * np.array(steps)))
        modes = np.array([mode for mode, *_ in found])
        center = share @ modes
        covariance = np.einsum("k,kij->ij", share, [each for _, each, _ in found])
        covariance += np.einsum("k,ki,kj->ij", share, modes - center, modes - center)
        back = np.linalg.inv(moving)
        coefficients = back @ center
        if coefficients[1] <= 0:  # scores that point the wrong way say nothing
            coefficients = np.array([center[0], 0.0])
        return cls(coefficients, back @ covariance @ back.T, replaced)

    def logit(self, before: Floats) -> Floats:
        """Logits of logits, same shape."""
        return self.coefficients[0] + self.coefficients[1] * before

    def predict(self, probability: Floats) -> Floats:
        """Probabilities of probabilities, same shape."""
        return expit(self.logit(logits_of(probability)))

    def bounds(
        self,
        probability: Floats,
        interval: Floats,
        quantile: float,
        one_deviation: Floats | None = None,
    ) -> Floats:
        """Intervals of the probabilities, shape (m, 2).

        On the logit the distance of each bound, less what `replaced` has of it (a half at most),
        times the slope; and what is not known of the coefficients at the row: the root of the sum
        of their squares, or their sum where a bound is beyond the probability.

        Parameters
        ----------
        probability : ndarray, shape (m,)
            Before.
        interval : ndarray, shape (m, 2)
            Its interval.
        quantile : float
            Of the normal distribution, for its level.
        one_deviation : ndarray, shape (m, 2), optional
            The interval at the level of one standard deviation, of a method whose bounds do not go
            out as the quantile does: `replaced` has the same share of them at all levels.
        """
        before = logits_of(probability)
        if one_deviation is None:
            spread = (logits_of(interval) - before[:, None]) / max(quantile, _LEAST)
        else:
            spread = logits_of(one_deviation) - before[:, None]
        replaced = _variance(self.replaced, before)[:, None] / np.maximum(spread**2, _LEAST)
        own = self.coefficients[1] * np.sqrt(np.maximum(1 - replaced, 0.25))
        own = own * (logits_of(interval) - before[:, None]) * _OUTWARD
        added = quantile * np.sqrt(_variance(self.covariance, before))[:, None]
        half = np.where(own >= 0, np.hypot(own, added), own + added)
        half[(interval == 0) | (interval == 1)] = np.inf  # bounds that say nothing still do
        return expit(self.logit(before)[:, None] + half * _OUTWARD)


def base_rate_of_scores(
    logits: Floats, before: float, weight: Floats | None = None
) -> tuple[float, float]:
    """Share of the positive class among rows without labels, under prior shift.

    The likeliest share, as by the algorithm of Saerens, Latinne and Decaestecker (2002), with half
    a row more of each class, which keeps it off 0 and 1.

    Parameters
    ----------
    logits : ndarray, shape (m,)
        Of the probabilities that a model has for them.
    before : float
        Share among the rows that it was fitted to.
    weight : ndarray, shape (m,), optional
        Of the rows.

    Returns
    -------
    share : float
        Within (0, 1).
    variance : float
        Of its logit, from the observed information; infinite where scores say nothing.
    """
    weight = np.ones_like(logits) if weight is None else weight
    p = expit(logits)
    ratio = p / before - (1 - p) / (1 - before)  # of densities of a row: slope of the mixture

    def mixture(share: float) -> Floats:
        return share * p / before + (1 - share) * (1 - p) / (1 - before)

    def score(share: float) -> float:
        of_rows = float(weight @ (ratio / mixture(share)))
        return of_rows + _ROW / share - _ROW / (1 - share)

    share = float(brentq(score, _EDGE, 1 - _EDGE, xtol=1e-12))
    told = float(weight @ np.square(ratio / mixture(share)))
    if told == 0:
        return share, np.inf
    told += _ROW / share**2 + _ROW / (1 - share) ** 2
    return share, 1 / (told * (share * (1 - share)) ** 2)


def _variance(covariance: Floats, logits: Floats) -> Floats:
    """Of intercept and slope at logits (m,), shape (m,)."""
    g = np.stack([np.ones_like(logits), logits])
    return np.maximum(np.einsum("im,ij,jm->m", g, covariance, g), 0.0)
