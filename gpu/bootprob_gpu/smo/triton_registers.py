"""Triton kernel: sequential minimal optimisation of a path whose state fits into registers.

Imported only where a kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.hardware.launch_shapes import tuned_shape
from bootprob_gpu.smo.triton_rules import (
    CHECK_EVERY,
    CONVERGED,
    FAR,
    NUMBERS,
    PATIENCE,
    REFRESH_EVERY,
    SINGLE_CLASS,
    box,
    certify,
    gain,
    middle,
    place_of,
    places_of,
    record,
    remaining,
    snapped,
    stretch,
    verdict,
)  # fmt: skip

__all__ = ["path_in_registers", "shape_of"]


@triton.jit
def _gradient(  # type: ignore[no-untyped-def]
    K, width, rows, y, s, n, lane, places, inside, ROWS: tl.constexpr, GATHERED: tl.constexpr
):
    """``y − K s`` for `s` in memory, `ROWS` rows of K on their way at a time."""
    g = tl.load(y + lane, mask=inside, other=0.0)
    k = tl.full((), 0, tl.int32)
    while k < n:
        for ahead in tl.static_range(ROWS):
            row = k + ahead
            weight = tl.load(s + row, mask=row < n, other=0.0)
            K_row = K + place_of(rows, tl.minimum(row, n - 1), GATHERED).to(tl.int64) * width
            columns = tl.where(weight != 0.0, n, 0)  # rows that count for nothing are not read
            g -= weight * tl.load(K_row + places, mask=lane < columns, other=0.0)
        k += ROWS
    return g


@triton.jit
def _advance(  # type: ignore[no-untyped-def]
    K, width, rows, diagonal, s, g, lo, hi, lane, places, inside, steps, kkt_tol,
    BLOCK: tl.constexpr, GATHERED: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """At most `steps` pairs moved; returns s, g, how many were, and the gain of the last."""
    moved = tl.full((), 0, tl.int32)
    found = tl.full((), 0.0, tl.float32)
    left = steps
    while left > 0:
        g_max, i = tl.max(tl.where(s < hi, g, -FAR), axis=0, return_indices=True)
        place = place_of(rows, i, GATHERED)
        row_i = K + place.to(tl.int64) * width
        K_i = tl.load(row_i + places, mask=inside, other=0.0).to(tl.float64)
        K_ii = tl.full((), 1.0, tl.float64)
        if not UNIT:
            K_ii = tl.load(row_i + place).to(tl.float64)
        newton, gains = gain(g_max, g, s, lo, K_ii, diagonal, K_i)
        # Numbers from 0 on are ordered as their bits, and integers are reduced in hardware.
        key = gains.to(tl.int32, bitcast=True)
        largest = tl.max(key, axis=0)
        j = tl.min(tl.where(key == largest, lane, BLOCK), axis=0)
        found = largest.to(tl.float32, bitcast=True)
        row_j = K + place_of(rows, j, GATHERED).to(tl.int64) * width
        K_j = tl.load(row_j + places, mask=inside, other=0.0).to(tl.float64)
        # One reduction, while K_j is on its way, finds the step that both rows have room for.
        grows = lane == i
        falls = lane == j
        bound = tl.where(grows, hi, lo)
        room = tl.abs(bound - s)
        fits = tl.minimum(room, tl.where(falls, newton, FAR).to(tl.float64))
        fits = tl.where(grows | falls, fits, FAR)
        step = tl.min(fits.to(tl.int64, bitcast=True), axis=0).to(tl.float64, bitcast=True)
        step = tl.where(found > 0.0, step, 0.0)
        # Bounds are met exactly, or a variable would creep along them for ever.
        moved_s = tl.where(step == room, bound, s + tl.where(grows, step, -step))
        s = tl.where(grows | falls, moved_s, s)
        g -= step * (K_i - K_j)
        moved += (found > 0.0).to(tl.int32)
        left = remaining(left, found, kkt_tol, step)
    return s, g, moved, found


@triton.jit
def _started(y, s, g, lo, hi, lane, inside, unchanged):  # type: ignore[no-untyped-def]
    """Stretch `s` within the new box as far as the dual objective grows; ``Σ s = 0`` stays."""
    label = tl.load(y + lane, mask=inside, other=0.0)
    linear = tl.sum(label * s, axis=0)
    quadratic = tl.sum(s * (label - g), axis=0)
    used = s != 0.0
    bound = tl.where(label > 0.0, hi, lo)
    room = tl.min(tl.where(used, bound / tl.where(used, s, 1.0), FAR), axis=0)
    t = stretch(linear, quadratic, room, unchanged)
    return snapped(s, t, lo, hi), label + t * (g - label)


@triton.jit
def _judge(y, s, g, lo, hi, lane, inside, tol, kkt_tol):  # type: ignore[no-untyped-def]
    """Primal and dual objective, intercept, and whether this is a solution."""
    label = tl.load(y + lane, mask=inside, other=0.0)
    g_max = tl.max(tl.where(s < hi, g, -FAR), axis=0)
    g_min = tl.min(tl.where(s > lo, g, FAR), axis=0)
    free = (lo < s) & (s < hi)
    free_sum = tl.sum(tl.where(free, g, 0.0), axis=0)
    count = tl.sum(free.to(tl.float64), axis=0)
    between, mean = middle(g_max, g_min, free_sum, count)
    width = hi - lo
    # 1 − y (f + b) with f = y − g
    loss_between = tl.sum(width * tl.maximum(label * (g - between), 0.0), axis=0)
    loss_mean = tl.sum(width * tl.maximum(label * (g - mean), 0.0), axis=0)
    norm = tl.sum(s * (label - g), axis=0)
    mass = tl.sum(label * s, axis=0)
    return certify(norm, mass, loss_between, loss_mean, between, mean, g_max - g_min, tol, kkt_tol)


@triton.jit(do_not_specialize=NUMBERS)
def path_in_registers(  # type: ignore[no-untyped-def]
    paths, matrices, rows, Ks, K_step, width, exacts, exact_step, exact_width, diagonals,
    diagonal_step, y, y_step, uppers, limits, dual_coefs, intercepts, primals, duals, gaps, n_iters,
    statuses, n, R, max_iter, claims, GATHERED: tl.constexpr, UNIT: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The R models of one path, each started from the one before; see `smo_fused`."""
    path = tl.load(paths + tl.program_id(0)).to(tl.int64)
    matrix = tl.load(matrices + path).to(tl.int64)
    K = Ks + matrix * K_step
    exact = exacts + matrix * exact_step
    y += path * y_step
    rows += path * n
    lane = tl.arange(0, BLOCK)
    inside = lane < n
    places = places_of(rows, lane, inside, GATHERED)
    diagonal = tl.full((), 1.0, tl.float64)
    if not UNIT:
        diagonal = tl.load(diagonals + matrix * diagonal_step + places, mask=inside, other=0.0)
    tol = tl.load(limits)
    kkt_tol = tl.load(limits + 1)
    s = tl.zeros([BLOCK], tl.float64)
    g = tl.load(y + lane, mask=inside, other=0.0)  # y − K s: the gradient of the dual
    unbounded = tl.full((), 0, tl.int32)  # no variable of the model before is at its upper bound
    r = tl.full((), 0, tl.int32)
    while r < R:
        at = path * R + r
        dual_coef = dual_coefs + at * n
        label = tl.load(y + lane, mask=inside, other=0.0)
        u = tl.load(uppers + at * n + lane, mask=inside, other=0.0)
        before = tl.load(uppers + (at - 1) * n + lane, mask=inside & (r > 0), other=0.0)
        shrunk = tl.max((u < before).to(tl.int32), axis=0)
        lo, hi = box(u, label)
        # A larger box changes nothing for a solution that touches no bound of the smaller one.
        s, g = _started(y, s, g, lo, hi, lane, inside, unbounded & (1 - shrunk))
        positive = tl.sum(hi, axis=0)
        negative = -tl.sum(lo, axis=0)
        single = (positive <= 0.0) | (negative <= 0.0)
        b = tl.where(positive > negative, 1.0, tl.where(positive < negative, -1.0, 0.0))
        b = b.to(tl.float64)
        primal = tl.full((), 0.0, tl.float64)
        dual = tl.full((), 0.0, tl.float64)
        status = tl.full((), SINGLE_CLASS, tl.int32)
        working = tl.where(single, 0, 1)
        it = tl.full((), 0, tl.int32)
        best = tl.full((), -FAR, tl.float64)
        best_it = tl.full((), 0, tl.int32)
        fresh_it = tl.full((), 0, tl.int32)
        fresh = tl.full((), 1, tl.int32)  # the gradient holds no rounding of updates
        blocked = tl.full((), 0, tl.int32)  # what is left of the violation is rounding
        refuted = tl.full((), 0, tl.int32)  # ends that a fresh gradient did not confirm
        while working != 0:
            primal, dual, b, solved = _judge(y, s, g, lo, hi, lane, inside, tol, kkt_tol)
            best_it = tl.where(dual > best, it, best_it)
            best = tl.maximum(best, dual)
            spent = it >= max_iter
            final = solved | spent | (it - best_it > PATIENCE) | (blocked != 0) | (refuted > claims)
            if (fresh == 0) & (final | (it - fresh_it >= REFRESH_EVERY)):
                # What the rounding of updates made look solved goes on.
                tl.store(dual_coef + lane, s, mask=inside)
                tl.debug_barrier()
                g = _gradient(
                    exact, exact_width, rows, y, dual_coef, n, lane, places, inside, ROWS, GATHERED
                )
                tl.debug_barrier()
                refuted += final.to(tl.int32)
                fresh = tl.full((), 1, tl.int32)
                fresh_it = it
                blocked = tl.full((), 0, tl.int32)
            elif final:
                working = tl.full((), 0, tl.int32)
                status = verdict(solved, spent)
            else:
                steps = tl.minimum(max_iter - it, CHECK_EVERY).to(tl.int32)
                s, g, moved, found = _advance(
                    K, width, rows, diagonal, s, g, lo, hi, lane, places, inside, steps,
                    tl.maximum(kkt_tol, 0.0), BLOCK, GATHERED, UNIT,
                )  # fmt: skip
                it += moved
                fresh = tl.where(moved > 0, 0, fresh)
                blocked = (found <= 0.0).to(tl.int32)
        tl.store(dual_coef + lane, s, mask=inside)
        record(intercepts, primals, duals, gaps, n_iters, statuses, at, b, primal, dual, it, status)
        touching = tl.max(((s >= hi) & (hi > 0.0) | (s <= lo) & (lo < 0.0)).to(tl.int32), axis=0)
        unbounded = tl.where(status == CONVERGED, 1 - touching, 0)
        r += 1


def shape_of(n: int, *, rounded: bool = True, unit: bool = True) -> dict[str, int]:
    """Block for n rows, rows of K on their way at a time, and warps.

    Four or eight rows to a thread: the fewer the warps, the smaller the share of the reductions,
    and the more paths a multiprocessor works on while others wait for memory. More rows of K on
    their way cost registers, and with them a third of the paths; chosen so that no register is
    spilled on compute capabilities 8.0, 9.0 and 10.0.

    Parameters
    ----------
    n : int
        Rows.
    rounded, unit : bool, default True
        Whether K is float32, and whether its diagonal need not be kept.
    """
    block = max(16, triton.next_power_of_2(n))
    warps = block // 128 if block <= 512 else block // 256
    if not (rounded or unit) and block <= 512:
        warps *= 2
    shape = {
        "BLOCK": block, "ROWS": 4 if rounded and block <= 128 else 2,
        "num_warps": min(8, max(1, warps)),
    }  # fmt: skip
    if block == 16:
        shape["maxnreg"] = 128  # told so, the compiler spills none for one program more
    return tuned_shape(shape, "smo", str(block)) if rounded and unit else shape
