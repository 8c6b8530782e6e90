"""What `SubsetSearch` maximises: sums of products of the columns' factors, or a ratio of them.

Each part of an objective is ``Σ_k w_k Π_{j ∈ S} e_jk^power`` with ``w ≥ 0``, ``0 ≤ e ≤ 1``, which
falls as columns are added, and by less the more there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from bootprob.selection.alignment.bounds import bound_columns, bound_pairs

__all__ = ["Alignment", "CentroidDistance", "NormalisedAlignment", "Part"]

_MARGIN = 1e-12  # relative; what is gained less is rounding
_RATIO = 1.4  # of the ends of a range of norms on which √ is replaced by a chord: off by 1.4 %


@dataclass(frozen=True)
class Part:
    """A sum over some of the terms.

    Attributes
    ----------
    weight : Tensor, shape (terms,)
        Not negative.
    power : {1, 2}
        Of the factors.
    """

    terms: slice
    weight: Tensor
    power: int = 1


class CentroidDistance:
    """(27): ``constant + Σ_k w_k Π_{j ∈ S} e_jk``, as what rises it less what falls.

    Parameters
    ----------
    factors : Tensor of float64, shape (p, N)
        Best with the terms of positive weight first; they are copied otherwise.
    weight : Tensor of float64, shape (N,)
    constant : float, default 0.0

    Attributes
    ----------
    factors : Tensor, shape (p, N)
    parts : tuple of Part
        The terms of positive and of negative weight.
    margin : float
        What is gained less is rounding.
    most : float
        No subset has more.
    """

    def __init__(self, factors: Tensor, weight: Tensor, constant: float = 0.0) -> None:
        self.factors, weight = _positive_first(weight, factors, weight)
        n_rising = int((weight > 0).sum())
        rising, falling = slice(0, n_rising), slice(n_rising, len(weight))
        self.parts = (Part(rising, weight[rising]), Part(falling, -weight[falling]))
        self._constant = constant
        self.margin = _MARGIN * float(weight.abs().sum())
        self.most = constant + float(weight[rising].sum())

    def value(self, sums: Tensor) -> Tensor:
        """Objective, shape (...), of sums of the parts, shape (2, ...)."""
        return self._constant + sums[0] - sums[1]

    def of_columns(self, sums: Tensor, alone: Tensor, more: int, best: float) -> Tensor:
        """Bound of subsets that hold one of the columns left and at least one other, shape (m,).

        Parameters
        ----------
        sums : Tensor, shape (2, m)
            With those chosen and each column.
        alone : Tensor, shape (2,)
            With those chosen.
        more : int
            Columns that may be added to those chosen.
        best : float
            The best objective known.
        """
        return self._constant + bound_columns(sums[0], sums[1], float(alone[1]), more)

    def of_pairs(
        self, sums: Tensor, pairs: Tensor, more: int, best: float, *, columnwise: bool
    ) -> Tensor:
        """Bound of subsets that hold a pair of columns and at least one other, shape (m, m).

        Parameters
        ----------
        sums : Tensor, shape (2, m)
        pairs : Tensor, shape (2, m, m)
            With those chosen and each pair.
        more, best
            As in `of_columns`.
        columnwise : bool
            As in `bound_pairs`.
        """
        bounds = bound_pairs(sums[1], pairs[0], pairs[1], more, columnwise=columnwise)
        return self._constant + bounds


class NormalisedAlignment:
    """(22): ``f = N / √D``, ``N = 1 + Σ_k w_k Π e_jk`` and ``D = n + Σ_k c_k Π e_jk²``.

    Bounds are those of ``N − λ √D`` with λ the best known, and √D, which is concave, not below its
    chord ``(D + s t) / (s + t)`` where it is between s and t. For each range of norms that is a
    difference of sums again: D joins what falls. Outside of its range a chord lies above √D, hence
    the largest bound of all ranges holds.

    Parameters
    ----------
    factors : Tensor of float64, shape (p, N)
        Best with the terms of positive weight first; they are copied otherwise.
    weight, count : Tensor of float64, shape (N,)
        w and c.
    n : int
        Rows.

    Attributes
    ----------
    factors : Tensor, shape (p, N)
    parts : tuple of Part
        The terms of positive and of negative weight, and D − n.
    margin : float
        What is gained less is rounding.
    most : float
        No subset has more.
    """

    def __init__(self, factors: Tensor, weight: Tensor, count: Tensor, n: int) -> None:
        self.factors, weight, count = _positive_first(weight, factors, weight, count)
        n_rising = int((weight > 0).sum())
        rising, falling = slice(0, n_rising), slice(n_rising, len(weight))
        self.parts = (
            Part(rising, weight[rising]),
            Part(falling, -weight[falling]),
            Part(slice(0, len(weight)), count, power=2),
        )
        self._n = n
        self.margin, self.most = _MARGIN, 1.0

    def value(self, sums: Tensor) -> Tensor:
        """Objective, shape (...), of sums of the parts, shape (3, ...)."""
        return (1 + sums[0] - sums[1]) / (self._n + sums[2]).sqrt()

    def of_columns(self, sums: Tensor, alone: Tensor, more: int, best: float) -> Tensor:
        """As `CentroidDistance.of_columns`."""

        def with_slope(slope: float) -> Tensor:
            falling, start = sums[1] + slope * sums[2], float(alone[1] + slope * alone[2])
            return bound_columns(sums[0], falling, start, more)

        return self._over_chords(with_slope, float(sums[2].max()), best)

    def of_pairs(
        self, sums: Tensor, pairs: Tensor, more: int, best: float, *, columnwise: bool
    ) -> Tensor:
        """As `CentroidDistance.of_pairs`."""

        def with_slope(slope: float) -> Tensor:
            single, double = sums[1] + slope * sums[2], pairs[1] + slope * pairs[2]
            return bound_pairs(single, pairs[0], double, more, columnwise=columnwise)

        return self._over_chords(with_slope, float(pairs[2].max()), best)

    def _over_chords(
        self, with_slope: Callable[[float], Tensor], largest: float, best: float
    ) -> Tensor:
        """Largest bound over the ranges of norms, from √n to that of the largest D − n."""
        low, high = math.sqrt(self._n), math.sqrt(self._n + largest)
        n_ranges = max(1, math.ceil(math.log(high / low) / math.log(_RATIO)))
        ends = [low * (high / low) ** (i / n_ranges) for i in range(n_ranges + 1)]
        bounds = None
        for s, t in pairwise(ends):
            slope = best / (s + t)
            gain = 1 + with_slope(slope) - slope * (self._n + s * t)
            # N ≤ best √D + gain, and √D is between s and t.
            bound = best + torch.where(gain > 0, gain / s, gain / t)
            bounds = bound if bounds is None else torch.maximum(bounds, bound)
        assert bounds is not None
        return bounds


Alignment = CentroidDistance | NormalisedAlignment


def _positive_first(weight: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Tensors with the terms, their last axis, of positive weight first; themselves if they are."""
    if bool((weight[: int((weight > 0).sum())] > 0).all()):
        return list(tensors)
    order = torch.argsort(weight, descending=True)
    return [each[..., order] for each in tensors]
