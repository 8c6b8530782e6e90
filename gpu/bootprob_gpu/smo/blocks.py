"""Models in their dual by sequential minimal optimisation, block by block of replicates."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.box_bounds import upper_on
from bootprob_gpu.hardware.memory import chunked, free_bytes, visible_block
from bootprob_gpu.hardware.threads import one_core_each, workers
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem
from bootprob_gpu.smo.batched import smo_batched
from bootprob_gpu.smo.batched_paths import BatchedPaths
from bootprob_gpu.smo.triton_paths import smo_fused
from bootprob_gpu.solvers import Options

__all__ = ["train_dual"]

_BOX_ARRAYS = 10  # tensors of shape (R, n) that a replicate and who reads its scores hold
_CPU_MODELS = 256  # models in a block for each thread of compiled SMO
_CPU_REPLICATES = 4  # replicates in a block for each thread, whatever the number of models
_GPU_PATHS = 8192  # paths in a block that are done before progress could be seen
_GRAM_ROWS = 256  # of a shared Gram matrix that a core makes at a time


def train_dual(problem: Problem, options: Options) -> Iterator[FittedBatch]:
    """Train models of any kernel through the Gram matrix; see `fit`."""
    back_end, device = options.back_end, options.device
    n, p = problem.X.shape
    R = problem.n_models
    kernel = problem.kernel_function.to(device)
    grid = kernel.n_values
    X, scale = _on(device, problem.X), _on(device, problem.scale)
    center, centered = torch.zeros_like(X[0]), X
    if kernel.ignores_offset:
        # A median for a centre: unlike the mean, it stays near the rows when there is an outlier.
        middle = (n - 1) // 2
        center = torch.from_numpy(np.partition(problem.X, middle, axis=0)[middle]).to(device)
        centered = X - center

    shared = None  # shape (grid, n, n)
    if problem.shares_scale:
        rows = centered / scale if kernel.has_features else centered
        on_cpu = device.type == "cpu"
        shared = _gram_on_cores(rows, kernel) if on_cpu else kernel.gram(rows, rows)
    compiled = batched = None
    if back_end.is_compiled:
        from bootprob_gpu.smo.compiled_paths import CompiledPaths  # numba: slow to load

        own = None if shared is None else shared.numpy()
        compiled = CompiledPaths(centered, center, kernel, own, R // grid, options.limits)
    else:
        batched = BatchedPaths(
            problem,
            centered,
            scale,
            kernel,
            shared,
            # Kernels between 0 and 1 lose little by rounding; products may be of any size.
            rounded=options.dtype == torch.float32
            or (device.type == "cuda" and kernel.has_unit_diagonal),
            solve=smo_fused if back_end.is_fused else smo_batched,
        )

    def work(items: slice) -> FittedBatch:
        own_scale = scale[None] if problem.shares_scale else scale[items]
        if compiled is not None:
            upper = upper_on(device, problem, items).unflatten(1, (grid, R // grid))
            dual_coef, intercept, certificate, scores = compiled.solve(
                problem.y_of(items), upper.numpy(), own_scale.numpy()
            )
        else:
            assert batched is not None
            dual_coef, intercept, certificate, scores = batched.solve(items, options.limits)
            if kernel.is_linear:
                # Trained on centred rows: move the intercept to the rows' own coordinates.
                moved = (center / own_scale).div_(own_scale) @ centered.T
                intercept = intercept - (dual_coef @ moved[:, None, :, None]).squeeze(-1)
        shape = (len(dual_coef), R)
        return FittedBatch(
            intercept=intercept.reshape(shape),
            coef=None,
            dual_coef=dual_coef.reshape(*shape, n),
            X=X if kernel.has_features else None,
            center=center,
            scale=scale if problem.shares_scale else scale[items],
            kernel=kernel,
            certificate=certificate.view(*shape),
            train_scores=scores.reshape(*shape, n),
            replicates=items,
            dtype=options.dtype,
            memory_limit=options.memory_limit,
        )

    available = free_bytes(device, options.memory_limit)
    bytes_per_replicate = 8.0 * (_BOX_ARRAYS * R * n + (0 if problem.shares_labels else n))
    if kernel.is_linear:
        bytes_per_replicate += 8.0 * 2 * R * p  # coefficients, and the scales that divide them
    if compiled is not None:
        available -= compiled.fixed_bytes
        largest = workers() * max(_CPU_REPLICATES, ceil(_CPU_MODELS / R))
        bytes_per_replicate += compiled.bytes_per_replicate
    else:
        assert batched is not None
        bytes_per_replicate += batched.bytes_per_replicate
        if device.type == "cpu":
            largest = _CPU_REPLICATES * workers()
        else:
            largest = max(visible_block(problem.n_replicates, R), ceil(_GPU_PATHS / grid))
    blocks = chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=available,
        largest=largest,
    )
    return map(itemgetter(1), blocks)


def _on(device: torch.device, values: NDArray[np.float64]) -> Tensor:
    """An array on a device; on the CPU it shares memory, which torch wants to be writable."""
    return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def _gram_on_cores(rows: Tensor, kernel: KernelFunction) -> Tensor:
    """Gram matrices, shape (grid, n, n), the same to the last bit on any number of cores."""
    n = len(rows)
    gram = rows.new_empty(kernel.n_values, n, n)

    def work(blocks: slice) -> None:
        for first in range(0, n, _GRAM_ROWS)[blocks]:
            part = slice(first, first + _GRAM_ROWS)
            gram[:, part] = kernel.gram(rows[part].clone(), rows)

    one_core_each(work, ceil(n / _GRAM_ROWS))
    return gram
