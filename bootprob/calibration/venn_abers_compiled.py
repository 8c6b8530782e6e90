"""Isotonic regression with one row more, at every place where it may join."""

from __future__ import annotations

import numpy as np

from bootprob.runtime.arrays import Floats
from bootprob_gpu.hardware.compiled import compiled

__all__ = ["with_one_more"]


@compiled()
def with_one_more(mass: Floats, gain: Floats, label: float) -> Floats:
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
