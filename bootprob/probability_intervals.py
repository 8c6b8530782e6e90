"""Intervals of calibrated probabilities from replicate scores, by the name of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from bootprob import intervals
from bootprob.alternatives import Alternatives
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.probabilities import Calibrated
from bootprob.score_moments import ScoreMoments
from bootprob.true_logit import TrueLogit

__all__ = ["NEEDS_REPLICATES", "ProbabilityIntervals", "logit_normal", "mean_variance"]

Floats = NDArray[np.float64]

NEEDS_REPLICATES = ("percentile", "basic", "bca")
"""Methods for which the moments of the replicate scores are not enough."""

_ROUNDING = 1e-9  # of a logit whose sums were taken in another order
_CLOSEST = 1e-15  # of a probability to 0 and 1, where its logit is taken


def mean_variance(spread: Floats, jackknife: Floats) -> Floats:
    """Variance of a mean score, between two estimates that err on either side.

    The spread of single replicates is too large for their mean where they are unstable (heavy
    tails), the infinitesimal jackknife too small where there are many columns; docs/intervals.md
    has the measurements. Of the two, the jackknife counts double.

    Parameters
    ----------
    spread : ndarray
        Variance of the replicate scores.
    jackknife : ndarray
        From `intervals.jackknife_variance`.
    """
    return (spread + 2 * jackknife) / 3


@dataclass(frozen=True)
class ProbabilityIntervals:
    """What intervals of the positive class's probability are made of.

    All are made on the logit of the sigmoid, and moved from there to the logit of the probability
    that is reported: by another calibrator, or under control of a rate.

    Attributes
    ----------
    calibrated : Calibrated
    true_logit : TrueLogit
    alternatives : Alternatives
    sigmoid_replicates : ndarray, shape (B, 2)
        Slope and intercept of the sigmoid in each replicate.
    gram : ndarray, shape (B, B)
        From `intervals.counts_gram`.
    venn_abers : callable
        Fits the Venn–Abers predictor to the out-of-bag scores.
    accelerations : callable
        From replicates (m, B) to the accelerations (m,) of BCa.
    """

    calibrated: Calibrated
    true_logit: TrueLogit
    alternatives: Alternatives
    sigmoid_replicates: Floats
    gram: Floats
    venn_abers: Callable[[], VennAbers]
    accelerations: Callable[[Floats], Floats]

    def of_replicates(
        self, scores: Floats, other: Floats, probability: Floats, level: float, method: str
    ) -> Floats:
        """Intervals (m, 2) of new rows.

        Parameters
        ----------
        scores : ndarray, shape (m, B)
            Replicate scores.
        other : ndarray, shape (m, k)
            Mean scores of the alternatives.
        probability : ndarray, shape (m,)
            Reported probabilities.
        level, method
            See `BootstrapSVC.proba_interval`.
        """
        if method not in NEEDS_REPLICATES:
            moments = ScoreMoments.of(scores, self.gram)
            apart = self.model_variance(other, moments.mean)
            return self.of_moments(moments, apart, probability, level, method)
        mean = scores.mean(axis=1)
        slopes, intercepts = self.sigmoid_replicates.T
        replicates = slopes * (scores + self.calibrated.threshold) + intercepts
        center = self._sigmoid_logit(mean)
        if method == "percentile":
            bounds = intervals.percentile(replicates, level)
        elif method == "basic":
            bounds = intervals.basic(replicates, level, center)
        else:
            accelerations = self.accelerations(replicates)
            bounds = intervals.bca(replicates, level, accelerations, center)
        return self._probabilities(bounds, mean, probability)

    def of_moments(
        self,
        moments: ScoreMoments,
        apart: Floats,
        probability: Floats,
        level: float,
        method: str,
    ) -> Floats:
        """Intervals (m, 2) by a method that needs the moments of the replicate scores alone.

        Parameters
        ----------
        moments : ScoreMoments
            Of m rows.
        apart : ndarray, shape (m,)
            From `model_variance`; read for "corrected" only.
        probability, level, method
            As for `of_replicates`.
        """
        mean = moments.mean
        before = mean + self.calibrated.threshold
        if method == "venn-abers":
            pair = logit(np.clip(self.venn_abers().bounds(before), _CLOSEST, 1 - _CLOSEST))
            return self._opened(pair - self._odds_moved())
        if method == "corrected":
            center = self.true_logit.logit(before)
            half = self.true_logit.half_width(
                before, mean_variance(moments.spread, moments.jackknife), apart, level
            )
            # The correction may move far scores by more than the width: the reported probability
            # always lies within.
            reported = self._sigmoid_logit(mean)
            lower = np.minimum(center - half, reported - _ROUNDING)
            bounds = np.stack([lower, np.maximum(center + half, reported + _ROUNDING)], axis=-1)
        else:
            variance = moments.jackknife if method == "jackknife" else moments.spread
            bounds = logit_normal(before, variance, self.calibrated.sigmoid, level)
        return self._probabilities(bounds, mean, probability)

    def model_variance(self, other: Floats, mean: Floats) -> Floats:
        """Variance of the logits by `Alternatives.variance`, shape (m,).

        Parameters
        ----------
        other : ndarray, shape (m, k)
            Mean scores of the alternatives; k = 0 leaves them out.
        mean : ndarray, shape (m,)
            Mean scores of the ensemble.
        """
        if other.shape[1] == 0:
            return np.zeros(len(mean))
        return self.alternatives.variance(other, self._sigmoid_logit(mean))

    def _sigmoid_logit(self, mean: Floats) -> Floats:
        return self.calibrated.sigmoid.logit(mean + self.calibrated.threshold)

    def _probabilities(self, bounds: Floats, mean: Floats, probability: Floats) -> Floats:
        """From the sigmoid's logits to probabilities around the one that is reported."""
        if self.calibrated.calibrator is self.calibrated.sigmoid:
            return self._opened(bounds - self._odds_moved())
        reported = logit(np.clip(probability, _CLOSEST, 1 - _CLOSEST))
        return self._opened(bounds + (reported - self._sigmoid_logit(mean))[:, None])

    def _odds_moved(self) -> float:
        """By how much control of a rate lowers all logits."""
        return self.calibrated.sigmoid.slope * self.calibrated.threshold

    def _opened(self, bounds: Floats) -> Floats:
        """Probabilities of logits, of which no two bounds are the same to the last bit."""
        return np.clip(intervals.separated(expit(bounds)), 0.0, 1.0)


def logit_normal(scores: Floats, variance: Floats, sigmoid: Sigmoid, level: float) -> Floats:
    """Normal interval of the logit: spread of the replicates plus the calibrator's own.

    ``a f̄ + c ± z √(a² Var_b f_b(x) + gᵀ I⁻¹ g)`` with ``a`` and ``c`` the sigmoid's slope and
    intercept, ``f_b(x)`` the replicate scores, ``g = (f̄(x), 1)`` and ``I`` the sigmoid's Fisher
    information.

    Parameters
    ----------
    scores, variance : ndarray, shape (n,)
        Mean scores and the variance of the scores.
    sigmoid : Sigmoid
        The calibrator that turns scores into logits.
    level : float
        Confidence level.

    Returns
    -------
    ndarray, shape (n, 2)
        Bounds of the logit.
    """
    total = sigmoid.slope**2 * variance + sigmoid.logit_variance(scores)
    center = sigmoid.logit(scores)
    half = intervals.normal_quantile(level) * np.sqrt(total)
    return np.stack([center - half, center + half], axis=-1)
