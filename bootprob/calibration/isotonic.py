"""Isotonic calibration of the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from bootprob.calibration.given import checked_rows
from bootprob.calibration.logistic import platt_targets
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats

__all__ = ["Isotonic"]


@dataclass(frozen=True)
class Isotonic:
    """Non-decreasing piecewise linear calibration (scikit-learn's IsotonicRegression).

    Fitted to Platt's targets, so that no probability is 0 or 1: no finite sample shows that.

    Attributes
    ----------
    scores, probabilities : ndarray, shape (k,)
        The knots; constant beyond the first and the last.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import Isotonic
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> calibrator = Isotonic.fit(scores, positive, np.ones(6))
    >>> bool((np.diff(calibrator.predict(scores)) >= 0).all())
    True
    """

    scores: Floats
    probabilities: Floats

    needs_votes: ClassVar[bool] = False
    of_steps: ClassVar[bool] = True
    stored: ClassVar[dict[str, ArrayForm]] = {
        "scores": ArrayForm("f", ("m",), optional=True),
        "probabilities": ArrayForm("f", ("m",), "a share", optional=True),
    }

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit on out-of-bag scores.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            Out-of-bag mean scores.
        positive : ndarray of bool, shape (n,)
            Which rows are of the positive class.
        weight : ndarray, shape (n,)
            Row weights, positive, of mean 1 or less.
        vote_logits : ndarray, shape (n,), optional
            Logits of out-of-bag vote shares, where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Isotonic
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Isotonic.fit(scores, positive, weight=np.ones(6))
        >>> bool(calibrator.predict(scores)[0] < 0.5)
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        regression.fit(scores, platt_targets(positive, weight), sample_weight=weight)
        return cls(regression.X_thresholds_, regression.y_thresholds_)

    def check(self) -> None:
        """Check numbers from a file; a ValueError says what does not make sense.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Isotonic
        >>> Isotonic(np.array([0.0, 1.0]), np.array([0.9, 0.1])).check()
        Traceback (most recent call last):
            ...
        ValueError: probabilities decrease
        """
        if not (len(self.scores) and (np.diff(self.scores) > 0).all()):
            raise ValueError("scores do not increase")
        if not (np.diff(self.probabilities) >= 0).all():
            raise ValueError("probabilities decrease")

    def predict(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Probabilities of the positive class, same shape as `scores`.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Isotonic
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Isotonic.fit(scores, positive, weight=np.ones(6))
        >>> calibrator.predict(np.array([-1.0, 0.0, 1.0])).shape
        (3,)
        """
        return np.interp(scores, self.scores, self.probabilities)

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivative of the probability by the score; 0 on the flat parts.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Isotonic
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Isotonic.fit(scores, positive, weight=np.ones(6))
        >>> bool((calibrator.derivative(scores) >= 0).all())
        True
        """
        knots = self.scores
        if len(knots) < 2:
            return np.zeros_like(scores)
        piece = np.clip(np.searchsorted(knots, scores, side="right") - 1, 0, len(knots) - 2)
        inside = (scores >= knots[0]) & (scores < knots[-1])
        return np.where(inside, (np.diff(self.probabilities) / np.diff(knots))[piece], 0.0)
