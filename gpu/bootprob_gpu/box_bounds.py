"""Box bounds of a block of replicates, on the device that trains them."""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.problem import Problem

__all__ = ["upper_on"]


def upper_on(device: torch.device, problem: Problem, items: slice) -> Tensor:
    """Box bounds of some replicates, shape (b, R, n), in memory of their own.

    Parameters
    ----------
    device : torch.device
    problem : Problem
    items : slice
        The replicates.
    """
    if problem.upper is not None:
        return torch.tensor(problem.upper_of(items), device=device)
    # The rule is applied on the device: a copy of its result takes longer than many a solve.
    mass = torch.from_numpy(problem.counts[items] * problem.row_weight).to(device)
    return torch.from_numpy(problem.C_per_model).to(device)[:, None] * mass[:, None]
