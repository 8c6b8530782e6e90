"""The best small subset of columns, by branch and bound over products of their factors.

Maximises a `CentroidDistance` or a `NormalisedAlignment`, which are made of sums over products of
factors ``0 ≤ e_jk ≤ 1``, over subsets of at most θ columns. Products of matrices give the objective
of all pairs of columns that a node may add; what they say of single pairs bounds every larger
subset (`selection.subset_bounds`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bootprob.optimization.search_result import Found
from bootprob.runtime.row_blocks import row_blocks
from bootprob.selection.alignment.objectives import Alignment, Part

__all__ = ["SubsetSearch"]

Allowed = Callable[[list[int]], bool]

_CHEAP = 16  # bounds of all pairs of m columns take about as long as a product over 16 m terms


@dataclass(frozen=True)
class _Node:
    """Columns chosen, and those that may still be added, each of which was evaluated.

    `sums`, of shape (parts, m), are those of the objective's parts with the columns chosen and each
    of `left`, and `alone`, of shape (parts,), with the columns chosen.
    """

    chosen: tuple[int, ...]
    left: Tensor
    sums: Tensor
    alone: Tensor
    bound: float

    def only(self, keep: Tensor) -> _Node:
        return replace(self, left=self.left[keep], sums=self.sums[:, keep])


class SubsetSearch:
    """A search and what it has found so far.

    Parameters
    ----------
    objective : CentroidDistance or NormalisedAlignment
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
        objective: Alignment,
        largest: int,
        *,
        allowed: Allowed | None = None,
        time_limit: float | None = None,
    ) -> None:
        self._started = time.perf_counter()
        self._limit = math.inf if time_limit is None else time_limit
        self._objective, self._factors = objective, objective.factors
        self._largest, self._allowed = min(largest, len(self._factors)), allowed
        self._nothing = torch.stack([part.weight.sum() for part in objective.parts])
        self.path = [Found(0.0, float(objective.value(self._nothing)), ())]
        self.bound, self.n_evaluated = math.inf, 1
        self.n_subsets = 1 + _subsets(len(self._factors), 1, self._largest)

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

        `tell` is called with the number of subsets that were evaluated or excluded since it
        last was; `n_subsets` − 1 in all.
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
        return self._best + self._objective.margin

    @property
    def _best(self) -> float:
        return self.path[-1].objective

    def _root(self) -> list[_Node]:
        """Evaluate the single columns."""
        sums = self._offer_one_more(())
        self._tell(sums.shape[1])
        if self._largest == 1:
            return []
        everything = torch.arange(sums.shape[1], device=sums.device)
        return [_Node((), everything, sums, self._nothing, self._objective.most)]

    def _expand(self, node: _Node) -> list[_Node]:
        """Evaluate a node with two columns more; return its children that may lead to more."""
        more, m = self._largest - len(node.chosen), len(node.left)
        node = self._reduced(node, more)
        self._tell(_subsets(m, 2, more) - _subsets(len(node.left), 2, more))
        m = len(node.left)
        if m < 2:
            return []
        pairs = self._with_two_more(node)
        self._offer_pairs(node, self._objective.value(pairs))
        self._tell(math.comb(m, 2))
        if more == 2 or m == 2:
            return []
        columnwise = _CHEAP * m > self._factors.shape[1]
        while len(node.left) > 0:
            bounds = self._objective.of_pairs(
                node.sums, pairs, more, self._best, columnwise=columnwise
            )
            keep = (bounds > self._enough).any(dim=1)
            if bool(keep.all()):
                return self._children(node, pairs, bounds)
            self._tell(_subsets(len(keep), 3, more) - _subsets(int(keep.sum()), 3, more))
            node, pairs = node.only(keep), pairs[:, keep][:, :, keep]
        return []

    def _reduced(self, node: _Node, more: int) -> _Node:
        """Without the columns that lead to nothing better."""
        possible = node.bound > self._enough
        kept = [possible and self._may((*node.chosen, j)) for j in node.left.tolist()]
        node = node.only(torch.tensor(kept, dtype=torch.bool, device=node.left.device))
        while len(node.left) > 0:
            bounds = self._objective.of_columns(node.sums, node.alone, more, self._best)
            keep = bounds > self._enough
            if bool(keep.all()):
                break
            node = node.only(keep)
        return node

    def _children(self, node: _Node, pairs: Tensor, bounds: Tensor) -> list[_Node]:
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
                        sums=pairs[:, k, others],
                        alone=node.sums[:, k],
                        bound=min(node.bound, float(bounds[k, others].max())),
                    )
                )
        return children

    def _with_two_more(self, node: _Node) -> Tensor:
        """Sums with each pair of the columns left, shape (parts, m, m)."""
        m, parts = len(node.left), self._objective.parts
        sums = self._factors.new_zeros(len(parts), m, m)
        for each, part in zip(sums, parts, strict=True):
            for terms in row_blocks(len(part.weight), m):
                ours = self._of_part(part, terms)[node.left]
                if part.power == 2:
                    ours.square_()
                ours *= self._masses(node.chosen, part, terms).sqrt_()
                each += ours @ ours.T
        self.n_evaluated += math.comb(m, 2)
        return sums

    def _offer_one_more(self, chosen: tuple[int, ...]) -> Tensor:
        """Evaluate some columns, and each other with them; sums of those, shape (parts, p)."""
        p, parts = len(self._factors), self._objective.parts
        sums, alone = self._factors.new_zeros(len(parts), p), torch.zeros_like(self._nothing)
        for place, part in enumerate(parts):
            for terms in row_blocks(len(part.weight), p):
                masses, factors = self._masses(chosen, part, terms), self._of_part(part, terms)
                sums[place] += (factors.square() if part.power == 2 else factors) @ masses
                alone[place] += masses.sum()
        self._offer(chosen, float(self._objective.value(alone)))
        if len(chosen) < self._largest:
            values = self._objective.value(sums)
            self.n_evaluated += p
            for j in torch.argsort(values, descending=True).tolist():
                if float(values[j]) <= self._enough:
                    break
                if j not in chosen and self._may((*chosen, j)):
                    self._offer((*chosen, j), float(values[j]))
                    break
        return sums

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

    def _of_part(self, part: Part, terms: slice) -> Tensor:
        """Factors of some of the terms of a part, shape (p, terms)."""
        first = part.terms.start
        return self._factors[:, first + terms.start : first + terms.stop]

    def _masses(self, chosen: tuple[int, ...], part: Part, terms: slice) -> Tensor:
        """Some terms of a part with some columns chosen."""
        factors, masses = self._of_part(part, terms), part.weight[terms].clone()
        for j in chosen:
            for _ in range(part.power):
                masses *= factors[j]
        return masses


def _subsets(n: int, smallest: int, largest: int) -> int:
    """Number of subsets of n of at least `smallest` and at most `largest`."""
    return sum(math.comb(n, k) for k in range(smallest, largest + 1))
