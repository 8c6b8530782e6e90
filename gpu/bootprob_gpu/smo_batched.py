"""Sequential minimal optimisation of many problems in lockstep, in plain torch on any device.

The same algorithm as `bootprob_gpu.smo_compiled`, one row of every tensor a path of C of its own:
each iteration moves one pair of variables in every problem that is not yet solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status

__all__ = ["smo_batched", "violation"]

_CHECK_EVERY = 32  # iterations between evaluations of the duality gaps
_REFRESH_EVERY = 64 * _CHECK_EVERY  # iterations after which the gradients are computed anew
_PATIENCE = 512  # checks without a larger dual objective before a problem is given up
_MIN_CURVATURE = 1e-12
_SNAP = 1e-14
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate


@dataclass
class _State:
    """The problems still at work, of one C each; rows of every tensor are problems."""

    path: Tensor
    matrix: Tensor  # which Gram matrix
    diagonal: Tensor  # of that
    s: Tensor  # signed dual variables y a
    g: Tensor  # gradient y − K s
    lo: Tensor
    hi: Tensor
    best: Tensor  # largest dual objective so far
    idle: Tensor  # checks since then

    def keep(self, kept: Tensor) -> None:
        for name, value in vars(self).items():
            setattr(self, name, value[kept])


@dataclass
class _Objectives:
    """Of the problems at work, shape (problems,) each."""

    primal: Tensor
    dual: Tensor
    b: Tensor  # the best of some intercepts
    violation: Tensor
    norm: Tensor  # sᵀ K s
    stretch: Tensor  # stretched by this, the scores would keep all margins; 0 where they cannot


def smo_batched(
    K: Tensor,
    y: Tensor,
    upper: Tensor,
    *,
    tol: float,
    max_iter: int,
    kkt_tol: float | None = None,
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
    kkt_tol : float, optional
        A model is done also when its violation of the optimality conditions (see `violation`) is
        at most this.

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
    diagonal = K.diagonal(dim1=1, dim2=2).to(s.dtype)[matrix]
    solved, before = torch.zeros(P, dtype=torch.bool, device=y.device), upper.new_zeros(P, n)
    for r in range(R):
        box = upper[:, r]
        lo, hi = _bounds(y, box)
        mass_positive, mass_negative = hi.sum(1), -lo.sum(1)
        single = (mass_positive == 0) | (mass_negative == 0)
        _retire_single(intercept, certificate, r, single, mass_positive - mass_negative)
        held = single | (solved & _holds(s.abs(), before, box))
        stretched = _stretched(y, lo, hi, s, g)
        s, g = (
            torch.where(held[:, None], old, new) for old, new in zip((s, g), stretched, strict=True)
        )
        dual_coef[:, r] = s
        best, idle = upper.new_full((P,), -torch.inf), torch.zeros_like(everyone)
        state = _State(everyone, matrix, diagonal, s, g, lo, hi, best, idle)
        state.keep(~single)
        iteration = 0
        while len(state.path):
            if iteration % _REFRESH_EVERY == 0 and iteration:
                state.g = y - _times(K, state.matrix, state.s)
            leaving = _certify(
                K, y, state, dual_coef, intercept, certificate, r, iteration, tol, kkt_tol, max_iter
            )
            if leaving.any():
                state.keep(~leaving)
            for _ in range(_CHECK_EVERY if len(state.path) else 0):
                _advance(K, state)
            iteration += _CHECK_EVERY
        s = dual_coef[:, r].clone()
        g = y - _times(K, matrix, s)
        dual_coef[single, r] = 0
        solved = torch.where(single, solved, certificate.status[:, r] == Status.CONVERGED)
        before = torch.where(single[:, None], before, box)
    return dual_coef, intercept, certificate


def violation(y: Tensor, upper: Tensor, s: Tensor, g: Tensor) -> Tensor:
    """How far models are from the optimality conditions: libsvm's m(a) − M(a).

    The largest gradient of the dual among the variables that may grow less the smallest one among
    those that may fall; negative where one of them is at its best bound. Fan, Chen, Lin (2005),
    (6).

    Parameters
    ----------
    y : Tensor, shape (n,)
        Labels, −1 or +1.
    upper, s, g : Tensor, shape (..., n)
        Box bounds, signed dual variables ``y a``, and gradients ``y − K s``.
    """
    lo, hi = _bounds(y, upper)
    g_max = torch.where(s < hi, g, -torch.inf).amax(-1)
    return g_max - torch.where(s > lo, g, torch.inf).amin(-1)


def _bounds(y: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Of the signed dual variables."""
    return torch.where(y > 0, 0.0, -upper), torch.where(y > 0, upper, 0.0)


def _holds(a: Tensor, before: Tensor, upper: Tensor) -> Tensor:
    """Whether an optimum within the bounds of before is one within those of now too.

    So it is where every variable keeps its bound, or was strictly below it and still fits.
    """
    return ((upper == before) | ((a < before) & (a <= upper))).all(1)


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
    fall = torch.where(s > lo, g_max[:, None] - g, 0.0).clamp_min_(0.0)
    # An optimal problem has no variable to raise (g_max = −∞) or no fall: its step is 0.
    fall = torch.where(torch.isfinite(g_max)[:, None], fall, 0.0)
    K_ii = state.diagonal[rows, i]
    curvature = (K_ii[:, None] + state.diagonal - 2 * K_i).clamp_min_(_MIN_CURVATURE)
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
    kkt_tol: float | None,
    max_iter: int,
) -> Tensor:
    """Evaluate the objectives, write down what is finished, return which problems are.

    Judged by fresh gradients: what the updates' rounding made look solved goes on with those.
    """
    found = _objectives(y, state)
    better = found.dual > state.best
    state.idle = torch.where(better, 0, state.idle + 1)
    state.best = torch.maximum(state.best, found.dual)
    given_up = (state.idle > _PATIENCE) | (iteration >= max_iter)
    leaving = _done(found, tol, kkt_tol) | given_up | (found.violation <= 0)
    # At iteration 0 it is the solution for the C before that leaves, and is to stay the same.
    leaving |= _widen(y, state, found, tol, ~leaving | (iteration > 0))
    if leaving.any():
        state.g[leaving] = y - _times(K, state.matrix[leaving], state.s[leaving])
        found = _objectives(y, state)
        converged = leaving & _done(found, tol, kkt_tol)
        leaving = converged | given_up | (leaving & (found.violation <= 0))
        path = state.path[leaving]
        dual_coef[path, r] = state.s[leaving]
        intercept[path, r] = found.b[leaving]
        primal, dual = found.primal[leaving], found.dual[leaving]
        certificate.primal[path, r] = primal
        certificate.dual[path, r] = dual
        certificate.gap[path, r] = (primal - dual) / primal
        certificate.n_iter[path, r] = iteration
        failure = Status.MAX_ITER if iteration >= max_iter else Status.STALLED
        status = torch.where(converged, int(Status.CONVERGED), int(failure))
        certificate.status[path, r] = status[leaving]
    return leaving


def _done(found: _Objectives, tol: float, kkt_tol: float | None) -> Tensor:
    gap_closed = (found.primal - found.dual).abs() <= tol * found.primal
    return gap_closed if kkt_tol is None else gap_closed | (found.violation <= kkt_tol)


def _widen(y: Tensor, state: _State, found: _Objectives, tol: float, wanted: Tensor) -> Tensor:
    """Stretch where all margins are then kept within the box and the gap is closed.

    Where no bound is touched, however large C, this spares the iterations that would bring the
    violated margins to 0: the loss is 0 at once, and so it is for every larger C.
    """
    t = found.stretch * (1 + _SPARE * tol)
    primal = 0.5 * t * t * found.norm
    dual = t * (found.dual + 0.5 * found.norm) - primal
    wanted = wanted & (t > 0) & (primal - dual <= tol * primal)
    if wanted.any():
        longer = t[:, None] * state.s
        wanted &= ((longer <= state.hi) & (longer >= state.lo)).all(1)
        state.s = torch.where(wanted[:, None], longer, state.s)
        state.g = torch.where(wanted[:, None], y + t[:, None] * (state.g - y), state.g)
    return wanted


def _objectives(y: Tensor, state: _State) -> _Objectives:
    """Primal objective with the best of some intercepts, and what else a certificate needs.

    The intercepts are the middle of the ends of g, the mean of g over the free variables, and
    where all margins are kept, the middle between the classes.
    """
    s, g, lo, hi = state.s, state.g, state.lo, state.hi
    norm = (s * (y - g)).sum(1)
    g_max = torch.where(s < hi, g, -torch.inf).amax(1)
    g_min = torch.where(s > lo, g, torch.inf).amin(1)
    middle = 0.5 * (g_max + g_min)
    middle = torch.where(torch.isinf(g_max), g_min, torch.where(torch.isinf(g_min), g_max, middle))
    free = (s > lo) & (s < hi)
    mean = (g * free).sum(1) / free.sum(1)
    mean = torch.where(free.any(1), mean, middle)
    top = torch.where(hi > 0, g, -torch.inf).amax(1)
    bottom = torch.where(lo < 0, g, torch.inf).amin(1)
    margin = 1 - 0.5 * (top - bottom)
    width = hi - lo
    b, loss = middle, torch.full_like(middle, torch.inf)
    for each in (middle, mean, 0.5 * (top + bottom)):
        other = (width * (y * (g - each[:, None])).clamp_min(0)).sum(1)
        b, loss = torch.where(other < loss, each, b), torch.minimum(other, loss)
    return _Objectives(
        primal=0.5 * norm + loss,
        dual=(y * s).sum(1) - 0.5 * norm,
        b=b,
        violation=g_max - g_min,
        norm=norm,
        stretch=torch.where(margin > 0, 1 / margin, 0.0),
    )


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
