"""Sequential minimal optimisation of many problems in lockstep, in plain torch on any device.

The same algorithm as `bootprob_gpu.smo_compiled`, one row of every tensor a path of C of its own:
each iteration moves one pair of variables in every problem that is not yet solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status

__all__ = ["smo_batched"]

_CHECK_EVERY = 32  # iterations between evaluations of the duality gaps
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradients are computed anew
_PATIENCE = 512  # checks without a larger dual objective before a problem is given up
_MIN_CURVATURE = 1e-12
_SNAP = 1e-14


@dataclass
class _State:
    """The problems still at work, of one C each; rows of every tensor are problems."""

    path: Tensor
    matrix: Tensor  # which Gram matrix
    s: Tensor  # signed dual variables y a
    g: Tensor  # gradient y − K s
    lo: Tensor
    hi: Tensor
    best: Tensor  # largest dual objective so far
    idle: Tensor  # checks since then

    def keep(self, kept: Tensor) -> None:
        for name, value in vars(self).items():
            setattr(self, name, value[kept])


def smo_batched(
    K: Tensor, y: Tensor, upper: Tensor, *, tol: float, max_iter: int
) -> tuple[Tensor, Tensor, Certificate]:
    """Train P paths of R support vector machines each.

    Parameters
    ----------
    K : Tensor, shape (G, n, n)
        Gram matrices, float32 or float64; path number k goes with number ``k % G``.
    y : Tensor of float64, shape (n,)
        Labels, −1 or +1.
    upper : Tensor of float64, shape (P, R, n)
        Box bounds; fastest when they grow from model to model.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.

    Returns
    -------
    dual_coef : Tensor of float64, shape (P, R, n)
    intercept : Tensor of float64, shape (P, R)
    certificate : Certificate
        With tensors of shape (P, R).
    """
    P, R, n = upper.shape
    dual_coef = torch.zeros_like(upper)
    intercept = upper.new_zeros(P, R)
    certificate = Certificate.empty(P, R, device=upper.device)
    s, g = upper.new_zeros(P, n), y.expand(P, n).clone()
    everyone = torch.arange(P, device=y.device)
    matrix = everyone % len(K)
    for r in range(R):
        lo = torch.where(y > 0, 0.0, -upper[:, r])
        hi = torch.where(y > 0, upper[:, r], 0.0)
        s, g = _stretched(y, lo, hi, s, g)
        dual_coef[:, r] = s
        no_best = upper.new_full((P,), -torch.inf)
        state = _State(everyone, matrix, s, g, lo, hi, no_best, torch.zeros_like(everyone))
        mass_positive, mass_negative = hi.sum(1), -lo.sum(1)
        single = (mass_positive == 0) | (mass_negative == 0)
        _retire_single(intercept, certificate, r, single, mass_positive - mass_negative)
        state.keep(~single)
        iteration = 0
        while len(state.path):
            if iteration % _REFRESH_EVERY == 0 and iteration:
                state.g = y - _times(K, state.matrix, state.s)
            leaving = _certify(
                K, y, state, dual_coef, intercept, certificate, r, iteration, tol, max_iter
            )
            if leaving.any():
                state.keep(~leaving)
            for _ in range(_CHECK_EVERY if len(state.path) else 0):
                _advance(K, state)
            iteration += _CHECK_EVERY
        s = dual_coef[:, r].clone()
        g = y - _times(K, matrix, s)
    return dual_coef, intercept, certificate


def _times(K: Tensor, matrix: Tensor, s: Tensor) -> Tensor:
    """``K s`` for each problem, shape (problems, n), in float64."""
    if K.dtype == s.dtype and torch.equal(matrix, torch.arange(len(K), device=K.device)):
        return torch.bmm(K, s.unsqueeze(-1)).squeeze(-1)
    products = torch.empty_like(s)
    for k in matrix.unique().tolist():
        rows = torch.nonzero(matrix == k).squeeze(1)
        products[rows] = s[rows] @ K[k].to(s.dtype)
    return products


def _advance(K: Tensor, state: _State) -> None:
    """Move the pair (i, j) of every problem: i by violation, j by second-order gain."""
    s, g, lo, hi = state.s, state.g, state.lo, state.hi
    rows = torch.arange(len(s), device=s.device)
    g_max, i = torch.where(s < hi, g, -torch.inf).max(dim=1)
    K_i = K[state.matrix, i].to(s.dtype)
    diagonal = K.diagonal(dim1=1, dim2=2)[state.matrix].to(s.dtype)
    K_ii = diagonal[rows, i]
    fall = torch.where(s > lo, g_max[:, None] - g, 0.0).clamp_min_(0.0)
    # An optimal problem has no variable to raise (g_max = −∞) or no fall: its step is 0.
    fall = torch.where(torch.isfinite(g_max)[:, None], fall, 0.0)
    curvature = (K_ii[:, None] + diagonal - 2 * K_i).clamp_min_(_MIN_CURVATURE)
    j = (fall * fall / curvature).argmax(dim=1)
    K_j = K[state.matrix, j].to(s.dtype)
    room_i, room_j = (hi - s)[rows, i], (s - lo)[rows, j]
    step = torch.minimum(fall[rows, j] / curvature[rows, j], torch.minimum(room_i, room_j))
    s[rows, i] = torch.where(step == room_i, hi[rows, i], s[rows, i] + step)
    s[rows, j] = torch.where(step == room_j, lo[rows, j], s[rows, j] - step)
    g.sub_(step[:, None] * (K_i - K_j))


def _certify(
    K: Tensor,
    y: Tensor,
    state: _State,
    dual_coef: Tensor,
    intercept: Tensor,
    certificate: Certificate,
    r: int,
    iteration: int,
    tol: float,
    max_iter: int,
) -> Tensor:
    """Evaluate the duality gaps, write down what is finished, return which problems are.

    Judged by fresh gradients: what the updates' rounding made look solved goes on with those.
    """
    primal, dual, _ = _objectives(y, state)
    better = dual > state.best
    state.idle = torch.where(better, 0, state.idle + 1)
    state.best = torch.maximum(state.best, dual)
    stalled = state.idle > _PATIENCE
    given_up = stalled | (iteration >= max_iter)
    leaving = ((primal - dual).abs() <= tol * primal) | given_up
    if leaving.any():
        state.g[leaving] = y - _times(K, state.matrix[leaving], state.s[leaving])
        primal, dual, b = _objectives(y, state)
        converged = leaving & ((primal - dual).abs() <= tol * primal)
        leaving = converged | given_up
        path = state.path[leaving]
        dual_coef[path, r] = state.s[leaving]
        intercept[path, r] = b[leaving]
        certificate.primal[path, r] = primal[leaving]
        certificate.dual[path, r] = dual[leaving]
        certificate.gap[path, r] = ((primal - dual) / primal)[leaving]
        certificate.n_iter[path, r] = iteration
        failure = torch.where(stalled, int(Status.STALLED), int(Status.MAX_ITER))
        status = torch.where(converged, int(Status.CONVERGED), failure)
        certificate.status[path, r] = status[leaving]
    return leaving


def _objectives(y: Tensor, state: _State) -> tuple[Tensor, Tensor, Tensor]:
    """Primal and dual objective, and the better of two candidate intercepts."""
    s, g, lo, hi = state.s, state.g, state.lo, state.hi
    norm = (s * (y - g)).sum(1)
    dual = (y * s).sum(1) - 0.5 * norm
    g_max = torch.where(s < hi, g, -torch.inf).amax(1)
    g_min = torch.where(s > lo, g, torch.inf).amin(1)
    middle = 0.5 * (g_max + g_min)
    middle = torch.where(torch.isinf(g_max), g_min, torch.where(torch.isinf(g_min), g_max, middle))
    free = (s > lo) & (s < hi)
    mean = (g * free).sum(1) / free.sum(1)
    mean = torch.where(free.any(1), mean, middle)
    width = hi - lo
    losses = [(width * (y * (g - b[:, None])).clamp_min(0)).sum(1) for b in (middle, mean)]
    b = torch.where(losses[1] < losses[0], mean, middle)
    return 0.5 * norm + torch.minimum(*losses), dual, b


def _retire_single(
    intercept: Tensor, certificate: Certificate, r: int, single: Tensor, sign: Tensor
) -> None:
    """A replicate with one class: no coefficients, and that class's sign for every row."""
    intercept[single, r] = torch.sign(sign[single])
    certificate.primal[single, r] = 0
    certificate.dual[single, r] = 0
    certificate.gap[single, r] = 0
    certificate.status[single, r] = Status.SINGLE_CLASS


def _stretched(y: Tensor, lo: Tensor, hi: Tensor, s: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Stretch `s` within the new box as far as the dual objective grows; ``Σ s = 0`` stays."""
    linear = (y * s).sum(1)
    quadratic = (s * (y - g)).sum(1)
    bound = torch.where(y > 0, hi, lo)
    room = torch.where(s != 0, bound / torch.where(s != 0, s, 1.0), torch.inf).amin(1)
    t = torch.where(quadratic > 0, linear / quadratic.clamp_min(1e-300), torch.inf)
    t = torch.where(linear > 0, torch.minimum(t, room), 1.0)[:, None]
    s = torch.minimum(torch.maximum(s * t, lo), hi)
    # What sat on its bound stays there: "almost" would cost iterations.
    on_bound = (s.abs() > bound.abs() * (1 - _SNAP)) & (s != 0)
    return torch.where(on_bound, bound, s), y + t * (g - y)
