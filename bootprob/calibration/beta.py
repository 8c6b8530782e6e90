"""Beta calibration of the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.calibration.given import checked_rows
from bootprob.calibration.logistic import check_coefficients, fit_logistic, platt_targets
from bootprob.calibration.sigmoid import Sigmoid
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats

__all__ = ["Beta"]


@dataclass(frozen=True)
class Beta:
    """``logit p = a ln s − b ln(1 − s) + c`` with the probability s of a sigmoid, a, b ≥ 0.

    M. Kull, T. Silva Filho, P. Flach, "Beta calibration", AISTATS 2017. With a = b it is the
    sigmoid again; otherwise the logit is steeper on one side than on the other, and may be very
    steep where only one class is: Platt's targets keep that in bounds.

    Attributes
    ----------
    sigmoid : ndarray, shape (2,)
        Slope and intercept of the sigmoid that makes s.
    coefficients : ndarray, shape (3,)
        a, b and c.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import Beta
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> calibrator = Beta.fit(scores, positive, np.ones(6))
    >>> bool((np.diff(calibrator.predict(scores)) >= 0).all())
    True
    """

    sigmoid: Floats
    coefficients: Floats

    needs_votes: ClassVar[bool] = False
    of_steps: ClassVar[bool] = False
    stored: ClassVar[dict[str, ArrayForm]] = {
        "sigmoid": ArrayForm("f", ("2",), optional=True),
        "coefficients": ArrayForm("f", ("3",), optional=True),
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
        >>> from bootprob.calibration import Beta
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Beta.fit(scores, positive, weight=np.ones(6))
        >>> bool(calibrator.predict(scores)[0] < 0.5)
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        sigmoid = Sigmoid.fit(scores, positive, weight)
        parameters = np.array([sigmoid.slope, sigmoid.intercept])
        slopes, c = fit_logistic(
            _log_odds_parts(parameters, scores),
            platt_targets(positive, weight),
            weight,
            jeffreys=False,
        )
        return cls(parameters, np.array([*slopes, c]))

    def check(self) -> None:
        """Check numbers from a file; a ValueError says what does not make sense.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Beta
        >>> calibrator = Beta(np.array([1.0, 0.0]), np.array([1.0, -1.0, 0.0]))
        >>> calibrator.check()
        Traceback (most recent call last):
            ...
        ValueError: coefficients fall
        """
        check_coefficients("sigmoid", self.sigmoid)
        check_coefficients("coefficients", self.coefficients, n_slopes=2)

    def logit(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Logits of the probabilities, exact where those round to 0 or 1; same shape as `scores`.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Beta
        >>> calibrator = Beta(np.array([1.0, 0.0]), np.array([1.0, 2.0, 0.0]))
        >>> calibrator.logit(np.array([-1000.0, 1000.0]))
        array([-1000.,  2000.])
        """
        parts = _log_odds_parts(self.sigmoid, scores)
        return np.tensordot(self.coefficients[:2], parts, axes=1) + self.coefficients[2]

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
        >>> from bootprob.calibration import Beta
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Beta.fit(scores, positive, weight=np.ones(6))
        >>> calibrator.predict(np.array([-1.0, 0.0, 1.0])).shape
        (3,)
        """
        return expit(self.logit(scores))

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivative of the probability by the score, same shape as `scores`.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Beta
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Beta.fit(scores, positive, weight=np.ones(6))
        >>> bool((calibrator.derivative(scores) >= 0).all())
        True
        """
        p, s = self.predict(scores), expit(self.sigmoid[0] * scores + self.sigmoid[1])
        a, b, _ = self.coefficients
        return (a * (1 - s) + b * s) * self.sigmoid[0] * p * (1 - p)


def _log_odds_parts(sigmoid: Floats, scores: Floats) -> Floats:
    """``ln s`` and ``−ln(1 − s)``, shape (2, ...), exact where s rounds to 0 or 1."""
    logit = sigmoid[0] * scores + sigmoid[1]
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        return np.stack([-np.logaddexp(0.0, -logit), np.logaddexp(0.0, logit)])
