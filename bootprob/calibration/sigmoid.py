"""A sigmoid on the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.calibration.given import checked_rows
from bootprob.calibration.logistic import fit_logistic, information
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats

__all__ = ["Sigmoid"]


@dataclass(frozen=True)
class Sigmoid:
    """``logit p = slope · score + intercept``, with its Fisher information.

    The form is that of J. Platt, "Probabilistic outputs for support vector machines", 1999. What
    keeps the fit finite on separable scores is Jeffreys' prior (`fit_logistic`). Platt's targets
    do it by moving every row towards the other class, however far from it, so that no probability
    is surer than ``1 / (N + 2)`` and small ones are biased; `bootprob.baselines.PlattSVC` has them.

    Attributes
    ----------
    slope, intercept : float
        Of the logit; the slope is never negative: scores that point the wrong way out of bag
        say nothing, and every row then gets the base rate.
    information : ndarray, shape (2, 2)
        Fisher information of (slope, intercept).

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import Sigmoid
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> calibrator = Sigmoid.fit(scores, positive, np.ones(6))
    >>> bool((np.diff(calibrator.predict(scores)) >= 0).all())
    True
    """

    slope: float
    intercept: float
    information: Floats

    needs_votes: ClassVar[bool] = False
    of_steps: ClassVar[bool] = False
    stored: ClassVar[dict[str, ArrayForm]] = {}  # fitted models have attributes of their own for it

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit to out-of-bag quantities.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            Mean out-of-bag scores.
        positive : ndarray of bool, shape (n,)
            Which rows are of the positive class.
        weight : ndarray, shape (n,)
            Row weights; they count as if rows were repeated.
        vote_logits : ndarray, shape (n,), optional
            Logits of the vote shares; calibrators of scores alone do without.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Sigmoid.fit(scores, positive, weight=np.ones(6))
        >>> bool(calibrator.predict(scores)[0] < 0.5)
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        slopes, intercept = fit_logistic(scores[None], positive.astype(np.float64), weight)
        return cls._with_information(float(slopes[0]), intercept, scores, weight)

    @classmethod
    def _with_information(
        cls, slope: float, intercept: float, scores: Floats, weight: Floats
    ) -> Self:
        return cls(slope, intercept, information(scores[None], slope * scores + intercept, weight))

    def centered(self, scores: Floats, weight: Floats) -> Self:
        """Return the same sigmoid for scores moved by ``intercept / slope``: 0 is one half then.

        Parameters
        ----------
        scores : ndarray, shape (n,)
            The scores it was fitted to, moved.
        weight : ndarray, shape (n,)
            Row weights.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, True, True, False, True, True])
        >>> sigmoid = Sigmoid.fit(scores, positive, np.ones(6))
        >>> moved = scores + sigmoid.intercept / sigmoid.slope
        >>> same = sigmoid.centered(moved, np.ones(6))
        >>> bool(np.allclose(same.predict(moved), sigmoid.predict(scores))), same.intercept
        (True, 0.0)
        """
        return self._with_information(self.slope, 0.0, scores, weight)

    def slope_in_errors(self) -> float:
        """Slope in standard errors (Wald); 0 where the scores leave it open.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.normal(size=200)
        >>> positive = rng.random(200) < 1 / (1 + np.exp(-2 * scores))
        >>> Sigmoid.fit(scores, positive, np.ones(200)).slope_in_errors() > 2
        True
        >>> noise = rng.normal(size=200)
        >>> Sigmoid.fit(noise, positive, np.ones(200)).slope_in_errors() > 2
        False
        """
        variance = np.linalg.pinv(self.information)[0, 0]
        return float(self.slope / np.sqrt(variance)) if variance > 0 else 0.0

    def check(self) -> None:
        """Nothing of it is stored as a calibrator's.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> Sigmoid(2.0, 0.0, np.eye(2)).check()  # says nothing, of any numbers
        """

    def logit(self, scores: Floats) -> Floats:
        """Logits of the probabilities, same shape as `scores`.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> sigmoid = Sigmoid.fit(scores, positive, weight=np.ones(6))
        >>> p = sigmoid.predict(scores)
        >>> bool(np.allclose(sigmoid.logit(scores), np.log(p / (1 - p))))
        True
        """
        return self.slope * scores + self.intercept

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
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Sigmoid.fit(scores, positive, weight=np.ones(6))
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
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = Sigmoid.fit(scores, positive, weight=np.ones(6))
        >>> bool((calibrator.derivative(scores) >= 0).all())
        True
        """
        p = self.predict(scores)
        return self.slope * p * (1 - p)

    def logit_variance(self, scores: Floats) -> Floats:
        """Variance of the logit from the fit itself: ``gᵀ I⁻¹ g`` with ``g = (score, 1)``.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import Sigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> sigmoid = Sigmoid.fit(scores, positive, weight=np.ones(6))
        >>> bool((sigmoid.logit_variance(scores) > 0).all())
        True
        """
        g = np.stack([scores, np.ones_like(scores)])
        found = np.einsum("i...,ij,j...->...", g, np.linalg.pinv(self.information), g)
        return np.maximum(found, 0.0)  # rounding leaves less of an information that is nearly none
