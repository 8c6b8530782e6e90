"""Triton kernels: the steps of the interior point, row by row of all problems.

One program works on one problem, row block by row block, in float64; sums and maxima are taken in
a fixed order, so reruns agree bit by bit. For a problem that is answered it returns at once and
writes nothing. What each computes is said, and done in plain torch, in
`bootprob_gpu.interior_point.passes`. Imported only where a kernel is about to run.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from bootprob_gpu.interior_point.state import PLAIN_AFTER, PLAIN_CENTRING, State
from bootprob_gpu.interior_point.triton_certificate import row_blocks

__all__ = ["correct", "move", "weigh"]


@triton.jit
def _rows(uppers, duals, ts, xis, at, mask):  # type: ignore[no-untyped-def]
    """State of a block of rows: inside, a, t, xi, u − a, 1 / a, 1 / (u − a), theta."""
    u = tl.load(uppers + at, mask=mask, other=0.0)
    inside = u > 0.0
    a = tl.load(duals + at, mask=mask, other=0.5)
    t = tl.load(ts + at, mask=mask, other=1.0)
    xi = tl.load(xis + at, mask=mask, other=2.0)
    v = tl.where(inside, u - a, 1.0)
    per_a = 1.0 / a
    per_v = 1.0 / v
    theta = tl.where(inside, 1.0 / (t * per_a + xi * per_v), 0.0)
    return inside, a, t, xi, v, per_a, per_v, theta


@triton.jit
def _predictor(t, xi, per_a, per_v, theta, change):  # type: ignore[no-untyped-def]
    """Step (da, dt, dxi) towards complementarity 0; `change` is y times that of the scores."""
    da = theta * (xi - t - change)
    return da, -(t + t * (da * per_a)), xi * (da * per_v) - xi


@triton.jit
def _aim(level, second, da, dt, dxi):  # type: ignore[no-untyped-def]
    """Complementarities to aim at: `level`, less the second-order terms of the predictor."""
    da = da * second
    return level - da * dt, level + da * dxi


@triton.jit
def _worst(inside, t, xi, per_a, per_v, da, dt, dxi):  # type: ignore[no-untyped-def]
    """Inverse step lengths to the boundary, primal and dual, of each row."""
    primal = tl.maximum(-dt / t, -dxi / xi)
    dual = tl.maximum(-da * per_a, da * per_v)
    return tl.where(inside, primal, 0.0), tl.where(inside, dual, 0.0)


@triton.jit
def _longest(worst):  # type: ignore[no-untyped-def]
    return 1.0 / tl.maximum(tl.max(worst, axis=0), 1e-30)


@triton.jit
def _second(iteration, best_iteration, problem, PLAIN_AFTER: tl.constexpr):  # type: ignore[no-untyped-def]
    """1 while second-order terms count, 0 where the gap has stood still for long."""
    idle = tl.load(iteration) - tl.load(best_iteration + problem)
    return tl.where(idle >= PLAIN_AFTER, 0.0, tl.full((), 1.0, tl.float64))


@triton.jit
def _weigh(  # type: ignore[no-untyped-def]
    working, upper, a, t, xi, y, y_step, theta, right, mu, n, BLOCK: tl.constexpr
):
    problem = tl.program_id(0).to(tl.int64)
    if tl.load(working + problem) == 0:
        return
    first = problem * n
    y += problem * y_step
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    pairs = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        label = tl.load(y + i, mask=mask, other=1.0)
        inside, ak, tk, xik, v, _, _, weight = _rows(upper, a, t, xi, first + i, mask)
        total += tl.where(inside, ak * tk + v * xik, 0.0)
        pairs += tl.where(inside, 2.0, 0.0)
        tl.store(theta + first + i, weight, mask=mask)
        value = (tl.where(inside, ak, 0.0) + weight * (xik - tk)) * label
        tl.store(right + first + i, value, mask=mask)
        start += BLOCK
    tl.store(mu + problem, tl.sum(total, axis=0) / tl.sum(pairs, axis=0))


@triton.jit
def _correct(  # type: ignore[no-untyped-def]
    working, change, upper, a, t, xi, y, y_step, mu, iteration, best_iteration, right, level, n,
    PLAIN_AFTER: tl.constexpr, PLAIN_CENTRING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    problem = tl.program_id(0).to(tl.int64)
    if tl.load(working + problem) == 0:
        return
    first = problem * n
    y += problem * y_step
    lane = tl.arange(0, BLOCK)
    second = _second(iteration, best_iteration, problem, PLAIN_AFTER)
    worst_p = tl.zeros([BLOCK], tl.float64)
    worst_d = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        moved = tl.load(y + i, mask=mask, other=1.0) * tl.load(
            change + first + i, mask=mask, other=0.0
        )
        inside, _, tk, xik, _, per_a, per_v, theta = _rows(upper, a, t, xi, first + i, mask)
        da, dt, dxi = _predictor(tk, xik, per_a, per_v, theta, moved)
        primal, dual = _worst(inside, tk, xik, per_a, per_v, da, dt, dxi)
        worst_p = tl.maximum(worst_p, primal)
        worst_d = tl.maximum(worst_d, dual)
        start += BLOCK
    step_p = tl.minimum(_longest(worst_p), 1.0)
    step_d = tl.minimum(_longest(worst_d), 1.0)

    total = tl.zeros([BLOCK], tl.float64)
    pairs = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        moved = tl.load(y + i, mask=mask, other=1.0) * tl.load(
            change + first + i, mask=mask, other=0.0
        )
        inside, ak, tk, xik, v, per_a, per_v, theta = _rows(upper, a, t, xi, first + i, mask)
        da, dt, dxi = _predictor(tk, xik, per_a, per_v, theta, moved)
        da = step_d * da
        reached = (ak + da) * (tk + step_p * dt) + (v - da) * (xik + step_p * dxi)
        total += tl.where(inside, reached, 0.0)
        pairs += tl.where(inside, 2.0, 0.0)
        start += BLOCK
    now = tl.load(mu + problem)
    ratio = tl.sum(total, axis=0) / tl.sum(pairs, axis=0) / now
    target = tl.minimum(ratio * ratio * ratio, 1.0) * now
    target = tl.where(second > 0.0, target, PLAIN_CENTRING * now)
    tl.store(level + problem, target)

    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        label = tl.load(y + i, mask=mask, other=1.0)
        moved = label * tl.load(change + first + i, mask=mask, other=0.0)
        inside, ak, tk, xik, _, per_a, per_v, theta = _rows(upper, a, t, xi, first + i, mask)
        da, dt, dxi = _predictor(tk, xik, per_a, per_v, theta, moved)
        ca, cv = _aim(target, second, da, dt, dxi)
        rho = ca * per_a - cv * per_v - tk + xik
        value = (tl.where(inside, ak, 0.0) + theta * rho) * label
        tl.store(right + first + i, value, mask=mask)
        start += BLOCK


@triton.jit
def _corrector(  # type: ignore[no-untyped-def]
    t, xi, per_a, per_v, theta, predicted, change, level, second
):
    """Step (da, dt, dxi) of the corrector; `predicted`, `change` are y times those of scores."""
    da, dt, dxi = _predictor(t, xi, per_a, per_v, theta, predicted)
    ca, cv = _aim(level, second, da, dt, dxi)
    da = theta * (ca * per_a - cv * per_v - t + xi - change)
    return da, (ca - t * da) * per_a - t, (cv + xi * da) * per_v - xi


@triton.jit
def _move(  # type: ignore[no-untyped-def]
    working, dw, w, upper, a, t, xi, y, y_step, predicted, change, level, iteration,
    best_iteration, reach, n, q,
    PLAIN_AFTER: tl.constexpr, REACHES: tl.constexpr, Q: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    problem = tl.program_id(0).to(tl.int64)
    if tl.load(working + problem) == 0:
        return
    first = problem * n
    y += problem * y_step
    lane = tl.arange(0, BLOCK)
    second = _second(iteration, best_iteration, problem, PLAIN_AFTER)
    aim = tl.load(level + problem)
    worst_p = tl.zeros([BLOCK], tl.float64)
    worst_d = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        label = tl.load(y + i, mask=mask, other=1.0)
        before = label * tl.load(predicted + first + i, mask=mask, other=0.0)
        moved = label * tl.load(change + first + i, mask=mask, other=0.0)
        inside, _, tk, xik, _, per_a, per_v, theta = _rows(upper, a, t, xi, first + i, mask)
        da, dt, dxi = _corrector(tk, xik, per_a, per_v, theta, before, moved, aim, second)
        primal, dual = _worst(inside, tk, xik, per_a, per_v, da, dt, dxi)
        worst_p = tl.maximum(worst_p, primal)
        worst_d = tl.maximum(worst_d, dual)
        start += BLOCK
    share = tl.load(reach + tl.minimum(tl.load(iteration), REACHES - 1))
    step_p = tl.minimum(share * _longest(worst_p), 1.0)
    step_d = tl.minimum(share * _longest(worst_d), 1.0)

    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        label = tl.load(y + i, mask=mask, other=1.0)
        before = label * tl.load(predicted + first + i, mask=mask, other=0.0)
        moved = label * tl.load(change + first + i, mask=mask, other=0.0)
        inside, ak, tk, xik, _, per_a, per_v, theta = _rows(upper, a, t, xi, first + i, mask)
        da, dt, dxi = _corrector(tk, xik, per_a, per_v, theta, before, moved, aim, second)
        tl.store(a + first + i, ak + step_d * da, mask=mask & inside)
        tl.store(t + first + i, tk + step_p * dt, mask=mask & inside)
        tl.store(xi + first + i, xik + step_p * dxi, mask=mask & inside)
        start += BLOCK
    column = tl.arange(0, Q)
    at = problem * q + column
    kept = column < q
    moved_w = tl.load(w + at, mask=kept, other=0.0) + step_p * tl.load(
        dw + at, mask=kept, other=0.0
    )
    tl.store(w + at, moved_w, mask=kept)


def weigh(theta: Tensor, right: Tensor, s: State) -> Tensor:
    """Launch `bootprob_gpu.interior_point.passes.weigh`."""
    problems, n = theta.shape
    mu = theta.new_empty(problems)
    _weigh[(problems,)](
        s.working, s.upper, s.a, s.t, s.xi, s.y, s.label_step, theta, right, mu, n,
        **row_blocks(n),
    )  # fmt: skip
    return mu


def correct(change: Tensor, right: Tensor, s: State, mu: Tensor) -> Tensor:
    """Launch `bootprob_gpu.interior_point.passes.correct`."""
    problems, n = change.shape
    level = torch.empty_like(mu)
    _correct[(problems,)](
        s.working, change, s.upper, s.a, s.t, s.xi, s.y, s.label_step, mu, s.iteration,
        s.best_iteration, right, level, n, PLAIN_AFTER=PLAIN_AFTER, PLAIN_CENTRING=PLAIN_CENTRING,
        **row_blocks(n),
    )  # fmt: skip
    return level


def move(dw: Tensor, s: State, predicted: Tensor, change: Tensor, level: Tensor) -> None:
    """Launch `bootprob_gpu.interior_point.passes.move`."""
    (problems, q), n = dw.shape, change.shape[1]
    _move[(problems,)](
        s.working, dw, s.w, s.upper, s.a, s.t, s.xi, s.y, s.label_step, predicted, change, level,
        s.iteration, s.best_iteration, s.reach, n, q, PLAIN_AFTER=PLAIN_AFTER, REACHES=len(s.reach),
        Q=max(32, triton.next_power_of_2(q)), **row_blocks(n),
    )  # fmt: skip
