"""Linear models by interior point, block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bootprob_gpu.box_bounds import labels_on, upper_on
from bootprob_gpu.hardware.launch_shapes import tuned_limit
from bootprob_gpu.hardware.memory import chunked, free_bytes, visible_block
from bootprob_gpu.hardware.threads import workers
from bootprob_gpu.interior_point.batched import interior_point
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices
from bootprob_gpu.interior_point.state import ROW_ARRAYS, TWIN_CELLS
from bootprob_gpu.interior_point.unit_columns import unit_columns
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem

__all__ = ["gpu_block", "train_linear"]

_BATCH_ARRAYS = ROW_ARRAYS + 1  # and the scores of the block before
_TWIN_ARRAYS = 14  # temporaries of plain torch, as large as `TWIN_CELLS` lets them be
_MATRICES = 3  # of shape (problems, q, q) at once
_GPU_CELLS = 2**24  # problems × rows in a block that are done before progress could be seen
_BLOCK_NUMBERS = 2**24  # box bounds and scores in a block of compiled paths, if that is enough
_CPU_BATCH = 1024  # problems in a batch that suit a CPU's caches
_PATH_ARRAYS = 20  # arrays of shape (n,) that a compiled path holds besides its rows


def gpu_block(n_replicates: int, n_models: int, n_rows: int) -> int:
    """Most replicates of a block on a GPU, where memory does not say less."""
    return max(visible_block(n_replicates, n_models), _GPU_CELLS // (n_models * n_rows))


def train_linear(
    problem: Problem,
    *,
    compiled: bool,
    tol: float,
    max_iter: int,
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
) -> Iterator[FittedBatch]:
    """Train linear models, batched in torch or compiled path by path; see `fit`."""
    n, p = problem.X.shape
    R = problem.n_models
    X = torch.from_numpy(problem.X).to(device)
    scale = torch.from_numpy(problem.scale).to(device)
    columns = X1, center, spread = unit_columns(X)
    penalties = np.square(problem.scale * (1 / spread.cpu().numpy()))
    penalties = np.broadcast_to(penalties, (problem.n_replicates, p))
    available, threads = free_bytes(device, memory_limit), workers()
    if compiled:
        from bootprob_gpu.interior_point.compiled_paths import solve_paths  # numba: slow to load

        largest = max(threads, min(8 * threads, _BLOCK_NUMBERS // (R * n)))
        available -= 8 * threads * n * (p + 1 + _PATH_ARRAYS + 3 * R)
        # Box bounds, scores, and what is made of them; and labels.
        bytes_per_replicate = 8.0 * (3 * R * n + (0 if problem.shares_labels else n))
    else:
        normal_matrices = NormalMatrices(X1, available // 2)
        available -= normal_matrices.nbytes
        # Temporaries of plain torch are capped, or a share of the batch if that is small.
        share = _TWIN_ARRAYS / (_TWIN_ARRAYS + _BATCH_ARRAYS)
        cap = 8 * _TWIN_ARRAYS * max(n, tuned_limit(TWIN_CELLS[device.type], "twin_cells", device))
        available -= int(min(share * available, cap))
        if device.type == "cpu":
            largest = max(1, _CPU_BATCH // R)
        else:
            largest = gpu_block(problem.n_replicates, R, n)
        arrays = _BATCH_ARRAYS if problem.shares_labels else _BATCH_ARRAYS + 1
        bytes_per_replicate = 8.0 * R * (arrays * n + _MATRICES * (p + 1) ** 2)

    def work(items: slice) -> FittedBatch:
        penalty = penalties[items]
        if compiled:
            upper, y = problem.upper_of(items), problem.y_of(items)
            coef, intercept, certificate, scores = solve_paths(
                columns, y, upper, penalty, tol=tol, max_iter=max_iter, threads=threads
            )
        else:
            w, certificate = interior_point(
                X1,
                labels_on(device, problem, items, R),
                upper_on(device, problem, items).flatten(0, 1),
                torch.from_numpy(penalty).to(device).repeat_interleave(R, dim=0),
                normal_matrices,
                tol=tol,
                max_iter=max_iter,
            )
            shape = len(penalty), R
            certificate, scores = certificate.view(*shape), (w @ X1.T).view(*shape, n)
            w = w.view(*shape, p + 1)
            coef = w[..., :-1] / spread
            intercept = w[..., -1] - coef @ center
        return FittedBatch(
            intercept=intercept,
            coef=coef,
            dual_coef=None,
            X=None,
            center=center,
            scale=scale if problem.shares_scale else scale[items],
            kernel=problem.kernel_function,
            certificate=certificate,
            train_scores=scores,
            replicates=items,
            dtype=dtype,
            memory_limit=memory_limit,
        )

    for _, block in chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=available,
        largest=largest,
    ):
        yield block
