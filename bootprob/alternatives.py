"""Models of the grid that the data cannot tell from the best, and how far their logits part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alternatives"]

Floats = NDArray[np.float64]

_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Alternatives:
    """Single models of the grid, each with a sigmoid of its own.

    Which C and γ are right is not known from the data, and an RBF kernel smooths differently with
    each: resampling the rows shows nothing of that. The models whose out-of-bag log-loss is within
    two standard errors of the best one's, by row-wise differences, are equally good as far as
    anyone can tell; where their logits part from the ensemble's, it is that uncertain.

    Attributes
    ----------
    models : ndarray of int, shape (k,)
        Numbers of the models in the grid; none for the linear kernel, whose C hardly changes
        more than the scale of the scores.
    slopes, intercepts : ndarray, shape (k,)
        Their sigmoids, of mean scores.
    """

    models: NDArray[np.int64]
    slopes: Floats
    intercepts: Floats

    @classmethod
    def none(cls) -> Self:
        """No alternatives."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))

    @classmethod
    def among(
        cls, scores: Floats, positive: NDArray[np.bool_], weight: Floats, sigmoids: Floats
    ) -> Self:
        """Find them by out-of-bag mean scores.

        Parameters
        ----------
        scores : ndarray, shape (n, R)
            Mean out-of-bag score of each row under each model.
        positive : ndarray of bool, shape (n,)
        weight : ndarray, shape (n,)
            Row weights, of mean 1.
        sigmoids : ndarray, shape (R, 2)
            From `bootprob.weighting.model_sigmoids`.
        """
        slopes, intercepts = sigmoids.T
        logits = slopes * scores + intercepts
        losses = weight[:, None] * np.logaddexp(0.0, np.where(positive[:, None], -logits, logits))
        behind = losses - losses[:, [losses.sum(axis=0).argmin()]]
        error = behind.std(axis=0) * np.sqrt(len(behind))
        models = np.flatnonzero(behind.sum(axis=0) <= _STANDARD_ERRORS * error)
        return cls(models, slopes[models], intercepts[models])

    def variance(self, scores: Floats, logits: Floats) -> Floats:
        """Mean squared difference of their logits from the ensemble's, shape (m,).

        Parameters
        ----------
        scores : ndarray, shape (m, k)
            Mean scores under each of them.
        logits : ndarray, shape (m,)
            The ensemble's.
        """
        if len(self.models) == 0:
            return np.zeros(len(logits))
        theirs = self.slopes * scores + self.intercepts
        return np.square(theirs - logits[:, None]).mean(axis=1)
