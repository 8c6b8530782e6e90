"""The shapes that kernels are compiled for, each reached through the project's own launchers.

No number that a kernel is specialised for depends on how many problems, paths or replicates there
are, so two or three of them stand for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from unittest.mock import patch

import numpy as np
import torch

from bootprob_gpu import Problem
from bootprob_gpu.certificate import Certificate
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point.batched import interior_point
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices
from bootprob_gpu.interior_point.state import start
from bootprob_gpu.interior_point.triton_certificate import judge
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.scoring.triton_votes import count_votes
from bootprob_gpu.smo.blocks import train_dual
from bootprob_gpu.solvers import BACK_ENDS, Limits, Options
from gpu.compilation.launches import Launch, noted_launches

__all__ = ["JOBS", "RBF_JOBS", "all_launches"]

JOBS = {"Wisconsin": (569, 30), "German credit": (900, 61), "adult-like": (29_000, 100)}
"""Rows and columns of the tables of `make gpu-check`."""
RBF_JOBS = {name: JOBS[name] for name in ("Wisconsin", "German credit")}

# Rows and columns, with the ones: blocks of rows and columns of every size, and on both sides of
# every limit; multiples of 16, which Triton makes use of, and others.
_INTERIOR_POINT = (
    (7, 3), (16, 3), (64, 16), (100, 17), (128, 32), (300, 33), (512, 48), (1000, 64), (4096, 65),
    (4097, 96), (4112, 128), (300, 129), (4100, 150),
)  # fmt: skip
_OWN_LABELS = ((7, 3), (569, 31), (1024, 64), (4100, 101))
_ROWS_OF_SMO = (
    7, 16, 20, 50, 64, 100, 128, 200, 256, 300, 512, 1000, 1024, 1100, 2048, 2049, 2064,
)  # fmt: skip
_OWN_LABELS_OF_SMO = (7, 100, 128, 300, 569, 1024, 1100, 2048, 2049, 2064)
_LARGEST_LINEAR_DUAL = 300  # rows: linear kernels are trained so where columns are more
_COLUMNS_OF_CERTIFICATES = (512, 600, 2000, 4000)
# Rows and models: 1, which Triton takes for a constant, multiples of 16, and others.
_VOTES = ((10_000, 121), (1_000, 11), (1_000, 1), (1, 11), (1, 1), (1_024, 16))
_COLUMNS_OF_VOTES = 61
_REPLICATES = 500


def all_launches() -> Iterator[tuple[str, Launch]]:
    """Every launch, with what it is for; many are alike."""
    for name, (n, p) in JOBS.items():
        yield from _noted(name, _interior_point, n, p + 1, own_labels=False)
    for n, q in _INTERIOR_POINT:
        yield from _noted("edges", _interior_point, n, q, own_labels=False)
    for n, q in _OWN_LABELS:
        yield from _noted("edges", _interior_point, n, q, own_labels=True)
    for q in _COLUMNS_OF_CERTIFICATES:
        yield from _noted("edges", _certificates, q)
    for dtype in (torch.float64, torch.float32):
        for name, (n, _) in RBF_JOBS.items():
            yield from _noted(name, _smo, n, dtype, own_labels=False)
        for n in _ROWS_OF_SMO:
            yield from _noted("edges", _smo, n, dtype, own_labels=False)
        for n in _OWN_LABELS_OF_SMO:
            yield from _noted("edges", _smo, n, dtype, own_labels=True)
    for dtype, precision in (
        (torch.float64, "ieee"), (torch.float32, "ieee"), (torch.float32, "tf32x3")
    ):  # fmt: skip
        for m, models in _VOTES:
            yield from _noted("scoring", _votes, m, models, dtype, precision)


def _noted(label, work, *args, **kwargs):  # type: ignore[no-untyped-def]
    # What kernels that do not run leave as it was is filled, so that all runs decide alike.
    torch.set_deterministic_debug_mode("error")
    try:
        with noted_launches() as noted, triton_kernels("always"), torch.no_grad():
            work(*args, **kwargs)
    finally:
        torch.set_deterministic_debug_mode("default")
    if not noted:
        raise RuntimeError(f"{label}: {work.__name__}{args} launched nothing.")
    return ((label, each) for each in noted)


def _interior_point(n: int, q: int, *, own_labels: bool) -> None:
    X1 = torch.ones(n, q, dtype=torch.float64)
    y = _labels(n)
    upper = torch.ones(2, n, dtype=torch.float64)
    penalty = torch.ones(2, q - 1, dtype=torch.float64)
    matrices = NormalMatrices(X1, 2**26)
    y = y.repeat(2, 1) if own_labels else y
    interior_point(X1, y, upper, penalty, matrices, tol=1e-7, max_iter=1)


def _certificates(q: int) -> None:
    """What a problem of few rows and so many columns would need, without its normal matrix."""
    ones = torch.ones(3, q, dtype=torch.float64)
    state = start(
        _labels(2), torch.ones(3, 2, dtype=torch.float64), ones[:, 1:], ones.clone(),
        Certificate.empty(3, device="cpu"), 1.0,
    )  # fmt: skip
    judge(ones, state, ones[:, 0], ones[:, 0])


def _smo(n: int, dtype: torch.dtype, *, own_labels: bool) -> None:
    """Through the planner: all rows and those of weight only; one matrix for all, and of each."""
    X = np.linspace(0.0, 1.0, n)[:, None]
    y = np.where(np.arange(n) % 2 > 0, 1.0, -1.0)
    all_rows = np.ones((2, n))
    some = all_rows.copy()
    some[:, ::5] = 0.0
    kinds = product((all_rows, some), (None, np.ones((2, 1))), ("rbf", "linear"))
    for weights, scale, kernel in kinds:
        if kernel == "linear" and n > _LARGEST_LINEAR_DUAL:
            continue
        problem = Problem(
            X, np.stack([y, -y]) if own_labels else y, weights, [0.5, 1.0], kernel=kernel,
            gamma=[1.0] if kernel == "rbf" else None, scale=scale,
        )  # fmt: skip
        fused = Options(
            BACK_ENDS["smo-fused"], Limits(1e-3, None, 1000), torch.device("cpu"), dtype, None
        )
        with patch.object(KernelFunction, "gram", _zeros):
            blocks = train_dual(problem, fused)
            assert [block.replicates for block in blocks] == [slice(0, 2)]


def _zeros(self: KernelFunction, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Kernel values take most of the time, and say nothing about a launch."""
    shape = *rows.shape[:-2], self.n_values, rows.shape[-2], others.shape[-2]
    return torch.from_numpy(np.zeros(shape)).to(rows.dtype)  # NumPy's zeros take no time


def _votes(m: int, models: int, dtype: torch.dtype, precision: str) -> None:
    count_votes(
        torch.ones(m, _COLUMNS_OF_VOTES, dtype=dtype, device="meta"),
        torch.ones(models, _COLUMNS_OF_VOTES, _REPLICATES, dtype=dtype, device="meta"),
        torch.ones(models, _REPLICATES, dtype=dtype, device="meta"),
        precision=precision,
    )


def _labels(n: int) -> torch.Tensor:
    y = torch.ones(n, dtype=torch.float64)
    y[::2] = -1.0
    return y
