"""Classifiers of bootstrap samples, and what they say of the rows that they left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from bootprob.calibration import Sigmoid
from bootprob.ensemble.training.preparation import Prepared
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["StoredScores", "TrainedClassifiers"]


@dataclass(frozen=True)
class StoredScores:
    """Scores of training rows that are there already: `WeighedReplicates`.

    Attributes
    ----------
    scores : ndarray, shape (n, R, B)
        Of rows out of bag; 0 in it.
    weights : ndarray, shape (R,)
    counts : ndarray of int, shape (B, n)
    groups : ndarray of int, shape (n,), optional
    """

    scores: Floats
    weights: Floats
    counts: NDArray[np.unsignedinteger[Any]]
    groups: Groups | None = None

    @property
    def can_be_held(self) -> bool:
        """They are held already."""
        return False

    def weighed(self) -> Iterator[Floats]:
        """Weighted scores of each replicate in chunks (m, B), small enough to reduce in memory."""
        for rows in row_blocks(len(self.scores), self.scores[0].size):
            yield np.einsum("mrb,r->mb", self.scores[rows], self.weights)

    def of_models(self) -> Iterator[Floats]:
        """Scores under every model in chunks (m, R, B)."""
        for rows in row_blocks(len(self.scores), self.scores[0].size):
            yield self.scores[rows]

    def taking(self, rows: NDArray[np.intp]) -> Self:
        """The same of some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        scores, counts = self.scores[rows], self.counts[:, rows]
        return replace(self, scores=scores, counts=counts, groups=groups)


@dataclass(frozen=True)
class TrainedClassifiers:
    """An ensemble of two classes, as `learn_out_of_bag` takes it.

    Attributes
    ----------
    scores : ndarray, shape (n, R, B)
        For the second class, of rows out of bag; 0 in it.
    counts : ndarray of int, shape (B, n)
        How often each replicate saw each row.
    accuracy : ndarray, shape (B, R)
        Weighted share of out-of-bag rows classified correctly; NaN where no row is out of bag.
    units : ndarray, shape (R, 2), or None
        Slope and intercept that made log-odds of the scores of several candidates.
    """

    scores: Floats
    counts: NDArray[np.unsignedinteger[Any]]
    accuracy: Floats
    units: Floats | None = None

    @classmethod
    def of(
        cls,
        scores: Floats,
        counts: NDArray[np.unsignedinteger[Any]],
        positive: NDArray[np.bool_],
        weight: Floats,
    ) -> Self:
        """Those of a pair of classes.

        Parameters
        ----------
        scores : ndarray, shape (n, R, B)
            For the second class of the pair, of rows out of bag; 0 in it.
        counts : ndarray of int, shape (B, n)
        positive : ndarray of bool, shape (n,)
            Whether a row is of the second class.
        weight : ndarray, shape (n,)
            Row weights; 0 for rows of other classes.
        """
        own, units, outside = scores, None, counts.T == 0
        if own.shape[1] > 1:
            units = _log_odds(own, outside, positive, weight)
            own = (own * units[:, :1] + units[:, 1:]) * outside[:, None]
        right = (own > 0) == positive[:, None, None]
        told = np.where(outside, weight[:, None], 0.0)
        with np.errstate(invalid="ignore"):
            accuracy = np.einsum("nrb,nb->br", right, told) / told.sum(axis=0)[:, None]
        return cls(own, counts, accuracy, units)

    @cached_property
    def n_out_of_bag(self) -> NDArray[np.int64]:
        """Replicates in which each row is out of bag, shape (n,)."""
        return (self.counts == 0).sum(axis=0)

    @cached_property
    def votes(self) -> NDArray[np.int64]:
        """Out-of-bag scores above 0, counted over the replicates, shape (n, R)."""
        return (self.scores > 0).sum(axis=2)

    @cached_property
    def score_sums(self) -> Floats:
        """Out-of-bag scores, summed over the replicates, shape (n, R)."""
        return self.scores.sum(axis=2)

    def weighed(self, weights: Floats, table: Prepared) -> StoredScores:
        """The scores with weights of the models, shape (R,)."""
        return StoredScores(self.scores, weights, self.counts, table.groups)

    def attributes(self, table: Prepared) -> dict[str, Any]:
        """Attributes of the fit that pairs of classes do not share."""
        return {"candidate_units_": self.units}


def _log_odds(
    scores: Floats, outside: NDArray[np.bool_], positive: NDArray[np.bool_], weight: Floats
) -> Floats:
    """Slope and intercept for each candidate, (R, 2), which bring their scores to one scale.

    Of a sigmoid of its mean out-of-bag scores; a candidate that orders rows the wrong way says no
    more than the base rate.
    """
    times = outside.sum(axis=1)
    known = (times > 0) & (weight > 0)
    found = []
    for own in scores.transpose(1, 0, 2):
        mean = (own * outside).sum(axis=1)[known] / times[known]
        sigmoid = Sigmoid.fit(mean, positive[known], weight[known])
        if sigmoid.slope > 0:
            found.append((sigmoid.slope, sigmoid.intercept))
        else:
            found.append((0.0, logit(np.average(positive[known], weights=weight[known]))))
    return np.array(found)
