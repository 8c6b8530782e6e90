"""Linear models by interior point, block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.box_bounds import labels_on, upper_on
from bootprob_gpu.certificate import Certificate
from bootprob_gpu.hardware.launch_shapes import tuned_limit
from bootprob_gpu.hardware.memory import chunked, free_bytes, visible_block
from bootprob_gpu.hardware.threads import PathCertificates, one_core_each, solve_paths, workers
from bootprob_gpu.interior_point.batched import interior_point
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices
from bootprob_gpu.interior_point.state import ROW_ARRAYS, TWIN_CELLS
from bootprob_gpu.interior_point.unit_columns import unit_columns
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem

__all__ = ["gpu_block", "train_linear"]

Floats = NDArray[np.float64]

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
    X1, center, spread = unit_columns(X)
    ratio = 1 / spread.cpu().numpy()
    available = free_bytes(device, memory_limit)
    if compiled:
        normal_matrices = None
        largest = max(workers(), min(8 * workers(), _BLOCK_NUMBERS // (R * n)))
        available -= 8 * workers() * n * (p + 1 + _PATH_ARRAYS + 3 * R)
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
        penalty = np.square(problem.scale_of(items) * ratio)
        if normal_matrices is None:
            upper, y = problem.upper_of(items), problem.y_of(items)
            w, certificate = _solve_compiled(X1.numpy(), y, upper, penalty, tol, max_iter)
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
        w = w.view(*shape, p + 1)
        coef = w[..., :-1] / spread
        if compiled:
            intercept, scores = _intercept_and_scores(w, coef, center, X1)
        else:
            intercept = w[..., -1] - coef @ center
            scores = (w.flatten(0, 1) @ X1.T).view(*shape, n)
        return FittedBatch(
            intercept=intercept,
            coef=coef,
            dual_coef=None,
            X=None,
            center=center,
            scale=scale if problem.shares_scale else scale[items],
            kernel=problem.kernel_function,
            certificate=certificate.view(*shape),
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


def _intercept_and_scores(
    w: Tensor, coef: Tensor, center: Tensor, X1: Tensor
) -> tuple[Tensor, Tensor]:
    """Intercepts for the rows as given, (b, R), and scores, (b, R, n), replicate by replicate.

    So they are the same to the last bit however replicates are put into blocks. Arrays of their own
    are part of that: the bits depend on where within a cache line an array begins.
    """
    b, R, _ = w.shape
    intercept, scores = w.new_empty(b, R), w.new_empty(b, R, len(X1))

    def work(part: slice) -> None:
        for k in range(b)[part]:
            intercept[k] = w[k, :, -1] - coef[k].clone() @ center
            scores[k] = w[k].clone() @ X1.T

    one_core_each(work, b)
    return intercept, scores


def _solve_compiled(
    X1: Floats, y: Floats, upper: Floats, penalty: Floats, tol: float, max_iter: int
) -> tuple[Tensor, Certificate]:
    from bootprob_gpu.interior_point.compiled import interior_point_path  # numba: slow to load

    w = np.zeros((*upper.shape[:2], X1.shape[1]))

    def solve(
        path: int,
        models: NDArray[np.intp],
        rows: NDArray[np.intp],
        box: Floats,
        end: PathCertificates,
    ) -> None:
        found = np.zeros((len(models), X1.shape[1]))
        inside = box > 0
        # A row that one model of the path lacks has no interior there: such models go one by one.
        together = [slice(None)] if inside.all() else [slice(k, k + 1) for k in range(len(models))]
        for part in together:
            kept = inside[part].all(axis=0)
            interior_point_path(
                X1,
                y if y.ndim == 1 else y[path],
                rows[kept],
                np.ascontiguousarray(box[part][:, kept]),
                np.append(penalty[path], 0.0),
                tol,
                max_iter,
                found[part],
                end.primal[part],
                end.dual[part],
                end.n_iter[part],
                end.status[part],
            )
        w[path, models] = found

    certificate = solve_paths(upper, y, w[..., -1], solve)
    return torch.from_numpy(w).flatten(0, 1), certificate
