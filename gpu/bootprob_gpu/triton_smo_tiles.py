"""Triton kernel: sequential minimal optimisation of a path of many rows, tile by tile of rows.

The signed dual variables lie in their row of the result, the gradient in memory of its own. After
every pass that writes, the program's threads wait for each other. Imported only where a kernel is
about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.triton_smo_rules import (
    CHECK_EVERY,
    CONVERGED,
    FAR,
    PATIENCE,
    REFRESH_EVERY,
    SINGLE_CLASS,
    box,
    certify,
    gain,
    middle,
    path_number,
    record,
    remaining,
    snapped,
    stretch,
    verdict,
)  # fmt: skip

__all__ = ["path_in_tiles"]


@triton.jit
def _first_of_largest(value, index):  # type: ignore[no-untyped-def]
    """The largest value and, of the rows that have it, the first."""
    largest = tl.max(value, axis=0)
    return largest, tl.min(tl.where(value == largest, index, 2147483647), axis=0)


@triton.jit
def _renew(K, y, s, g, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write ``y − K s`` to `g`."""
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        value = tl.load(y + lane, mask=inside, other=0.0)
        k = tl.full((), 0, tl.int32)
        while k < n:
            for ahead in tl.static_range(4):
                row = k + ahead
                weight = tl.load(s + row, mask=row < n, other=0.0)
                K_row = K + row.to(tl.int64) * n
                columns = tl.where(weight != 0.0, n, 0)  # rows that count for nothing are not read
                value -= weight * tl.load(K_row + lane, mask=lane < columns, other=0.0)
            k += 4
        tl.store(g + lane, value, mask=inside)
        start += BLOCK
    tl.debug_barrier()


@triton.jit
def _update(K_i, K_j, step, y, u, s, g, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Move the gradient after ``s_i += step, s_j −= step``; the largest that may grow."""
    largest = tl.full([BLOCK], -FAR, tl.float64)
    index = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        difference = tl.load(K_i + lane, mask=inside, other=0.0).to(tl.float64) - tl.load(
            K_j + lane, mask=inside, other=0.0
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
def _partner(K_i, K_ii, diagonals, g_max, y, u, s, g, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The row that, paired with i, raises the dual objective most by a Newton step."""
    largest = tl.zeros([BLOCK], tl.float32)
    index = tl.zeros([BLOCK], tl.int32)
    start = tl.full((), 0, tl.int32)
    while start < n:
        lane = start + tl.arange(0, BLOCK)
        inside = lane < n
        label = tl.load(y + lane, mask=inside, other=0.0)
        lo, _ = box(tl.load(u + lane, mask=inside, other=0.0), label)
        _, gains = gain(
            g_max,
            tl.load(g + lane, mask=inside, other=0.0),
            tl.load(s + lane, mask=inside, other=0.0),
            lo,
            K_ii,
            tl.load(diagonals + lane, mask=inside, other=0.0).to(tl.float64),
            tl.load(K_i + lane, mask=inside, other=0.0).to(tl.float64),
        )
        larger = gains > largest
        largest = tl.where(larger, gains, largest)
        index = tl.where(larger, lane, index)
        start += BLOCK
    return _first_of_largest(largest, index)


@triton.jit
def _advance(  # type: ignore[no-untyped-def]
    K, diagonals, y, u, s, g, n, steps, kkt_tol, BLOCK: tl.constexpr
):
    """At most `steps` pairs moved; returns how many were, and the gain of the last."""
    moved = tl.full((), 0, tl.int32)
    found = tl.full((), 0.0, tl.float32)
    step = tl.full((), 0.0, tl.float64)
    row_i = K + tl.full((), 0, tl.int64)
    row_j = row_i
    left = steps
    while left > 0:
        g_max, i = _update(row_i, row_j, step, y, u, s, g, n, BLOCK)
        row_i = K + i.to(tl.int64) * n
        K_ii = tl.load(diagonals + i).to(tl.float64)
        found, j = _partner(row_i, K_ii, diagonals, g_max, y, u, s, g, n, BLOCK)
        row_j = K + j.to(tl.int64) * n
        s_i = tl.load(s + i)
        s_j = tl.load(s + j)
        _, hi = box(tl.load(u + i), tl.load(y + i))
        lo, _ = box(tl.load(u + j), tl.load(y + j))
        K_jj = tl.load(diagonals + j).to(tl.float64)
        K_ij = tl.load(row_i + j).to(tl.float64)
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
    _update(row_i, row_j, step, y, u, s, g, n, BLOCK)
    return moved, found


@triton.jit
def _start(y, u, before, s_before, s, g, r, unbounded, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
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


@triton.jit
def _judge(y, u, s, g, n, tol, kkt_tol, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
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


@triton.jit(do_not_specialize=["R", "G", "max_iter", "replicates", "step"])
def path_in_tiles(  # type: ignore[no-untyped-def]
    gradients, Ks, diagonals, y, uppers, limits, dual_coefs, intercepts, primals, duals, gaps,
    n_iters, statuses, n, R, G, max_iter, replicates, step, BLOCK: tl.constexpr,
):  # fmt: skip
    """The R models of one path, each started from the one before; see `smo_fused`."""
    path = path_number(replicates, step)
    matrix = path % G
    K = Ks + matrix * n * n
    diagonal = diagonals + matrix * n
    g = gradients + path * n  # y − K s: the gradient of the dual
    tol = tl.load(limits)
    kkt_tol = tl.load(limits + 1)
    unbounded = tl.full((), 0, tl.int32)  # no variable of the model before is at its upper bound
    r = tl.full((), 0, tl.int32)
    while r < R:
        at = path * R + r
        u = uppers + at * n
        s = dual_coefs + at * n
        # A larger box changes nothing for a solution that touches no bound of the smaller one.
        positive, negative = _start(y, u, u - n, s - n, s, g, r, unbounded, n, BLOCK)
        single = (positive <= 0.0) | (negative <= 0.0)
        b = tl.where(positive > negative, 1.0, tl.where(positive < negative, -1.0, 0.0))
        b = b.to(tl.float64)
        primal = tl.full((), 0.0, tl.float64)
        dual = tl.full((), 0.0, tl.float64)
        status = tl.full((), SINGLE_CLASS, tl.int32)
        touching = tl.full((), 1, tl.int32)
        working = tl.where(single, 0, 1)
        it = tl.full((), 0, tl.int32)
        best = tl.full((), -FAR, tl.float64)
        best_it = tl.full((), 0, tl.int32)
        fresh_it = tl.full((), 0, tl.int32)
        fresh = tl.full((), 1, tl.int32)  # the gradient holds no rounding of updates
        blocked = tl.full((), 0, tl.int32)  # what is left of the violation is rounding
        while working != 0:
            primal, dual, b, solved, touching = _judge(y, u, s, g, n, tol, kkt_tol, BLOCK)
            best_it = tl.where(dual > best, it, best_it)
            best = tl.maximum(best, dual)
            spent = it >= max_iter
            final = solved | spent | (it - best_it > PATIENCE) | (blocked != 0)
            if (fresh == 0) & (final | (it - fresh_it >= REFRESH_EVERY)):
                # What the rounding of updates made look solved goes on.
                _renew(K, y, s, g, n, BLOCK)
                fresh = tl.full((), 1, tl.int32)
                fresh_it = it
                blocked = tl.full((), 0, tl.int32)
            elif final:
                working = tl.full((), 0, tl.int32)
                status = verdict(solved, spent)
            else:
                steps = tl.minimum(max_iter - it, CHECK_EVERY).to(tl.int32)
                moved, found = _advance(
                    K, diagonal, y, u, s, g, n, steps, tl.maximum(kkt_tol, 0.0), BLOCK
                )
                it += moved
                fresh = tl.where(moved > 0, 0, fresh)
                blocked = (found <= 0.0).to(tl.int32)
        record(intercepts, primals, duals, gaps, n_iters, statuses, at, b, primal, dual, it, status)
        unbounded = tl.where(status == CONVERGED, 1 - touching, 0)
        r += 1
