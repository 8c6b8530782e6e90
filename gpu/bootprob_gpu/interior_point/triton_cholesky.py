"""Triton kernels: Cholesky factors of many small matrices, and systems with them.

One program works on one matrix, in float64; for a problem that is answered it returns at once and
writes nothing. Imported only where a kernel is about to run.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bootprob_gpu.hardware.launch_shapes import tuned_shape

__all__ = ["factored", "solved"]


@triton.jit
def _factor_one(packed, penalty, factor, definite, q, damped, Q: tl.constexpr):  # type: ignore[no-untyped-def]
    problem = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, Q)
    rows, columns = lane[:, None], lane[None, :]
    inside = (rows < q) & (columns < q)
    high, low = tl.maximum(rows, columns), tl.minimum(rows, columns)
    triangle = packed + problem * (q * (q + 1) // 2)
    L = tl.load(triangle + high * (high + 1) // 2 + low, mask=inside, other=0.0)
    added = tl.load(penalty + problem * q + lane, mask=lane < q, other=0.0)
    L = tl.where(rows == columns, (L + added[:, None]) * damped, L)
    positive = tl.full((), 1, tl.int32)
    j = tl.full((), 0, tl.int32)
    while j < q:
        # Products with a unit vector take half as long as selections do.
        unit = (lane == j).to(tl.float64)
        column = tl.sum(L * unit[None, :], axis=1)
        pivot = tl.sum(column * unit, axis=0)
        positive = tl.where(pivot > 0.0, positive, 0)
        # Damped in vain: a huge pivot leaves this direction out of the step.
        root = tl.sqrt(tl.where(pivot > 0.0, pivot, 1e100))
        below = tl.where(lane > j, column / root, 0.0)
        L -= below[:, None] * below[None, :]
        finished = tl.where(lane == j, root, below)
        tl.store(factor + (problem * q + j) * q + lane, finished, mask=lane < q)
        j += 1
    tl.store(definite + problem, positive)


@triton.jit
def _factor(working, packed, penalty, factor, definite, q, Q: tl.constexpr):  # type: ignore[no-untyped-def]
    if tl.load(working + tl.program_id(0)) > 0:
        _factor_one(packed, penalty, factor, definite, q, tl.full((), 1.0, tl.float64), Q)


@triton.jit
def _factor_damped(  # type: ignore[no-untyped-def]
    working, packed, penalty, factor, definite, q, DAMPING: tl.constexpr, Q: tl.constexpr
):
    problem = tl.program_id(0)
    if (tl.load(working + problem) > 0) & (tl.load(definite + problem) == 0):
        damped = 1.0 + q.to(tl.float64) * DAMPING
        _factor_one(packed, penalty, factor, definite, q, damped, Q)


@triton.jit
def _solve(working, right, factor, penalty, w, solution, q, Q: tl.constexpr):  # type: ignore[no-untyped-def]
    problem = tl.program_id(0).to(tl.int64)
    if tl.load(working + problem) == 0:
        return
    lane = tl.arange(0, Q)
    inside = lane < q
    at = problem * q + lane
    x = tl.load(right + at, mask=inside, other=0.0)
    x -= tl.load(penalty + at, mask=inside, other=0.0) * tl.load(w + at, mask=inside, other=0.0)
    L = factor + problem * q * q  # its columns are neighbours in memory
    inverse = 1.0 / tl.load(L + lane * (q + 1), mask=inside, other=1.0)
    # The next column is always on its way while one is worked on.
    j = tl.full((), 0, tl.int32)
    column = tl.load(L + lane, mask=inside, other=0.0)
    while j < q:
        following = tl.load(L + (j + 1) * q + lane, mask=inside & (j + 1 < q), other=0.0)
        value = tl.sum(tl.where(lane == j, x * inverse, 0.0), axis=0)
        x = tl.where(lane == j, value, tl.where(lane > j, x - column * value, x))
        column = following
        j += 1
    column = tl.load(L + (q - 1) * q + lane, mask=inside, other=0.0)
    while j > 0:
        j -= 1
        following = tl.load(L + (j - 1) * q + lane, mask=inside & (j > 0), other=0.0)
        terms = tl.where(lane == j, x, tl.where(lane > j, -column * x, 0.0))
        scale = tl.sum(tl.where(lane == j, inverse, 0.0), axis=0)
        x = tl.where(lane == j, tl.sum(terms, axis=0) * scale, x)
        column = following
    tl.store(solution + at, x, mask=inside)


def factored(packed: Tensor, penalty: Tensor, working: Tensor, damping: float) -> Tensor:
    """Launch what `bootprob_gpu.interior_point.normal_matrices.factored` describes."""
    k, q = penalty.shape
    factor = packed.new_empty(k, q, q)  # columns are neighbours in memory, as torch has it
    definite = torch.empty(k, dtype=torch.int32, device=packed.device)
    Q = max(16, triton.next_power_of_2(q))
    # Few enough entries of the matrix in each thread's registers.
    warps = tuned_shape({"num_warps": {16: 1, 32: 1, 64: 4, 128: 16}[Q]}, "factor", str(Q))
    options = {"Q": Q, **warps}
    given = working, packed, penalty, factor, definite, q
    _factor[(k,)](*given, **options)
    # Rare, so it may be slower: with 16 warps it spills on compute capability 8.0.
    options["num_warps"] = min(8, options["num_warps"])
    _factor_damped[(k,)](*given, DAMPING=damping, **options)
    return factor.mT


def solved(right: Tensor, factor: Tensor, penalty: Tensor, w: Tensor, working: Tensor) -> Tensor:
    """Launch what `bootprob_gpu.interior_point.normal_matrices.solved` describes."""
    k, q = right.shape
    solution = torch.empty_like(right)
    Q = max(32, triton.next_power_of_2(q))
    columns = factor.mT.contiguous()
    _solve[(k,)](working, right, columns, penalty, w, solution, q, Q=Q, num_warps=max(1, Q // 128))
    return solution
