"""What the rows that a bootstrap sample left out tell: weights, scores, calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration import Isotonic, Sigmoid
from bootprob.ensemble import EnsembleTraining
from bootprob.exceptions import DataError
from bootprob.scoring import scaled_scores
from bootprob.weighting import accuracy_weights, log_loss_weights

__all__ = ["OutOfBagScores", "model_weights", "replicate_scale", "score_out_of_bag"]

Floats = NDArray[np.float64]

_SAMPLED_ROWS = 20  # training rows whose replicate scores are kept for pictures


@dataclass(frozen=True)
class OutOfBagScores:
    """Scores of the training rows by the replicates that did not see them, and what they teach.

    Attributes
    ----------
    mean, variance : ndarray, shape (n,)
        Of the replicate scores; NaN without any replicate, or with fewer than two for the
        variance.
    sigmoid : Sigmoid
        Fitted to the means.
    isotonic : Isotonic
        Fitted to the means.
    sampled_rows : ndarray of int, shape (k,)
        Up to 20 rows, evenly spaced over the means.
    sampled_scores : ndarray, shape (k, B)
        Their replicate scores, NaN where the replicate saw the row.
    """

    mean: Floats
    variance: Floats
    sigmoid: Sigmoid
    isotonic: Isotonic
    sampled_rows: NDArray[np.intp]
    sampled_scores: Floats


def model_weights(
    training: EnsembleTraining,
    positive: NDArray[np.bool_],
    weight: Floats,
    *,
    weighting: str,
    tolerance: float,
) -> Floats:
    """Weights of the R models of the grid, by out-of-bag accuracy (3.3) or log-loss, shape (R,).

    Raises
    ------
    DataError
        If no row of weight was ever out of bag.
    """
    usable = (training.n_out_of_bag > 0) & (weight > 0)
    if not usable.any():
        raise DataError(
            f"No row was ever out of bag in {len(training.accuracy)} bootstrap samples; give more "
            "rows or raise n_bootstraps."
        )
    if weighting == "accuracy":
        return accuracy_weights(np.nanmean(training.accuracy, axis=0), tolerance)
    return log_loss_weights(training.mean_scores()[usable], positive[usable], weight[usable])


def replicate_scale(training: EnsembleTraining, weights: Floats) -> Floats:
    """Spread of each replicate's scores over its own out-of-bag rows, mean 1, shape (B,).

    Replicates differ in the scale of their scores; dividing by this takes the difference out and
    leaves the units of the margin.
    """
    spread = training.score_spread(weights)
    return spread / spread.mean()


def score_out_of_bag(
    training: EnsembleTraining,
    rows: Floats,
    outside: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    weight: Floats,
    weights: Floats,
    score_scale: Floats,
) -> OutOfBagScores:
    """Score the training rows once more, each by the replicates that did not see it.

    Parameters
    ----------
    training : EnsembleTraining
    rows : ndarray, shape (n, p)
        Training rows as the models know them.
    outside : ndarray of bool, shape (B, n)
        Whether a row is out of bag in a replicate.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights; rows of weight 0 are scored, but teach nothing.
    weights : ndarray, shape (R,)
        Weights of the models.
    score_scale : ndarray, shape (B,)
        What each replicate's scores are divided by.
    """
    parts, start = [], 0
    for scores in scaled_scores(training.models, rows, weights, score_scale):
        stop = start + len(scores)
        parts.append(_moments(scores, outside[:, start:stop].T))
        start = stop
    mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    usable = np.isfinite(mean) & (weight > 0)
    known = mean[usable], positive[usable], weight[usable]
    order = np.flatnonzero(usable)[np.argsort(mean[usable], kind="stable")]
    picked = np.linspace(0, len(order) - 1, min(_SAMPLED_ROWS, len(order))).round().astype(int)
    sampled = order[picked]
    scores = np.concatenate(
        list(scaled_scores(training.models, rows[sampled], weights, score_scale))
    )
    return OutOfBagScores(
        mean=mean,
        variance=variance,
        sigmoid=Sigmoid.fit(*known),
        isotonic=Isotonic.fit(*known),
        sampled_rows=sampled,
        sampled_scores=np.where(outside[:, sampled].T, scores, np.nan),
    )


def _moments(scores: Floats, outside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and variance of scores (m, B) over the replicates in which the row is out of bag."""
    count = outside.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(outside, scores, 0.0).sum(axis=1) / count
        squares = np.where(outside, np.square(scores - mean[:, None]), 0.0).sum(axis=1)
        variance = np.where(count > 1, squares / (count - 1), np.nan)
    return mean, variance
