"""Triton: from one box to the next, tile by tile of rows.

After every pass that writes, the program's threads wait for each other. Imported only where a
kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.smo.triton_rules import FAR, box, snapped, stretch

__all__ = ["start_model"]


@triton.jit
def start_model(y, u, before, s_before, s, g, r, unbounded, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write the stretched variables and their gradient; returns the masses of both classes."""
    linear = tl.zeros([BLOCK], tl.float64)
    quadratic = tl.zeros([BLOCK], tl.float64)
    positive = tl.zeros([BLOCK], tl.float64)
    negative = tl.zeros([BLOCK], tl.float64)
    room = tl.full([BLOCK], FAR, tl.float64)
    shrunk = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        later = inside & (r > 0)
        label = tl.load(y + lane, mask=inside, other=0.0)
        bounds = tl.load(u + lane, mask=inside, other=0.0)
        lo, hi = box(bounds, label)
        value = tl.load(s_before + lane, mask=later, other=0.0)
        slope = tl.load(g + lane, mask=later, other=0.0)
        linear += label * value
        quadratic += value * (label - tl.where(r > 0, slope, label))
        positive += hi
        negative -= lo
        used = value != 0.0
        bound = tl.where(label > 0.0, hi, lo)
        room = tl.minimum(room, tl.where(used, bound / tl.where(used, value, 1.0), FAR))
        smaller = bounds < tl.load(before + lane, mask=later, other=0.0)
        shrunk = tl.maximum(shrunk, smaller.to(tl.int32))
        start += BLOCK
    t = stretch(
        tl.sum(linear, axis=0), tl.sum(quadratic, axis=0), tl.min(room, axis=0),
        unbounded & (1 - tl.max(shrunk, axis=0)),
    )  # fmt: skip
    tl.debug_barrier()
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        later = inside & (r > 0)
        label = tl.load(y + lane, mask=inside, other=0.0)
        lo, hi = box(tl.load(u + lane, mask=inside, other=0.0), label)
        value = tl.load(s_before + lane, mask=later, other=0.0)
        slope = tl.where(r > 0, tl.load(g + lane, mask=later, other=0.0), label)
        tl.store(s + lane, snapped(value, t, lo, hi), mask=inside)
        tl.store(g + lane, label + t * (slope - label), mask=inside)
        start += BLOCK
    tl.debug_barrier()
    return tl.sum(positive, axis=0), tl.sum(negative, axis=0)
