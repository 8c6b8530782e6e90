"""What an ensemble says of training rows that are changed, by what did not see their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from bootprob.calibration import vote_logits
from bootprob.calibration.cross_fitting import CrossFitted
from bootprob.ensemble.out_of_bag_proba import cross_fitted_calibrators
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.state import State
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["LeftOutRows", "Said", "not_drawn"]


@dataclass(frozen=True)
class Said:
    """Of m training rows as they are, and k times changed.

    Attributes
    ----------
    score : ndarray, shape (1 + k, m), or (1 + k, m, P) of P pairs of classes
        As `oob_decision_function_` is of the training rows; of the rows as they are first.
    votes : ndarray, of the shape of `score`, or None
        Vote shares, where the calibrator needs them.
    doubt : ndarray, shape (k, m), or (k, m, P)
        Standard deviation, over what the labels leave open, of how far the score is from that of
        the row as it is: of the machines over the replicates, and of the posterior's share in the
        score; added up, as both learn from the same labels.
    """

    score: Floats
    votes: Floats | None
    doubt: Floats

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The same of the rows of all parts, in order."""
        votes = [part.votes for part in parts if part.votes is not None]
        return cls(
            np.concatenate([part.score for part in parts], axis=1),
            np.concatenate(votes, axis=1) if votes else None,
            np.concatenate([part.doubt for part in parts], axis=1),
        )


class LeftOutRows:
    """Some training rows of a model of two classes, calibrated.

    Each is asked of the replicates that did not draw it. The posterior of ``kernel="auto"`` has a
    share in scores; it is that without the row's own label (`Scores.posterior_without`).

    Parameters
    ----------
    ensemble : TwoClasses
    which : ndarray of int, shape (m,), or None
        Their numbers among the training rows; `TwoClassState.calibration_rows` knows which can be.
        None where the ensemble is of a pair of classes, and these rows of others: no posterior or
        calibrator has seen them.
    rows : ndarray, shape (m, p), or (m, p + q)
        They themselves, as rows of the matrix, and after it what `taken` makes more of them of.
    taken : callable, optional
        Makes of such rows what the ensemble is given; default themselves.
    outside : ndarray of bool, shape (m, B), optional
        Which replicates have not drawn each row; of rows of other classes.
    """

    def __init__(
        self,
        ensemble: TwoClasses,
        which: Indices | None,
        rows: Floats,
        taken: Callable[[Floats], Rows] = lambda rows: rows,
        outside: Bools | None = None,
    ) -> None:
        self._ensemble, self._which, self._rows, self._taken = ensemble, which, rows, taken
        state, scores = ensemble.state, ensemble.scores
        self._n_features = len(state.center_)
        if which is None:
            assert outside is not None
            self._outside, self._left_out = outside, scores.kernel_logits(taken(rows))
            self._of_posterior = scores.of_posterior(taken(rows), self._left_out)
            return
        self._outside = not_drawn(state, which)
        logits = state.oob_kernel_logits_
        self._left_out = None if logits is None else logits[which]
        self._of_posterior = scores.out_of_bag_of_posterior[which]

    @property
    def is_known(self) -> bool:
        """Whether these are rows that the ensemble was fitted to."""
        return self._which is not None

    @property
    def numbers_per_row(self) -> int:
        """Numbers in the largest array that is made of a row."""
        return max(self._rows.shape[1], self._outside.shape[1])

    def as_they_are(self, block: slice = slice(None)) -> Floats:
        """Their scores, as `oob_decision_function_` has them."""
        return self._mean(self._machines(self._rows[block]), block) + self._of_posterior[block]

    def compared(self) -> Iterator[tuple[Floats, Floats]]:
        """Scores of the fit, and these."""
        assert self._which is not None
        yield self._ensemble.state.oob_decision_function_[self._which], self.as_they_are()

    def said(self, block: slice, changed: Iterable[Floats]) -> Iterator[Said]:
        """What is said of consecutive ones that are changed, in several ways.

        Parameters
        ----------
        block : slice
            Of b rows.
        changed : iterable of ndarray, each of shape (k, b, p)
        """
        state, scores, rows = self._ensemble.state, self._ensemble.scores, self._rows[block]
        own, outside = self._machines(rows), self._outside[block]
        first = self._mean(own, block) + self._of_posterior[block]
        needs_votes = self._ensemble.calibrated.calibrator.needs_votes
        own_votes = self._votes(rows, outside) if needs_votes else None
        for way in changed:
            of_machines = self._machines(way.reshape(-1, way.shape[2])).reshape(*way.shape[:2], -1)
            score = np.stack([self._mean(each, block) for each in of_machines])
            doubt = np.stack([_deviation(each - own, outside) for each in of_machines])
            if state.posterior_slope_ is not None:
                assert self._left_out is not None
                p, left_out = self._n_features, self._left_out[block]
                added, unsure = scores.posterior_without(rows[:, :p], way[..., :p], left_out)
                score += added
                doubt += unsure
            votes = None
            if own_votes is not None:
                votes = np.stack([own_votes, *(self._votes(each, outside) for each in way)])
            yield Said(np.stack([first, *score]), votes, doubt)

    def probability(self, score: Floats, votes: Floats | None = None) -> Floats:
        """Probabilities (m,) of scores of all, by calibrators that were not fitted to the row."""
        state = self._ensemble.state
        if self._which is None:
            return self._ensemble.calibrated.predict(score, votes)
        logits = None
        if votes is not None:
            logits = vote_logits(votes, float(state.oob_counts_.mean()))
        return self._calibrators.predict(score + state.score_threshold_, logits, self._places)

    def rank(self, score: Floats, votes: Floats | None = None) -> Floats:
        """What orders rows, as `out_of_bag_ranks` does."""
        calibrated = self._ensemble.calibrated
        return score if calibrated.calibrator.of_steps else calibrated.predict(score, votes)

    def _machines(self, rows: Floats) -> Floats:
        """Scores of the replicates, shape (b, B)."""
        return np.concatenate(list(self._ensemble.scores.of_machines(self._taken(rows))))

    def _mean(self, scores: Floats, block: slice) -> Floats:
        outside = self._outside[block]
        found: Floats = (scores * outside).sum(axis=1) / outside.sum(axis=1)
        return found

    def _votes(self, rows: Floats, outside: Bools) -> Floats:
        """Weighted vote shares of the replicates outside, shape (b,)."""
        state, scores = self._ensemble.state, self._ensemble.scores
        found = np.empty(len(rows))
        for block in row_blocks(len(rows), state.accuracy_.size):
            of_models = np.concatenate(
                list(scores.of_models(self._taken(rows[block])))
            )  # (m, R, B)
            above = (of_models > state.vote_thresholds_[:, None]).astype(np.float64)
            votes = np.einsum("mrb,r->mb", above, state.weights_)
            found[block] = (votes * outside[block]).sum(axis=1) / outside[block].sum(axis=1)
        return found

    @cached_property
    def _calibrators(self) -> CrossFitted:
        return cross_fitted_calibrators(self._ensemble.state)[0]

    @cached_property
    def _places(self) -> Indices:
        """Which of the rows that the calibrators were fitted to they are."""
        known = self._ensemble.state.calibration_rows()[0]
        assert self._which is not None
        return np.searchsorted(np.flatnonzero(known), self._which)


def not_drawn(state: State, which: Indices) -> Bools:
    """Which replicates have not drawn each of some training rows, shape (m, B)."""
    outside: Bools = state.bootstrap_counts()[:, which].T == 0
    if (state.oob_counts_ == state.n_replicates).all():  # fitted before
        outside[:] = True
    return outside


def _deviation(values: Floats, counted: Bools) -> Floats:
    """Standard deviation of what counts of each row, shape (b,)."""
    count = counted.sum(axis=1)
    center = (values * counted).sum(axis=1) / count
    squares = np.square((values - center[:, None]) * counted).sum(axis=1)
    found: Floats = np.sqrt(squares / np.maximum(count - 1, 1))
    return found
