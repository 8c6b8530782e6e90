"""Whole jobs with Triton's kernels and without give the same models and the same votes."""

from __future__ import annotations

from dataclasses import replace

import torch

from bootprob_gpu import FittedBatch, Kernel, Status, choose_solver, fit, votes
from bootprob_gpu.hardware.triton_choice import triton_kernels
from gpu.check.jobs import GERMAN, Table, batch, table
from gpu.check.record import Record

__all__ = ["run"]

_TOL = {"linear": 1e-7, "rbf": 1e-6}
_FLIPPED = {torch.float64: 1e-10, torch.float32: 1e-6}  # votes that rounding may flip


def run(record: Record) -> None:
    """Train with both kernels; then count votes in both precisions."""
    wisconsin, german = (table(name, record.size(None, 80)) for name in ("Wisconsin", GERMAN))
    _train(record, wisconsin, "linear", record.size(100, 3))
    models = _train(record, german, "linear", record.size(100, 3))
    _train(record, wisconsin, "rbf", record.size(5, 2))
    for dtype in (torch.float64, torch.float32):
        _vote(record, replace(models, dtype=dtype))


def _train(record: Record, source: Table, kernel: Kernel, replicates: int) -> FittedBatch:
    problem = batch(source, kernel, replicates, n_C=record.size(11, 2), n_gamma=3)
    tol, fits, solvers = _TOL[kernel], [], []
    for choice in ("auto", "never"):
        with triton_kernels(choice):
            solvers.append(choose_solver(problem, record.device))
            fits.append(fit(problem, device=record.device, tol=tol))
    one, other = fits
    apart = ((one.primal - other.primal).abs() / other.primal).max().item()
    converged = all(bool((each.status == Status.CONVERGED).all()) for each in fits)
    same_steps = (one.n_iter == other.n_iter).double().mean().item()
    title = f"{source.title}, {kernel}"
    record.measured(
        title,
        {
            "models": one.intercept.numel(),
            "solvers": solvers,
            "largest relative difference of primal objectives": apart,
            "models of as many iterations": same_steps,
            "all converged": converged,
        },
    )
    # Both are within the tolerance of the same optimum.
    record.promise(
        f"{title}: with Triton and without, within the duality gap of each other",
        converged and apart <= tol,
        found=apart,
        allowed=tol,
    )
    return one


def _vote(record: Record, models: FittedBatch) -> None:
    m, p = record.size(200_000, 500), len(models.center)
    draws = torch.Generator(record.device).manual_seed(0)
    rows = torch.randn(m, p, dtype=models.dtype, device=record.device, generator=draws)
    counts = []
    for choice in ("auto", "never"):
        with triton_kernels(choice):
            counts.append(votes(models, rows))
    flipped = (counts[0] - counts[1]).abs().sum().item() / (m * models.intercept.numel())
    name = f"votes in {str(models.dtype).removeprefix('torch.')}"
    record.measured(name, {"rows": m, "models": models.intercept.numel(), "flipped": flipped})
    record.promise(
        f"{name}: the same with Triton and without, but for rounding",
        flipped <= _FLIPPED[models.dtype],
        found=flipped,
        allowed=_FLIPPED[models.dtype],
    )
