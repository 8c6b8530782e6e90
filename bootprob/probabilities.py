"""From scores of the positive class to probabilities and intervals of both classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob import intervals
from bootprob.calibration import Isotonic, Sigmoid

__all__ = ["Calibrated", "both", "both_intervals", "shares"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibrated:
    """What turns scores into probabilities of the positive class.

    Attributes
    ----------
    sigmoid : Sigmoid
        Fitted to the out-of-bag scores; its uncertainty enters the intervals.
    isotonic : Isotonic or None
        Makes the probabilities in place of the sigmoid.
    threshold : float
        How far control over a rate has moved the scores down: what is calibrated are the scores
        before that. One half then falls on the controlled decision.
    """

    sigmoid: Sigmoid
    isotonic: Isotonic | None
    threshold: float = 0.0

    def predict(self, scores: Floats) -> Floats:
        """Probabilities of scores, shape (m,)."""
        calibrator = self.sigmoid if self.isotonic is None else self.isotonic
        return calibrator.predict(scores)

    def interval(self, scores: Floats, level: float, method: str) -> Floats:
        """Intervals (m, 2) from replicate scores (m, B), by "normal" or "replicate"."""
        if method == "replicate":  # calibrators are monotone: percentiles first
            return self.predict(intervals.percentile(scores, level))
        mean, variance = scores.mean(axis=1), scores.var(axis=1, ddof=1)
        return self.normal_interval(self.predict(mean), mean, variance, level)

    def normal_interval(
        self, probability: Floats, score: Floats, variance: Floats, level: float
    ) -> Floats:
        """Intervals (n, 2), normal on the logit, around probabilities made of these scores."""
        before = score + self.threshold
        return intervals.logit_normal(probability, before, variance, self.sigmoid, level)


def both(positive: Floats) -> Floats:
    """Probabilities of both classes, shape (n, 2)."""
    return np.stack([1 - positive, positive], axis=1)


def shares(positive: Floats) -> Floats:
    """Vote shares of both classes; weights that sum to 1 + ε must not make more than all votes."""
    return both(np.clip(positive, 0.0, 1.0))


def both_intervals(positive: Floats) -> Floats:
    """Intervals for both classes, shape (n, 2, 2), from those of the positive one."""
    return np.stack([1 - positive[:, ::-1], positive], axis=1)
