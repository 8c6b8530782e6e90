"""Box bounds and labels of a block of replicates, on the device that trains them."""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.problem import Problem

__all__ = ["labels_on", "upper_on"]


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


def labels_on(device: torch.device, problem: Problem, items: slice, repeats: int) -> Tensor:
    """Labels of some replicates, shape (n,), or (b · repeats, n) where each has its own.

    Parameters
    ----------
    device : torch.device
    problem : Problem
    items : slice
        The replicates.
    repeats : int
        Consecutive rows of the result for each of them.
    """
    labels = torch.tensor(problem.y_of(items), device=device)
    return labels if problem.shares_labels else labels.repeat_interleave(repeats, dim=0)
