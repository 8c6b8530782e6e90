"""The same job on the same device gives the same bits."""

from __future__ import annotations

from typing import Any

import torch

from bootprob_gpu import FittedBatch, Problem, fit, replicate_scores, votes
from gpu.check.jobs import GERMAN, batch, table
from gpu.check.record import Record

__all__ = ["run"]


def run(record: Record) -> None:
    """Train and score twice; every tensor that comes out is compared bit by bit."""
    every = True
    for name, kernel, replicates, n_C in (
        ("Wisconsin", "linear", 500, 11),
        ("Wisconsin", "rbf", 30, 6),
        (GERMAN, "linear", 500, 11),
        (GERMAN, "rbf", 10, 6),
    ):
        source = table(name, record.size(None, 80))
        problem = batch(
            source,
            kernel,
            record.size(replicates, 3),
            n_C=record.size(n_C, 2),
            n_gamma=3,
        )
        for dtype in (torch.float64, torch.float32):
            if dtype == torch.float32 and kernel == "linear":
                continue  # the interior point works in float64 only
            one, other = (_outcome(problem, record.device, dtype) for _ in range(2))
            differ = [key for key, tensor in one.items() if not _same_bits(tensor, other[key])]
            every &= not differ
            record.measured(
                f"{source.title}, {kernel}, {str(dtype).removeprefix('torch.')}",
                {
                    "models": problem.n_replicates * problem.n_models,
                    "compared": list(one),
                    "differ": differ,
                },
            )
    record.promise("a second run gives the same bits", every)


def _outcome(problem: Problem, device: torch.device, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    fitted = fit(problem, device=device, dtype=dtype)
    draws = torch.Generator().manual_seed(0)
    rows = torch.randn(5000, problem.X.shape[1], dtype=torch.float64, generator=draws)
    weights = torch.rand(problem.n_models, dtype=torch.float64, generator=draws)
    found: dict[str, Any] = {key: getattr(fitted, key) for key in _tensors(fitted)}
    found["votes"] = votes(fitted, rows)
    found["replicate scores"] = replicate_scores(fitted, rows, weights)
    return {key: tensor.cpu() for key, tensor in found.items()}


def _tensors(fitted: FittedBatch) -> list[str]:
    names = ("intercept", "coef", "dual_coef", "primal", "dual", "gap", "n_iter", "status")
    return [name for name in names if getattr(fitted, name) is not None]


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    same = (one == other) & (one.signbit() == other.signbit())
    return bool(same.all())
