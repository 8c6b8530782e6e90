"""Training of the whole ensemble, reduced block by block to what the bootstrap leaves for free.

Nothing of size rows × replicates × models outlives a block of replicates, and of what a block
brings nothing of that size is made anew: it is reduced a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.exceptions import DataError
from bootprob.progress import progress_bar
from bootprob.row_blocks import row_blocks
from bootprob_gpu import FittedBatch, Problem

__all__ = ["EnsembleTraining", "train_ensemble"]

Floats = NDArray[np.float64]

# Scores reduced at a time: below what torch splits over a CPU's threads, within its caches; enough
# to make launches on a GPU worth while.
_AT_ONCE = {"cpu": 2**15, "cuda": 2**24}


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
    votes: NDArray[np.int32]
    score_sums: Floats
    n_out_of_bag: NDArray[np.int64]

    def taught(self, weight: Floats) -> NDArray[np.bool_]:
        """Rows of weight that were ever out of bag, shape (n,); a DataError if there are none."""
        found = (self.n_out_of_bag > 0) & (weight > 0)
        if not found.any():
            raise DataError(
                f"No row was ever out of bag in {len(self.accuracy)} bootstrap samples; give more "
                "rows or raise n_bootstraps."
            )
        return found

    def mean_scores(self, rows: NDArray[np.bool_]) -> Floats:
        """Mean out-of-bag scores, shape (rows.sum(), R), of rows that were ever out of bag."""
        scores = self.score_sums[rows]
        scores /= self.n_out_of_bag[rows, None]
        return scores


def train_ensemble(
    problem: Problem,
    weight: Floats,
    training: Iterator[FittedBatch],
    *,
    device: torch.device,
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
    training : iterator of FittedBatch
        Trains it, block by block of replicates, as `bootprob_gpu.iter_fit` does.
    device : torch.device
        Where.
    description : str
        Label of the progress bar.
    verbose : int
        Whether to show a progress bar.
    """
    sums = _OutOfBagSums(problem, weight, device)
    blocks, accuracies = [], []
    with progress_bar(description, problem.n_replicates, shown=verbose > 0) as advance:
        for block in training:
            assert block.train_scores is not None
            accuracies.append(sums.add(block.train_scores, problem.counts[block.replicates] == 0))
            block.train_scores = None
            blocks.append(block)
            advance(block.replicates.stop - block.replicates.start)
    return EnsembleTraining(
        models=FittedBatch.concatenate(blocks),
        accuracy=torch.cat(accuracies).cpu().numpy(),
        votes=sums.votes.T.cpu().numpy(),
        score_sums=sums.scores.T.cpu().numpy(),
        n_out_of_bag=sums.n_out_of_bag.cpu().numpy(),
    )


class _OutOfBagSums:
    """Votes and scores of every row under every model, summed where the row is out of bag."""

    def __init__(self, problem: Problem, weight: Floats, device: torch.device) -> None:
        n, R = len(problem.y), problem.n_models
        self._positive = torch.from_numpy(problem.y > 0).to(device)
        self._weight = torch.from_numpy(weight).to(device)
        self.votes = torch.zeros(R, n, dtype=torch.int32, device=device)
        self.scores = torch.zeros(R, n, dtype=torch.float64, device=device)
        self.n_out_of_bag = torch.zeros(n, dtype=torch.int64, device=device)

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
                self.scores[:, rows] += (part * inside[:, None]).sum(0)
                self.n_out_of_bag[rows] += inside.sum(0)
                correct[items] += ((above == self._positive[rows]) * mass[:, None]).sum(2)
                total[items] += mass.sum(1, keepdim=True)
        return correct / total
