"""Sigmoids on the logit of the vote share, alone and beside the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bootprob.calibration.given import checked_rows, given_votes
from bootprob.calibration.logistic import check_coefficients, fit_logistic
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats

__all__ = ["ScoreAndVoteSigmoid", "VoteSigmoid", "vote_logits"]


def vote_logits(share: Floats, n_votes: float) -> Floats:
    """Logit of a vote share with half a vote more on either side, which keeps it finite.

    Parameters
    ----------
    share : ndarray
        Share of the votes for the positive class, thesis (3.4).
    n_votes : float
        Votes that the halves are added to. One number for all rows: how often a row happens to
        be out of bag must not move it.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import vote_logits
    >>> vote_logits(np.array([0.0, 0.5, 1.0]), n_votes=100).round(2)
    array([-5.3,  0. ,  5.3])
    """
    half = 0.5 / n_votes
    share = np.clip(share, 0.0, 1.0)  # weights that sum to 1 + ε
    return np.log((share + half) / (1 - share + half))


@dataclass(frozen=True)
class ScoreAndVoteSigmoid:
    """``logit p = a · score + b · logit(vote share) + c`` with a, b ≥ 0.

    Attributes
    ----------
    coefficients : ndarray, shape (3,)
        a, b and c.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import ScoreAndVoteSigmoid
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
    >>> calibrator = ScoreAndVoteSigmoid.fit(scores, positive, np.ones(6), votes)
    >>> calibrator.predict(scores, votes).round(1)
    array([0.1, 0.3, 0.5, 0.5, 0.8, 0.9])
    """

    coefficients: Floats

    needs_votes: ClassVar[bool] = True
    of_steps: ClassVar[bool] = False
    stored: ClassVar[dict[str, ArrayForm]] = {"coefficients": ArrayForm("f", ("3",), optional=True)}

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit on out-of-bag scores and votes.

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
        >>> from bootprob.calibration import ScoreAndVoteSigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
        >>> calibrator = ScoreAndVoteSigmoid.fit(scores, positive, np.ones(6), votes)
        >>> bool((calibrator.coefficients[:2] >= 0).all())
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        columns = np.stack([scores, given_votes(vote_logits)])
        slopes, c = fit_logistic(columns, positive.astype(np.float64), weight)
        return cls(np.array([*slopes, c]))

    def check(self) -> None:
        """Check numbers from a file; a ValueError says what does not make sense.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import ScoreAndVoteSigmoid
        >>> ScoreAndVoteSigmoid(np.array([1.0, 0.5, 0.0])).check()  # a, b and c make sense
        >>> ScoreAndVoteSigmoid(np.array([-1.0, 0.5, 0.0])).check()
        Traceback (most recent call last):
            ...
        ValueError: coefficients fall
        """
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
        >>> from bootprob.calibration import ScoreAndVoteSigmoid
        >>> calibrator = ScoreAndVoteSigmoid(np.array([2.0, 0.5, 1.0]))
        >>> calibrator.logit(np.array([-100.0]), np.array([-4.0]))
        array([-201.])
        """
        a, b, c = self.coefficients
        return a * scores + b * given_votes(vote_logits) + c

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
        >>> from bootprob.calibration import ScoreAndVoteSigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
        >>> calibrator = ScoreAndVoteSigmoid.fit(scores, positive, np.ones(6), votes)
        >>> calibrator.predict(scores, votes).shape
        (6,)
        """
        return expit(self.logit(scores, vote_logits))

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivative of the probability by the score; votes are steps, of derivative 0.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import ScoreAndVoteSigmoid
        >>> calibrator = ScoreAndVoteSigmoid(np.array([2.0, 0.5, 0.0]))
        >>> calibrator.derivative(np.array([0.0]), np.array([0.0]))  # a · p · (1 − p)
        array([0.5])
        """
        p = self.predict(scores, vote_logits)
        return self.coefficients[0] * p * (1 - p)


class VoteSigmoid(ScoreAndVoteSigmoid):
    """``logit p = b · logit(vote share) + c`` with b ≥ 0: the first coefficient is 0.

    Attributes
    ----------
    coefficients : ndarray, shape (3,)
        0, b and c.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import VoteSigmoid
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
    >>> float(VoteSigmoid.fit(scores, positive, np.ones(6), votes).coefficients[0])
    0.0
    """

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit on out-of-bag votes.

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
        >>> from bootprob.calibration import VoteSigmoid
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> votes = np.array([-3.0, -1.0, 0.0, 0.2, 2.0, 3.0])  # logits of vote shares
        >>> calibrator = VoteSigmoid.fit(scores, positive, np.ones(6), votes)
        >>> bool((calibrator.coefficients[:2] >= 0).all())
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        (b,), c = fit_logistic(given_votes(vote_logits)[None], positive.astype(np.float64), weight)
        return cls(np.array([0.0, b, c]))
