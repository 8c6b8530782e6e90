"""How much rows of one group have in common beyond what is predicted of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["design_effects", "intraclass_correlation"]


def intraclass_correlation(
    positive: NDArray[np.bool_], probability: Floats, weight: Floats, groups: Groups
) -> float:
    """Correlation ρ of the labels of two rows of a group, given their probabilities; in [0, 1].

    ``Σ e_i e_j / Σ √(v_i v_j)`` over the pairs of rows within groups, with ``e = y − p`` and
    ``v = p (1 − p)``, as of the exchangeable working correlation of K.-Y. Liang, S. Zeger,
    Biometrika 73 (1986) 13–22. What a model misses is alike in rows that are alike, and counts.

    Parameters
    ----------
    positive : ndarray of bool, shape (n,)
    probability : ndarray, shape (n,)
        Of rows left out together with their groups.
    weight : ndarray, shape (n,)
        Positive.
    groups : ndarray of int, shape (n,)
    """

    def of_pairs(values: Floats) -> float:
        values = weight * values
        together = np.square(sums_of_groups(values, groups)).sum()
        return float(together - np.square(values).sum())

    spread = of_pairs(np.sqrt(probability * (1 - probability)))
    if spread <= 0:  # nothing that could tell, or no two rows in a group
        return 1.0
    return float(np.clip(of_pairs(positive - probability) / spread, 0.0, 1.0))


def design_effects(weight: Floats, groups: Groups, correlation: float) -> Floats:
    """By how much rows tell less than independent ones, ``1 + (m − 1) ρ``, shape (n,).

    For the mean of m rows of a group with correlation ρ (L. Kish, "Survey Sampling", 1965, section
    5.4); of rows of different weights m is ``(Σ w)² / Σ w²``.

    Parameters
    ----------
    weight : ndarray, shape (n,)
        Row weights; rows without any tell nothing.
    groups : ndarray of int, shape (n,)
    correlation : float
        ρ.
    """
    total, squares = (sums_of_groups(each, groups) for each in (weight, np.square(weight)))
    size = np.divide(np.square(total), squares, out=np.ones_like(total), where=squares > 0)
    return (1 + (size - 1) * correlation)[groups]
