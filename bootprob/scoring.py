"""Rows stream through the trained models in chunks; nothing of size rows × B × R is held."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from bootprob.exceptions import DataError
from bootprob_gpu import Certificate, FittedBatch, Status

__all__ = [
    "check_reach",
    "chunks_of_rows",
    "replicate_scores",
    "restore_models",
    "warn_of_unsolved",
]

Floats = NDArray[np.float64]

_LARGEST = 1e100  # standard deviations beyond which squares overflow
_CHUNK_NUMBERS = 2**24  # scores held at once when rows stream through


def restore_models(
    *,
    intercept: Floats,
    coef: Floats | None,
    dual_coef: Floats | None,
    rows: Floats | None,
    scale: Floats,
    gamma: Floats | None,
    certificates: Mapping[str, NDArray[Any]],
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
) -> FittedBatch:
    """Put trained models on a device again; parameters as the attributes of `FittedBatch`."""

    def tensor(values: NDArray[Any] | None) -> torch.Tensor | None:
        return None if values is None else torch.from_numpy(values).to(device)

    return FittedBatch(
        intercept=torch.from_numpy(intercept).to(device),
        coef=tensor(coef),
        dual_coef=tensor(dual_coef),
        X=tensor(rows),
        center=torch.zeros(scale.shape[-1], dtype=torch.float64, device=device),
        scale=torch.from_numpy(scale).to(device),
        gamma=tensor(gamma),
        certificate=Certificate(**{k: torch.from_numpy(v) for k, v in certificates.items()}),
        replicates=slice(0, len(intercept)),
        dtype=dtype,
        memory_limit=memory_limit,
    )


def chunks_of_rows(
    models: FittedBatch, rows: Floats, *, columns: int, chunk_size: int | None = None
) -> Iterator[torch.Tensor]:
    """Split rows into chunks of `chunk_size`, or such that one makes no more than 128 MiB.

    Parameters
    ----------
    models : FittedBatch
        What scores the rows; an RBF chunk also makes a Gram matrix with the training rows.
    rows : ndarray, shape (m, p)
    columns : int
        Numbers that a row leaves.
    chunk_size : int, optional
        Rows in a chunk.
    """
    if models.X is not None and models.gamma is not None:
        columns = max(columns, 3 * len(models.gamma) * len(models.X))
    numbers = min(_CHUNK_NUMBERS, (models.memory_limit or 2**62) // 32)
    size = chunk_size or max(1, numbers // columns)
    for start in range(0, len(rows), size):
        yield torch.from_numpy(rows[start : start + size])


def replicate_scores(models: FittedBatch, rows: Floats, weights: Floats) -> Iterator[Floats]:
    """Weighted scores of each replicate, in chunks of shape (m, B)."""
    for chunk in chunks_of_rows(models, rows, columns=models.replicates.stop):
        scores = models.replicate_scores(chunk, torch.from_numpy(weights))
        yield scores.cpu().numpy().astype(np.float64)


def check_reach(rows: Floats) -> Floats:
    """Refuse standardised rows so far out that their scores overflow.

    Raises
    ------
    DataError
        Names the first such row and column.
    """
    far = ~(np.abs(rows) <= _LARGEST)
    if far.any():
        row, column = np.argwhere(far)[0]
        raise DataError(
            f"Row {row}, column {column} (counted from 0) is {abs(rows[row, column]):.0e} standard "
            "deviations from the training rows; such a number is an error."
        )
    return rows


def warn_of_unsolved(certificates: Mapping[str, NDArray[Any]]) -> None:
    """Warn of models that were not solved to the tolerance: how many, how far, what to do."""
    status = certificates["status"]
    unsolved = ~np.isin(status, (Status.CONVERGED, Status.SINGLE_CLASS))
    if unsolved.any():
        worst = certificates["gap"][unsolved].max()
        advice = " ".join(Status(code).advice for code in np.unique(status[unsolved]))
        warnings.warn(
            f"{unsolved.sum()} of {status.size} models were not solved to the tolerance; the "
            f"largest relative duality gap is {worst:.1e}. {advice}",
            ConvergenceWarning,
            stacklevel=4,
        )
