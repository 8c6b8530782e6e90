"""Models in their dual by sequential minimal optimisation, block by block of replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.box_bounds import labels_on, upper_on
from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.fitted import FittedBatch
from bootprob_gpu.kernels import cross_gram
from bootprob_gpu.memory import chunked, free_bytes, visible_block
from bootprob_gpu.paths import one_core_each, workers
from bootprob_gpu.problem import Problem
from bootprob_gpu.smo_batched import smo_batched, violation
from bootprob_gpu.triton_smo import smo_fused

__all__ = ["train_dual"]

# K (G, n, n), y (n,) or (P, n), upper (P, R, n) → dual_coef, intercept, certificate: `smo_batched`.
Solve = Callable[..., tuple[Tensor, Tensor, Certificate]]

_BOX_ARRAYS = 10  # tensors of shape (R, n) that a replicate and who reads its scores hold
_PATH_ARRAYS = 24  # tensors of shape (n,) that a path of a batch holds besides
_CPU_MODELS = 256  # models in a block for each thread of compiled SMO
_CPU_REPLICATES = 4  # replicates in a block for each thread, whatever the number of models
_GPU_PATHS = 2048  # paths in a block that are done before progress could be seen
_GRAM_ROWS = 256  # of a shared Gram matrix that a core makes at a time


def train_dual(
    problem: Problem,
    *,
    solver: str,
    tol: float,
    kkt_tol: float | None,
    max_iter: int,
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
) -> Iterator[FittedBatch]:
    """Train RBF models, or linear ones through the Gram matrix; see `fit`."""
    n, p = problem.X.shape
    R = problem.n_models
    grid = 1 if problem.gamma is None else len(problem.gamma)
    X, scale = _on(device, problem.X), _on(device, problem.scale)
    gamma = None if problem.gamma is None else _on(device, problem.gamma)
    # A median for a centre: unlike the mean, it stays near the rows when there is an outlier.
    middle = (n - 1) // 2
    center = torch.from_numpy(np.partition(problem.X, middle, axis=0)[middle]).to(device)
    centered = X - center

    def gram_of(scale: Tensor) -> Tensor:
        """Gram matrices in float64, shape (b or 1, grid, n, n)."""
        rows = centered / scale.unsqueeze(-2)
        return cross_gram(rows, rows, gamma)

    shared = None
    if problem.shares_scale:
        on_cpu = device.type == "cpu"
        shared = _gram_on_cores(centered / scale, gamma) if on_cpu else gram_of(scale[None])
    rounded = None if shared is None or dtype == torch.float64 else shared.to(dtype)
    limits: dict[str, Any] = {"tol": tol, "kkt_tol": kkt_tol, "max_iter": max_iter}
    compiled = None
    if solver == "smo-compiled":
        from bootprob_gpu.dual_compiled import CompiledPaths  # numba: slow to load

        own = None if shared is None else shared[0].numpy()
        compiled = CompiledPaths(centered.numpy(), problem.gamma, own)
    batched: Solve = smo_fused if solver == "smo-fused" else smo_batched

    def work(items: slice) -> FittedBatch:
        upper = upper_on(device, problem, items).unflatten(1, (grid, R // grid))
        shape = (len(upper), R)
        own_scale = scale[None] if problem.shares_scale else scale[items]
        if compiled is not None:
            dual_coef, intercept, certificate, scores = compiled.solve(
                problem.y_of(items), upper.numpy(), own_scale.numpy(), **limits
            )
        else:
            gram = gram_of(own_scale) if shared is None else shared
            y = labels_on(device, problem, items, grid)
            if y.ndim > 1:
                y = y.unflatten(0, upper.shape[:2])
            solve = partial(_solve, batched)
            if dtype == torch.float64:
                dual_coef, intercept, certificate = solve(gram, y, upper, **limits)
                scores = _through(gram, dual_coef) + intercept.unsqueeze(-1)
            else:
                narrow = gram.to(dtype) if rounded is None else rounded
                dual_coef, intercept, certificate, scores = _solve_rounded(
                    solve, gram, narrow, y, upper, **limits
                )
        if compiled is not None and gamma is None:
            intercept, scores = _linear_intercept_and_scores(
                centered,
                center,
                own_scale,
                dual_coef,
                intercept,
                None if shared is None else scores,
            )
        elif gamma is None:
            # Trained on centred rows: move the intercept to the rows' own coordinates.
            moved = (center / own_scale).div_(own_scale) @ centered.T
            intercept = intercept - (dual_coef @ moved[:, None, :, None]).squeeze(-1)
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

    available = free_bytes(device, memory_limit)
    bytes_per_replicate = 8.0 * (_BOX_ARRAYS * R * n + _own_labels(problem))
    if gamma is None:
        bytes_per_replicate += 8.0 * 2 * R * p  # coefficients, and the scales that divide them
    if compiled is not None:
        available -= compiled.fixed_bytes
        largest = workers() * max(_CPU_REPLICATES, ceil(_CPU_MODELS / R))
        bytes_per_replicate += compiled.bytes_per_replicate
    else:
        bytes_per_replicate += 8.0 * grid * (_PATH_ARRAYS * n + 2 * _own_labels(problem))
        if device.type == "cpu":
            largest = _CPU_REPLICATES * workers()
        else:
            largest = max(visible_block(problem.n_replicates, R), ceil(_GPU_PATHS / grid))
        if shared is None:
            bytes_per_replicate += 8.0 * ((2 + 2 * grid) * n * n + 2 * n * p)
            if dtype != torch.float64:
                bytes_per_replicate += dtype.itemsize * grid * n * n
    for _, block in chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=available,
        largest=largest,
    ):
        yield block


def _own_labels(problem: Problem) -> int:
    """Numbers that the labels of a replicate take, where they are its own."""
    return 0 if problem.shares_labels else len(problem.X)


def _on(device: torch.device, values: NDArray[np.float64]) -> Tensor:
    """An array on a device; on the CPU it shares memory, which torch wants to be writable."""
    return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def _through(gram: Tensor, dual_coef: Tensor) -> Tensor:
    """``dual_coef @ gram``, shape (b, grid, per_path, n); broadcasting would copy a shared gram."""
    if len(gram) > 1:
        return dual_coef @ gram
    b, _, per_path, _ = dual_coef.shape
    products = dual_coef.transpose(0, 1).flatten(1, 2) @ gram[0]
    return products.unflatten(1, (b, per_path)).transpose(0, 1)


def _gram_on_cores(rows: Tensor, gamma: Tensor | None) -> Tensor:
    """Gram matrices, shape (1, grid, n, n), the same to the last bit on any number of cores."""
    n = len(rows)
    gram = rows.new_empty(1, 1 if gamma is None else len(gamma), n, n)

    def work(k: int) -> None:
        part = slice(k * _GRAM_ROWS, (k + 1) * _GRAM_ROWS)
        gram[0, :, part] = cross_gram(rows[part].clone(), rows, gamma)

    one_core_each(work, ceil(n / _GRAM_ROWS))
    return gram


def _linear_intercept_and_scores(
    rows: Tensor,
    center: Tensor,
    scale: Tensor,
    dual_coef: Tensor,
    intercept: Tensor,
    scores: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Intercepts for rows that are not centred, and scores of all rows where they are not known.

    Replicate by replicate, so that they are the same to the last bit however replicates are put
    into blocks.

    Parameters
    ----------
    rows : Tensor, shape (n, p)
        Centred.
    center : Tensor, shape (p,)
    scale : Tensor, shape (b or 1, p)
    dual_coef : Tensor, shape (b, 1, R, n)
    intercept : Tensor, shape (b, 1, R)
        For centred rows.
    scores : Tensor or None, shape (b, 1, R, n)
    """
    moved = torch.empty_like(intercept)
    found = torch.empty_like(dual_coef) if scores is None else scores

    def work(k: int) -> None:
        own = dual_coef[k, 0].clone()  # bits depend on where within a cache line an array begins
        divisor = scale[k if len(scale) > 1 else 0]  # its square may be too small for a number
        moved[k, 0] = intercept[k, 0] - own @ (rows @ (center / divisor).div_(divisor))
        if scores is None:
            # Where no bound is touched all models of larger C are the same: most of the work.
            new = torch.ones(len(own), dtype=torch.bool)
            new[1:] = (own[1:] != own[:-1]).any(-1)
            coef = (own[new] @ rows).div_(divisor).div_(divisor)
            found[k, 0] = (coef @ rows.T)[new.cumsum(0) - 1] + intercept[k, 0, :, None]

    one_core_each(work, len(dual_coef))
    return moved, found


def _solve(
    batched: Solve,
    gram: Tensor,
    y: Tensor,
    upper: Tensor,
    *,
    tol: float,
    kkt_tol: float | None,
    max_iter: int,
) -> tuple[Tensor, Tensor, Certificate]:
    # `y` is (n,) or (b, grid, n). Path b · grid + g goes with matrix g where the replicates share
    # them, else with its own.
    dual_coef, intercept, certificate = batched(
        gram.flatten(0, 1),
        y if y.ndim == 1 else y.flatten(0, 1),
        upper.flatten(0, 1),
        tol=tol,
        kkt_tol=kkt_tol,
        max_iter=max_iter,
    )
    shape = upper.shape[:-1]
    return dual_coef.view(upper.shape), intercept.view(shape), certificate.view(*shape)


def _solve_rounded(
    solve: Solve,
    gram: Tensor,
    rounded: Tensor,
    y: Tensor,
    upper: Tensor,
    *,
    tol: float,
    kkt_tol: float | None,
    max_iter: int,
) -> tuple[Tensor, Tensor, Certificate, Tensor]:
    """Solve with Gram matrices in a lower precision, and judge by those in full precision.

    Replicates with a model that the rounding left unsolved are solved again without it.
    """
    of_models = y if y.ndim == 1 else y.unsqueeze(2)  # beside (b, grid, R, n)

    def judged(dual_coef: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        products = _through(gram, dual_coef)
        scores = products + b.unsqueeze(-1)
        norm = (dual_coef * products).sum(-1)
        primal = 0.5 * norm + (upper * (1 - of_models * scores).clamp_min(0)).sum(-1)
        dual = (of_models * dual_coef).sum(-1) - 0.5 * norm
        reached = relative_gap(primal, dual).abs() <= tol
        if kkt_tol is not None:
            reached |= violation(of_models, upper, dual_coef, of_models - products) <= kkt_tol
        return scores, primal, dual, reached

    # A little further than asked for: the rounding takes its share of the gap.
    half = None if kkt_tol is None else kkt_tol / 2
    dual_coef, intercept, found = solve(
        rounded, y, upper, tol=tol / 2, kkt_tol=half, max_iter=max_iter
    )
    scores, primal, dual, reached = judged(dual_coef, intercept)
    status, n_iter = found.status, found.n_iter
    lost = ((status == Status.CONVERGED) & ~reached).flatten(1).any(1)
    if lost.any():
        again = gram if len(gram) == 1 else gram[lost]
        dual_coef[lost], intercept[lost], found = solve(
            again,
            y if y.ndim == 1 else y[lost],
            upper[lost],
            tol=tol,
            kkt_tol=kkt_tol,
            max_iter=max_iter,
        )
        scores, primal, dual, reached = judged(dual_coef, intercept)
        status[lost] = found.status
        n_iter[lost] += found.n_iter
    reached &= status != Status.SINGLE_CLASS
    status = torch.where(reached, int(Status.CONVERGED), status)
    gap = relative_gap(primal, dual)
    return dual_coef, intercept, Certificate(primal, dual, gap, n_iter, status), scores
