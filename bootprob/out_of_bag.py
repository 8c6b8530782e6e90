"""What the rows that a bootstrap sample left out tell: weights, scores, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration import Isotonic, Sigmoid
from bootprob.ensemble import EnsembleTraining
from bootprob.exceptions import DataError
from bootprob.scoring import replicate_scores
from bootprob.weighting import accuracy_weights, log_loss_weights
from bootprob_gpu import FittedBatch

__all__ = ["OutOfBagScores", "model_weights", "score_out_of_bag"]

Floats = NDArray[np.float64]
Chunks = Iterator[tuple[Floats, NDArray[np.bool_], slice]]

_SAMPLED_ROWS = 20  # training rows whose replicate scores are kept for pictures
_HELD_SCORES = 2**26  # rows × replicates up to which scores are held rather than made twice
_ROUNDING = 1e-6  # spread, relative to the mean, that solving to tolerance can leave


@dataclass(frozen=True)
class OutOfBagScores:
    """Scores of the training rows by the replicates that did not see them, and what they teach.

    Attributes
    ----------
    scale, offset : ndarray, shape (B,)
        Replicate scores are ``score / scale + offset``.
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

    scale: Floats
    offset: Floats
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

    Parameters
    ----------
    training : EnsembleTraining
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights of mean 1.
    weighting : {"accuracy", "log_loss"}
    tolerance : float
        ε of (3.3).

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


def score_out_of_bag(
    models: FittedBatch,
    rows: Floats,
    outside: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    weight: Floats,
    weights: Floats,
    *,
    align: bool,
) -> OutOfBagScores:
    """Score the training rows once more, each by the replicates that did not see it.

    Parameters
    ----------
    models : FittedBatch
    rows : ndarray, shape (n, p)
        Training rows as the models know them.
    outside : ndarray of bool, shape (B, n)
        Whether a row is out of bag in a replicate.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights of mean 1; rows of weight 0 are scored, but teach nothing.
    weights : ndarray, shape (R,)
        Weights of the models.
    align : bool
        Whether to bring the replicates to one location and scale.
    """
    outside = outside.T
    B = outside.shape[1]
    held = None
    if outside.size <= _HELD_SCORES:
        held = list(replicate_scores(models, rows, weights))

    def chunks() -> Chunks:
        start = 0
        for scores in replicate_scores(models, rows, weights) if held is None else held:
            taken = slice(start, start + len(scores))
            start = taken.stop
            yield scores, outside[taken], taken

    scale, offset = _alignment(chunks, weight > 0, B) if align else (np.ones(B), np.zeros(B))
    parts = [_moments(scores / scale + offset, inside) for scores, inside, _ in chunks()]
    mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    usable = np.isfinite(mean) & (weight > 0)
    sigmoid = Sigmoid.fit(mean[usable], positive[usable], weight[usable])
    if align and sigmoid.slope > 0:
        # Score 0 becomes where both classes are equally likely, as a decision function's should.
        shift = sigmoid.intercept / sigmoid.slope
        offset, mean = offset + shift, mean + shift
        sigmoid = sigmoid.centered(mean[usable], weight[usable])
    known = mean[usable], positive[usable], weight[usable]
    order = np.flatnonzero(usable)[np.argsort(mean[usable], kind="stable")]
    picked = np.linspace(0, len(order) - 1, min(_SAMPLED_ROWS, len(order))).round().astype(int)
    sampled = order[picked]
    scores = np.concatenate(list(replicate_scores(models, rows[sampled], weights)))
    return OutOfBagScores(
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
        sigmoid=sigmoid,
        isotonic=Isotonic.fit(*known),
        sampled_rows=sampled,
        sampled_scores=np.where(outside[sampled], scores / scale + offset, np.nan),
    )


def _alignment(
    chunks: Callable[[], Chunks], counted: NDArray[np.bool_], B: int
) -> tuple[Floats, Floats]:
    """Scale and offset that give every replicate's out-of-bag scores the same mean and spread.

    Replicates differ in both for reasons that tell nothing of a row: the scale of an SVM's
    scores, and, where classes are unbalanced, an intercept that dwarfs them.
    """
    count, sums, squares = np.zeros(B), np.zeros(B), np.zeros(B)
    for scores, outside, taken in chunks():
        used = outside & counted[taken, None]
        count += used.sum(axis=0)
        sums += np.where(used, scores, 0.0).sum(axis=0)
    count = np.maximum(count, 1)
    mean = sums / count
    for scores, outside, taken in chunks():
        used = outside & counted[taken, None]
        squares += np.where(used, np.square(scores - mean), 0.0).sum(axis=0)
    spread = np.sqrt(squares / count)
    # A replicate without two rows out of bag, or with constant scores, is taken as it comes.
    usable = spread > _ROUNDING * np.abs(mean)
    if not usable.any():
        return np.ones(B), np.zeros(B)
    scale = np.where(usable, spread / spread[usable].mean(), 1.0)
    offset = np.where(usable, mean[usable].mean() - mean / scale, 0.0)
    return scale, offset


def _moments(scores: Floats, outside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and variance of scores (m, B) over the replicates in which the row is out of bag."""
    count = outside.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(outside, scores, 0.0).sum(axis=1) / count
        squares = np.where(outside, np.square(scores - mean[:, None]), 0.0).sum(axis=1)
        variance = np.where(count > 1, squares / (count - 1), np.nan)
    return mean, variance
