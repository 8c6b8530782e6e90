"""Passes over the rows of all problems, between the matrix products of an interior point.

Each pass is a Triton kernel on CUDA, one program for each problem, and plain torch elsewhere, some
problems at a time. Cheap quantities are computed again where they are needed rather than stored.
Kernels leave out the problems that are answered (``working`` is 0): what a pass would write of them
is then whatever stood there before, and no matrix product mixes it with what is of others.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.certificate import Status, feasible_dual, relative_gap
from bootprob_gpu.hardware.triton_choice import with_twin
from bootprob_gpu.interior_point.state import PLAIN_AFTER, PLAIN_CENTRING, STALL_AFTER, State

__all__ = ["correct", "judge", "losses", "move", "weigh"]


class _Rows:
    """The state of some problems, with what follows from it row by row."""

    def __init__(self, s: State, k: slice) -> None:
        self.inside = s.upper[k] > 0
        self.y, self.a, self.t, self.xi = s.labels(k), s.a[k], s.t[k], s.xi[k]
        self.v = torch.where(self.inside, s.upper[k] - self.a, 1.0)
        self.per_a, self.per_v = 1 / self.a, 1 / self.v
        theta = torch.addcmul(self.t * self.per_a, self.xi, self.per_v).reciprocal_()
        self.theta = theta.mul_(self.inside)

    def predictor(self, change: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Newton step towards ``a t = 0`` and ``(u − a) ξ = 0``; `change` is that of scores."""
        da = (self.xi - self.t).addcmul_(self.y, change, value=-1).mul_(self.theta)
        dt = -torch.addcmul(self.t, self.t, da * self.per_a)
        dxi = torch.addcmul(-self.xi, self.xi, da * self.per_v)
        return da, dt, dxi

    def rho(self, ca: Tensor, cv: Tensor) -> Tensor:
        """What aiming at ``a t = ca`` and ``(u − a) ξ = cv`` adds to the change of scores."""
        return (ca * self.per_a).addcmul_(cv, self.per_v, value=-1).sub_(self.t).add_(self.xi)

    def corrector(self, change: Tensor, ca: Tensor, cv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Newton step towards ``a t = ca`` and ``(u − a) ξ = cv``."""
        da = self.rho(ca, cv).addcmul_(self.y, change, value=-1).mul_(self.theta)
        dt = torch.addcmul(ca, self.t, da, value=-1).mul_(self.per_a).sub_(self.t)
        dxi = torch.addcmul(cv, self.xi, da).mul_(self.per_v).sub_(self.xi)
        return da, dt, dxi

    def longest(self, da: Tensor, dt: Tensor, dxi: Tensor) -> tuple[Tensor, Tensor]:
        """Step lengths to the boundary, primal (t, ξ) and dual (a, u − a), (problems, 1) each."""
        primal = torch.maximum(-dt / self.t, -dxi / self.xi).mul_(self.inside)
        dual = torch.maximum(-da * self.per_a, da * self.per_v).mul_(self.inside)
        step_p, step_d = (
            1 / each.amax(1, keepdim=True).clamp_min_(1e-30) for each in (primal, dual)
        )
        return step_p, step_d

    def complementarity(self, a: Tensor, t: Tensor, v: Tensor, xi: Tensor) -> Tensor:
        """Mean of ``a t`` and ``(u − a) ξ`` over the rows of weight, shape (problems, 1)."""
        total = torch.addcmul(a * t, v, xi).mul_(self.inside).sum(1, keepdim=True)
        return total / (2 * self.inside.sum(1, keepdim=True))

    def targets(
        self, step: tuple[Tensor, Tensor, Tensor], level: Tensor, idle: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Complementarities to aim at: `level`, less the second-order terms of the predictor."""
        da, dt, dxi = step
        # These terms, and with them the iterates, can cycle: then straight down the path.
        da = da.masked_fill(idle, 0.0)
        return torch.addcmul(level, da, dt, value=-1), torch.addcmul(level, da, dxi)


def _losses(scores: Tensor, s: State) -> tuple[Tensor, Tensor]:
    loss, mass = scores.new_empty(len(scores)), scores.new_empty(len(scores))
    for k in s.blocks():
        y = s.labels(k)
        hinge = (1 - y * scores[k]).clamp_min_(0)
        loss[k] = hinge.mul_(s.upper[k]).sum(1)
        a = feasible_dual(torch.where(s.upper[k] > 0, s.a[k], 0.0), y > 0)
        mass[k] = a.sum(1)
        torch.mul(a, y, out=s.left[k])
    return loss, mass


@with_twin(_losses, name="interior point: losses")
def losses(scores: Tensor, s: State) -> tuple[Tensor, Tensor]:
    """Sums of the weighted hinge losses, and of the dual variables made feasible, (problems,) each.

    The feasible dual variables, times the labels, are left in ``s.left``.
    """
    from bootprob_gpu.interior_point import triton_certificate

    return triton_certificate.losses(scores, s)


def _judge(gradient: Tensor, s: State, loss: Tensor, mass: Tensor) -> None:
    primal = 0.5 * (s.penalty * s.w**2).sum(1) + loss
    dual = mass - 0.5 * (gradient[:, :-1] ** 2 / s.penalty[:, :-1]).sum(1)
    working = s.working > 0
    better = working & (primal < s.primal)
    s.primal.copy_(torch.where(better, primal, s.primal))
    s.best_w.copy_(torch.where(better[:, None], s.w, s.best_w))
    s.dual.copy_(torch.where(working, torch.fmax(s.dual, dual), s.dual))
    gap = relative_gap(s.primal, s.dual)
    improved = working & (gap < 0.9 * s.best_gap)
    s.best_gap.copy_(torch.where(improved, gap, s.best_gap))
    s.best_iteration.copy_(torch.where(improved, s.iteration, s.best_iteration))
    s.n_iter.copy_(torch.where(working, s.iteration, s.n_iter))
    converged = working & (gap <= s.tol)
    broken = ~torch.isfinite(primal) | (s.iteration - s.best_iteration >= STALL_AFTER)
    broken &= working & ~converged
    s.status.masked_fill_(converged, Status.CONVERGED).masked_fill_(broken, Status.STALLED)
    s.working.masked_fill_(converged | broken, 0)


@with_twin(_judge, name="interior point: certificates")
def judge(gradient: Tensor, s: State, loss: Tensor, mass: Tensor) -> None:
    """Bring the certificates up to date and mark the problems that are answered.

    `gradient` (problems, q) is what `losses` left in ``s.left``, times the rows; its last column,
    which belongs to the intercept, is ignored.
    """
    from bootprob_gpu.interior_point import triton_certificate

    triton_certificate.judge(gradient, s, loss, mass)


def _weigh(theta: Tensor, right: Tensor, s: State) -> Tensor:
    mu = theta.new_empty(len(theta))
    for k in s.blocks():
        rows = _Rows(s, k)
        theta[k] = rows.theta
        mu[k] = rows.complementarity(rows.a, rows.t, rows.v, rows.xi).squeeze(1)
        torch.addcmul(rows.a * rows.inside, rows.theta, rows.xi - rows.t, out=right[k])
        right[k] *= rows.y
    return mu


@with_twin(_weigh, name="interior point: weights")
def weigh(theta: Tensor, right: Tensor, s: State) -> Tensor:
    """Mean complementarity μ of each problem, shape (problems,).

    Fills in the weights `theta` of the rows in the normal matrices, and `right`, which times the
    rows makes the predictor's right-hand side; both of shape (problems, n).
    """
    from bootprob_gpu.interior_point import triton_steps

    return triton_steps.weigh(theta, right, s)


def _correct(change: Tensor, right: Tensor, s: State, mu: Tensor) -> Tensor:
    level = torch.empty_like(mu)
    idle = (s.iteration - s.best_iteration >= PLAIN_AFTER)[:, None]
    for k in s.blocks():
        rows = _Rows(s, k)
        da, dt, dxi = rows.predictor(change[k])
        step_p, step_d = (step.clamp_max_(1) for step in rows.longest(da, dt, dxi))
        reached = rows.complementarity(
            torch.addcmul(rows.a, step_d, da),
            torch.addcmul(rows.t, step_p, dt),
            torch.addcmul(rows.v, step_d, da, value=-1),
            torch.addcmul(rows.xi, step_p, dxi),
        )
        now = mu[k, None]
        target = ((reached / now) ** 3).clamp_max(1) * now
        aim = torch.where(idle[k], PLAIN_CENTRING * now, target)
        level[k] = aim.squeeze(1)
        rho = rows.rho(*rows.targets((da, dt, dxi), aim, idle[k]))
        torch.addcmul(rows.a * rows.inside, rows.theta, rho, out=right[k])
        right[k] *= rows.y
    return level


@with_twin(_correct, name="interior point: corrector")
def correct(change: Tensor, right: Tensor, s: State, mu: Tensor) -> Tensor:
    """Complementarity that the corrector aims at, shape (problems,).

    Parameters
    ----------
    change : Tensor, shape (problems, n)
        Change of the scores by the predictor.
    right : Tensor, shape (problems, n)
        Filled in; times the rows it makes the corrector's right-hand side.
    s : State
        Read only.
    mu : Tensor, shape (problems,)
        From `weigh`.
    """
    from bootprob_gpu.interior_point import triton_steps

    return triton_steps.correct(change, right, s, mu)


def _move(dw: Tensor, s: State, predicted: Tensor, change: Tensor, level: Tensor) -> None:
    idle = (s.iteration - s.best_iteration >= PLAIN_AFTER)[:, None]
    reach = s.reach[s.iteration.clamp_max(len(s.reach) - 1)]
    for k in s.blocks():
        rows = _Rows(s, k)
        targets = rows.targets(rows.predictor(predicted[k]), level[k, None], idle[k])
        da, dt, dxi = rows.corrector(change[k], *targets)
        step_p, step_d = ((reach * step).clamp_max_(1) for step in rows.longest(da, dt, dxi))
        s.w[k] += step_p * dw[k]
        for values, length, step in ((s.a, step_d, da), (s.t, step_p, dt), (s.xi, step_p, dxi)):
            values[k].addcmul_(length * rows.inside, step)


@with_twin(_move, name="interior point: step")
def move(dw: Tensor, s: State, predicted: Tensor, change: Tensor, level: Tensor) -> None:
    """Take the corrector's step, as far as it stays inside, in ``w``, ``a``, ``t`` and ``xi``.

    Parameters
    ----------
    dw : Tensor, shape (problems, q)
        The corrector's direction.
    s : State
        Changed in place.
    predicted, change : Tensor, shape (problems, n)
        Changes of the scores by predictor and corrector.
    level : Tensor, shape (problems,)
        From `correct`.
    """
    from bootprob_gpu.interior_point import triton_steps

    triton_steps.move(dw, s, predicted, change, level)
