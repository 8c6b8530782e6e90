"""Rows stream through the trained models in chunks; nothing of size rows × B × R is held."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from bootprob_gpu import Certificate, FittedBatch, Status

__all__ = ["chunks_of_rows", "restore_models", "scaled_scores", "warn_of_unsolved"]

Floats = NDArray[np.float64]

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
    rows: Floats, numbers_per_row: int, chunk_size: int | None = None
) -> Iterator[torch.Tensor]:
    """Split rows so that a chunk makes about 128 MiB of numbers, or has `chunk_size` rows."""
    size = chunk_size or max(1, _CHUNK_NUMBERS // numbers_per_row)
    for start in range(0, len(rows), size):
        yield torch.from_numpy(rows[start : start + size])


def scaled_scores(
    models: FittedBatch, rows: Floats, weights: Floats, score_scale: Floats
) -> Iterator[Floats]:
    """Weighted scores of each replicate over its own spread, in chunks of shape (m, B)."""
    for chunk in chunks_of_rows(rows, len(score_scale)):
        scores = models.replicate_scores(chunk, torch.from_numpy(weights))
        yield scores.cpu().numpy().astype(np.float64) / score_scale


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
