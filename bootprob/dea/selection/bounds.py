"""Upper bounds of what any p outputs can attain, from what fewer and from what all attain.

Under a set S of outputs the efficiency of a unit is a maximum of additive functions: the weights
that are best for S remain feasible when some of their outputs are dropped, also where weights have
bounds. So any sets T that cover each output of S equally often, c times, have ``Σ E(T) ≥ c E(S)``;
all pairs in S do so with ``c = p − 1``. And E(S) is at most what all outputs attain. Each objective
grows with each efficiency, hence what bounds the efficiencies bounds it.
"""

from __future__ import annotations

import numpy as np

from bootprob.dea.selection.bounded import Evaluator
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.runtime.arrays import Floats, Integers

__all__ = ["PairBounds", "efficiency_ceiling"]


_MOST_BYTES = 2**30  # that efficiencies under all pairs may take
_ROUNDING = 1e-9


def efficiency_ceiling(evaluator: Evaluator) -> Floats:
    """Efficiencies that those under no selection exceed, shape (K,)."""
    return np.minimum(evaluator.most() + _ROUNDING, 1.0)


class PairBounds:
    """Efficiencies under single outputs and pairs, and what they say of larger sets.

    Parameters
    ----------
    deadline : float
        On the clock of `time.perf_counter`.

    Attributes
    ----------
    pairs : ndarray, shape (M, M, K) or (0, 0, 0)
        Efficiencies under pairs, and on the diagonal under single outputs. Empty where they would
        take over 1 GiB, or more time than there is: then nothing is bounded by them.
    """

    def __init__(self, evaluator: Evaluator, deadline: float) -> None:
        m, n = evaluator.outputs.shape
        self.pairs = np.empty((0, 0, 0))
        if 8 * m * m * n <= _MOST_BYTES:
            pairs = np.empty((m, m, n))
            for first in range(m):
                if not evaluator.fill_pairs(first, pairs, deadline):
                    break
            else:
                self.pairs = pairs
        self._best = self.pairs.max(axis=1) if len(self.pairs) else self.pairs

    def of_node(
        self,
        objective: EfficiencyObjective,
        chosen: tuple[int, ...],
        candidates: Integers,
        size: int,
        ceiling: Floats,
    ) -> float:
        """Of the sets of `size` outputs that hold those chosen, and else candidates.

        A bound on the merits of the objective, for efficiencies below the ceiling (K,).
        """
        most = objective.merit(ceiling)
        more = size - len(chosen)
        if not len(self.pairs) or size < 2 or more < 1:
            return most
        inside = list(chosen)
        own = self.pairs[inside][:, inside]
        own = (own.sum(axis=(0, 1)) - own[range(len(inside)), range(len(inside))].sum(axis=0)) / 2
        crossing = self.pairs[inside][:, candidates].sum(axis=0)
        # Each pair of candidates is shared by its two outputs.
        gains = crossing + (more - 1) / 2 * self._best[candidates]
        sums = own + _top(gains, more)
        bound = objective.merit(np.minimum(ceiling, sums / (size - 1)))
        if objective.name in ("mean", "weighted"):
            among = self.pairs[np.ix_(candidates, candidates)] @ objective.weight
            np.fill_diagonal(among, -np.inf)
            gain = crossing @ objective.weight
            if more > 1:
                gain = gain + _top(among.T, more - 1) / 2
            total = float(own @ objective.weight) + float(_top(gain[:, None], more)[0])
            bound = min(bound, total / (size - 1))
        return min(most, bound)


def _top(values: Floats, count: int) -> Floats:
    """Sum of the `count` largest of each column."""
    if count >= len(values):
        return np.where(np.isfinite(values), values, 0.0).sum(axis=0)
    return np.partition(values, len(values) - count, axis=0)[len(values) - count :].sum(axis=0)
