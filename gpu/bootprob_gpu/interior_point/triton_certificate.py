"""Triton kernels: objectives and certificates at the iterates of the interior point.

One program works on one problem, in float64, with sums in a fixed order; for a problem that is
answered it returns at once and writes nothing. What each computes is said, and done in plain torch,
in `bootprob_gpu.interior_point.passes`. Imported only where a kernel is about to run.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from bootprob_gpu.certificate import Status
from bootprob_gpu.hardware.launch_shapes import tuned_limit, tuned_shape
from bootprob_gpu.interior_point.state import STALL_AFTER, State

__all__ = ["judge", "losses", "row_blocks"]


@triton.jit
def _losses(  # type: ignore[no-untyped-def]
    working, scores, y, y_step, upper, a, left, loss, mass, n, BLOCK: tl.constexpr
):
    problem = tl.program_id(0).to(tl.int64)
    if tl.load(working + problem) == 0:
        return
    first = problem * n
    y += problem * y_step
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    positive = tl.zeros([BLOCK], tl.float64)
    negative = tl.zeros([BLOCK], tl.float64)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        u = tl.load(upper + first + i, mask=mask, other=0.0)
        label = tl.load(y + i, mask=mask, other=1.0)
        hinge = 1.0 - label * tl.load(scores + first + i, mask=mask, other=0.0)
        # A score that is not a number must not pass for a loss of 0.
        total += u * tl.where(hinge <= 0.0, 0.0, hinge)
        dual = tl.where(u > 0.0, tl.load(a + first + i, mask=mask, other=0.0), 0.0)
        positive += tl.where(label > 0.0, dual, 0.0)
        negative += tl.where(label > 0.0, 0.0, dual)
        start += BLOCK
    of_positive = tl.sum(positive, axis=0)
    of_negative = tl.sum(negative, axis=0)
    lighter = tl.minimum(of_positive, of_negative)
    # The heavier class is scaled down; a class of no mass leaves nothing of the other.
    share_positive = lighter / tl.where(of_positive > 0.0, of_positive, 1.0)
    share_negative = lighter / tl.where(of_negative > 0.0, of_negative, 1.0)
    tl.store(loss + problem, tl.sum(total, axis=0))
    tl.store(mass + problem, 2.0 * lighter)
    start = tl.full((), 0, tl.int32)
    while start < n:
        i = start + lane
        mask = i < n
        u = tl.load(upper + first + i, mask=mask, other=0.0)
        label = tl.load(y + i, mask=mask, other=1.0)
        dual = tl.where(u > 0.0, tl.load(a + first + i, mask=mask, other=0.0), 0.0)
        dual = tl.where(label > 0.0, dual * share_positive, -dual * share_negative)
        tl.store(left + first + i, dual, mask=mask)
        start += BLOCK


@triton.jit
def _judge(  # type: ignore[no-untyped-def]
    gradient, penalty, w, best_w, loss, mass, best_primal, best_dual, best_gap, best_iteration,
    n_iter, status, working, iteration, tol, q,
    STALL_AFTER: tl.constexpr, CONVERGED: tl.constexpr, STALLED: tl.constexpr, Q: tl.constexpr,
):  # fmt: skip
    problem = tl.program_id(0).to(tl.int64)
    # Written below by this program alone, after a barrier: all of its warps take the same way.
    if tl.load(working + problem) == 0:
        return
    lane = tl.arange(0, Q)
    at = problem * q + lane
    penalised = lane < q - 1  # not the intercept
    weight = tl.load(penalty + at, mask=penalised, other=1.0)
    coefficient = tl.load(w + at, mask=lane < q, other=0.0)
    slope = tl.load(gradient + at, mask=penalised, other=0.0)
    count = tl.load(iteration)
    upper_bound = tl.load(best_primal + problem)
    lower_bound = tl.load(best_dual + problem)
    smallest = tl.load(best_gap + problem)
    progress = tl.load(best_iteration + problem)
    verdict = tl.load(status + problem)

    square = tl.where(penalised, weight * coefficient * coefficient, 0.0)
    primal = 0.5 * tl.sum(square, axis=0) + tl.load(loss + problem)
    dual = tl.load(mass + problem) - 0.5 * tl.sum(slope * slope / weight, axis=0)
    better = primal < upper_bound
    upper_bound = tl.where(better, primal, upper_bound)
    lower_bound = tl.where(dual > lower_bound, dual, lower_bound)
    positive = upper_bound > 0.0
    gap = (upper_bound - lower_bound) / tl.where(positive, upper_bound, 1.0)
    gap = tl.where(positive, gap, 0.0)
    improved = gap < 0.9 * smallest
    progress = tl.where(improved, count, progress)
    converged = gap <= tl.load(tol)
    finite = tl.abs(primal) < float("inf")
    lost = (count - progress >= STALL_AFTER) | (finite == 0)
    broken = (converged == 0) & lost

    tl.debug_barrier()  # or a warp could read what another has already written
    tl.store(best_primal + problem, upper_bound)
    tl.store(best_dual + problem, lower_bound)
    tl.store(best_w + at, coefficient, mask=lane < tl.where(better, q, 0))
    tl.store(best_gap + problem, tl.where(improved, gap, smallest))
    tl.store(best_iteration + problem, progress)
    tl.store(n_iter + problem, count)
    verdict = tl.where(converged, CONVERGED, tl.where(broken, STALLED, verdict))
    tl.store(status + problem, verdict)
    tl.store(working + problem, tl.where(converged | broken, 0, 1))


def row_blocks(n: int) -> dict[str, int]:
    """Rows taken at a time, at most four for each thread; more where rows are many."""
    size = "few" if n <= tuned_limit(4096, "many_rows") else "many"
    default = {"BLOCK": 256, "num_warps": 4} if size == "few" else {"BLOCK": 1024, "num_warps": 8}
    shape = tuned_shape(default, "rows", size)
    block = min(shape["BLOCK"], max(64, triton.next_power_of_2(n)))
    return {"BLOCK": block, "num_warps": max(1, shape["num_warps"] * block // shape["BLOCK"])}


def losses(scores: Tensor, s: State) -> tuple[Tensor, Tensor]:
    """Launch `bootprob_gpu.interior_point.passes.losses`."""
    problems, n = scores.shape
    loss, mass = scores.new_empty(problems), scores.new_empty(problems)
    _losses[(problems,)](
        s.working, scores, s.y, s.label_step, s.upper, s.a, s.left, loss, mass, n, **row_blocks(n)
    )
    return loss, mass


def judge(gradient: Tensor, s: State, loss: Tensor, mass: Tensor) -> None:
    """Launch `bootprob_gpu.interior_point.passes.judge`."""
    problems, q = gradient.shape
    Q = max(32, triton.next_power_of_2(q))
    _judge[(problems,)](
        gradient, s.penalty, s.w, s.best_w, loss, mass, s.primal, s.dual, s.best_gap,
        s.best_iteration, s.n_iter, s.status, s.working, s.iteration, s.tol, q,
        STALL_AFTER=STALL_AFTER, CONVERGED=int(Status.CONVERGED), STALLED=int(Status.STALLED),
        Q=Q, num_warps=min(16, max(1, Q // 512)),
    )  # fmt: skip
