"""Which columns of a row are looked at together, for Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Bools, Floats, Indices

__all__ = ["Coalitions"]

_MOST_EXACT = 1024  # coalitions times background rows, up to which all are looked at


@dataclass(frozen=True)
class Coalitions:
    """Rows between a row and rows of a background, and what Shapley values take of their answers.

    The Shapley value of a column is the mean of what it adds to a coalition of columns, over all
    orders in which columns may join (L. Shapley, "A value for n-person games", 1953). What a
    coalition is worth is the mean answer for rows that have its columns of the row and the others
    of a background row (interventional: E. Štrumbelj, I. Kononenko, J. Mach. Learn. Res. 11 (2010)
    1–18; S. Lundberg, S.-I. Lee, NeurIPS 30 (2017)).

    Attributes
    ----------
    of_row : ndarray of bool, shape (m, q)
        Which columns are those of the row.
    background : ndarray of int, shape (m,)
        The background row that has the others.
    mixing : ndarray, shape (q, m)
        What each column's value takes of each answer.
    orders : ndarray of int, shape (k, q), or None
        Columns in the order in which they join, an order and then its reverse, each of ``q + 1``
        of the rows; None where all coalitions are looked at.
    """

    of_row: Bools
    background: NDArray[np.intp]
    mixing: Floats
    orders: NDArray[np.intp] | None

    @classmethod
    def of(
        cls,
        n_columns: int,
        n_background: int,
        n_pairs: int,
        generator: np.random.Generator,
        *,
        exact: bool = False,
    ) -> Coalitions:
        """All coalitions where they are few, else those of random orders.

        Parameters
        ----------
        n_columns, n_background : int
        n_pairs : int
            Of orders, an order and its reverse with the same background row; a multiple of
            `n_background`, so that all of these count alike, twice as many or more.
        generator : Generator
        exact : bool, default False
            Whether all are wanted, however many there are.
        """
        if exact or 2 ** min(n_columns, 20) * n_background <= _MOST_EXACT:
            return cls._every(n_columns, n_background)
        return cls._sampled(n_columns, n_background, n_pairs, generator)

    @classmethod
    def _every(cls, q: int, n_background: int) -> Coalitions:
        sets = (np.arange(2**q)[:, None] >> np.arange(q) & 1).astype(bool)
        size = sets.sum(axis=1)
        # A column joins those of size s before it in 1 / (q · C(q − 1, s)) of all orders.
        share = np.array([1 / (q * comb(q - 1, s)) for s in range(q)])
        joined, not_yet = share[np.maximum(size - 1, 0)], share[np.minimum(size, q - 1)]
        mixing = np.where(sets.T, joined, -not_yet) / n_background
        return cls(
            np.repeat(sets, n_background, axis=0),
            np.tile(np.arange(n_background), len(sets)),
            np.repeat(mixing, n_background, axis=1),
            None,
        )

    @classmethod
    def _sampled(
        cls, q: int, n_background: int, n_pairs: int, generator: np.random.Generator
    ) -> Coalitions:
        once = np.array([generator.permutation(q) for _ in range(n_pairs)])
        orders = np.stack([once, once[:, ::-1]], axis=1).reshape(-1, q)
        joined = np.argsort(orders, axis=1)  # when each column does
        of_row = np.arange(q + 1)[:, None] > joined[:, None, :]
        mixing = np.zeros((q, len(orders), q + 1))
        every = np.arange(len(orders))[:, None]
        mixing[np.arange(q), every, joined + 1] = 1 / len(orders)
        mixing[np.arange(q), every, joined] = -1 / len(orders)
        background = np.repeat(np.arange(len(orders)) // 2 % n_background, q + 1)
        return cls(of_row.reshape(-1, q), background, mixing.reshape(q, -1), orders)

    def between(self, row: Floats, background: Floats, places: Sequence[Indices] = ()) -> Floats:
        """The rows to be answered for, shape (m, p).

        Parameters
        ----------
        row : ndarray, shape (p,)
        background : ndarray, shape (n_background, p)
        places : sequence of ndarray of int, optional
            Where each column is; default one number of each.
        """
        of_row = self.of_row
        if places:
            of_row = np.zeros((len(self.of_row), len(row)), dtype=bool)
            for place, taken in zip(places, self.of_row.T, strict=True):
                of_row[:, place] = taken[:, None]
        found: Floats = np.where(of_row, row, background[self.background])
        return found

    def error(self, answers: Floats) -> Floats:
        """Standard errors (q,) of the values that come from drawing orders, by the answers (m,).

        By how far pairs of orders with the same background row are apart: 0 without interactions.
        """
        n_columns = self.of_row.shape[1]
        if self.orders is None:
            return np.zeros(n_columns)
        steps = np.diff(answers.reshape(len(self.orders), n_columns + 1), axis=1)
        added = np.take_along_axis(steps, np.argsort(self.orders, axis=1), axis=1)
        of_pairs = added.reshape(-1, 2, n_columns).mean(axis=1)
        beside = of_pairs.reshape(-1, self._n_background, n_columns)  # draws, background rows
        found: Floats = np.sqrt(beside.var(axis=0, ddof=1).mean(axis=0) / len(of_pairs))
        return found

    @property
    def degrees_of_freedom(self) -> float:
        """Of `error`; infinite where all coalitions are looked at."""
        return np.inf if self.orders is None else len(self.orders) // 2 - self._n_background

    @property
    def _n_background(self) -> int:
        return int(self.background.max()) + 1
