"""Venn–Abers calibration of the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.given import checked_rows
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats

__all__ = ["VennAbers"]

_ROUNDING = 1e-6  # of scores, relative; sums in float32 are off by some 1e-7


@dataclass(frozen=True)
class VennAbers:
    """Two probabilities for each score, one of which is calibrated whatever the distribution.

    A new row joins the calibration rows once as a negative and once as a positive; the isotonic
    regressions of both give ``p₀`` and ``p₁ > p₀`` at its score. V. Vovk, I. Petej, "Venn–Abers
    predictors", UAI 2014; inductive, as in V. Vovk, I. Petej, V. Fedorova, NIPS 2015. The
    guarantee is for scores of a fixed rule; out-of-bag scores stand in for those here.

    Attributes
    ----------
    scores : ndarray, shape (k,)
        Distinct calibration scores, increasing.
    lower, upper : ndarray, shape (2 k + 1,)
        ``p₀`` and ``p₁`` below the first score, at it, between it and the second, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.calibration import VennAbers
    >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> positive = np.array([False, False, True, False, True, True])
    >>> calibrator = VennAbers.fit(scores, positive, np.ones(6))
    >>> bool((np.diff(calibrator.predict(scores)) >= 0).all())
    True
    """

    scores: Floats
    lower: Floats
    upper: Floats

    needs_votes: ClassVar[bool] = False
    of_steps: ClassVar[bool] = True
    stored: ClassVar[dict[str, ArrayForm]] = {
        "scores": ArrayForm("f", ("m",), optional=True),
        "lower": ArrayForm("f", ("q",), "a share", optional=True),
        "upper": ArrayForm("f", ("q",), "a share", optional=True),
    }

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit on out-of-bag scores. The new row weighs 1.

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
        >>> from bootprob.calibration import VennAbers
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = VennAbers.fit(scores, positive, weight=np.ones(6))
        >>> bool(calibrator.predict(scores)[0] < 0.5)
        True
        """
        scores, positive, weight = checked_rows(scores, positive, weight)
        distinct, group = np.unique(scores, return_inverse=True)
        mass = np.bincount(group, weights=weight).astype(np.float64)
        gain = np.bincount(group, weights=weight * positive).astype(np.float64)
        from bootprob.calibration.venn_abers_compiled import with_one_more  # numba loads slowly

        return cls(distinct, with_one_more(mass, gain, 0.0), with_one_more(mass, gain, 1.0))

    def check(self) -> None:
        """Check numbers from a file; a ValueError says what does not make sense.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import VennAbers
        >>> calibrator = VennAbers(np.array([1.0, 0.0]), np.zeros(5), np.ones(5))
        >>> calibrator.check()
        Traceback (most recent call last):
            ...
        ValueError: scores do not increase
        """
        if not (len(self.scores) and (np.diff(self.scores) > 0).all()):
            raise ValueError("scores do not increase")
        if len(self.lower) != 2 * len(self.scores) + 1:
            raise ValueError("lower has another length than calibrator_.scores")
        if not (self.lower <= self.upper + 1e-9).all():
            raise ValueError("lower is above calibrator_.upper")

    @property
    def reach(self) -> Floats:
        """How far from each calibration score one is still taken for it, shape (k,).

        A rule that was there before, such as a tree, gives new rows the very scores of calibration
        rows, but for rounding. A quarter of the gap to the next score at most.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import VennAbers
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = VennAbers.fit(scores, positive, weight=np.ones(6))
        >>> bool(calibrator.reach.max() < 1e-5)
        True
        """
        gap = np.diff(self.scores, prepend=-np.inf, append=np.inf)
        size = np.abs(self.scores)
        near = _ROUNDING * ((np.median(size) or 1.0) + size)
        found: Floats = np.minimum(near, np.minimum(gap[:-1], gap[1:]) / 4)
        return found

    def bounds(self, scores: Floats) -> Floats:
        """``(p₀, p₁)``, shape (m, 2); NaN where the score is.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import VennAbers
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = VennAbers.fit(scores, positive, weight=np.ones(6))
        >>> lower, upper = calibrator.bounds(scores).T
        >>> bool((lower < upper).all())
        True
        """
        reach = self.reach
        left = np.searchsorted(self.scores + reach, scores, side="left")
        right = np.searchsorted(self.scores - reach, scores, side="right")
        position = left + right  # odd at a calibration score, even between two
        pair = np.stack([self.lower[position], self.upper[position]], axis=-1)
        return np.where(np.isnan(scores)[..., None], np.nan, pair)

    def predict(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """``p₁ / (1 − p₀ + p₁)``, which has the least worst regret in log-loss.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import VennAbers
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = VennAbers.fit(scores, positive, weight=np.ones(6))
        >>> calibrator.predict(np.array([-1.0, 0.0, 1.0])).shape
        (3,)
        """
        lower, upper = self.bounds(scores).T
        return upper / (1 - lower + upper)

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivative of the probability by the score: 0, as it is made of steps.

        Parameters
        ----------
        scores : ndarray, shape (m,)
            Mean scores of rows.
        vote_logits : ndarray, shape (m,), optional
            Logits of their vote shares (`vote_logits`), where votes count.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.calibration import VennAbers
        >>> scores = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
        >>> positive = np.array([False, False, True, False, True, True])
        >>> calibrator = VennAbers.fit(scores, positive, weight=np.ones(6))
        >>> bool((calibrator.derivative(scores) >= 0).all())
        True
        """
        return np.zeros_like(scores)
