"""Intervals of calibrated probabilities from replicate scores, by the name of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from bootprob import intervals
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.calibration.calibrated import CLOSEST, Calibrated
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.uncertainty.true_logit import TrueLogit
from bootprob.runtime.arrays import Floats

__all__ = ["NEEDS_REPLICATES", "ProbabilityIntervals", "logit_normal", "mean_variance"]


NEEDS_REPLICATES = ("percentile", "basic", "bca")
"""Methods for which the moments of the replicate scores are not enough."""

_ROUNDING = 1e-9  # of a logit whose sums were taken in another order


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
    that another calibrator reports. What the kernel's posterior says owes nothing to the sigmoid.

    Attributes
    ----------
    calibrated : Calibrated
    true_logit : TrueLogit
    kernel_weight : ndarray, shape (g,)
        Of the parts of the kernel's posterior; none for the linear kernel.
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
    kernel_weight: Floats
    sigmoid_replicates: Floats
    gram: Floats
    venn_abers: Callable[[], VennAbers]
    accelerations: Callable[[Floats], Floats]

    def of_replicates(
        self,
        scores: Floats,
        kernel_logits: Floats | None,
        probability: Floats,
        level: float,
        method: str,
    ) -> Floats:
        """Intervals (m, 2) of new rows.

        Parameters
        ----------
        scores : ndarray, shape (m, B)
            Replicate scores.
        kernel_logits : ndarray, shape (m, g, 2), or None
            From `bootprob.ensemble.uncertainty.kernel_posterior`; None for the linear kernel. Read
            for "corrected" only.
        probability : ndarray, shape (m,)
            Reported probabilities.
        level, method
            See `BootstrapSVC.proba_interval`.
        """
        if method not in NEEDS_REPLICATES:
            moments = ScoreMoments.of(scores, self.gram)
            return self.of_moments(moments, kernel_logits, probability, level, method)
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
        kernel_logits: Floats | None,
        probability: Floats,
        level: float,
        method: str,
    ) -> Floats:
        """Intervals (m, 2) by a method that needs the moments of the replicate scores alone.

        Parameters
        ----------
        moments : ScoreMoments
            Of m rows.
        kernel_logits, probability, level, method
            As for `of_replicates`.
        """
        mean = moments.mean
        before = mean + self.calibrated.threshold
        if method == "venn-abers":
            return self._opened(_logit(self.venn_abers().bounds(before)))
        if method == "corrected" and kernel_logits is not None:
            bounds = intervals.of_mixture(kernel_logits, self.kernel_weight, level)
            sigmoid = self.calibrated.calibrator is self.calibrated.sigmoid
            reported = self._sigmoid_logit(mean) if sigmoid else _logit(probability)
            return self._opened(_around(reported, bounds))
        if method == "corrected":
            variance = mean_variance(moments.spread, moments.jackknife)
            center = self.true_logit.logit(before)
            half = self.true_logit.half_width(before, variance, level)
            bounds = np.stack([center - half, center + half], axis=-1)
            bounds = _around(self._sigmoid_logit(mean), bounds)
        else:
            variance = moments.jackknife if method == "jackknife" else moments.spread
            bounds = logit_normal(before, variance, self.calibrated.sigmoid, level)
        return self._probabilities(bounds, mean, probability)

    def _sigmoid_logit(self, mean: Floats) -> Floats:
        return self.calibrated.sigmoid.logit(mean + self.calibrated.threshold)

    def _probabilities(self, bounds: Floats, mean: Floats, probability: Floats) -> Floats:
        """From the sigmoid's logits to probabilities around the one that is reported."""
        if self.calibrated.calibrator is self.calibrated.sigmoid:
            return self._opened(bounds)
        moved = _logit(probability) - self._sigmoid_logit(mean)
        return self._opened(bounds + moved[:, None])

    def _opened(self, bounds: Floats) -> Floats:
        """Probabilities of logits, of which no two bounds are the same to the last bit."""
        return np.clip(intervals.separated(expit(bounds)), 0.0, 1.0)


def _around(reported: Floats, bounds: Floats) -> Floats:
    """Bounds (m, 2) that hold the reported logits (m,), which may lie beyond them."""
    lower = np.minimum(bounds[:, 0], reported - _ROUNDING)
    return np.stack([lower, np.maximum(bounds[:, 1], reported + _ROUNDING)], axis=-1)


def _logit(probability: Floats) -> Floats:
    return logit(np.clip(probability, CLOSEST, 1 - CLOSEST))


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
