"""Probabilities of rows by calibrators that were fitted to other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups

if TYPE_CHECKING:
    from bootprob.calibration.choice import Calibrator

__all__ = ["cross_fitted"]


_FOLDS = 10


def cross_fitted(
    calibrator: type[Calibrator],
    scores: Floats,
    vote_logits: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    groups: Groups | None = None,
) -> Floats:
    """Probability of each row by a calibrator fitted to the rows of the other folds, shape (n,).

    Ten folds, or as many as there are rows, drawn at random and always the same. They are not
    stratified: the base rate is learned as well, and folds that all have the same would never
    test it. Rows of a class that are all in one fold are judged by the other class alone.

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
    codes = np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n = codes.max() + 1
    fold = (np.random.default_rng(0).permutation(n) % min(_FOLDS, n))[codes]
    probability = np.empty(len(scores))
    for taught, asked in ((fold != k, fold == k) for k in range(fold.max() + 1)):
        fitted = calibrator.fit(
            scores[taught], positive[taught], weight[taught], vote_logits[taught]
        )
        probability[asked] = fitted.predict(scores[asked], vote_logits[asked])
    return probability
