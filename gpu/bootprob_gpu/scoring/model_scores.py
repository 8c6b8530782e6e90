"""Scores, votes and weighted scores of rows under a trained batch, in memory-sized chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from bootprob_gpu.hardware.memory import chunked, free_bytes
from bootprob_gpu.hardware.process_setting import ieee_products
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.scoring.few_rows import are_few, model_scores_of_few
from bootprob_gpu.scoring.models_in_use import columns_of, own_kernels, shared_columns
from bootprob_gpu.scoring.scorers import CPU_BLOCK_BYTES, ReplicateScores, Votes

__all__ = ["model_scores", "replicate_scores", "vote_shares", "votes"]

Score = Callable[[slice], Tensor]  # of some replicates, shape (b, R, m)


def model_scores(models: FittedBatch, X: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Scores of rows under all models, some replicates at a time.

    Parameters
    ----------
    models : FittedBatch
        Trained.
    X : Tensor, shape (m, p)
        Rows to score.

    Yields
    ------
    replicates : slice
    scores : Tensor, shape (b, R, m)

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> from bootprob_gpu import model_scores
    >>> rows = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> for replicates, scores in model_scores(models, rows):
    ...     print(replicates, tuple(scores.shape))
    slice(0, 2, None) (2, 2, 2)
    """
    models.check_columns(X)
    B, R = models.intercept.shape
    if are_few(models, len(X)):
        yield slice(0, B), model_scores_of_few(models, X)
        return
    rows = X.to(models.center.device) - models.center  # in float64
    m, p = rows.shape
    size = models.dtype.itemsize
    bytes_per_replicate = 2.0 * R * (m + p) * size
    score: Score
    if models.shares_columns:
        score = _with_shared_columns(models, rows)
    else:
        own = own_kernels(models, models.intercept.new_ones(R) > 0)
        score, largest = partial(own.scores, rows), max(map(len, own.supports))
        bytes_per_replicate += (1 + models.kernel.n_values) * m * largest * size
        bytes_per_replicate += (m + largest) * p * (8 + size)

    def work(replicates: slice) -> Tensor:
        with ieee_products:  # and not while a caller reads what is yielded
            return score(replicates)

    available = free_bytes(rows.device, models.memory_limit)
    if rows.device.type == "cpu":
        available = min(available, CPU_BLOCK_BYTES)
    yield from chunked(B, work, bytes_per_item=bytes_per_replicate, available=available)


def votes(models: FittedBatch, X: Tensor, weights: Tensor | None = None) -> Tensor:
    """How many replicates score each row above 0, shape (m, R), int64.

    Parameters
    ----------
    models : FittedBatch
        Trained.
    X : Tensor, shape (m, p)
        Rows to score; rows in the host's memory are sent to a GPU while others are scored.
    weights : Tensor, shape (R,), optional
        Models of weight 0 are not scored, and get no votes.

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> from bootprob_gpu import votes
    >>> rows = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> votes(models, rows).tolist()  # of two replicates, for each C
    [[0, 0], [2, 2]]
    """
    return Votes(models, weights).counts(X).to(torch.int64)


def vote_shares(models: FittedBatch, X: Tensor, weights: Tensor) -> Tensor:
    """Weighted share of replicates that score each row above 0, shape (m,), float64.

    Parameters
    ----------
    models, X, weights
        As for `votes`; the share is ``Σ_r weights_r votes_r / B``.

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> from bootprob_gpu import vote_shares
    >>> rows = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> vote_shares(models, rows, half).tolist()
    [0.0, 1.0]
    """
    return Votes(models, weights).shares(X)


def replicate_scores(models: FittedBatch, X: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of the scores over the models of each replicate, shape (m, B).

    The models are summed before the rows are scored, so this costs R times less than all
    scores do.

    Parameters
    ----------
    models, X, weights
        As for `votes`.

    Examples
    --------
    >>> import torch
    >>> from bootprob_gpu import Problem, fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> models = fit(Problem(X, y, counts, C=[0.1, 1.0]))
    >>> from bootprob_gpu import replicate_scores
    >>> rows = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    >>> half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> (replicate_scores(models, rows, half) > 0).tolist()  # a line for each row
    [[False, False], [True, True]]
    """
    return ReplicateScores(models, weights)(X)


def _with_shared_columns(models: FittedBatch, rows: Tensor) -> Score:
    """Scores of centred rows where all replicates see a row in the same way."""
    R, m = models.intercept.shape[1], len(rows)
    every = torch.ones(R, dtype=torch.bool, device=rows.device)
    parts = shared_columns(models, every)
    with ieee_products:
        seen = list(zip(parts, columns_of(parts, rows), strict=True))

    def score(replicates: slice) -> Tensor:
        b = replicates.stop - replicates.start
        scores = torch.empty(b, R, m, dtype=models.dtype, device=rows.device)
        for part, columns in seen:
            coef, intercept = (each.to(models.dtype) for each in part.linear(replicates))
            scores[:, part.used] = coef @ columns.T + intercept[..., None]
        return scores

    return score
