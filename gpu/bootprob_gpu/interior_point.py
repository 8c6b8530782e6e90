"""Linear support vector machines in a batch: Mehrotra's primal–dual interior point.

Problem k of the batch minimises ``½ vᵀ Λ_k v + Σ_i u_ki max(0, 1 − y_i (vᵀ x_i + β))``. All
problems share their rows ``X``; the features that replicate b sees, ``x / scale_b``, enter through
the penalty ``Λ = diag(scale_b²)`` alone. So the normal matrices ``Σ_i θ_ki x_i x_iᵀ`` of every
problem come from one GEMM of ``θ (problems × n)`` with the Khatri–Rao square of ``[X, 1]``.

Method: S. Mehrotra, SIAM J. Optimization 2 (1992) 575–601; for support vector machines
M. C. Ferris, T. S. Munson, SIAM J. Optimization 13 (2002) 783–804.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status, feasible_dual, relative_gap

__all__ = ["NormalMatrices", "interior_point"]

_STALL_AFTER = 20  # iterations without a better gap before a problem is given up
_PLAIN_AFTER = 4  # such iterations after which second-order terms are left out
_PLAIN_CENTRING = 0.2
_STEP_TO_BOUNDARY = 0.995


class NormalMatrices:
    """The matrices ``Σ_i θ_ki [x_i, 1] [x_i, 1]ᵀ`` of all problems at once.

    Parameters
    ----------
    X1 : Tensor, shape (n, q)
        The rows with a column of ones appended.
    available : int
        Bytes that the Khatri–Rao square of the rows may use; where it needs more, it is made
        again for one block of rows after another.
    """

    def __init__(self, X1: Tensor, available: int) -> None:
        n, q = X1.shape
        self._X1 = X1
        lower = torch.tril_indices(q, q, device=X1.device)
        self._pairs = lower
        position = torch.zeros(q, q, dtype=torch.int64, device=X1.device)
        position[lower[0], lower[1]] = torch.arange(lower.shape[1], device=X1.device)
        self._unpack = torch.maximum(position, position.T).reshape(-1)
        row_bytes = lower.shape[1] * X1.element_size()
        self._block = max(1, min(n, int(available // row_bytes)))
        self._cached = self._square(slice(0, n)) if self._block >= n else None

    def _square(self, rows: slice) -> Tensor:
        X1 = self._X1[rows]
        return X1[:, self._pairs[0]] * X1[:, self._pairs[1]]

    def __call__(self, theta: Tensor) -> Tensor:
        """Normal matrices, shape (problems, q, q), for weights of shape (problems, n)."""
        if self._cached is not None:
            packed = theta @ self._cached
        else:
            n, q = self._X1.shape
            packed = theta.new_zeros(len(theta), q * (q + 1) // 2)
            for start in range(0, n, self._block):
                rows = slice(start, min(start + self._block, n))
                packed.addmm_(theta[:, rows], self._square(rows))
        q = self._X1.shape[1]
        return packed.index_select(1, self._unpack).view(len(theta), q, q)


@dataclass
class _State:
    """Iterates of the problems still in the batch; rows of every tensor are problems.

    Primal ``w = (v, β)``, slacks ``t, xi ≥ 0`` with ``y f(x) − 1 = t − xi``; dual ``a`` in
    ``[0, u]``. Rows of no weight (``inside`` 0) idle at harmless values.
    """

    index: Tensor
    penalty: Tensor
    upper: Tensor
    inside: Tensor
    w: Tensor
    a: Tensor
    t: Tensor
    xi: Tensor
    best_gap: Tensor
    best_iteration: Tensor
    done: Tensor  # answered, only not yet taken out of the batch

    def keep(self, kept: Tensor) -> None:
        for name, value in vars(self).items():
            setattr(self, name, value[kept])


def interior_point(
    X1: Tensor,
    y: Tensor,
    upper: Tensor,
    penalty: Tensor,
    normal_matrices: NormalMatrices,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Tensor, Certificate]:
    """Train a batch of linear support vector machines.

    Parameters
    ----------
    X1 : Tensor of float64, shape (n, p + 1)
        Rows, columns of about unit scale, with a column of ones appended.
    y : Tensor, shape (n,)
        Labels, −1 or +1.
    upper : Tensor, shape (problems, n)
        Box bounds ``u ≥ 0``.
    penalty : Tensor, shape (problems, p)
        Diagonal of ``Λ``, positive.
    normal_matrices : NormalMatrices
        Made from `X1`.
    tol : float
        Relative duality gap at which a problem leaves the batch.
    max_iter : int
        Iterations after which the rest leaves unfinished.

    Returns
    -------
    w : Tensor, shape (problems, p + 1)
        Coefficients, intercept last; of each problem's best iterate.
    certificate : Certificate
        With tensors of shape (problems,).
    """
    problems, q = len(upper), X1.shape[1]
    positive = y > 0
    solution = X1.new_zeros(problems, q)
    certificate = Certificate.empty(problems, device=X1.device)
    state = _start(upper, penalty, positive, solution, certificate)
    for iteration in range(max_iter + 1):
        if len(state.index) == 0:
            break
        _certify(X1, y, state, solution, certificate, iteration, tol)
        if iteration == max_iter:
            certificate.n_iter[state.index[~state.done]] = iteration
            break
        # Compacting copies the whole state, so wait until it pays.
        if state.done.any() and (state.done.sum() * 10 >= len(state.done) or len(state.done) < 64):
            state.keep(~state.done)
        if len(state.index):
            _advance(X1, y, state, normal_matrices, iteration)
    return solution, certificate


def _start(
    upper: Tensor, penalty: Tensor, positive: Tensor, solution: Tensor, certificate: Certificate
) -> _State:
    mass_positive = (upper * positive).sum(1)
    mass_negative = (upper * ~positive).sum(1)
    single = (mass_positive == 0) | (mass_negative == 0)
    solution[single, -1] = torch.sign(mass_positive - mass_negative)[single]
    for values, end in (
        (certificate.primal, 0.0), (certificate.dual, 0.0), (certificate.gap, 0.0),
        (certificate.status, Status.SINGLE_CLASS),
    ):  # fmt: skip
        values[single] = end
    index = torch.nonzero(~single).squeeze(1)
    upper, penalty = upper[index], penalty[index]
    inside = (upper > 0).to(upper.dtype)
    upper = torch.where(upper > 0, upper, 1.0)
    lighter = torch.minimum(mass_positive, mass_negative)[index, None]
    share = torch.where(
        positive, lighter / mass_positive[index, None], lighter / mass_negative[index, None]
    )
    return _State(
        index=index,
        penalty=torch.cat([penalty, penalty.new_zeros(len(index), 1)], dim=1),
        upper=upper,
        inside=inside,
        w=solution.new_zeros(len(index), solution.shape[1]),
        a=torch.where(inside > 0, 0.5 * upper * share, 0.5),
        t=torch.ones_like(upper),
        xi=torch.full_like(upper, 2.0),
        best_gap=torch.full_like(lighter[:, 0], torch.inf),
        best_iteration=torch.zeros_like(index),
        done=torch.zeros_like(index, dtype=torch.bool),
    )


def _certify(
    X1: Tensor,
    y: Tensor,
    state: _State,
    solution: Tensor,
    certificate: Certificate,
    iteration: int,
    tol: float,
) -> None:
    """Objectives at the current iterates; marks the problems that they finish.

    What is written of a problem that is done stays as it is, whoever keeps it in the batch.
    """
    hinge = (1 - y * (state.w @ X1.T)).clamp_min_(0).mul_(state.inside)
    primal = 0.5 * (state.penalty * state.w**2).sum(1) + (state.upper * hinge).sum(1)
    a = feasible_dual(state.a * state.inside, y > 0)
    gradient = (a * y) @ X1[:, :-1]
    dual = a.sum(1) - 0.5 * (gradient**2 / state.penalty[:, :-1]).sum(1)
    # The bounds of all iterates hold, so the best primal and the best dual make the certificate.
    index, at_work = state.index, ~state.done
    better = at_work & (primal < certificate.primal[index])
    certificate.primal[index[better]] = primal[better]
    solution[index[better]] = state.w[better]
    bound = certificate.dual[index]
    certificate.dual[index] = torch.where(at_work, torch.fmax(bound, dual), bound)
    gap = relative_gap(certificate.primal[index], certificate.dual[index])
    certificate.gap[index] = gap
    improved = gap < 0.9 * state.best_gap
    state.best_gap = torch.where(improved, gap, state.best_gap)
    state.best_iteration = torch.where(improved, iteration, state.best_iteration)
    converged = at_work & (gap <= tol)
    broken = ~torch.isfinite(primal) | (iteration - state.best_iteration >= _STALL_AFTER)
    broken &= at_work & ~converged
    certificate.n_iter[index[converged | broken]] = iteration
    certificate.status[index[broken]] = Status.STALLED
    certificate.status[index[converged]] = Status.CONVERGED
    state.done |= converged | broken


def _advance(X1: Tensor, y: Tensor, s: _State, normal: NormalMatrices, iteration: int) -> None:
    """One predictor–corrector step of every problem in the batch."""
    v = s.upper - s.a
    at, vxi = s.a * s.t, v * s.xi
    pairs = 2 * s.inside.sum(1, keepdim=True)
    mu = ((at + vxi) * s.inside).sum(1, keepdim=True) / pairs
    theta = s.inside / (s.t / s.a + s.xi / v)
    H = normal(theta)
    H.diagonal(dim1=1, dim2=2).add_(s.penalty)
    factor, info = torch.linalg.cholesky_ex(H)
    if bool((info > 0).any()):
        # Rounding made a matrix indefinite: damp its diagonal a little and go on.
        H.diagonal(dim1=1, dim2=2).mul_(1 + 1e-12 * (info > 0)[:, None] * X1.shape[1])
        factor, _ = torch.linalg.cholesky_ex(H)
    a_inside = s.a * s.inside
    penalty_gradient = s.penalty * s.w

    def direction(ca: Tensor, cv: Tensor) -> tuple[Tensor, ...]:
        """Newton step towards the complementarities ``a t = ca`` and ``(u − a) xi = cv``."""
        rho = ca / s.a - cv / v - s.t + s.xi
        right = ((a_inside + theta * rho) * y) @ X1 - penalty_gradient
        dw = torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1)
        da = theta * (rho - y * (dw @ X1.T))
        dt = (ca - at - s.t * da) / s.a
        dxi = (cv - vxi + s.xi * da) / v
        return dw, da, dt, dxi

    def longest(da: Tensor, dt: Tensor, dxi: Tensor) -> tuple[Tensor, Tensor]:
        """Step lengths to the boundary, primal (t, xi) and dual (a, u − a)."""
        primal = (torch.maximum(-dt / s.t, -dxi / s.xi) * s.inside).amax(1, keepdim=True)
        dual = (torch.maximum(-da / s.a, da / v) * s.inside).amax(1, keepdim=True)
        return 1 / primal.clamp_min(1e-30), 1 / dual.clamp_min(1e-30)

    zero = mu.new_zeros(1, 1)
    _, da, dt, dxi = direction(zero, zero)
    step_p, step_d = (step.clamp_max(1) for step in longest(da, dt, dxi))
    reached = (s.a + step_d * da) * (s.t + step_p * dt) + (v - step_d * da) * (s.xi + step_p * dxi)
    mu_reached = (reached * s.inside).sum(1, keepdim=True) / pairs
    target = ((mu_reached / mu) ** 3).clamp_max(1) * mu
    ca, cv = target - da * dt, target + da * dxi
    # The second-order terms, and with them the iterates, can cycle: then straight down the path.
    idle = (iteration - s.best_iteration >= _PLAIN_AFTER)[:, None]
    ca, cv = (
        torch.where(idle, _PLAIN_CENTRING * mu, ca),
        torch.where(idle, _PLAIN_CENTRING * mu, cv),
    )
    dw, da, dt, dxi = direction(ca, cv)
    # The first steps stay further from the boundary: the starting point is far from the path.
    shy = max(0.9, 1 - 0.1 * 0.5**iteration) if iteration < 3 else _STEP_TO_BOUNDARY
    step_p, step_d = ((shy * step).clamp_max(1) for step in longest(da, dt, dxi))
    s.w = s.w + step_p * dw
    s.a = torch.where(s.inside > 0, s.a + step_d * da, s.a)
    s.t = torch.where(s.inside > 0, s.t + step_p * dt, s.t)
    s.xi = torch.where(s.inside > 0, s.xi + step_p * dxi, s.xi)
