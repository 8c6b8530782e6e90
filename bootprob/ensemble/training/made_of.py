"""What the shards of an ensemble of machines depend on, for a checkpoint to compare."""

from __future__ import annotations

import numpy as np
import torch

from bootprob.ensemble.training.checkpoints import checksum, versions_of
from bootprob.ensemble.training.shards import Work
from bootprob_gpu import Problem

__all__ = ["made_of"]


def made_of(work: Work, device: torch.device) -> dict[str, str]:
    """Each part, under the name that a person knows it by.

    Not the rows as they were prepared: another number of threads may change their last bits.
    """
    problem, recipe = work.problem, work.recipe
    floors = [repr(floor) for floor in recipe.floors]
    constraints = [floors, recipe.shares, recipe.exact, recipe.time_limit if recipe.exact else None]
    shards = [(shard.pair, shard.drawn.start, shard.drawn.stop) for shard in work.shards(device)]
    return {
        "labels": checksum(problem.y),
        "weights": checksum(problem.row_weight, work.weight),
        "bootstrap samples": checksum(problem.counts, work.drawn),
        "C": checksum(problem.C),
        "kernel": _kernel(problem),
        "tol": repr(recipe.tol),
        "dtype": recipe.dtype,
        "constraints": repr(constraints),
        "device": device.type,
        "shards": checksum(np.array(shards)),
        **versions_of("torch", "numpy", "scipy", "numba", "scikit-learn"),
    }


def _kernel(problem: Problem) -> str:
    """Name and parameters of a kernel."""
    kernel = problem.kernel_function
    gamma = None if problem.gamma is None else problem.gamma.tolist()
    return " ".join(map(str, (kernel.name, gamma, *kernel.others.values())))
