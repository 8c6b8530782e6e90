"""Rows whose columns are permuted: what the model says of them, and what of it is told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from bootprob.ensemble.left_out_classes import LeftOutClasses
from bootprob.ensemble.left_out_rows import LeftOutRows, Said
from bootprob.explanation.answers import Explained
from bootprob.explanation.row_values import Judged, Metric
from bootprob.runtime.arrays import Bools, Floats, Indices
from bootprob.runtime.groups import Groups, sums_of_groups
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["HeldOutRows", "Permuted", "permutations"]

_AT_ONCE = 2**20  # numbers of permuted rows


@dataclass(frozen=True)
class HeldOutRows:
    """Rows (m, p) that took no part in training: the whole model is asked, by its probability.

    Of two classes that of the second; of several of each row's own, by its number in `codes` (m,).
    """

    explained: Explained
    rows: Floats
    codes: Indices | None = None

    @property
    def numbers_per_row(self) -> int:
        """Numbers in the largest array that is made of a row here."""
        return self.rows.shape[1]

    def said(self, block: slice, changed: Iterator[Floats]) -> Iterator[Said]:
        """Probabilities in place of scores; of the model as it is nothing is left open."""
        first = self._asked(self.rows[block], block)
        for way in changed:
            found = self._asked(way.reshape(-1, way.shape[2]), block).reshape(len(way), -1)
            yield Said(np.stack([first, *found]), None, np.zeros(found.shape))

    def _asked(self, rows: Floats, block: slice) -> Floats:
        """Probabilities of the rows of a block, as often as there are such."""
        found = self.explained.probabilities(rows)
        if self.codes is None:
            return found[:, 1]
        codes = self.codes[block]
        return found[np.arange(len(rows)), np.tile(codes, len(rows) // len(codes))]

    def probability(self, score: Floats, votes: Floats | None = None) -> Floats:
        """They themselves."""
        return score

    def rank(self, score: Floats, votes: Floats | None = None) -> Floats:
        """They themselves."""
        return score


def permutations(n: int, n_repeats: int, generator: np.random.Generator) -> Indices:
    """The row that gives each of n its value, shape (n_repeats, n); never itself."""
    found = np.empty((n_repeats, n), dtype=np.intp)
    for donors in found:
        order = generator.permutation(n)
        donors[order] = np.roll(order, 1)
    return found


@dataclass(frozen=True)
class Permuted:
    """Rows of known class whose columns are permuted, and who is asked of them.

    Attributes
    ----------
    asked : LeftOutRows, LeftOutClasses or HeldOutRows
    rows : ndarray, shape (m, p)
        Values come from them as well.
    positive, weight : ndarray, shape (m,)
        Of several classes all are positive, as what is judged is the probability of the own class;
        weights are of mean 1.
    groups : ndarray of int, shape (m,), or None
        From 0 on, each with rows.
    donors : ndarray of int, shape (k, m)
        `permutations` of them.
    """

    asked: LeftOutRows | LeftOutClasses | HeldOutRows
    rows: Floats
    positive: Bools
    weight: Floats
    groups: Groups | None
    donors: Indices

    def said(self, columns: Sequence[Indices]) -> Iterator[tuple[int, Said]]:
        """Of some rows at a time, in order, what is said of each group of columns by its number."""

        def changed(block: slice) -> Iterator[Floats]:
            for places in columns:
                found = np.repeat(self.rows[None, block], len(self.donors), axis=0)
                found[..., places] = self.rows[self.donors[:, block, None], places]
                yield found

        numbers = self.asked.numbers_per_row * len(self.donors)
        for block in row_blocks(len(self.rows), numbers, _AT_ONCE):
            yield from enumerate(self.asked.said(block, changed(block)))

    def rise(self, said: Said, metric: Metric, level: float) -> tuple[float, Floats, Floats]:
        """The metric of the rows as they are, its rises by each permutation, and an interval.

        By permutation a row gets its value of another one, so that the mean is over pairs of rows.
        With ``h(i, k)`` what row i is worse with the value of row k, its variance is that of
        ``a_i + b_i`` over the rows, or groups, where a are the means of h by the row that gets and
        b by the one that gives, and of what is left of h, divided by the number of permutations
        (W. Hoeffding, Ann. Math. Stat. 19 (1948) 293–325). Both are estimated at once: that of the
        means over the permutations made, less that of h over their number.

        Out of bag there is more: a row's own label is missing in what is asked of it, so that
        the importance of a column that says nothing is as ``z² − 1``, where its effect in the model
        is z standard errors. The first part knows of z, and nothing where it is 0. So to it
        comes, of each row, by how much what the labels leave open of the difference could move
        its value; of several classes by that of each pair of them, added up.

        Parameters
        ----------
        said : Said
            Of all rows that count.
        metric : Metric
        level : float
        """
        judged = [self._judged(k, said) for k in range(len(said.score))]
        values = [metric.values(each, each) for each in judged]
        worse = metric.better * (values[0] - np.stack(values[1:]))  # (k, m)
        repeats, m = worse.shape
        given = np.empty(worse.shape)
        np.put_along_axis(given, self.donors, worse, axis=1)
        influence = worse.mean(axis=0) + given.mean(axis=0)
        influence -= influence.mean()
        units = sums_of_groups(influence, self.groups)
        n = len(units)
        over_rows = np.square(units).sum() * n / (n - 1) - m * worse.var() / repeats
        rises = worse.mean(axis=1)
        drawn = rises.var(ddof=1) / repeats if repeats > 1 else 0.0
        doubt = sums_of_groups(self._doubt(said, judged[0], metric), self.groups)
        variance = max(over_rows / m**2, drawn) + np.square(doubt).sum() / m**2
        half = t.ppf((1 + level) / 2, n - 1) * np.sqrt(variance)
        mean = rises.mean()
        return float(values[0].mean()), rises, np.array([mean - half, mean + half])

    def _judged(self, k: int, said: Said, moved: Floats | float = 0.0) -> Judged:
        score = said.score[k] + moved
        votes = None if said.votes is None else said.votes[k]
        probability = self.asked.probability(score, votes)
        return Judged(self.positive, self.weight, probability, self.asked.rank(score, votes))

    def _doubt(self, said: Said, among: Judged, metric: Metric) -> Floats:
        """How far each row's value moves by what is not known of the difference, shape (m,)."""
        doubt = np.sqrt(np.square(said.doubt).mean(axis=0))
        pairs = [doubt]
        if doubt.ndim > 1:
            pairs = [doubt * unit for unit in np.eye(doubt.shape[1])]
        found = np.zeros(len(doubt))
        for own in pairs:
            if own.any():
                up, down = (
                    metric.values(self._judged(0, said, sign * own), among) for sign in (1, -1)
                )
                found += np.abs(up - down) / 2
        return found
