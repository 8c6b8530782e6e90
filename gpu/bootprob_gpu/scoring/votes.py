"""Votes of linear models: how many replicates score a row above 0.

Scores are counted where they arise, and no array of rows × models is made: by a compiled loop on a
CPU and by a Triton kernel on CUDA; its twin in plain torch makes the scores of one block of rows at
a time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bootprob_gpu.hardware.numba_choice import numba_loads
from bootprob_gpu.hardware.threads import workers
from bootprob_gpu.hardware.triton_choice import use_triton, with_twin

__all__ = ["vote_counter"]

_SCORES_AT_ONCE = 2**26  # of the twin


def vote_counter(coef: Tensor, intercept: Tensor) -> Callable[[Tensor], Tensor]:
    """Prepare models for counting the votes of any number of blocks of rows.

    Parameters
    ----------
    coef : Tensor of float32 or float64, shape (R, k, B)
        Coefficients of the R models of each of B replicates, on k columns.
    intercept : Tensor, shape (R, B)
        Intercepts.

    Returns
    -------
    callable
        Takes rows (m, k), of the type and on the device of the coefficients, and returns how many
        replicates score them above 0: int32, shape (R, m).
    """
    if coef.device.type == "cpu" and not use_triton(coef.device) and numba_loads():
        from bootprob_gpu.scoring.votes_compiled import (  # numba: slow to load
            PackedModels,
            count_votes,
        )

        packed = PackedModels(coef.numpy(), intercept.numpy())

        def count(rows: Tensor) -> Tensor:
            return torch.from_numpy(count_votes(rows.numpy(), packed, workers()))

        return count
    coef, intercept = coef.contiguous(), intercept.contiguous()
    return lambda rows: _count(rows, coef, intercept)


def _count_in_torch(rows: Tensor, coef: Tensor, intercept: Tensor) -> Tensor:
    R, _, B = coef.shape
    counts = torch.empty(R, len(rows), dtype=torch.int32, device=rows.device)
    step = max(1, _SCORES_AT_ONCE // max(1, B))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        for r in range(R):
            above = torch.addmm(intercept[r], block, coef[r]) > 0
            counts[r, start : start + step] = above.sum(1)
    return counts


@with_twin(_count_in_torch, name="votes")
def _count(rows: Tensor, coef: Tensor, intercept: Tensor) -> Tensor:
    from bootprob_gpu.scoring.triton_votes import count_votes

    return count_votes(rows, coef, intercept)
