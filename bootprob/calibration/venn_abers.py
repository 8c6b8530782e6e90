"""Venn–Abers calibration of the mean score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["VennAbers"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VennAbers:
    """Two probabilities for each score, one of which is calibrated whatever the distribution.

    A new row joins the calibration rows once as a negative and once as a positive; the isotonic
    regressions of both give ``p₀`` and ``p₁ > p₀`` at its score. V. Vovk, I. Petej, "Venn–Abers
    predictors", UAI 2014; inductive, as in V. Vovk, I. Petej, V. Fedorova, NIPS 2015. The
    guarantee is for scores of a fixed rule; out-of-bag scores stand in for those here.

    Attributes
    ----------
    scores : ndarray, shape (k,)
        Distinct calibration scores, increasing.
    lower, upper : ndarray, shape (2 k + 1,)
        ``p₀`` and ``p₁`` below the first score, at it, between it and the second, and so on.
    """

    scores: Floats
    lower: Floats
    upper: Floats

    needs_votes: ClassVar[bool] = False

    @classmethod
    def fit(
        cls,
        scores: Floats,
        positive: NDArray[np.bool_],
        weight: Floats,
        vote_logits: Floats | None = None,
    ) -> Self:
        """Fit on out-of-bag scores; parameters as for `Sigmoid.fit`. The new row weighs 1."""
        distinct, group = np.unique(scores, return_inverse=True)
        mass = np.bincount(group, weights=weight).astype(np.float64)
        gain = np.bincount(group, weights=weight * positive).astype(np.float64)
        return cls(distinct, _with_one_more(mass, gain, 0.0), _with_one_more(mass, gain, 1.0))

    def bounds(self, scores: Floats) -> Floats:
        """``(p₀, p₁)``, shape (m, 2)."""
        left = np.searchsorted(self.scores, scores, side="left")
        right = np.searchsorted(self.scores, scores, side="right")
        position = left + right  # odd at a calibration score, even between two
        return np.stack([self.lower[position], self.upper[position]], axis=-1)

    def predict(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """``p₁ / (1 − p₀ + p₁)``, which has the least worst regret in log-loss."""
        lower, upper = self.bounds(scores).T
        return upper / (1 - lower + upper)

    def derivative(self, scores: Floats, vote_logits: Floats | None = None) -> Floats:
        """Derivative of the probability by the score: 0, as it is made of steps."""
        return np.zeros_like(scores)


@njit(cache=True)
def _with_one_more(mass: Floats, gain: Floats, label: float) -> Floats:
    """Isotonic regression at a row of weight 1 that joins at each of 2 k + 1 positions.

    Blocks of the isotonic regressions of all rows up to j, and of all rows from j on, are kept
    as chains: the last block of the first, the first block of the second, and where the next
    one begins. The joining row swallows blocks of both chains until the order is right.
    """
    k = len(mass)
    ends, last_mass, last_gain = np.empty(k + 1, np.int64), np.zeros(k + 1), np.zeros(k + 1)
    starts, next_mass, next_gain = np.empty(k + 1, np.int64), np.zeros(k + 1), np.zeros(k + 1)
    ends[0], starts[k] = -1, -1
    for j in range(k):  # rows 0 … j: their last block, and the chain before it
        m, g, before = mass[j], gain[j], j
        while before > 0 and last_gain[before] * m >= g * last_mass[before]:
            m, g = m + last_mass[before], g + last_gain[before]
            before = ends[before]
        last_mass[j + 1], last_gain[j + 1], ends[j + 1] = m, g, before
    for j in range(k - 1, -1, -1):  # rows j … k − 1: their first block, and the chain after it
        m, g, after = mass[j], gain[j], j + 1
        while after < k and next_gain[after] * m <= g * next_mass[after]:
            m, g = m + next_mass[after], g + next_gain[after]
            after = starts[after]
        next_mass[j], next_gain[j], starts[j] = m, g, after
    found = np.empty(2 * k + 1)
    for position in range(2 * k + 1):
        before, after = position // 2, (position + 1) // 2
        m, g = 1.0, label
        if after > before:
            m, g = m + mass[before], g + gain[before]
        moved = True
        while moved:
            moved = False
            while before > 0 and last_gain[before] * m >= g * last_mass[before]:
                m, g, moved = m + last_mass[before], g + last_gain[before], True
                before = ends[before]
            while after < k and next_gain[after] * m <= g * next_mass[after]:
                m, g, moved = m + next_mass[after], g + next_gain[after], True
                after = starts[after]
        found[position] = g / m
    return found
