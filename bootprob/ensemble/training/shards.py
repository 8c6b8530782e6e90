"""Shards: ranges of replicates that are trained alone, wherever, with the same result to the bit.

A shard is a pure function of the rows, its bootstrap samples and a recipe. Where shards begin
depends on the data alone, never on who trains them, so that sums over them, taken in their order,
are the same however the work was split. On a CPU what a machine becomes does not depend on those
trained beside it either; on CUDA it does in the last bits, and there a shard is always a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.metrics.rates import RateFloor
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob_gpu import Certificate, FittedBatch, Problem

__all__ = ["Draws", "Recipe", "Shard", "ShardResult", "Work"]

Counts = NDArray[np.integer[Any]]

_REPLICATES = 10  # of a shard on a CPU
_CUDA_MODELS, _CUDA_CELLS = 512, 2**24  # models, and models × rows, that keep a GPU busy


@dataclass(frozen=True)
class Shard:
    """Consecutive replicates of one pair of classes.

    Attributes
    ----------
    number : int
        Its place among all shards.
    pair : int
        Which pair of classes; 0 where there are two.
    replicates : slice
        Among the replicates of all pairs, one pair's after the other's: those of the problem.
    drawn : slice
        Among the bootstrap samples, which all pairs share.
    """

    number: int
    pair: int
    replicates: slice
    drawn: slice

    @property
    def size(self) -> int:
        """Number of replicates."""
        return self.replicates.stop - self.replicates.start


@dataclass(frozen=True)
class Recipe:
    """How machines are trained, apart from what they are trained on.

    Attributes
    ----------
    tol : float or None
        As for `bootprob_gpu.fit`.
    dtype : {"float64", "float32"}
    memory_limit : int or None
        Bytes; for each of several shards that are trained at the same time.
    floors : tuple of RateFloor
        Constraints on every machine (Ctrl2); none where it is empty.
    shares : dict of str to float
        The share of the rows that each of them needs.
    exact : bool
        Whether constrained machines are solved to a proven gap.
    time_limit : float
        Seconds for each machine that is.
    """

    tol: float | None
    dtype: str
    memory_limit: int | None
    floors: tuple[RateFloor, ...] = ()
    shares: dict[str, float] | None = None
    exact: bool = False
    time_limit: float = 300.0


@dataclass(frozen=True)
class Draws:
    """What the bootstrap samples are drawn from, so that anyone can draw those of a shard.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        Classes.
    weight : ndarray, shape (n,)
        Row weights.
    entropy : list of int
        Seed.
    size : int or None
        Rows of a sample, where that is not n.
    groups : ndarray of int, shape (n,), or None
        Of rows that are drawn together.
    """

    codes: NDArray[np.integer[Any]]
    weight: Floats
    entropy: list[int]
    size: int | None = None
    groups: Groups | None = None

    def counts(self, drawn: slice) -> Counts:
        """The samples of some replicates, shape (b, n)."""
        replicates = range(drawn.start, drawn.stop)
        seeded = self.entropy, self.size, self.groups
        return bootstrap_counts(self.codes, self.weight, replicates, *seeded)[0]


@dataclass(frozen=True)
class Work:
    """All machines of a fit.

    Attributes
    ----------
    problem : Problem
        P · B replicates: those of P pairs of classes, one pair's after the other's.
    drawn : ndarray of int, shape (B, n)
        The bootstrap samples. In a pair's own counts the rows of other classes are missing; they
        are out of bag only where they were not drawn.
    weight : ndarray, shape (P, n)
        Row weights for the accuracies of each pair.
    recipe : Recipe
    draws : Draws
        Where the bootstrap samples come from.
    members : ndarray of bool, shape (P, n), optional
        The rows of each pair; None where there are two classes.
    """

    problem: Problem
    drawn: Counts
    weight: Floats
    recipe: Recipe
    draws: Draws
    members: NDArray[np.bool_] | None = None

    def shards(self, device: torch.device) -> list[Shard]:
        """All shards, in the order of the problem's replicates."""
        B, n = self.drawn.shape
        R, size = self.problem.n_models, _REPLICATES
        if device.type == "cuda":
            size = max(size, ceil(_CUDA_MODELS / R), _CUDA_CELLS // (R * n))
        found: list[Shard] = []
        for pair in range(len(self.weight)):
            for start in range(0, B, size):
                drawn = slice(start, min(start + size, B))
                own = slice(pair * B + drawn.start, pair * B + drawn.stop)
                found.append(Shard(len(found), pair, own, drawn))
        return found


@dataclass
class ShardResult:
    """The machines of a shard and their out-of-bag sums.

    Attributes
    ----------
    models : FittedBatch
        b × R machines, without training scores.
    accuracy : Tensor, shape (b, R)
        As in `TrainedEnsemble`.
    votes : Tensor of int32, shape (R, n)
    score_sums : Tensor, shape (R, n)
    control_gap : Tensor, shape (b, R) or None
    """

    models: FittedBatch
    accuracy: Tensor
    votes: Tensor
    score_sums: Tensor
    control_gap: Tensor | None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but what the problem says as well, as plain arrays to be sent or stored."""
        models = self.models
        found: dict[str, Tensor | None] = {
            "accuracy": self.accuracy,
            "votes": self.votes,
            "score_sums": self.score_sums,
            "control_gap": self.control_gap,
            "intercept": models.intercept,
            "coef": models.coef,
            "dual_coef": models.dual_coef,
            "center": models.center,
        }
        found |= vars(models.certificate)
        return {name: each.cpu().numpy() for name, each in found.items() if each is not None}

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray[Any]],
        problem: Problem,
        shard: Shard,
        rows: Tensor,
        recipe: Recipe,
    ) -> ShardResult:
        """Restore what `to_arrays` was made of.

        Parameters
        ----------
        arrays : dict of ndarray
        problem : Problem
            Of all shards.
        shard : Shard
            Whose arrays these are.
        rows : Tensor, shape (n, p)
            The problem's, on the device that the machines are wanted on.
        recipe : Recipe
        """
        # Arrays that come through shared memory may be read-only, which torch does not like.
        found = {
            name: torch.from_numpy(each if each.flags.writeable else each.copy()).to(rows.device)
            for name, each in arrays.items()
        }
        scale = problem.scale if problem.shares_scale else problem.scale[shard.replicates]
        models = FittedBatch(
            intercept=found["intercept"],
            coef=found.get("coef"),
            dual_coef=found.get("dual_coef"),
            X=rows if "dual_coef" in found else None,
            center=found["center"],
            scale=torch.from_numpy(scale).to(rows.device),
            kernel=problem.kernel_function.to(rows.device),
            certificate=Certificate(
                **{each.name: found[each.name] for each in fields(Certificate)}
            ),
            replicates=shard.drawn,
            dtype=getattr(torch, recipe.dtype),
            memory_limit=recipe.memory_limit,
        )
        return cls(
            models,
            accuracy=found["accuracy"],
            votes=found["votes"],
            score_sums=found["score_sums"],
            control_gap=found.get("control_gap"),
        )
