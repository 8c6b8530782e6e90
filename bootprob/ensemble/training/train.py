"""Trains shards, block by block of machines, and adds up what they say of rows out of bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bootprob.ensemble.training.constrained import iter_fit_constrained
from bootprob.ensemble.training.shards import Shard, ShardResult, Work
from bootprob.ensemble.training.trained_ensemble import OutOfBagSums
from bootprob_gpu import FittedBatch, Problem, iter_fit

__all__ = ["train_shards"]


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
        sums = OutOfBagSums(y, work.weight[shard.pair], problem.n_models, device)
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
