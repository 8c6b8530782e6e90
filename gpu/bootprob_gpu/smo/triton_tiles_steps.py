"""Steps of SMO in Triton, tile by tile of rows: pairs moved, objectives, and new boxes.

After every pass that writes, the program's threads wait for each other. Imported only where a
kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.smo.triton_rules import (
    FAR,
    box,
    certify,
    gain,
    middle,
    place_of,
    places_of,
    remaining,
    snapped,
    stretch,
)

__all__ = ["advance", "judge", "renew", "start_model"]


@triton.jit
def _first_of_largest(value, index):  # type: ignore[no-untyped-def]
    """The largest value and, of the rows that have it, the first."""
    largest = tl.max(value, axis=0)
    return largest, tl.min(tl.where(value == largest, index, 2147483647), axis=0)


@triton.jit
def renew(  # type: ignore[no-untyped-def]
    K, width, rows, y, s, g, n, BLOCK: tl.constexpr, GATHERED: tl.constexpr
):
    """Write ``y − K s`` to `g`."""
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        places = places_of(rows, lane, inside, GATHERED)
        value = tl.load(y + lane, mask=inside, other=0.0)
        k = tl.full((), 0, tl.int32)
        while k < n:
            for ahead in tl.static_range(4):
                row = k + ahead
                weight = tl.load(s + row, mask=row < n, other=0.0)
                place = place_of(rows, tl.minimum(row, n - 1), GATHERED)
                K_row = K + place.to(tl.int64) * width
                columns = tl.where(weight != 0.0, n, 0)  # rows that count for nothing are not read
                value -= weight * tl.load(K_row + places, mask=lane < columns, other=0.0)
            k += 4
        tl.store(g + lane, value, mask=inside)
        start += BLOCK
    tl.debug_barrier()


@triton.jit
def _update(  # type: ignore[no-untyped-def]
    K_i, K_j, rows, step, y, u, s, g, n, BLOCK: tl.constexpr, GATHERED: tl.constexpr
):
    """Move the gradient after ``s_i += step, s_j −= step``; the largest that may grow."""
    largest = tl.full([BLOCK], -FAR, tl.float64)
    index = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        places = places_of(rows, lane, inside, GATHERED)
        difference = tl.load(K_i + places, mask=inside, other=0.0).to(tl.float64) - tl.load(
            K_j + places, mask=inside, other=0.0
        ).to(tl.float64)
        value = tl.load(g + lane, mask=inside, other=0.0) - step * difference
        tl.store(g + lane, value, mask=inside)
        label = tl.load(y + lane, mask=inside, other=0.0)
        _, hi = box(tl.load(u + lane, mask=inside, other=0.0), label)
        larger = (tl.load(s + lane, mask=inside, other=0.0) < hi) & (value > largest)
        largest = tl.where(larger, value, largest)
        index = tl.where(larger, lane, index)
        start += BLOCK
    g_max, i = _first_of_largest(largest, index)
    tl.debug_barrier()
    return g_max, i


@triton.jit
def _partner(  # type: ignore[no-untyped-def]
    K_i, K_ii, rows, diagonals, g_max, y, u, s, g, n, BLOCK: tl.constexpr, GATHERED: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """The row that, paired with i, raises the dual objective most by a Newton step."""
    largest = tl.zeros([BLOCK], tl.float32)
    index = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        places = places_of(rows, lane, inside, GATHERED)
        label = tl.load(y + lane, mask=inside, other=0.0)
        lo, _ = box(tl.load(u + lane, mask=inside, other=0.0), label)
        diagonal = tl.full((), 1.0, tl.float64)
        if not UNIT:
            diagonal = tl.load(diagonals + places, mask=inside, other=0.0).to(tl.float64)
        _, gains = gain(
            g_max,
            tl.load(g + lane, mask=inside, other=0.0),
            tl.load(s + lane, mask=inside, other=0.0),
            lo,
            K_ii,
            diagonal,
            tl.load(K_i + places, mask=inside, other=0.0).to(tl.float64),
        )
        larger = gains > largest
        largest = tl.where(larger, gains, largest)
        index = tl.where(larger, lane, index)
        start += BLOCK
    return _first_of_largest(largest, index)


@triton.jit
def advance(  # type: ignore[no-untyped-def]
    K, width, rows, diagonals, y, u, s, g, n, steps, kkt_tol, BLOCK: tl.constexpr,
    GATHERED: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """At most `steps` pairs moved; returns how many were, and the gain of the last."""
    moved = tl.full((), 0, tl.int32)
    found = tl.full((), 0.0, tl.float32)
    step = tl.full((), 0.0, tl.float64)
    row_i = K + tl.full((), 0, tl.int64)
    row_j = row_i
    left = steps
    while left > 0:
        g_max, i = _update(row_i, row_j, rows, step, y, u, s, g, n, BLOCK, GATHERED)
        place_i = place_of(rows, i, GATHERED)
        row_i = K + place_i.to(tl.int64) * width
        K_ii = tl.load(diagonals + place_i).to(tl.float64)
        found, j = _partner(
            row_i, K_ii, rows, diagonals, g_max, y, u, s, g, n, BLOCK, GATHERED, UNIT
        )
        place_j = place_of(rows, j, GATHERED)
        row_j = K + place_j.to(tl.int64) * width
        s_i = tl.load(s + i)
        s_j = tl.load(s + j)
        _, hi = box(tl.load(u + i), tl.load(y + i))
        lo, _ = box(tl.load(u + j), tl.load(y + j))
        K_jj = tl.load(diagonals + place_j).to(tl.float64)
        K_ij = tl.load(row_i + place_j).to(tl.float64)
        newton, _ = gain(g_max, tl.load(g + j), s_j, lo, K_ii, K_jj, K_ij)
        step = tl.minimum(newton.to(tl.float64), tl.minimum(hi - s_i, s_j - lo))
        # All threads have read s before one of them writes it, and may read it afterwards.
        tl.debug_barrier()
        if found > 0.0:
            # Bounds are met exactly, or a variable would creep along them for ever.
            tl.store(s + i, tl.where(step == hi - s_i, hi, s_i + step))
            tl.store(s + j, tl.where(step == s_j - lo, lo, s_j - step))
        tl.debug_barrier()
        moved += (found > 0.0).to(tl.int32)
        step = tl.where(found > 0.0, step, 0.0)
        left = remaining(left, found, kkt_tol, step)
    _update(row_i, row_j, rows, step, y, u, s, g, n, BLOCK, GATHERED)
    return moved, found


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
