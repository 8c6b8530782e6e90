"""Ranges of cost in which rules may still be missing, and where to look next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bootprob.runtime.arrays import Bools, Floats
from bootprob.selection.feature_costs import FeatureCosts
from bootprob.selection.pareto.front import ParetoPoint

__all__ = ["CostLevels", "CostRange", "least_useful_left_out", "merged"]


_WHOLE = 1e-9  # relative, of costs that are multiples of one number


@dataclass(frozen=True)
class CostRange:
    """Costs above `low` and up to `high`, in which rules may be missing.

    Attributes
    ----------
    margin : float
        Of the best rule known that costs `low` or less; only larger ones are wanted.
    """

    low: float
    high: float
    margin: float

    def inside(self, points: Sequence[ParetoPoint], tolerance: float) -> list[float]:
        """Costs of the points in it that are worth theirs, ascending."""
        return sorted(
            point.cost
            for point in points
            if self.low < point.cost <= self.high and point.margin > self.margin + tolerance
        )

    def cheapest(self, points: Sequence[ParetoPoint], tolerance: float) -> float:
        """Cost up to which the cheap end is looked at by itself: that of the cheapest known."""
        return next(iter(self.inside(points, tolerance)), self.high)


class CostLevels:
    """What subsets of the columns can cost, as far as that is easy to say.

    Costs that differ by less than `step` are one.
    """

    def __init__(self, costs: FeatureCosts, step: float) -> None:
        prices = np.r_[costs.own, [shared for _, shared in costs.groups]]
        prices = prices[prices > 0]
        self._step = step
        # Where all prices are multiples of the least, so is what any columns cost.
        self._unit = float(prices.min()) if len(prices) else 0.0
        if len(prices) and (abs(prices / self._unit % 1 - 0.5) < 0.5 - _WHOLE).any():
            self._unit = 0.0

    def below(self, cost: float) -> float:
        """What columns can cost at most that cost less."""
        return self.up_to(cost - self._step)

    def up_to(self, cost: float) -> float:
        """What columns can cost at most that cost no more."""
        if not self._unit:
            return cost
        return float(np.floor(cost / self._unit + _WHOLE * cost / self._unit)) * self._unit


def least_useful_left_out(
    features: Sequence[int], gains: Floats, costs: FeatureCosts, cap: float
) -> Bools:
    """Columns of a rule that cost `cap` at most, without those that gain least for their price.

    `features` are the columns of the rule, `gains` (p,) what each brings to the margin; a mask
    (p,) is returned. Columns of a group share what is paid once.
    """
    kept = np.zeros(len(gains), dtype=bool)
    kept[list(features)] = True
    price = costs.own.copy()
    for members, shared in costs.groups:
        together = members & kept
        price[together] += shared / max(together.sum(), 1)
    priced = np.flatnonzero(kept & (price > 0))
    for j in priced[np.argsort(gains[priced] / price[priced], kind="stable")]:
        if costs.total(np.flatnonzero(kept).tolist()) <= cap:
            break
        kept[j] = False
    return kept


def merged(ranges: Sequence[CostRange], step: float) -> tuple[tuple[float, float], ...]:
    """Least and greatest cost of each range, by cost; those that touch are one."""
    ends: list[tuple[float, float]] = []
    for low, high in sorted((each.low, each.high) for each in ranges):
        if ends and low <= ends[-1][1] + 2 * step:
            ends[-1] = (ends[-1][0], max(ends[-1][1], high))
        else:
            ends.append((low, high))
    return tuple(ends)
