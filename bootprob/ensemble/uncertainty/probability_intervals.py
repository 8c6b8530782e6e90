"""Intervals of calibrated probabilities from replicate scores, by the name of the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bootprob import intervals
from bootprob.calibration import Sigmoid, VennAbers
from bootprob.calibration.calibrated import Calibrated
from bootprob.calibration.logits import logits_of
from bootprob.ensemble.scoring.moments import ScoreMoments
from bootprob.ensemble.uncertainty.true_logit import TrueLogit, around
from bootprob.exceptions import DataError
from bootprob.intervals.levels import listed
from bootprob.runtime.arrays import Floats

__all__ = [
    "METHODS",
    "NEEDS_REPLICATES",
    "OF_PROBABILITIES",
    "ProbabilityIntervals",
    "check_method",
    "logit_normal",
]


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
        reported: Floats,
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
        reported : ndarray, shape (m,)
            Logits of the reported probabilities, from `Calibrated.logit`.
        level, method
            See `BootstrapSVC.proba_interval`.
        """
        made = METHODS[method].of_replicates
        if made is None:
            moments = ScoreMoments.of(scores, self.gram)
            return self.of_moments(moments, kernel_logits, reported, level, method)
        mean = scores.mean(axis=1)
        bounds = made(self, self.replicate_logits(scores), self._sigmoid_logit(mean), level)
        return self._probabilities(bounds, mean, reported)

    def replicate_logits(self, scores: Floats) -> Floats:
        """Logits (m, B) of replicate scores, each by the sigmoid of its replicate."""
        slopes, intercepts = self.sigmoid_replicates.T
        return slopes * (scores + self.calibrated.threshold) + intercepts

    def replicate_probabilities(self, scores: Floats, reported: Floats) -> Floats:
        """Probabilities (m, B) of replicate scores, beside reported ones of these logits (m,)."""
        moved = self._moved(self.replicate_logits(scores), scores.mean(axis=1), reported)
        return expit(moved)

    def of_moments(
        self,
        moments: ScoreMoments,
        kernel_logits: Floats | None,
        reported: Floats,
        level: float,
        method: str,
    ) -> Floats:
        """Intervals (m, 2) by a method that needs the moments of the replicate scores alone.

        Parameters
        ----------
        moments : ScoreMoments
            Of m rows.
        kernel_logits, reported, level, method
            As for `of_replicates`.
        """
        made = METHODS[method].of_moments
        assert made is not None
        return made(self, moments, kernel_logits, reported, level)

    def _corrected(
        self, moments: ScoreMoments, kernel_logits: Floats | None, reported: Floats, level: float
    ) -> Floats:
        mean = moments.mean
        if kernel_logits is not None:
            bounds = intervals.of_mixture(kernel_logits, self.kernel_weight, level)
            return self._opened(around(reported, bounds))
        before = mean + self.calibrated.threshold
        bounds = self.true_logit.bounds(before, moments.spread, moments.jackknife, level)
        moved = self._moved(bounds, mean, reported)
        # What another calibrator says errs in ways that no bound knows: both are held.
        lower, upper = np.minimum(bounds, moved)[:, 0], np.maximum(bounds, moved)[:, 1]
        return self._opened(np.stack([lower, upper], axis=-1))

    def _logit_normal(
        self, mean: Floats, variance: Floats, reported: Floats, level: float
    ) -> Floats:
        before = mean + self.calibrated.threshold
        bounds = logit_normal(before, variance, self.calibrated.sigmoid, level)
        return self._probabilities(bounds, mean, reported)

    def _venn_abers(self, moments: ScoreMoments) -> Floats:
        bounds = self.venn_abers().bounds(moments.mean + self.calibrated.threshold)
        return self._opened(logits_of(bounds))

    def _sigmoid_logit(self, mean: Floats) -> Floats:
        return self.calibrated.sigmoid.logit(mean + self.calibrated.threshold)

    def _probabilities(self, bounds: Floats, mean: Floats, reported: Floats) -> Floats:
        """From the sigmoid's logits to probabilities around the one that is reported."""
        return self._opened(self._moved(bounds, mean, reported))

    def _moved(self, logits: Floats, mean: Floats, reported: Floats) -> Floats:
        """The sigmoid's logits (m, k), moved to the logit of the probability reported."""
        if self.calibrated.calibrator is self.calibrated.sigmoid:
            return logits
        return logits + (reported - self._sigmoid_logit(mean))[:, None]

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


@dataclass(frozen=True)
class IntervalMethod:
    """A method of intervals, made of the moments of the replicate scores or of themselves.

    Attributes
    ----------
    doc : str
        What the documentation of `BootstrapSVC` says of it.
    of_moments : callable, optional
        Takes `ProbabilityIntervals`, moments, kernel logits, reported logits and level; gives
        probabilities.
    of_replicates : callable, optional
        Takes `ProbabilityIntervals`, the logits of the replicates (m, B), the logit (m,) and
        level; gives logits.
    of_confidence : bool
        Whether the level moves it: others say nothing of errors, and doubts of the model do not
        concern them.
    """

    doc: str
    of_moments: Callable[..., Floats] | None = None
    of_replicates: Callable[..., Floats] | None = None
    of_confidence: bool = True


METHODS = {
    "corrected": IntervalMethod(
        """meant to contain the true probability ``P(y | x)`` with the stated confidence, also of
        rows where it is small or large. ``kernel="auto"``: the posterior of straight and curved
        logits (`bootprob.ensemble.uncertainty.composite_posterior`). Linear kernels: normal on the
        logit, corrected for what the noise of the scores does to logits
        (`bootprob.ensemble.uncertainty.true_logit`). RBF and other curved kernels, which smooth
        more than resampling shows: the posterior of a Gaussian process of the same kernel
        (`bootprob.ensemble.uncertainty.kernel_posterior`).""",
        of_moments=ProbabilityIntervals._corrected,
    ),
    "normal": IntervalMethod(
        """normal on the logit around `predict_proba`, with the variance of the replicates plus
        that of the calibrator.""",
        of_moments=lambda made, moments, _, reported, level: made._logit_normal(
            moments.mean, moments.spread, reported, level
        ),
    ),
    "jackknife": IntervalMethod(
        """the same with the infinitesimal jackknife's variance of the mean, which knows nothing of
        the posterior's share with ``kernel="auto"``.""",
        of_moments=lambda made, moments, _, reported, level: made._logit_normal(
            moments.mean, moments.jackknife, reported, level
        ),
    ),
    "percentile": IntervalMethod(
        """percentiles of the calibrated replicates, on the logit; score and calibrator are
        resampled together.""",
        of_replicates=lambda _, replicates, center, level: intervals.percentile(replicates, level),
    ),
    "basic": IntervalMethod(
        "the same, reflected at `predict_proba`.",
        of_replicates=lambda _, replicates, center, level: intervals.basic(
            replicates, level, center
        ),
    ),
    "bca": IntervalMethod(
        "the same, moved for bias and skewness.",
        of_replicates=lambda made, replicates, center, level: intervals.bca(
            replicates, level, made.accelerations(replicates), center
        ),
    ),
    "venn-abers": IntervalMethod(
        """from ``p₀`` to ``p₁``, whatever the level. One of them is calibrated; it is no confidence
        interval.""",
        of_moments=lambda made, moments, *_: made._venn_abers(moments),
        of_confidence=False,
    ),
}
OF_PROBABILITIES = tuple(METHODS)
NEEDS_REPLICATES = tuple(name for name, each in METHODS.items() if each.of_replicates)
"""Methods for which the moments of the replicate scores are not enough."""


def check_method(method: str, *, calibrated: bool) -> str:
    """Check the name of an interval for probabilities.

    Parameters
    ----------
    method : str
    calibrated : bool
        Whether the probabilities are calibrated; intervals of such need that.
    """
    known = OF_PROBABILITIES + intervals.OF_VOTES
    if method not in known:
        raise DataError(f"method is {method!r}; give {listed(known)}.")
    if method in OF_PROBABILITIES and not calibrated:
        raise DataError(
            f"method={method!r} describes calibrated probabilities, and this model has "
            "calibration=None; use 'wald' or 'wilson', or fit with calibration='sigmoid'."
        )
    return method
