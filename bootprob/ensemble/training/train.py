"""Trains shards, block by block of machines, and adds up what they say of rows out of bag.

Nothing of size rows × replicates × models outlives a block of replicates, and of what a block
brings nothing of that size is made anew: it is reduced a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.ensemble.training.constrained import iter_fit_constrained
from bootprob.ensemble.training.shards import Shard, ShardResult, Work
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import FittedBatch, Problem, iter_fit

__all__ = ["train_shards"]


# Scores reduced at a time: below what torch splits over a CPU's threads (which would make the last
# bits depend on their number), within its caches; enough to make launches on a GPU worth while.
_AT_ONCE = {"cpu": 2**15 - 1, "cuda": 2**24}


def train_shards(
    work: Work,
    shards: Sequence[Shard],
    device: torch.device,
    advance: Callable[[int], None] = lambda replicates: None,
) -> Iterator[ShardResult]:
    """Train consecutive shards in one batch, and hand each out when it is done.

    Parameters
    ----------
    work : Work
        The whole.
    shards : sequence of Shard
        Consecutive ones of it.
    device : torch.device
    advance : callable, optional
        Told the number of replicates that were just trained.

    Yields
    ------
    ShardResult

    Raises
    ------
    UnattainableRateError
        A constrained machine cannot keep both rates, as far as was found.
    """
    problem = work.problem.take(slice(shards[0].replicates.start, shards[-1].replicates.stop))
    blocks = _blocks(problem, work, device)
    offset = shards[0].replicates.start
    rest: tuple[FittedBatch, Tensor | None] | None = None
    for shard in shards:
        stop = shard.replicates.stop - offset
        done = shard.replicates.start - offset
        y = problem.y if problem.shares_labels else problem.y[done]
        sums = _OutOfBagSums(y, work.weight[shard.pair], problem.n_models, device)
        models, accuracies, gaps = [], [], []
        while done < stop:
            block, gap = next(blocks) if rest is None else rest
            rest, size = None, stop - done
            if len(block.intercept) > size:
                rest = block.take(slice(size, None)), None if gap is None else gap[size:]
                block = block.take(slice(0, size))
                gap = None if gap is None else gap[:size]
            size = len(block.intercept)
            assert block.train_scores is not None
            first = shard.drawn.start + done - (shard.replicates.start - offset)
            outside = work.drawn[first : first + size] == 0
            accuracies.append(sums.add(block.train_scores, outside))
            block.train_scores = None
            models.append(block)
            if gap is not None:
                gaps.append(gap)
            done += size
            advance(size)
        whole = replace(FittedBatch.concatenate(models), replicates=shard.drawn)
        yield ShardResult(
            models=whole,
            accuracy=torch.cat(accuracies),
            votes=sums.votes,
            score_sums=sums.scores,
            control_gap=torch.cat(gaps) if gaps else None,
        )


def _blocks(
    problem: Problem, work: Work, device: torch.device
) -> Iterator[tuple[FittedBatch, Tensor | None]]:
    """Machines block by block, with what constraints on them cost at most."""
    recipe = work.recipe
    options: dict[str, Any] = {
        "tol": recipe.tol,
        "device": device,
        "dtype": getattr(torch, recipe.dtype),
        "memory_limit": recipe.memory_limit,
    }
    if not recipe.floors:
        for models in iter_fit(problem, **options):
            yield models, None
        return
    assert recipe.shares is not None
    asked = work.weight[0], recipe.floors, recipe.shares
    for block in iter_fit_constrained(problem, *asked, **options):
        if recipe.exact:
            from bootprob.ensemble.training.proven import prove  # needs the extra "mip"

            block = prove(block, problem, *asked, time_limit=recipe.time_limit)
        yield block.models, block.gap


class _OutOfBagSums:
    """Votes and scores of every row under every model, summed where the row is out of bag.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Labels, −1 or +1.
    weight : ndarray, shape (n,)
        Row weights for the accuracies; rows of weight 0 count nowhere.
    n_models : int
        R.
    device : torch.device

    Attributes
    ----------
    votes : Tensor of int32, shape (R, n)
    scores : Tensor, shape (R, n)
    """

    def __init__(
        self, y: NDArray[Any], weight: Floats, n_models: int, device: torch.device
    ) -> None:
        self._positive = torch.from_numpy(y > 0).to(device)
        self._weight = torch.from_numpy(weight).to(device)
        self.votes = torch.zeros(n_models, len(y), dtype=torch.int32, device=device)
        self.scores = torch.zeros(n_models, len(y), dtype=torch.float64, device=device)

    def add(self, scores: Tensor, outside: NDArray[np.bool_]) -> Tensor:
        """Add some replicates, scores (b, R, n); returns their accuracies, shape (b, R)."""
        b, R, n = scores.shape
        correct = scores.new_zeros(b, R)
        total = scores.new_zeros(b, 1)
        at_once = _AT_ONCE[scores.device.type]
        step = max(1, at_once // (R * n))
        for start in range(0, b, step):
            items = slice(start, min(start + step, b))
            for rows in row_blocks(n, (items.stop - start) * R, at_once):
                part = scores[items, :, rows]
                inside = torch.from_numpy(outside[items, rows]).to(scores.device)
                mass = inside * self._weight[rows]
                above = part > 0
                self.votes[:, rows] += (above & inside[:, None]).sum(0, dtype=torch.int32)
                # One by one, or the last bits would depend on where blocks of replicates end.
                for of_replicate in part * inside[:, None]:
                    self.scores[:, rows] += of_replicate
                correct[items] += ((above == self._positive[rows]) * mass[:, None]).sum(2)
                total[items] += mass.sum(1, keepdim=True)
        return correct / total
