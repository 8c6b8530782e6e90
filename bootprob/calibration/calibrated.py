"""From scores and votes of the positive class to probabilities of both classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bootprob.calibration import CALIBRATORS, Calibrator, Sigmoid, vote_logits
from bootprob.calibration.choice import exact_logits
from bootprob.runtime.arrays import Floats

__all__ = ["Calibrated", "both", "both_intervals", "shares"]


@dataclass(frozen=True)
class Calibrated:
    """What turns scores into probabilities of the positive class.

    Attributes
    ----------
    sigmoid : Sigmoid
        Fitted to the out-of-bag scores.
    calibrator : Calibrator
        Makes the probabilities; the sigmoid itself or another.
    threshold : float
        How far control of a rate has moved the scores down: what is calibrated are the scores
        before that.
    n_votes : float
        Mean number of out-of-bag votes of a training row.
    """

    sigmoid: Sigmoid
    calibrator: Calibrator
    threshold: float
    n_votes: float

    @classmethod
    def restore(
        cls,
        kind: str,
        arrays: Mapping[str, Floats],
        sigmoid: Sigmoid,
        threshold: float,
        n_votes: float,
    ) -> Calibrated:
        """Make it of what a fitted model stores; `arrays` are the calibrator's fields."""
        calibrator = sigmoid if kind == "sigmoid" else CALIBRATORS[kind](**arrays)
        return cls(sigmoid, calibrator, threshold, n_votes)

    def predict(self, scores: Floats, votes: Floats | None = None) -> Floats:
        """Probabilities of scores and vote shares, shape (m,)."""
        return self.calibrator.predict(scores + self.threshold, self._logits(votes))

    def logit(self, scores: Floats, votes: Floats | None = None) -> Floats:
        """Logits of the probabilities, shape (m,): of all digits, where there is a formula."""
        return exact_logits(self.calibrator, scores + self.threshold, self._logits(votes))

    def predict_both(self, scores: Floats, votes: Floats | None = None) -> Floats:
        """The same for both classes, shape (m, 2)."""
        return both(self.predict(scores, votes))

    def derivative(self, scores: Floats, votes: Floats | None = None) -> Floats:
        """Derivatives of the probabilities by the scores, shape (m,)."""
        return self.calibrator.derivative(scores + self.threshold, self._logits(votes))

    @property
    def decision_threshold(self) -> float:
        """Probability of score 0, where it is decided; one half where nothing has been moved."""
        if self.threshold == 0:
            return 0.5
        return float(self.sigmoid.predict(np.array(self.threshold)))

    def _logits(self, votes: Floats | None) -> Floats | None:
        return None if votes is None else vote_logits(votes, self.n_votes)


def both(positive: Floats) -> Floats:
    """Probabilities of both classes, shape (n, 2)."""
    return np.stack([1 - positive, positive], axis=1)


def shares(positive: Floats) -> Floats:
    """Vote shares of both classes; weights that sum to 1 + ε must not make more than all votes."""
    return both(np.clip(positive, 0.0, 1.0))


def both_intervals(positive: Floats) -> Floats:
    """Intervals for both classes, shape (n, 2, 2), from those of the positive one."""
    return np.stack([1 - positive[:, ::-1], positive], axis=1)
