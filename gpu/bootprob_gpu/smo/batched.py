"""Sequential minimal optimisation of many problems in lockstep, in plain torch on any device.

The same algorithm as `bootprob_gpu.smo.compiled`, one row of every tensor a path of C of its own:
each iteration moves one pair of variables in every problem that is not yet solved.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.smo.batched_steps import (
    Objectives,
    State,
    advance,
    bounds,
    labels_of,
    objectives,
    still_optimal,
    stretch,
    times_gram,
    widen,
)
from bootprob_gpu.solvers import Limits

__all__ = ["REFUTED", "smo_batched"]

_CHECK_EVERY = 32  # iterations between evaluations of the duality gaps
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradients are computed anew
_PATIENCE = 512  # checks without a larger dual objective before a problem is given up
REFUTED = 16  # ends found with a rounded Gram matrix that the exact one does not confirm


Solution = tuple[Tensor, Tensor, Certificate]  # dual coefficients, intercepts


def smo_batched(
    K: Tensor,
    y: Tensor,
    upper: Tensor,
    *,
    tol: float,
    max_iter: int,
    kkt_tol: float | None = None,
    exact: Tensor | None = None,
    matrix: Tensor | None = None,
    rows: Tensor | None = None,
    order: Tensor | None = None,
    unit_diagonal: bool = False,
) -> Solution:
    """Train P paths of R support vector machines each.

    Parameters and what is returned as for `bootprob_gpu.smo.triton_paths.smo_fused`; here all paths
    begin at once, and diagonals are read.
    """
    P, R, n = upper.shape
    dual_coef = torch.zeros_like(upper)
    intercept = upper.new_zeros(P, R)
    certificate = Certificate.empty(P, R, device=upper.device)
    solution, limits = (dual_coef, intercept, certificate), Limits(tol, kkt_tol, max_iter)
    s, g = upper.new_zeros(P, n), y.expand(P, n).clone()
    everyone = torch.arange(P, device=y.device)
    matrix = everyone % len(K) if matrix is None else matrix.to(torch.int64)
    allowed = max_iter if exact is None else REFUTED
    exact = K if exact is None else exact
    if rows is None:
        K, exact = K[:, :n, :n], exact[:, :n, :n]
        diagonal = K.diagonal(dim1=1, dim2=2)[matrix]
    else:
        rows = rows.to(torch.int64)
        diagonal = K.diagonal(dim1=1, dim2=2)[matrix[:, None], rows]
    diagonal = diagonal.to(s.dtype)
    solved, before = torch.zeros(P, dtype=torch.bool, device=y.device), upper.new_zeros(P, n)
    for r in range(R):
        box = upper[:, r]
        lo, hi = bounds(y, box)
        mass_positive, mass_negative = hi.sum(1), -lo.sum(1)
        single = (mass_positive == 0) | (mass_negative == 0)
        _retire_single(intercept, certificate, r, single, mass_positive - mass_negative)
        held = single | (solved & still_optimal(s.abs(), before, box))
        stretched = stretch(y, lo, hi, s, g)
        s, g = (
            torch.where(held[:, None], old, new) for old, new in zip((s, g), stretched, strict=True)
        )
        dual_coef[:, r] = s
        best, idle = upper.new_full((P,), -torch.inf), torch.zeros_like(everyone)
        refuted = torch.zeros_like(everyone)
        state = State(everyone, matrix, rows, diagonal, s, g, lo, hi, best, idle, refuted)
        state.keep(~single)
        iteration = 0
        while len(state.path):
            if iteration % _REFRESH_EVERY == 0 and iteration:
                state.g = labels_of(y, state.path) - times_gram(
                    exact, state.matrix, state.s, state.rows
                )
            leaving = _certify(exact, y, state, solution, r, iteration, limits, allowed)
            if leaving.any():
                state.keep(~leaving)
            for _ in range(_CHECK_EVERY if len(state.path) else 0):
                advance(K, state)
            iteration += _CHECK_EVERY
        s = dual_coef[:, r].clone()
        g = y - times_gram(exact, matrix, s, rows)
        dual_coef[single, r] = 0
        solved = torch.where(single, solved, certificate.status[:, r] == Status.CONVERGED)
        before = torch.where(single[:, None], before, box)
    return solution


def violation(y: Tensor, upper: Tensor, s: Tensor, g: Tensor) -> Tensor:
    """How far models are from the optimality conditions: libsvm's m(a) − M(a).

    The largest gradient of the dual among the variables that may grow less the smallest one among
    those that may fall; negative where one of them is at its best bound. Fan, Chen, Lin (2005),
    (6).

    Parameters
    ----------
    y : Tensor, shape (n,) or (..., n)
        Labels, −1 or +1.
    upper, s, g : Tensor, shape (..., n)
        Box bounds, signed dual variables ``y a``, and gradients ``y − K s``.
    """
    lo, hi = bounds(y, upper)
    g_max = torch.where(s < hi, g, -torch.inf).amax(-1)
    return g_max - torch.where(s > lo, g, torch.inf).amin(-1)


def _certify(
    K: Tensor,
    y: Tensor,
    state: State,
    solution: Solution,
    r: int,
    iteration: int,
    limits: Limits,
    allowed: int,
) -> Tensor:
    """Evaluate the objectives, write down what is finished, return which problems are.

    Judged by fresh gradients: what the updates' rounding made look solved goes on with those.
    """
    dual_coef, intercept, certificate = solution
    y = labels_of(y, state.path)
    found = objectives(y, state)
    better = found.dual > state.best
    state.idle = torch.where(better, 0, state.idle + 1)
    state.best = torch.maximum(state.best, found.dual)
    given_up = (state.idle > _PATIENCE) | (state.refuted > allowed)
    given_up |= iteration >= limits.max_iter
    leaving = _done(found, limits) | given_up | (found.violation <= 0)
    # At iteration 0 it is the solution for the C before that leaves, and is to stay the same.
    leaving |= widen(y, state, found, limits.tol, ~leaving | (iteration > 0))
    if leaving.any():
        some = None if state.rows is None else state.rows[leaving]
        fresh = times_gram(K, state.matrix[leaving], state.s[leaving], some)
        state.g[leaving] = labels_of(y, leaving) - fresh
        found = objectives(y, state)
        converged = leaving & _done(found, limits)
        state.refuted += leaving
        leaving = converged | given_up | (leaving & (found.violation <= 0))
        path = state.path[leaving]
        dual_coef[path, r] = state.s[leaving]
        intercept[path, r] = found.b[leaving]
        primal, dual = found.primal[leaving], found.dual[leaving]
        certificate.primal[path, r] = primal
        certificate.dual[path, r] = dual
        certificate.gap[path, r] = (primal - dual) / primal
        certificate.n_iter[path, r] = iteration
        failure = Status.MAX_ITER if iteration >= limits.max_iter else Status.STALLED
        status = torch.where(converged, int(Status.CONVERGED), int(failure))
        certificate.status[path, r] = status[leaving]
    return leaving


def _done(found: Objectives, limits: Limits) -> Tensor:
    gap_closed = (found.primal - found.dual).abs() <= limits.tol * found.primal
    if limits.kkt_tol is None:
        return gap_closed
    return gap_closed | (found.violation <= limits.kkt_tol)


def _retire_single(
    intercept: Tensor, certificate: Certificate, r: int, single: Tensor, sign: Tensor
) -> None:
    """A replicate with one class: no coefficients, and that class's sign for every row."""
    intercept[single, r] = torch.sign(sign[single])
    certificate.primal[single, r] = 0
    certificate.dual[single, r] = 0
    certificate.gap[single, r] = 0
    certificate.status[single, r] = Status.SINGLE_CLASS
