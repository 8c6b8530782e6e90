"""From calibrated scores to the true logit: what the noise of the scores hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from bootprob.calibration import Sigmoid
from bootprob.intervals import student_quantile
from bootprob.intervals.shares import effective_rows
from bootprob.runtime.arrays import Floats

__all__ = ["ROUNDING", "TrueLogit", "around", "mean_variance"]


_LEAST_RELIABLE = 0.5  # below it scores are mostly noise, and the correction would be too
ROUNDING = 1e-9  # of a logit whose sums were taken in another order


def around(reported: Floats, bounds: Floats) -> Floats:
    """Bounds (m, 2) that hold the reported logits (m,), which may lie beyond them."""
    lower = np.minimum(bounds[:, 0], reported - ROUNDING)
    return np.stack([lower, np.maximum(bounds[:, 1], reported + ROUNDING)], axis=-1)


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
class TrueLogit:
    """Corrects calibrated logits for the noise of the scores, for intervals of the truth.

    A calibrated probability is right on average over the rows of one score. It is not centred on
    the truth of one row: mean scores f̄ = s + e err, by some variance v, and logits of a noisy
    score are drawn towards their mean (attenuation; R. Carroll, D. Ruppert, L. Stefanski,
    C. Crainiceanu, "Measurement Error in Nonlinear Models", 2006, chapters 3 and 4). With the
    sigmoid ``l = a f̄ + c`` and the reliability ``λ = 1 − v / Var f̄``:

    - the spread of the true logit around its mean given the score is ``τ² = a² v / λ``, and the
      mean is ``s(l) = l − (1 − 2 expit l) τ² / 2`` to second order, as ``expit l`` is the mean of
      the probability, not of the logit;
    - the logit is ``μ + (s(l) − μ) / λ`` with μ the mean of s over the training rows;
    - its variance is ``(a² v(x) + gᵀ I⁻¹ g) / λ²`` with ``g = (f̄, 1)``, I the sigmoid's Fisher
      information and v(x) that of the row's own mean score.

    Attributes
    ----------
    sigmoid : Sigmoid
        Of the mean out-of-bag scores.
    reliability : float
        λ, at least one half.
    spread : float
        τ², on the logit.
    center : float
        μ.
    degrees_of_freedom : float
        Of Student's t: training rows less the two parameters of the sigmoid.
    """

    sigmoid: Sigmoid
    reliability: float
    spread: float
    center: float
    degrees_of_freedom: float

    @classmethod
    def fit(
        cls,
        sigmoid: Sigmoid,
        scores: Floats,
        variance: Floats,
        weight: Floats,
        worth: float = 1.0,
    ) -> Self:
        """Fit to out-of-bag mean scores.

        Parameters
        ----------
        sigmoid : Sigmoid
        scores : ndarray, shape (n,)
            Mean out-of-bag scores.
        variance : ndarray, shape (n,)
            Their variances; NaN where unknown.
        weight : ndarray, shape (n,)
            Row weights, positive, of mean 1 or less.
        worth : float, default 1.0
            Share of the rows that as many independent ones would be.
        """
        known = np.isfinite(variance)
        center = np.average(scores, weights=weight)
        total = np.average(np.square(scores - center), weights=weight)
        noise = np.average(variance[known], weights=weight[known]) if known.any() else 0.0
        reliability = max(1 - noise / total, _LEAST_RELIABLE) if total > 0 else 1.0
        found = cls(
            sigmoid,
            float(reliability),
            float(sigmoid.slope**2 * min(noise, total) / reliability),
            0.0,
            max(effective_rows(weight) * worth - 2, 1.0),
        )
        mean = float(np.average(found._mean_logit(sigmoid.logit(scores)), weights=weight))
        return cls(sigmoid, found.reliability, found.spread, mean, found.degrees_of_freedom)

    def parameters(self) -> Floats:
        """All but the sigmoid, in the order above, for a fitted model to store; shape (4,)."""
        return np.array([self.reliability, self.spread, self.center, self.degrees_of_freedom])

    def corrected(self, logit: Floats) -> Floats:
        """Corrected logits, of what the sigmoid makes of mean scores; same shape."""
        return self.center + (self._mean_logit(logit) - self.center) / self.reliability

    def bounds(self, scores: Floats, spread: Floats, jackknife: Floats, level: float) -> Floats:
        """Interval of the corrected logit that holds the sigmoid's, shape (m, 2).

        Parameters are those of `half_width` and `mean_variance`.
        """
        logit = self.sigmoid.logit(scores)
        center = self.corrected(logit)
        half = self.half_width(scores, mean_variance(spread, jackknife), level)
        return around(logit, np.stack([center - half, center + half], axis=-1))

    def half_width(self, scores: Floats, variance: Floats, level: float) -> Floats:
        """Half the width of the interval of the logit, same shape as `scores`.

        Parameters
        ----------
        scores, variance : ndarray
            Mean scores and their variances.
        level : float
            Confidence level.
        """
        total = self.sigmoid.slope**2 * variance + self.sigmoid.logit_variance(scores)
        quantile = student_quantile(level, self.degrees_of_freedom)
        return quantile * np.sqrt(total) / self.reliability

    def _mean_logit(self, logit: Floats) -> Floats:
        return logit - (1 - 2 * expit(logit)) * self.spread / 2
