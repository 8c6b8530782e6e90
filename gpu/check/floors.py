"""The least time that arithmetic and memory traffic allow, from the ceilings measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gpu.check.ceilings import COPY, HOST_TO_DEVICE, gemm

__all__ = [
    "Work",
    "beside_its_floor",
    "linear_training",
    "rbf_training",
    "replicate_scores",
    "vote_shares",
]


@dataclass(frozen=True)
class Work:
    """Operations and bytes that a job cannot do without.

    Attributes
    ----------
    flops : float
        Floating-point operations.
    moved : float
        Bytes read from and written to the device's memory.
    formula : str
        How the two are counted.
    dtype : torch.dtype
        Precision of the operations.
    sent : float
        Bytes from the host.
    """

    flops: float
    moved: float
    formula: str
    dtype: torch.dtype
    sent: float = 0.0


def linear_training(n: int, p: int, models: int, iterations: int) -> Work:
    """Interior point: normal matrices and Cholesky factors; the iterates go through memory.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    models : int
    iterations : int
        Of all models together.
    """
    q = p + 1
    per_iteration = n * q * (q + 1) + q**3 / 3
    return Work(
        flops=iterations * per_iteration,
        moved=iterations * 8.0 * 6 * n + 8.0 * models * (n + q),
        formula=(
            "q = p + 1; FLOPs = iterations · (n q (q + 1) [lower normal matrices] + q³/3 "
            "[Cholesky]); bytes = 8 · (iterations · 6 n [a, t, ξ read and written once] "
            "+ models · (n + q) [bounds in, coefficients out]); iterations summed over models"
        ),
        dtype=torch.float64,
    )


def rbf_training(
    rows: float, p: int, grams: int, models: int, iterations: int, dtype: torch.dtype
) -> Work:
    """SMO: the Gram matrices once, and two of their rows for every iteration.

    Parameters
    ----------
    rows : float
        Rows that carry weight, on average over the replicates.
    p : int
        Columns.
    grams : int
        Gram matrices, replicates × values of γ.
    models : int
    iterations : int
        Of all models together.
    dtype : torch.dtype
        Of the Gram matrices.
    """
    size = dtype.itemsize
    return Work(
        flops=grams * rows**2 * p + iterations * 10.0 * rows,
        moved=size * (grams * rows**2 + iterations * 2.0 * rows) + 8.0 * models * 2 * rows,
        formula=(
            "m = mean number of rows with weight; FLOPs = Gram matrices · m² p [half of each] "
            "+ iterations · 10 m; bytes = item size · (Gram matrices · m² + iterations · 2 m "
            "[two rows of the Gram matrix]) + models · 16 m [bounds in, dual variables out]; rows "
            "that stay in a cache cost less, so a ratio under 1 is possible"
        ),
        dtype=dtype,
    )


def vote_shares(m: int, p: int, models: int, dtype: torch.dtype) -> Work:
    """Votes of linear models: one matrix product that is never written down.

    Parameters
    ----------
    m, p : int
        Rows to score, columns.
    models : int
        All models.
    dtype : torch.dtype
        Of the scores.
    """
    return Work(
        flops=2.0 * m * p * models,
        moved=float(dtype.itemsize) * m * p + 8.0 * m,
        formula=(
            "FLOPs = 2 m p · models; bytes = item size · m p + 8 m [shares out]; rows from the "
            "host: item size · m p at the rate of pinned memory"
        ),
        dtype=dtype,
    )


def replicate_scores(m: int, p: int, replicates: int, dtype: torch.dtype) -> Work:
    """Weighted scores of each replicate: the models are summed before the rows are scored.

    Parameters
    ----------
    m, p : int
        Rows to score, columns.
    replicates : int
    dtype : torch.dtype
        Of the scores.
    """
    return Work(
        flops=2.0 * m * p * replicates,
        moved=float(dtype.itemsize) * m * (p + replicates),
        formula="FLOPs = 2 m p · replicates; bytes = item size · m (p + replicates)",
        dtype=dtype,
    )


def beside_its_floor(work: Work, ceilings: dict[str, Any], milliseconds: float) -> dict[str, Any]:
    """Floor of a job, and how far the time taken is above it.

    Parameters
    ----------
    work : Work
    ceilings : dict
        What the part "ceilings" measured; without it there is no floor.
    milliseconds : float
        Time taken.
    """
    found: dict[str, Any] = {
        "FLOPs": work.flops,
        "bytes": work.moved,
        "formula": work.formula,
        "FLOP/s reached": 1e3 * work.flops / milliseconds,
    }
    terms = {
        "arithmetic": (work.flops, gemm(work.dtype)),
        "memory": (work.moved, COPY),
        "transfer": (work.sent, HOST_TO_DEVICE),
    }
    if any(key not in ceilings for _, key in terms.values()):
        return {**found, "floor": "not known: the ceilings were not measured"}
    floors = {
        f"{name} floor, ms": 1e3 * amount / ceilings[key]["rate"]
        for name, (amount, key) in terms.items()
        if amount
    }
    floor = max(floors.values())
    return {**found, **floors, "floor, ms": floor, "time / floor": milliseconds / floor}
