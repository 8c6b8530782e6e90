"""What the rows that a bootstrap sample left out tell: weights, scores, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bootprob.calibration import Sigmoid
from bootprob.ensemble.scoring.rows import NewRows, WeighedScores, model_scores
from bootprob.intervals import counts_gram, jackknife_variance
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, one_of_each
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import FittedBatch

__all__ = [
    "OutOfBagScores",
    "WeighedMachines",
    "WeighedReplicates",
    "quantiles",
    "score_out_of_bag",
]

Chunks = Iterator[tuple[Floats, NDArray[np.bool_], slice]]

_SAMPLED_ROWS = 20  # training rows whose replicate scores are kept for pictures
# Rows × replicates up to which scores are held rather than made three times. For coefficients a
# pass over them is one matrix product; for dual coefficients it is kernel matrices as well.
_HELD_SCORES = {"coef": 2**19, "dual_coef": 2**26}
_ROUNDING = 1e-6  # spread, relative to the mean, that solving to tolerance can leave
_CONSTANT = 1e-3  # spread, relative to other replicates', below which it is that as well
_LEAST_RANGE = 0.01  # of the log-odds over all rows, by scores that tell nothing


class WeighedReplicates(Protocol):
    """What was trained on bootstrap samples, with weights of the models, and its training rows."""

    @property
    def weights(self) -> Floats:
        """Of the models, shape (R,)."""

    @property
    def counts(self) -> NDArray[np.unsignedinteger[Any]]:
        """How often each replicate saw each row, shape (B, n); 0 is out of bag."""

    @property
    def groups(self) -> Groups | None:
        """Of rows that were drawn together, shape (n,)."""

    @property
    def can_be_held(self) -> bool:
        """Whether weighted scores of all rows are few enough, or too dear to make again."""

    def weighed(self) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B), small enough to reduce in memory."""

    def of_models(self) -> Iterator[Floats]:
        """Scores under every model in chunks (m, R, B)."""

    def taking(self, rows: NDArray[np.intp]) -> Self:
        """The same of some of the rows."""


@dataclass(frozen=True)
class WeighedMachines:
    """Trained machines with their weights: `WeighedReplicates`.

    Attributes
    ----------
    models : FittedBatch
    weights : ndarray, shape (R,)
        Of the models.
    rows : ndarray, shape (n, p)
        Training rows as the models know them.
    counts : ndarray of int, shape (B, n)
        How often each replicate saw each row; 0 is out of bag.
    groups : ndarray of int, shape (n,), optional
        Of rows that were drawn together.
    """

    models: FittedBatch
    weights: Floats
    rows: Floats
    counts: NDArray[np.unsignedinteger[Any]]
    groups: Groups | None = None

    @property
    def can_be_held(self) -> bool:
        """Whether weighted scores of all rows are few enough, or too dear to make again."""
        return self.counts.size <= _HELD_SCORES["dual_coef" if self.models.coef is None else "coef"]

    def weighed(self) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B), small enough to reduce in memory.

        Rows that go through coefficients are scored in such chunks as well; those that go through
        kernel matrices are not, as a chunk begins with a sum over all dual coefficients.
        """
        n, B = len(self.rows), len(self.models.intercept)
        weighed = WeighedScores(self.models, self.weights)
        if self.models.coef is not None:
            for block in row_blocks(n, B):
                yield from weighed.of(self.rows[block])
            return
        for scores in weighed.of(self.rows):
            for part in row_blocks(len(scores), B):
                yield scores[part]

    def of_models(self) -> Iterator[Floats]:
        """Scores under every model in chunks (m, R, B)."""
        yield from model_scores(self.models, NewRows(self.rows))

    def taking(self, rows: NDArray[np.intp]) -> Self:
        """The same of some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, rows=self.rows[rows], counts=self.counts[:, rows], groups=groups)


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
    jackknife : ndarray, shape (n,)
        Variance of the mean by the infinitesimal jackknife; NaN as for `variance`.
    gram : ndarray, shape (B, B)
        Gram matrix of the centred counts.
    sigmoid : Sigmoid
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
    jackknife: Floats
    gram: Floats
    sigmoid: Sigmoid
    sampled_rows: NDArray[np.intp]
    sampled_scores: Floats

    def mixed_with(
        self,
        logits: Floats,
        deviation: Floats,
        share: float,
        positive: NDArray[np.bool_],
        weight: Floats,
    ) -> tuple[Self, float]:
        """Give logits that come from elsewhere a share in every replicate's score.

        On the logit the score becomes ``(1 − share) (a f + c) + share · logit``, with a and c of
        the sigmoid, and the sigmoid is fitted again. What is not known of the logits is spread over
        the replicates, each of which has them at a quantile of its own (`quantiles`). Where scores
        tell nothing, or the wrong way, a is not 0 but so little that all of them together tell a
        hundredth of a logit.

        Parameters
        ----------
        logits, deviation : ndarray, shape (n,)
            Of the training rows, each from what did not see its label; their standard deviations.
        share : float
            From 0 to less than 1.
        positive, weight : ndarray, shape (n,)
            As for `score_out_of_bag`.

        Returns
        -------
        scores : OutOfBagScores
        slope : float
            What one unit of a logit adds to a score.
        """
        apart = np.ptp(self.mean[np.isfinite(self.mean) & (weight > 0)])
        slope = share / max(self.sigmoid.slope, _LEAST_RANGE / (apart or 1.0))
        mean = (1 - share) * self.mean + slope * logits
        usable = np.isfinite(mean) & (weight > 0)
        known = mean[usable], positive[usable], weight[usable]
        sigmoid, shift = _sigmoid(*known, centered=True)
        shown, doubt = self.sampled_rows, np.square(slope * deviation)
        moved = logits[shown, None] + deviation[shown, None] * quantiles(len(self.scale))
        sampled = (1 - share) * self.sampled_scores + slope * moved
        mixed = replace(
            self,
            scale=self.scale / (1 - share),
            offset=(1 - share) * self.offset + shift,
            mean=mean + shift,
            variance=(1 - share) ** 2 * self.variance + doubt,
            jackknife=(1 - share) ** 2 * self.jackknife,  # which knows of machines alone
            sigmoid=sigmoid,
            sampled_scores=sampled + shift,
        )
        return mixed, slope

    def moved_down(self, by: float) -> Self:
        """Return the same scores less a number; the calibrators stay where they are."""
        return replace(
            self,
            offset=self.offset - by,
            mean=self.mean - by,
            sampled_scores=self.sampled_scores - by,
        )


def quantiles(n: int, pair: tuple[int, int] | None = None) -> Floats:
    """Normal quantiles of mean 0 and variance 1, one for each of n replicates, in no order.

    Of a pair of several classes they are differences between its two classes, each of which has
    numbers that no other's go along with: what is not known of a class moves all pairs it is in, up
    where it is the second and down where it is the first.
    """
    sorted_quantiles = ndtri((np.arange(n) + 0.5) / n)
    sorted_quantiles -= sorted_quantiles.mean()
    sorted_quantiles /= sorted_quantiles.std(ddof=1)
    if pair is None:
        return sorted_quantiles[np.random.default_rng(0).permutation(n)]
    orders = [np.random.default_rng(number).permutation(n) for number in range(1 + max(pair))]
    of_classes = sorted_quantiles[np.column_stack(orders)]
    most = n - 1  # numbers of mean 0 that are at right angles to each other
    unit, length = np.linalg.qr(of_classes[:, :most])
    of_classes[:, :most] = np.sqrt(most) * unit * np.sign(np.diag(length))
    first, second = (of_classes[:, number] for number in pair)
    apart = second - first
    if np.allclose(first, second):  # of few samples, in one order
        return second
    return apart / apart.std(ddof=1)


def score_out_of_bag(
    machines: WeighedReplicates, positive: NDArray[np.bool_], weight: Floats, *, align: bool
) -> OutOfBagScores:
    """Score the training rows once more, each by the replicates that did not see it.

    Nothing of size rows × replicates is held, unless it is small or costs kernel matrices.

    Parameters
    ----------
    machines : WeighedReplicates
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights of mean 1 or less; rows of weight 0 are scored, but teach nothing.
    align : bool
        Whether to bring the replicates to one location and scale.
    """
    counts, B = machines.counts, len(machines.counts)
    held = list(machines.weighed()) if machines.can_be_held else None

    def chunks() -> Chunks:
        start = 0
        for scores in machines.weighed() if held is None else held:
            taken = slice(start, start + len(scores))
            start = taken.stop
            yield scores, counts[:, taken].T == 0, taken

    scale, offset = _alignment(chunks, weight > 0, B) if align else (np.ones(B), np.zeros(B))
    gram = counts_gram(counts, one_of_each(weight > 0, machines.groups))
    parts = [_moments(scores / scale + offset, outside, gram) for scores, outside, _ in chunks()]
    mean, variance, jackknife = (np.concatenate(part) for part in zip(*parts, strict=True))
    usable = np.isfinite(mean) & (weight > 0)
    sigmoid, shift = _sigmoid(mean[usable], positive[usable], weight[usable], centered=align)
    offset, mean = offset + shift, mean + shift
    order = np.flatnonzero(usable)[np.argsort(mean[usable], kind="stable")]
    picked = np.linspace(0, len(order) - 1, min(_SAMPLED_ROWS, len(order))).round().astype(int)
    sampled = order[picked]
    if held is None:
        scores = np.concatenate(list(machines.taking(sampled).weighed()))
    else:
        scores = np.concatenate(held)[sampled]
    return OutOfBagScores(
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
        jackknife=jackknife,
        gram=gram,
        sigmoid=sigmoid,
        sampled_rows=sampled,
        sampled_scores=np.where(counts[:, sampled].T == 0, scores / scale + offset, np.nan),
    )


def _sigmoid(
    mean: Floats, positive: NDArray[np.bool_], weight: Floats, *, centered: bool
) -> tuple[Sigmoid, float]:
    """The sigmoid of mean scores, and how far they are to be moved before, which is 0 if not asked.

    Score 0 becomes where both classes are equally likely, as a decision function's should.
    """
    sigmoid = Sigmoid.fit(mean, positive, weight)
    if not centered or sigmoid.slope <= 0:
        return sigmoid, 0.0
    shift = sigmoid.intercept / sigmoid.slope
    return sigmoid.centered(mean + shift, weight), shift


def _alignment(
    chunks: Callable[[], Chunks], counted: NDArray[np.bool_], B: int
) -> tuple[Floats, Floats]:
    """Scale and offset that give every replicate's out-of-bag scores the same mean and spread.

    Replicates differ in both for reasons that tell nothing of a row: the scale of an SVM's
    scores, and, where classes are unbalanced, an intercept that dwarfs them. The spread is the
    mean absolute deviation: the standard deviation of heavy-tailed scores differs between
    replicates by what their few furthest rows are.
    """
    count, sums, deviations = np.zeros(B), np.zeros(B), np.zeros(B)
    for scores, outside, taken in chunks():
        used = outside & counted[taken, None]
        count += used.sum(axis=0)
        sums += (scores * used).sum(axis=0)
    count = np.maximum(count, 1)
    mean = sums / count
    for scores, outside, taken in chunks():
        used = outside & counted[taken, None]
        deviation = scores - mean
        deviation *= used
        deviations += np.abs(deviation, out=deviation).sum(axis=0)
    spread = deviations / count
    varied = spread > _ROUNDING * np.abs(mean)
    if not varied.any():
        return np.ones(B), np.zeros(B)
    # Where few errors cost little, some replicates' machines are constant: what spread they have is
    # what the solver left, and must not be magnified. They keep their scale.
    usable = varied & (spread > _CONSTANT * spread[varied].mean())
    scale = np.where(usable, spread / spread[usable].mean(), 1.0)
    # A replicate without two rows out of bag is taken as it comes.
    offset = np.where(count > 1, mean[usable].mean() - mean / scale, 0.0)
    return scale, offset


def _moments(
    scores: Floats, outside: NDArray[np.bool_], gram: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and jackknife over the replicates in which a row is out of bag.

    Overwrites `scores`.
    """
    jackknife = jackknife_variance(scores, gram, outside)
    count = outside.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (scores * outside).sum(axis=1) / count
        scores -= mean[:, None]
        scores *= outside
        squares = np.square(scores, out=scores).sum(axis=1)
        variance = np.where(count > 1, squares / (count - 1), np.nan)
    return mean, variance, np.where(count > 1, jackknife, np.nan)
