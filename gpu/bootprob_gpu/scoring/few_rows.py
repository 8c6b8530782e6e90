"""Kernels of a few rows with the training rows as every replicate scales them, all at once.

Replicate by replicate, each of B kernels is a handful of small operations: with few rows their
overhead is all there is. Here what a row and training rows have in common is made once, column by
column (`KernelFunction.terms`: for RBF the squared differences); replicates differ in what they
weigh the columns with, so that one product with their weights gives all sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from bootprob_gpu.hardware.memory import free_bytes
from bootprob_gpu.hardware.process_setting import ieee_products
from bootprob_gpu.hardware.threads import few_threads
from bootprob_gpu.models import FittedBatch

__all__ = ["are_few", "kernels_of_few", "model_scores_of_few", "replicate_scores_of_few"]

_FEW = 2**14  # kernel values of a replicate: more are made faster with its own support only
_AT_ONCE = 2**22  # kernel values of all replicates
_COPIES = 4  # of them, at the peak
_OF_ONE_CORE = 2**19  # kernel values of all replicates


def are_few(models: FittedBatch, n_rows: int) -> bool:
    """Whether rows are so few that their kernels are best made for all replicates at once.

    Parameters
    ----------
    models : FittedBatch
    n_rows : int
        Rows to score.
    """
    if not models.kernel.has_terms or models.shares_columns:
        return False
    assert models.X is not None
    values = n_rows * len(models.X) * len(models.intercept)
    if n_rows * len(models.X) > _FEW or not 0 < values <= _AT_ONCE:
        return False
    needed = _COPIES * values * models.dtype.itemsize
    return needed <= free_bytes(models.intercept.device, models.memory_limit)


def kernels_of_few(models: FittedBatch, rows: Tensor) -> Iterator[Tensor]:
    """Kernels between a few rows and the training rows, for each γ of the models.

    Parameters
    ----------
    models : FittedBatch
        With a scale for each replicate.
    rows : Tensor, shape (m, p)
        As the models know them, not centred.

    Yields
    ------
    Tensor, shape (B, n, m)
    """
    kernel = models.kernel
    assert models.X is not None
    assert kernel.gamma is not None
    common = models.scale.mean(dim=0)
    columns = (common / models.scale).pow(kernel.term_degree).to(models.dtype)
    others, rows = models.X.double(), rows.to(models.X.device).double()
    with ieee_products:
        # Terms in float64 before they are rounded: rows may lie far from 0.
        terms = (kernel.terms(others, row, common, models.dtype) for row in rows)
        sums = torch.stack([columns @ each.T for each in terms], dim=2)
    for gamma in kernel.gamma.tolist():
        yield kernel.of_sums(sums, gamma)


def replicate_scores_of_few(models: FittedBatch, weights: Tensor, X: Tensor) -> Tensor:
    """Weighted scores of each replicate for a few rows, as `ReplicateScores` gives them.

    Parameters
    ----------
    models : FittedBatch
    weights : Tensor, shape (R,)
        Weight of each model.
    X : Tensor, shape (m, p)

    Returns
    -------
    Tensor, shape (m, B)
        In the precision of the batch.
    """
    models.check_columns(X)
    weights = weights.to(models.intercept)
    parts = weights.unflatten(0, (models.kernel.n_values, -1))
    scores = (models.intercept @ weights)[None].expand(len(X), -1).to(models.dtype)
    with ieee_products, _on_one_core(models, len(X)):
        for coefs, weight, kernel in zip(
            _coefs(models), parts, kernels_of_few(models, X), strict=True
        ):
            if weight.any():
                coef = torch.einsum("r,brn->bn", weight, coefs).to(models.dtype)
                scores = scores + torch.einsum("bn,bnm->mb", coef, kernel)
    return scores


def model_scores_of_few(models: FittedBatch, X: Tensor) -> Tensor:
    """Scores of a few rows under all models, as `model_scores` gives them.

    Parameters
    ----------
    models : FittedBatch
    X : Tensor, shape (m, p)

    Returns
    -------
    Tensor, shape (B, R, m)
        In the precision of the batch.
    """
    models.check_columns(X)
    with ieee_products, _on_one_core(models, len(X)):
        parts = [
            coefs.to(models.dtype) @ kernel
            for coefs, kernel in zip(_coefs(models), kernels_of_few(models, X), strict=True)
        ]
    return torch.cat(parts, dim=1).add_(models.intercept[..., None].to(models.dtype))


def _on_one_core(models: FittedBatch, n_rows: int) -> AbstractContextManager[Any]:
    """Where that is soon done: shared among cores each step waits for the slowest of them."""
    assert models.X is not None
    values = n_rows * len(models.X) * len(models.intercept)
    alone = models.intercept.device.type == "cpu" and values <= _OF_ONE_CORE
    return few_threads(1) if alone else nullcontext()


def _coefs(models: FittedBatch) -> Iterator[Tensor]:
    """Dual coefficients of the models of each γ, shape (B, models, n)."""
    assert models.dual_coef is not None
    yield from models.dual_coef.unflatten(1, (models.kernel.n_values, -1)).unbind(1)
