"""Triton kernel: sequential minimal optimisation of a path of many rows, tile by tile of rows.

The signed dual variables lie in their row of the result, the gradient in memory of its own.
Imported only where a kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.smo.triton_rules import (
    CHECK_EVERY,
    CONVERGED,
    FAR,
    NUMBERS,
    PATIENCE,
    REFRESH_EVERY,
    SINGLE_CLASS,
    record,
    verdict,
)  # fmt: skip
from bootprob_gpu.smo.triton_tiles_steps import advance, judge, renew, start_model

__all__ = ["path_in_tiles"]


@triton.jit(do_not_specialize=NUMBERS)
def path_in_tiles(  # type: ignore[no-untyped-def]
    gradients, paths, matrices, rows, Ks, K_step, width, exacts, exact_step, exact_width, diagonals,
    diagonal_step, y, y_step, uppers, limits, dual_coefs, intercepts, primals, duals, gaps, n_iters,
    statuses, n, R, max_iter, claims, GATHERED: tl.constexpr, UNIT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The R models of one path, each started from the one before; see `smo_fused`."""
    path = tl.load(paths + tl.program_id(0)).to(tl.int64)
    matrix = tl.load(matrices + path).to(tl.int64)
    K = Ks + matrix * K_step
    exact = exacts + matrix * exact_step
    y += path * y_step
    rows += path * n
    diagonal = diagonals + matrix * diagonal_step
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
        positive, negative = start_model(y, u, u - n, s - n, s, g, r, unbounded, n, BLOCK)
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
        refuted = tl.full((), 0, tl.int32)  # ends that a fresh gradient did not confirm
        while working != 0:
            primal, dual, b, solved, touching = judge(y, u, s, g, n, tol, kkt_tol, BLOCK)
            best_it = tl.where(dual > best, it, best_it)
            best = tl.maximum(best, dual)
            spent = it >= max_iter
            final = solved | spent | (it - best_it > PATIENCE) | (blocked != 0) | (refuted > claims)
            if (fresh == 0) & (final | (it - fresh_it >= REFRESH_EVERY)):
                # What the rounding of updates made look solved goes on.
                renew(exact, exact_width, rows, y, s, g, n, BLOCK, GATHERED)
                refuted += final.to(tl.int32)
                fresh = tl.full((), 1, tl.int32)
                fresh_it = it
                blocked = tl.full((), 0, tl.int32)
            elif final:
                working = tl.full((), 0, tl.int32)
                status = verdict(solved, spent)
            else:
                steps = tl.minimum(max_iter - it, CHECK_EVERY).to(tl.int32)
                moved, found = advance(
                    K, width, rows, diagonal, y, u, s, g, n, steps, tl.maximum(kkt_tol, 0.0), BLOCK,
                    GATHERED, UNIT,
                )  # fmt: skip
                it += moved
                fresh = tl.where(moved > 0, 0, fresh)
                blocked = (found <= 0.0).to(tl.int32)
        record(intercepts, primals, duals, gaps, n_iters, statuses, at, b, primal, dual, it, status)
        unbounded = tl.where(status == CONVERGED, 1 - touching, 0)
        r += 1
