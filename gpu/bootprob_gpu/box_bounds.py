"""Box bounds and labels of a block of replicates, on the device that trains them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.problem import Problem

__all__ = ["labels_on", "upper_on", "weighted_rows"]


def upper_on(
    device: torch.device, problem: Problem, items: slice, rows: Tensor | None = None
) -> Tensor:
    """Box bounds of some replicates, shape (b, R, n), in memory of their own.

    Parameters
    ----------
    device : torch.device
    problem : Problem
    items : slice
        The replicates.
    rows : Tensor of int64, shape (b, m), optional
        The rows wanted of each replicate, (b, R, m); default all.
    """
    if problem.upper is not None:
        upper = torch.tensor(problem.upper_of(items), device=device)
        if rows is None:
            return upper
        return upper.gather(2, rows[:, None].expand(-1, upper.shape[1], -1))
    # The rule is applied on the device: a copy of its result takes longer than many a solve.
    mass = torch.from_numpy(problem.counts[items] * problem.row_weight).to(device)
    if rows is not None:
        mass = mass.gather(1, rows)
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


def weighted_rows(problem: Problem, items: slice) -> NDArray[np.bool_]:
    """Which rows carry weight in any model of some replicates, shape (b, n).

    Parameters
    ----------
    problem : Problem
    items : slice
        The replicates.
    """
    if problem.upper is not None:
        return np.any(np.asarray(problem.upper[items]) > 0, axis=1)
    return (problem.counts[items] > 0) & (problem.row_weight > 0)
