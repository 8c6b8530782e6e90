"""What an ensemble of several classes says of training rows that are changed, out of bag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bootprob.calibration.coupling import class_pairs, couple
from bootprob.ensemble.left_out_rows import LeftOutRows, Said, not_drawn
from bootprob.ensemble.scoring.rows import Rows
from bootprob.ensemble.several_classes import SeveralClasses
from bootprob.ensemble.state import State
from bootprob.ensemble.two_classes import TwoClasses
from bootprob.runtime.arrays import Bools, Floats, Indices

__all__ = ["LeftOutClasses", "usable_rows"]


class LeftOutClasses:
    """Some training rows of a model of several classes, calibrated: as `LeftOutRows` is of two.

    Each pair of classes is asked of its own rows as `LeftOutRows` is, and of those of other classes
    by the replicates that have not drawn them. What is judged is the probability of a row's own
    class.

    Parameters
    ----------
    several : SeveralClasses
    state : State
        Of the whole table.
    which : ndarray of int, shape (m,)
        Numbers of the rows among the training rows, rising; of `usable_rows`.
    rows, taken
        As for `LeftOutRows`.
    """

    def __init__(
        self,
        several: SeveralClasses[TwoClasses],
        state: State,
        which: Indices,
        rows: Floats,
        taken: Callable[[Floats], Rows],
    ) -> None:
        self._coupling, self._codes, self._rows = several.coupling, state.y_[which], rows
        outside = not_drawn(state, which)
        self._parts: list[tuple[int, Bools, LeftOutRows]] = []
        pairs = class_pairs(len(several.classes))
        for number, (pair, ensemble) in enumerate(zip(pairs, several.ensembles, strict=True)):
            own = np.isin(self._codes, pair)
            places = np.searchsorted(np.flatnonzero(np.isin(state.y_, pair)), which[own])
            if own.any():
                known = LeftOutRows(ensemble, places, rows[own], taken)
                self._parts.append((number, own, known))
            if not own.all():
                others = LeftOutRows(ensemble, None, rows[~own], taken, outside[~own])
                self._parts.append((number, ~own, others))
        self._n_pairs, self._n_replicates = len(pairs), outside.shape[1]
        calibrators = (each.calibrated.calibrator for each in several.ensembles)
        self._needs_votes = [each.needs_votes for each in calibrators]

    @property
    def numbers_per_row(self) -> int:
        """Numbers in the largest array that is made of a row."""
        return max(self._rows.shape[1], self._n_replicates, self._n_pairs)

    def compared(self) -> Iterator[tuple[Floats, Floats]]:
        """Scores of the fit by each pair of its own rows, and these."""
        for _, _, part in self._parts:
            if part.is_known:
                yield from part.compared()

    def said(self, block: slice, changed: Iterable[Floats]) -> Iterator[Said]:
        """As of `LeftOutRows`, by each pair."""
        now: list[Floats] = []
        asked = []
        for number, members, part in self._parts:
            among = members[block]
            if not among.any():
                continue
            first = int(np.count_nonzero(members[: block.start or 0]))
            own = slice(first, first + int(np.count_nonzero(among)))
            asked.append((number, among, part.said(own, _each(now, among))))
        for way in changed:
            now[:] = [way]
            score = np.empty((1 + len(way), way.shape[1], self._n_pairs))
            doubt = np.empty((len(way), way.shape[1], self._n_pairs))
            votes = np.zeros(score.shape) if any(self._needs_votes) else None
            for number, among, answers in asked:
                told = next(answers)
                score[:, among, number], doubt[:, among, number] = told.score, told.doubt
                if votes is not None and told.votes is not None:
                    votes[:, among, number] = told.votes
            yield Said(score, votes, doubt)

    def probability(self, score: Floats, votes: Floats | None = None) -> Floats:
        """Of the own class of all rows, shape (m,), of scores (m, P)."""
        second = np.empty(score.shape)
        for number, members, part in self._parts:
            own = None
            if votes is not None and self._needs_votes[number]:
                own = votes[members, number]
            second[members, number] = part.probability(score[members, number], own)
        probability = couple(second, self._coupling)
        found: Floats = probability[np.arange(len(score)), self._codes]
        return found

    def rank(self, score: Floats, votes: Floats | None = None) -> Floats:
        """Rows of several classes have no order; the scores of some pair."""
        found: Floats = score[:, 0]
        return found


def _each(now: list[Floats], among: Bools) -> Iterator[Floats]:
    """Of what is there when it is asked for, some rows; for ever."""
    while True:
        yield now[0][:, among]


def usable_rows(several: SeveralClasses[TwoClasses], state: State) -> Bools:
    """Which training rows every pair of classes can be asked of out of bag, shape (n,)."""
    usable = (state.sample_weight_ > 0) & (state.oob_counts_ > 0)
    for pair, ensemble in zip(class_pairs(len(several.classes)), several.ensembles, strict=True):
        own = np.isin(state.y_, pair)
        known = ensemble.state.calibration_rows()[0]
        logits = ensemble.state.oob_kernel_logits_
        if logits is not None:
            known = known & np.isfinite(logits).all(axis=(1, 2))
        usable[own] &= known
    return usable
