"""The best small subset of columns, by branch and bound over products of their factors.

Maximises ``f(S) = Σ_k w_k Π_{j ∈ S} e_jk`` with factors ``0 ≤ e_jk ≤ 1`` over subsets of at most θ
columns. Products of matrices give the objective of all pairs of columns that a node may add; what
they say of single pairs bounds every larger subset (`selection.subset_bounds`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bootprob.row_blocks import row_blocks
from bootprob.selection.results import Found
from bootprob.selection.subset_bounds import bound_columns, bound_pairs

__all__ = ["SubsetSearch"]

Allowed = Callable[[list[int]], bool]

_MARGIN = 1e-12  # of Σ|w|; what is gained less is rounding
_CHEAP = 16  # bounds of all pairs of m columns take about as long as a product over 16 m terms


@dataclass(frozen=True)
class _Node:
    """Columns chosen, and those that may still be added, each of which was evaluated.

    `rising` and `falling`, of shape (m,), are the sums of the terms of positive and of negative
    weight, with the columns chosen and each of `left`; their difference is the objective. `alone`
    is the falling sum with the columns chosen.
    """

    chosen: tuple[int, ...]
    left: Tensor
    rising: Tensor
    falling: Tensor
    alone: float
    bound: float

    def only(self, keep: Tensor) -> _Node:
        return replace(
            self, left=self.left[keep], rising=self.rising[keep], falling=self.falling[keep]
        )


class SubsetSearch:
    """A search and what it has found so far.

    Parameters
    ----------
    factors : Tensor of float64, shape (p, N)
        Best with the terms of positive weight first; they are copied otherwise.
    weight : Tensor of float64, shape (N,)
    largest : int
        θ.
    allowed : callable, optional
        Whether the columns of a list may be chosen together. Of columns that may not, no larger
        subset may be: a budget, with costs that are never negative.
    time_limit : float, optional
        Seconds.

    Attributes
    ----------
    path : list of Found
        Every subset that was the best in its time; the last is the best.
    bound : float
        No subset has a larger objective.
    n_evaluated : int
        Evaluations of the objective.
    n_subsets : int
        All there are.
    """

    def __init__(
        self,
        factors: Tensor,
        weight: Tensor,
        largest: int,
        *,
        allowed: Allowed | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._started = time.perf_counter()
        self._limit = math.inf if time_limit is None else time_limit
        self._largest, self._allowed = min(largest, len(factors)), allowed
        self._margin = _MARGIN * float(weight.abs().sum())
        self._n_rising = int((weight > 0).sum())
        if not bool((weight[: self._n_rising] > 0).all()):
            order = torch.argsort(weight, descending=True)
            factors, weight = factors[:, order], weight[order]
        self._factors, self._weight = factors, weight
        self.path = [Found(0.0, float(weight.sum()), ())]
        self.bound, self.n_evaluated = math.inf, 1
        self.n_subsets = 1 + _subsets(len(factors), 1, self._largest)

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.perf_counter() - self._started

    def improve(self) -> None:
        """Add the best column while any helps, then exchange one for another while that helps."""
        before = None
        while before is not self.path[-1] and self.seconds < self._limit:
            before = self.path[-1]
            chosen = before.features
            smaller = [tuple(j for j in chosen if j != left_out) for left_out in chosen]
            for rest in [chosen, *smaller]:
                self._offer_one_more(rest)
                if self.path[-1] is not before:
                    break

    def exhaust(self, tell: Callable[[int], None] = lambda subsets: None) -> bool:
        """Evaluate or exclude every subset; return whether time sufficed.

        Parameters
        ----------
        tell : callable, optional
            Called with the number of subsets that were evaluated or excluded since it last was;
            `n_subsets` − 1 in all.
        """
        self._tell = tell
        # The largest bound first: what time does not suffice for is bounded as well as can be.
        serial = itertools.count()
        waiting = [(-node.bound, next(serial), node) for node in self._root()]
        while waiting:
            bound, _, node = heapq.heappop(waiting)
            if self.seconds > self._limit:
                self.bound = max(self.path[-1].objective, -bound)
                return False
            for child in self._expand(node):
                heapq.heappush(waiting, (-child.bound, next(serial), child))
        self.bound = self.path[-1].objective
        return True

    @property
    def _enough(self) -> float:
        """Bound below which nothing is worth a look."""
        return self.path[-1].objective + self._margin

    def _root(self) -> list[_Node]:
        """Evaluate the single columns."""
        rising, falling = self._offer_one_more(())
        self._tell(len(rising))
        if self._largest == 1:
            return []
        most, least = self._weight[: self._n_rising], self._weight[self._n_rising :]
        everything = torch.arange(len(rising), device=rising.device)
        return [_Node((), everything, rising, falling, -float(least.sum()), float(most.sum()))]

    def _expand(self, node: _Node) -> list[_Node]:
        """Evaluate a node with two columns more; return its children that may lead to more."""
        more, m = self._largest - len(node.chosen), len(node.left)
        node = self._reduced(node, more)
        self._tell(_subsets(m, 2, more) - _subsets(len(node.left), 2, more))
        m = len(node.left)
        if m < 2:
            return []
        rising, falling = self._with_two_more(node)
        self._offer_pairs(node, rising - falling)
        self._tell(math.comb(m, 2))
        if more == 2 or m == 2:
            return []
        columnwise = _CHEAP * m > self._factors.shape[1]
        while len(node.left) > 0:
            bounds = bound_pairs(node.falling, rising, falling, more, columnwise=columnwise)
            keep = (bounds > self._enough).any(dim=1)
            if bool(keep.all()):
                return self._children(node, rising, falling, bounds)
            self._tell(_subsets(len(keep), 3, more) - _subsets(int(keep.sum()), 3, more))
            node, rising, falling = node.only(keep), rising[keep][:, keep], falling[keep][:, keep]
        return []

    def _reduced(self, node: _Node, more: int) -> _Node:
        """Without the columns that lead to nothing better."""
        possible = node.bound > self._enough
        kept = [possible and self._may((*node.chosen, j)) for j in node.left.tolist()]
        node = node.only(torch.tensor(kept, dtype=torch.bool, device=node.left.device))
        while len(node.left) > 0:
            bounds = bound_columns(node.rising, node.falling, node.alone, more)
            keep = bounds > self._enough
            if bool(keep.all()):
                break
            node = node.only(keep)
        return node

    def _children(
        self, node: _Node, rising: Tensor, falling: Tensor, bounds: Tensor
    ) -> list[_Node]:
        """A node for each column, which may get any of those that come after it."""
        more = self._largest - len(node.chosen) - 1
        children = []
        left = torch.argsort(bounds.amax(dim=1), descending=True)
        for k in left.tolist():
            left = left[1:]
            others = left[bounds[k, left] > self._enough]
            self._tell(_subsets(len(left), 2, more) - _subsets(len(others), 2, more))
            if len(others) > 1:
                children.append(
                    _Node(
                        chosen=(*node.chosen, int(node.left[k])),
                        left=node.left[others],
                        rising=rising[k, others],
                        falling=falling[k, others],
                        alone=float(node.falling[k]),
                        bound=min(node.bound, float(bounds[k, others].max())),
                    )
                )
        return children

    def _with_two_more(self, node: _Node) -> tuple[Tensor, Tensor]:
        """Rising and falling sums with each pair of the columns left."""
        sums = self._factors.new_zeros(2, len(node.left), len(node.left))
        for sign, terms in self._terms(len(node.left)):
            ours = self._factors[:, terms][node.left]
            ours *= self._masses(node.chosen, terms).sqrt_()
            sums[sign] += ours @ ours.T
        self.n_evaluated += math.comb(len(node.left), 2)
        return sums[0], sums[1]

    def _offer_one_more(self, chosen: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Evaluate some columns, and each other with them; rising and falling sums of those."""
        p = len(self._factors)
        sums, alone = self._factors.new_zeros(2, p), 0.0
        for sign, terms in self._terms(p):
            masses = self._masses(chosen, terms)
            sums[sign] += self._factors[:, terms] @ masses
            alone += float(masses.sum()) * (-1 if sign else 1)
        self._offer(chosen, alone)
        if len(chosen) < self._largest:
            values = sums[0] - sums[1]
            self.n_evaluated += p
            for j in torch.argsort(values, descending=True).tolist():
                if float(values[j]) <= self._enough:
                    break
                if j not in chosen and self._may((*chosen, j)):
                    self._offer((*chosen, j), float(values[j]))
                    break
        return sums[0], sums[1]

    def _offer_pairs(self, node: _Node, values: Tensor) -> None:
        m = len(node.left)
        values = values.masked_fill(torch.ones_like(values, dtype=torch.bool).tril(), -math.inf)
        while float(values.max()) > self._enough:
            row, column = divmod(int(values.argmax()), m)
            pair = (*node.chosen, int(node.left[row]), int(node.left[column]))
            if self._may(pair):
                self._offer(pair, float(values[row, column]))
            values[row, column] = -math.inf

    def _offer(self, chosen: tuple[int, ...], objective: float) -> None:
        if objective > self._enough:
            self.path.append(Found(self.seconds, objective, tuple(sorted(chosen))))

    def _may(self, chosen: tuple[int, ...]) -> bool:
        return self._allowed is None or self._allowed(list(chosen))

    def _terms(self, columns: int) -> Iterator[tuple[int, slice]]:
        """Blocks of the terms: rising ones (0), then falling ones (1)."""
        bounds = (0, self._n_rising, len(self._weight))
        for sign in range(2):
            for block in row_blocks(bounds[sign + 1] - bounds[sign], columns):
                yield sign, slice(block.start + bounds[sign], block.stop + bounds[sign])

    def _masses(self, chosen: tuple[int, ...], terms: slice) -> Tensor:
        """|Terms| with some columns chosen."""
        masses = self._weight[terms].abs()
        for j in chosen:
            masses *= self._factors[j, terms]
        return masses


def _subsets(n: int, smallest: int, largest: int) -> int:
    """Number of subsets of n of at least `smallest` and at most `largest`."""
    return sum(math.comb(n, k) for k in range(smallest, largest + 1))
