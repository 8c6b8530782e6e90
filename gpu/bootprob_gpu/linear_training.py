"""Linear models by interior point, block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.fitted import FittedBatch
from bootprob_gpu.interior_point import NormalMatrices, interior_point
from bootprob_gpu.interior_point_compiled import interior_point_path
from bootprob_gpu.memory import chunked, free_bytes, visible_block
from bootprob_gpu.paths import PathCertificates, solve_paths, workers
from bootprob_gpu.problem import Problem

__all__ = ["train_linear"]

Floats = NDArray[np.float64]

_BATCH_ARRAYS = 30  # tensors of shape (problems, n) alive in an iteration
_CPU_BATCH = 1024  # problems in a batch that suit a CPU's caches
_NEGLIGIBLE = 1e-100  # spread of a column that no coefficient could make matter
_PATH_ARRAYS = 6  # copies of the rows and of the box bounds that a compiled path holds


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
    y = torch.from_numpy(problem.y).to(device)
    # Columns about 0 and of about unit scale keep the normal matrices well conditioned; the
    # intercept absorbs the one and the penalty the other. By medians, or a single outlier would
    # squeeze all other rows into one point; most rows of a dummy are equal, so by its deviation.
    center = X.median(0).values
    spread = (X - center).abs().median(0).values
    spread = torch.where(spread > 0, spread, (X - center).square().mean(0).sqrt())
    constant = spread <= torch.clamp(1e-14 * center.abs(), min=_NEGLIGIBLE)
    spread = torch.where(constant, 1.0, spread)
    X1 = torch.cat([(X - center) / spread, X.new_ones(n, 1)], dim=1)
    ratio = 1 / spread.cpu().numpy()
    available = free_bytes(device, memory_limit)
    if compiled:
        normal_matrices, largest = None, 8 * workers()
        bytes_per_replicate = 8.0 * (_PATH_ARRAYS * R * n + 4 * n * (p + 1))
    else:
        normal_matrices = NormalMatrices(X1, available // 2)
        available //= 2
        on_cpu = device.type == "cpu"
        largest = max(1, _CPU_BATCH // R) if on_cpu else visible_block(problem.n_replicates, R)
        bytes_per_replicate = 8.0 * R * (_BATCH_ARRAYS * n + 3 * (p + 1) ** 2)

    def work(items: slice) -> FittedBatch:
        penalty = np.square(problem.scale_of(items) * ratio)
        upper = problem.upper_of(items)
        if normal_matrices is None:
            w, certificate = _solve_compiled(X1.numpy(), y.numpy(), upper, penalty, tol, max_iter)
        else:
            w, certificate = interior_point(
                X1,
                y,
                torch.from_numpy(upper).to(device).flatten(0, 1),
                torch.from_numpy(penalty).to(device).repeat_interleave(R, dim=0),
                normal_matrices,
                tol=tol,
                max_iter=max_iter,
            )
        shape = upper.shape[:2]
        coef = w[:, :-1] / spread
        return FittedBatch(
            intercept=(w[:, -1] - coef @ center).view(shape),
            coef=coef.view(*shape, p),
            dual_coef=None,
            X=None,
            center=center,
            scale=torch.from_numpy(problem.scale if problem.shares_scale else problem.scale[items]),
            gamma=None,
            certificate=certificate.view(*shape),
            train_scores=(w @ X1.T).view(*shape, n),
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


def _solve_compiled(
    X1: Floats, y: Floats, upper: Floats, penalty: Floats, tol: float, max_iter: int
) -> tuple[Tensor, Certificate]:
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
                y,
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
