"""Probabilities of rows by calibrators that were fitted to other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

if TYPE_CHECKING:
    from bootprob.calibration.choice import Calibrator

__all__ = ["CrossFitted"]


_FOLDS = 10


@dataclass(frozen=True)
class CrossFitted:
    """Calibrators of which each was fitted to the rows of the other folds.

    Attributes
    ----------
    fold : ndarray of int, shape (n,)
        Of each row.
    calibrators : sequence of Calibrator
        One for each fold.
    """

    fold: NDArray[np.integer[Any]]
    calibrators: Sequence[Calibrator]

    @classmethod
    def fit(
        cls,
        calibrator: type[Calibrator],
        scores: Floats,
        vote_logits: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        groups: Groups | None = None,
    ) -> Self:
        """Fit them to ten folds, or as many as there are rows.

        Folds are drawn at random and always the same. They are not stratified: the base rate is
        learned as well, and folds that all have the same would never test it. Rows of a class that
        are all in one fold are judged by the other class alone.

        Parameters
        ----------
        calibrator : type
            One of `bootprob.calibration.CALIBRATORS`.
        scores, vote_logits : ndarray, shape (n,)
            Out-of-bag means and logits of vote shares.
        positive : ndarray of bool, shape (n,)
            Of two rows or more.
        weight : ndarray, shape (n,)
            Row weights, positive.
        groups : ndarray of int, shape (n,), optional
            Of rows that stay in one fold.
        """
        codes = (
            np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
        )
        n = codes.max() + 1
        fold = (np.random.default_rng(0).permutation(n) % min(_FOLDS, n))[codes]
        others = (fold != k for k in range(fold.max() + 1))
        fitted = [
            calibrator.fit(scores[taught], positive[taught], weight[taught], vote_logits[taught])
            for taught in others
        ]
        return cls(fold, fitted)

    def predict(
        self, scores: Floats, vote_logits: Floats | None, rows: NDArray[np.intp] | None = None
    ) -> Floats:
        """Probability of each row by the calibrator that was not fitted to it.

        Parameters
        ----------
        scores : ndarray, shape (..., m)
        vote_logits : ndarray, shape (..., m), or None
            None where the calibrators need none.
        rows : ndarray of int, shape (m,), optional
            Which of the n rows they are of; default all.
        """
        fold = self.fold if rows is None else self.fold[rows]
        probability = np.empty(scores.shape)
        for k, fitted in enumerate(self.calibrators):
            asked = fold == k
            logits = None if vote_logits is None else vote_logits[..., asked]
            probability[..., asked] = fitted.predict(scores[..., asked], logits)
        return probability
