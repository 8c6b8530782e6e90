"""Linear models by interior point, block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import numpy as np
import torch

from bootprob_gpu.box_bounds import labels_on, upper_on
from bootprob_gpu.hardware.launch_shapes import tuned_limit
from bootprob_gpu.hardware.memory import chunked, free_bytes, visible_block
from bootprob_gpu.interior_point.batched import interior_point
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices
from bootprob_gpu.interior_point.state import ROW_ARRAYS, TWIN_CELLS
from bootprob_gpu.interior_point.unit_columns import unit_columns
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem
from bootprob_gpu.solvers import Options

__all__ = ["gpu_block", "train_linear"]

_BATCH_ARRAYS = ROW_ARRAYS + 1  # and the scores of the block before
_TWIN_ARRAYS = 14  # temporaries of plain torch, as large as `TWIN_CELLS` lets them be
_MATRICES = 3  # of shape (problems, q, q) at once
_GPU_CELLS = 2**24  # problems × rows in a block that are done before progress could be seen
_CPU_BATCH = 1024  # problems in a batch that suit a CPU's caches


def gpu_block(n_replicates: int, n_models: int, n_rows: int) -> int:
    """Most replicates of a block on a GPU, where memory does not say less."""
    return max(visible_block(n_replicates, n_models), _GPU_CELLS // (n_models * n_rows))


def train_linear(problem: Problem, options: Options) -> Iterator[FittedBatch]:
    """Train linear models, batched in torch or compiled path by path; see `fit`."""
    n, p = problem.X.shape
    R, device = problem.n_models, options.device
    X = torch.from_numpy(problem.X).to(device)
    scale = torch.from_numpy(problem.scale).to(device)
    columns = X1, center, spread = unit_columns(X)
    penalty = np.square(problem.scale * (1 / spread.cpu().numpy()))
    penalty = np.broadcast_to(penalty, (problem.n_replicates, p))
    available = free_bytes(device, options.memory_limit)
    paths = None
    if options.back_end.is_compiled:
        from bootprob_gpu.interior_point.compiled_paths import CompiledPaths  # numba: slow to load

        paths = CompiledPaths(problem, columns, penalty)
        available -= paths.fixed_bytes
        largest, bytes_per_replicate = paths.largest, paths.bytes_per_replicate
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
        if paths is not None:
            coef, intercept, certificate, scores = paths.solve(items, options.limits)
        else:
            own = torch.tensor(penalty[items], device=device)
            w, certificate = interior_point(
                X1,
                labels_on(device, problem, items, R),
                upper_on(device, problem, items).flatten(0, 1),
                own.repeat_interleave(R, dim=0),
                normal_matrices,
                tol=options.limits.tol,
                max_iter=options.limits.max_iter,
            )
            shape = len(own), R
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
            dtype=options.dtype,
            memory_limit=options.memory_limit,
        )

    blocks = chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=available,
        largest=largest,
    )
    return map(itemgetter(1), blocks)
