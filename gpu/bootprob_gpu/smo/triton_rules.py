"""Triton functions that both kernels of sequential minimal optimisation share.

Functions of blocks of rows and of scalars, in float64. Imported only where a kernel is about to
run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bootprob_gpu.certificate import Status

__all__ = [
    "CHECK_EVERY", "CONVERGED", "FAR", "NUMBERS", "PATIENCE", "REFRESH_EVERY", "SINGLE_CLASS",
    "box", "certify", "gain", "middle", "place_of", "places_of", "record", "remaining", "snapped",
    "stretch", "verdict",
]  # fmt: skip

FAR = tl.constexpr(2.0**100)  # beyond every gradient; infinities would make NaN
CHECK_EVERY = tl.constexpr(64)  # iterations between evaluations of the duality gap
CHECK_AFTER = tl.constexpr(8)  # at least, when the violations look small enough earlier
REFRESH_EVERY = tl.constexpr(64 * 64)  # iterations after which the gradient is computed anew
PATIENCE = tl.constexpr(256 * 64)  # iterations without a larger dual objective
_MIN_CURVATURE = tl.constexpr(1e-12)
_SNAP = tl.constexpr(1e-14)  # relative distance at which a variable counts as on its bound
CONVERGED = tl.constexpr(int(Status.CONVERGED))
_MAX_ITER = tl.constexpr(int(Status.MAX_ITER))
_STALLED = tl.constexpr(int(Status.STALLED))
SINGLE_CLASS = tl.constexpr(int(Status.SINGLE_CLASS))
# Of none of them Triton is to know that it is a multiple of 16: it would give a thread neighbouring
# rows, which costs registers, and where rows are gathered four times the transactions.
NUMBERS = (
    "K_step", "width", "exact_step", "exact_width", "diagonal_step", "y_step", "n", "R", "max_iter",
    "claims",
)  # fmt: skip


@triton.jit
def place_of(rows, i, GATHERED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where row i of a path stands in its Gram matrix, as a row and as a column."""
    place = i
    if GATHERED:
        place = tl.load(rows + i)
    return place


@triton.jit
def places_of(rows, lane, inside, GATHERED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where a block of rows of a path stands in its Gram matrix."""
    places = lane
    if GATHERED:
        places = tl.load(rows + lane, mask=inside, other=0)
    return places


@triton.jit
def box(u, label):  # type: ignore[no-untyped-def]
    """Bounds of the signed variables ``y a`` for ``0 ≤ a ≤ u``."""
    return tl.where(label > 0.0, 0.0, -u), tl.where(label > 0.0, u, 0.0)


@triton.jit
def gain(g_max, g, s, lo, K_ii, diagonal, K_i):  # type: ignore[no-untyped-def]
    """Newton step of a pair with row i, and twice what it adds to the dual objective, in float32.

    They choose a pair and how far it moves; what the move makes of the gradient is float64. A
    division in float64 would take longer than all the rest.
    """
    fall = tl.where(s > lo, tl.maximum((g_max - g).to(tl.float32), 0.0), 0.0)
    curvature = (K_ii + diagonal - 2.0 * K_i).to(tl.float32)
    newton = fall / tl.maximum(curvature, _MIN_CURVATURE)
    return newton, fall * newton


@triton.jit
def stretch(linear, quadratic, room, unchanged):  # type: ignore[no-untyped-def]
    """The factor that maximises the dual objective along a ray, within the box."""
    best = linear / tl.where(quadratic > 0.0, quadratic, 1.0)
    t = tl.where(quadratic > 0.0, tl.minimum(best, room), room)
    return tl.where((linear > 0.0) & (unchanged == 0), t, 1.0)


@triton.jit
def snapped(s, t, lo, hi):  # type: ignore[no-untyped-def]
    """``t s`` within the box; what sat on its bound stays there, lest it creep along it."""
    s = tl.minimum(tl.maximum(s * t, lo), hi)
    s = tl.where(s > hi * (1.0 - _SNAP), hi, s)
    return tl.where(s < lo * (1.0 - _SNAP), lo, s)


@triton.jit
def middle(g_max, g_min, free_sum, free):  # type: ignore[no-untyped-def]
    """Two candidate intercepts: between the ends, and the mean over the free variables."""
    between = 0.5 * (g_max + g_min)
    between = tl.where(g_max <= -FAR, g_min, tl.where(g_min >= FAR, g_max, between))
    return between, tl.where(free > 0.0, free_sum / tl.maximum(free, 1.0), between)


@triton.jit
def certify(  # type: ignore[no-untyped-def]
    norm, mass, loss_between, loss_mean, between, mean, violation, tol, kkt_tol,
):  # fmt: skip
    """Primal and dual objective, the better intercept, and whether this is a solution."""
    primal = 0.5 * norm + tl.minimum(loss_between, loss_mean)
    dual = mass - 0.5 * norm
    solved = (tl.abs(primal - dual) <= tol * primal) | (violation <= kkt_tol)
    return primal, dual, tl.where(loss_mean < loss_between, mean, between), solved


@triton.jit
def verdict(solved, spent):  # type: ignore[no-untyped-def]
    """Status of a model that is left."""
    return tl.where(solved, CONVERGED, tl.where(spent, _MAX_ITER, _STALLED))


@triton.jit
def remaining(left, found, kkt_tol, step):  # type: ignore[no-untyped-def]
    """Iterations before the next check, now that a pair of gain `found` has moved by `step`."""
    # Newton's gain is violation times step; of a step cut short that is too large, and waits.
    small = (found.to(tl.float64) <= kkt_tol * step) & (left <= CHECK_EVERY - CHECK_AFTER)
    return tl.where((found <= 0.0) | small, 0, left - 1)


@triton.jit
def record(  # type: ignore[no-untyped-def]
    intercepts, primals, duals, gaps, n_iters, statuses, at, b, primal, dual, it, status,
):  # fmt: skip
    """Write down one model."""
    positive = primal > 0.0
    gap = tl.where(positive, (primal - dual) / tl.where(positive, primal, 1.0), 0.0)
    tl.store(intercepts + at, b)
    tl.store(primals + at, primal)
    tl.store(duals + at, dual)
    tl.store(gaps + at, gap)
    tl.store(n_iters + at, it)
    tl.store(statuses + at, status)
