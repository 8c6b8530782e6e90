"""Triton: primal and dual objective, and the intercept that goes with them, tile by tile of rows.

Imported only where a kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.smo.triton_rules import FAR, box, certify, middle

__all__ = ["judge"]


@triton.jit
def judge(y, u, s, g, n, tol, kkt_tol, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Objectives, intercept, whether this is a solution, whether a variable is at its bound."""
    norm = tl.zeros([BLOCK], tl.float64)
    mass = tl.zeros([BLOCK], tl.float64)
    free_sum = tl.zeros([BLOCK], tl.float64)
    free_count = tl.zeros([BLOCK], tl.float64)
    largest = tl.full([BLOCK], -FAR, tl.float64)
    smallest = tl.full([BLOCK], FAR, tl.float64)
    touching = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        label = tl.load(y + lane, mask=inside, other=0.0)
        lo, hi = box(tl.load(u + lane, mask=inside, other=0.0), label)
        value = tl.load(s + lane, mask=inside, other=0.0)
        slope = tl.load(g + lane, mask=inside, other=0.0)
        norm += value * (label - slope)
        mass += label * value
        free = (lo < value) & (value < hi)
        free_sum += tl.where(free, slope, 0.0)
        free_count += free.to(tl.float64)
        largest = tl.maximum(largest, tl.where(value < hi, slope, -FAR))
        smallest = tl.minimum(smallest, tl.where(value > lo, slope, FAR))
        bounded = ((value >= hi) & (hi > 0.0)) | ((value <= lo) & (lo < 0.0))
        touching = tl.maximum(touching, bounded.to(tl.int32))
        start += BLOCK
    g_max = tl.max(largest, axis=0)
    g_min = tl.min(smallest, axis=0)
    between, mean = middle(g_max, g_min, tl.sum(free_sum, axis=0), tl.sum(free_count, axis=0))
    loss_between = tl.zeros([BLOCK], tl.float64)
    loss_mean = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        label = tl.load(y + lane, mask=inside, other=0.0)
        bounds = tl.load(u + lane, mask=inside, other=0.0)
        slope = tl.load(g + lane, mask=inside, other=0.0)
        loss_between += bounds * tl.maximum(label * (slope - between), 0.0)
        loss_mean += bounds * tl.maximum(label * (slope - mean), 0.0)
        start += BLOCK
    primal, dual, b, solved = certify(
        tl.sum(norm, axis=0), tl.sum(mass, axis=0), tl.sum(loss_between, axis=0),
        tl.sum(loss_mean, axis=0), between, mean, g_max - g_min, tol, kkt_tol,
    )  # fmt: skip
    return primal, dual, b, solved, tl.max(touching, axis=0)
