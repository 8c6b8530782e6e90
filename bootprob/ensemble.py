"""Training of the whole ensemble, reduced block by block to what the bootstrap leaves for free.

Nothing of size rows × replicates × models outlives a block of replicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.progress import progress_bar
from bootprob_gpu import FittedBatch, Problem, iter_fit

__all__ = ["EnsembleTraining", "train_ensemble"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EnsembleTraining:
    """Trained models and the out-of-bag sums that need no second look at the scores.

    Attributes
    ----------
    models : FittedBatch
        B × R trained models.
    accuracy : ndarray, shape (B, R)
        Weighted share of out-of-bag rows classified correctly; NaN where no row is out of bag.
    votes : ndarray of int, shape (n, R)
        Out-of-bag scores above 0, counted over the replicates.
    score_sums : ndarray, shape (n, R)
        Out-of-bag scores, summed over the replicates.
    n_out_of_bag : ndarray of int, shape (n,)
        Replicates in which each row is out of bag.
    """

    models: FittedBatch
    accuracy: Floats
    votes: NDArray[np.int64]
    score_sums: Floats
    n_out_of_bag: NDArray[np.int64]

    def mean_scores(self) -> Floats:
        """Mean out-of-bag score of each row under each model, shape (n, R); NaN without any."""
        with np.errstate(invalid="ignore"):
            return self.score_sums / self.n_out_of_bag[:, None]


def train_ensemble(
    problem: Problem,
    weight: Floats,
    *,
    tol: float | None,
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
    description: str,
    verbose: int,
) -> EnsembleTraining:
    """Train all models of a problem and reduce their out-of-bag scores as they come.

    Parameters
    ----------
    problem : Problem
        The bootstrap samples and the grid.
    weight : ndarray, shape (n,)
        Row weights for the accuracies; rows of weight 0 count nowhere.
    tol, device, dtype, memory_limit
        As for `bootprob_gpu.fit`.
    description : str
        Label of the progress bar.
    verbose : int
        Whether to show a progress bar.
    """
    n, R = len(problem.y), problem.n_models
    y = torch.from_numpy(problem.y > 0).to(device)
    row_weight = torch.from_numpy(weight).to(device)
    votes = torch.zeros(R, n, dtype=torch.int64, device=device)
    sums = torch.zeros(R, n, dtype=torch.float64, device=device)
    blocks, accuracies = [], []
    training = iter_fit(problem, tol=tol, device=device, dtype=dtype, memory_limit=memory_limit)
    with progress_bar(description, problem.n_replicates, shown=verbose > 0) as advance:
        for block in training:
            counts = torch.from_numpy(problem.counts[block.replicates].astype(np.int32))
            outside = (counts == 0).to(device)
            scores = block.train_scores
            assert scores is not None
            above = scores > 0
            votes += (above & outside[:, None]).sum(0)
            sums += (scores * outside[:, None]).sum(0)
            accuracies.append(_accuracy(above == y, outside * row_weight))
            block.train_scores = None
            blocks.append(block)
            advance(block.replicates.stop - block.replicates.start)
    return EnsembleTraining(
        models=FittedBatch.concatenate(blocks),
        accuracy=torch.cat(accuracies).cpu().numpy(),
        votes=votes.T.cpu().numpy(),
        score_sums=sums.T.cpu().numpy(),
        n_out_of_bag=(problem.counts == 0).sum(axis=0),
    )


def _accuracy(correct: Tensor, mass: Tensor) -> Tensor:
    """Weighted share of correct rows, shape (b, R)."""
    return (correct * mass[:, None]).sum(2) / mass.sum(1, keepdim=True)
