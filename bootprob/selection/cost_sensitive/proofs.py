"""What no columns that keep the rates can cost less than, by scans of single columns and pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar
from bootprob.selection.cost_sensitive.planes import PairScan, scan_columns
from bootprob.selection.cost_sensitive.search import RateSearch
from bootprob.selection.feature_costs import FeatureCosts

__all__ = ["SmallSubsets"]


_MOST_PAIRS = 4_000_000  # to put in order, 100 MB
_MOST_TRIPLES = 200_000


class SmallSubsets:
    """Scans one column, then two at a time, by increasing cost.

    Parameters
    ----------
    search : RateSearch
        Is offered what is found.

    Attributes
    ----------
    bound : float
        Every subset of columns that keeps the rates costs as much at least.
    least_size : int
        Every such subset that is cheaper than the best known has as many columns at least.
    """

    def __init__(self, search: RateSearch) -> None:
        self._search, self._problem, self._costs = search, search.problem, search.costs
        self.least_size = 1
        self._alone = _costs_alone(self._costs)
        self.bound = float(self._alone.min())
        self._gap = np.zeros(0)

    def scan_columns(self) -> None:
        """Try every column alone: the cheapest that keeps the rates, and the best of equals."""
        self._gap, sign = scan_columns(self._problem)
        apart = np.flatnonzero(self._gap > 0)
        order = apart[np.lexsort((-self._gap[apart], self._alone[apart]))]
        for column in order.tolist():
            # With one column, w = 2 / gap is the hyperplane least in M₂ and M₃: this is exact.
            one, own_sign = (column,), sign[column : column + 1]
            found = self._problem.hyperplane(one, own_sign)
            found = found or self._problem.hyperplane(one, -own_sign)
            if found is not None:
                self._search.offer(found)
                break
        self._search.n_evaluated += len(sign)
        self.least_size = 2
        self.bound = self._capped(_cheapest_pair(self._costs))

    def scan_pairs(self, *, verbose: bool = False) -> None:
        """Try the pairs that are cheaper than what is known, the cheapest first.

        Stops at the first that keeps the rates: no pair is cheaper. Where M₂ or M₃ excludes the
        hyperplanes found of a pair, it stays undecided and the bound below its cost.
        """
        pairs, cost = self._cheaper_pairs()
        if pairs is None:
            return
        scan, undecided, left = PairScan(self._problem), math.inf, math.inf
        with progress_bar("Pairs", len(pairs), shown=verbose) as advance:
            for pair, paid in zip(pairs.tolist(), cost.tolist(), strict=True):
                if self._search.out_of_time:
                    left = paid
                    break
                direction = scan.direction(*pair)
                self._search.n_evaluated += 1
                if direction is not None:
                    features = tuple(pair)
                    self._search.directions.offer(features, direction)
                    found = self._problem.hyperplane(features, direction)
                    found = found or self._search.directions.hyperplane(features)
                    if found is not None:
                        self._search.offer(found)
                        break
                    undecided = min(undecided, paid)
                advance(1)
        lowest = min(undecided, left)
        if math.isinf(lowest):
            self.least_size = 3
        self.bound = max(self.bound, self._capped(min(lowest, cheapest_triple(self._costs))))

    def _capped(self, cost: float) -> float:
        """A bound on subsets not scanned, beside the best known."""
        return min(cost, self._search.cost)

    def _cheaper_pairs(self) -> tuple[NDArray[np.intp] | None, Floats]:
        """Pairs below the best cost by cost, then by what their columns do alone."""
        columns = np.flatnonzero(self._search.cheaper(self._alone))
        if len(columns) * (len(columns) - 1) // 2 > _MOST_PAIRS:
            return None, np.zeros(0)
        first, second = (columns[k] for k in np.triu_indices(len(columns), 1))
        cost = _pair_costs(self._costs, first, second)
        cheaper = self._search.cheaper(cost)
        first, second, cost = first[cheaper], second[cheaper], cost[cheaper]
        order = np.lexsort((-(self._gap[first] + self._gap[second]), cost))
        return np.column_stack([first, second])[order], cost[order]


def cheapest_triple(costs: FeatureCosts) -> float:
    """What three columns cost at least; exact without groups and for few columns.

    inf if there are fewer.
    """
    p = len(costs.own)
    if p < 3:
        return math.inf
    if costs.groups and math.comb(p, 3) <= _MOST_TRIPLES:
        triples = np.array(list(itertools.combinations(range(p), 3)))
        total = costs.own[triples].sum(axis=1)
        for members, cost in costs.groups:
            total += cost * members[triples].any(axis=1)
        return float(total.min())
    return max(float(np.partition(costs.own, 2)[:3].sum()), _cheapest_pair(costs))


def _costs_alone(costs: FeatureCosts) -> Floats:
    alone = costs.own.copy()
    for members, cost in costs.groups:
        alone += cost * members
    return alone


def _cheapest_pair(costs: FeatureCosts) -> float:
    """What two columns cost at least; inf if there are fewer."""
    p = len(costs.own)
    if p < 2:
        return math.inf
    if costs.groups and p * (p - 1) // 2 <= _MOST_PAIRS:
        return float(_pair_costs(costs, *np.triu_indices(p, 1)).min())
    lowest = float(np.partition(costs.own, 1)[:2].sum())
    return max(lowest, float(np.partition(_costs_alone(costs), 1)[1]))


def _pair_costs(costs: FeatureCosts, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    total = costs.own[first] + costs.own[second]
    for members, cost in costs.groups:
        total = total + cost * (members[first] | members[second])
    return np.asarray(total, dtype=np.float64)
