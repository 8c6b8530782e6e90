"""Models in their dual by sequential minimal optimisation, block by block of replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.fitted import FittedBatch
from bootprob_gpu.kernels import cross_gram
from bootprob_gpu.memory import chunked, free_bytes, visible_block
from bootprob_gpu.paths import PathCertificates, solve_paths, workers
from bootprob_gpu.problem import Problem
from bootprob_gpu.smo_batched import smo_batched
from bootprob_gpu.smo_compiled import gather, smo_path

__all__ = ["train_dual"]

Floats = NDArray[np.float64]
Solve = Callable[[Tensor, Tensor, Tensor, float, int], tuple[Tensor, Tensor, Certificate]]

_BOX_ARRAYS = 14  # tensors of shape (R, n) that a replicate holds at a time


def train_dual(
    problem: Problem,
    *,
    compiled: bool,
    tol: float,
    max_iter: int,
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
) -> Iterator[FittedBatch]:
    """Train RBF models, or linear ones through the Gram matrix; see `fit`."""
    n, p = problem.X.shape
    R = problem.n_models
    grid = 1 if problem.gamma is None else len(problem.gamma)
    X = torch.from_numpy(problem.X).to(device)
    y = torch.from_numpy(problem.y).to(device)
    gamma = None if problem.gamma is None else torch.from_numpy(problem.gamma).to(device)
    scale = torch.from_numpy(problem.scale).to(device)
    center = X.median(0).values  # unlike the mean, an outlier leaves it near the rows
    solve: Solve = _solve_batched
    if compiled:
        # Gram matrices copied anew for each path would leave the heap in pieces of their size.
        scratch = SimpleQueue[Floats]()
        for _ in range(workers()):
            scratch.put(np.empty(n * n))
        solve = partial(_solve_compiled, scratch)

    def gram_of(scale: Tensor) -> Tensor:
        """Gram matrices in float64, shape (b or 1, grid, n, n)."""
        rows = (X - center) / scale.unsqueeze(-2)
        return cross_gram(rows, rows, gamma)

    shared = gram_of(scale[None]) if problem.shares_scale else None

    def work(items: slice) -> FittedBatch:
        gram = gram_of(scale[items]) if shared is None else shared
        upper = torch.from_numpy(problem.upper_of(items)).to(device)
        shape = upper.shape[:2]
        upper = upper.unflatten(1, (grid, R // grid))
        if dtype == torch.float64:
            dual_coef, intercept, certificate = solve(gram, y, upper, tol, max_iter)
            scores = _through(gram, dual_coef) + intercept.unsqueeze(-1)
        else:
            dual_coef, intercept, certificate, scores = _solve_rounded(
                solve, gram, dtype, y, upper, tol, max_iter
            )
        if gamma is None:
            # Trained on centred rows: move the intercept to the rows' own coordinates.
            row_scale = scale if problem.shares_scale else scale[items, None, None]
            coef = dual_coef @ (X - center) / row_scale**2
            intercept = intercept - coef @ center
        return FittedBatch(
            intercept=intercept.reshape(shape),
            coef=None,
            dual_coef=dual_coef.reshape(*shape, n),
            X=X,
            center=center,
            scale=scale if problem.shares_scale else scale[items],
            gamma=gamma,
            certificate=certificate.view(*shape),
            train_scores=scores.reshape(*shape, n),
            replicates=items,
            dtype=dtype,
            memory_limit=memory_limit,
        )

    available = free_bytes(device, memory_limit) - (8 * n * n * workers() if compiled else 0)
    bytes_per_replicate = 8.0 * _BOX_ARRAYS * R * n
    if gamma is None:
        bytes_per_replicate += 8.0 * 2 * R * p  # coefficients, before and after scaling
    if shared is None:
        bytes_per_replicate += 8.0 * ((2 + 2 * grid) * n * n + 2 * n * p)
    for _, block in chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=available,
        largest=4 * workers() if device.type == "cpu" else visible_block(problem.n_replicates, R),
    ):
        yield block


def _through(gram: Tensor, dual_coef: Tensor) -> Tensor:
    """``dual_coef @ gram``, shape (b, grid, per_path, n); broadcasting would copy a shared gram."""
    if len(gram) > 1:
        return dual_coef @ gram
    b, _, per_path, _ = dual_coef.shape
    products = dual_coef.transpose(0, 1).flatten(1, 2) @ gram[0]
    return products.unflatten(1, (b, per_path)).transpose(0, 1)


def _solve_rounded(
    solve: Solve,
    gram: Tensor,
    dtype: torch.dtype,
    y: Tensor,
    upper: Tensor,
    tol: float,
    max_iter: int,
) -> tuple[Tensor, Tensor, Certificate, Tensor]:
    """Solve with Gram matrices rounded to `dtype`, and judge by those before rounding.

    Replicates with a model that the rounding left unsolved are solved again without it.
    """

    def judged(gram: Tensor, dual_coef: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = _through(gram, dual_coef) + b.unsqueeze(-1)
        norm = (dual_coef * (scores - b.unsqueeze(-1))).sum(-1)
        primal = 0.5 * norm + (upper * (1 - y * scores).clamp_min(0)).sum(-1)
        return scores, primal, (y * dual_coef).sum(-1) - 0.5 * norm

    # A little further than asked for: the rounding takes its share of the gap.
    dual_coef, intercept, found = solve(gram.to(dtype), y, upper, tol / 2, max_iter)
    shape = upper.shape[:-1]
    scores, primal, dual = judged(gram, dual_coef, intercept)
    gap = relative_gap(primal, dual)
    status, n_iter = found.status.reshape(shape), found.n_iter.reshape(shape)
    lost = ((status == Status.CONVERGED) & ~(gap.abs() <= tol)).flatten(1).any(1)
    if lost.any():
        again = gram if len(gram) == 1 else gram[lost]
        dual_coef[lost], intercept[lost], found = solve(again, y, upper[lost], tol, max_iter)
        scores, primal, dual = judged(gram, dual_coef, intercept)
        status[lost] = found.status.view(status[lost].shape)
        n_iter[lost] += found.n_iter.view(status[lost].shape)
        gap = relative_gap(primal, dual)
    reached = (gap.abs() <= tol) & (status != Status.SINGLE_CLASS)
    status = torch.where(reached, int(Status.CONVERGED), status)
    return dual_coef, intercept, Certificate(primal, dual, gap, n_iter, status), scores


def _solve_batched(
    gram: Tensor, y: Tensor, upper: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Certificate]:
    b, grid, per_path, _ = upper.shape
    # Path b · grid + g goes with matrix g where the replicates share them, else with its own.
    dual_coef, intercept, certificate = smo_batched(
        gram.flatten(0, 1), y, upper.flatten(0, 1), tol=tol, max_iter=max_iter
    )
    return dual_coef.view(upper.shape), intercept.view(b, grid, per_path), certificate


def _solve_compiled(
    scratch: SimpleQueue[Floats], gram: Tensor, y: Tensor, upper: Tensor, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Certificate]:
    b, grid, per_path, n = upper.shape
    K, labels = gram.numpy(), y.numpy()
    dual_coef = np.zeros((b * grid, per_path, n))
    intercept = np.zeros((b * grid, per_path))

    def solve(
        path: int,
        models: NDArray[np.intp],
        rows: NDArray[np.intp],
        box: Floats,
        end: PathCertificates,
    ) -> None:
        k, g = divmod(path, grid)
        found, found_intercept = np.zeros(box.shape), np.zeros(len(models))
        converged = np.zeros(len(models), dtype=np.bool_)
        room = scratch.get()
        try:
            smo_path(
                gather(K[k % len(K), g], rows, room.view(K.dtype)),
                labels[rows],
                box,
                tol,
                max_iter,
                np.zeros(len(rows)),
                found,
                found_intercept,
                end.primal,
                end.dual,
                end.n_iter,
                converged,
            )
        finally:
            scratch.put(room)
        dual_coef[path][np.ix_(models, rows)] = found
        intercept[path, models] = found_intercept
        unfinished = np.where(end.n_iter >= max_iter, Status.MAX_ITER, Status.STALLED)
        end.status[:] = np.where(converged, Status.CONVERGED, unfinished)

    certificate = solve_paths(upper.flatten(0, 1).numpy(), labels, intercept, solve)
    return (
        torch.from_numpy(dual_coef).view(upper.shape),
        torch.from_numpy(intercept).view(b, grid, per_path),
        certificate,
    )
