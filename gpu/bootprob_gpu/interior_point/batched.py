"""Linear support vector machines in a batch: Mehrotra's primal–dual interior point.

Problem k of the batch minimises ``½ vᵀ Λ_k v + Σ_i u_ki max(0, 1 − y_i (vᵀ x_i + β))``. All
problems share their rows ``X``; the features that replicate b sees, ``x / scale_b``, enter through
the penalty ``Λ = diag(scale_b²)`` alone. So the normal matrices of every problem come from one
matrix product (`bootprob_gpu.interior_point.normal_matrices`).

Method: S. Mehrotra, SIAM J. Optimization 2 (1992) 575–601; for support vector machines
M. C. Ferris, T. S. Munson, SIAM J. Optimization 13 (2002) 783–804.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.hardware.cuda import Replayed, can_capture
from bootprob_gpu.hardware.launch_shapes import tuned_limit
from bootprob_gpu.hardware.triton_choice import kernel_names, use_triton
from bootprob_gpu.interior_point.answered_problems import LateCount, leave
from bootprob_gpu.interior_point.normal_matrices import (
    LARGEST_FACTORED,
    NormalMatrices,
    factored,
    solved,
)
from bootprob_gpu.interior_point.passes import correct, judge, losses, move, weigh
from bootprob_gpu.interior_point.state import State, start

__all__ = ["interior_point"]

# Problems × rows below which launching the kernels one by one takes longer than running them.
_REPLAYED_CELLS = 2**22
_KERNELS = kernel_names(losses, judge, weigh, factored, solved, correct, move)  # of an iteration


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
    y : Tensor, shape (n,) or (problems, n)
        Labels, −1 or +1.
    upper : Tensor, shape (problems, n)
        Box bounds ``u ≥ 0``, contiguous; used as work space, so overwritten.
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
    solution = X1.new_zeros(len(upper), X1.shape[1])
    certificate = Certificate.empty(len(upper), device=X1.device)
    with torch.cuda.device_of(X1):
        state = start(y, upper, penalty, solution, certificate, tol)
        if len(state.index):
            _iterate(X1, state, normal_matrices, max_iter, solution, certificate)
    return solution, certificate


def _iterate(
    X1: Tensor,
    state: State,
    normal: NormalMatrices,
    max_iter: int,
    solution: Tensor,
    certificate: Certificate,
) -> None:
    def step() -> None:
        _advance(X1, state, normal)
        _certify(X1, state)

    replayed = can_capture(_KERNELS) and _is_small(X1, state)
    graph = Replayed(step, X1.device, _KERNELS) if replayed else None
    count: Callable[[Tensor], int] = _count if graph is None else LateCount(len(state.index))
    _certify(X1, state)
    for _ in range(max_iter):
        # All that an iteration reads from the device; of a graph, as of one iteration before.
        working, batch = count(state.working), len(state.working)
        if working == 0:
            break
        if leave(working, batch, len(X1), replayed=graph is not None):
            state.record(solution, certificate)
            state.keep_working(working)
            if graph is not None:
                graph.renew()
        (graph or step)()
    state.record(solution, certificate)


def _count(working: Tensor) -> int:
    return int(working.sum())


def _is_small(X1: Tensor, state: State) -> bool:
    """Whether launches would take longer than the work that they launch."""
    on_cuda = X1.is_cuda and use_triton(X1.device) and X1.shape[1] <= LARGEST_FACTORED
    limit = tuned_limit(_REPLAYED_CELLS, "replayed_cells", X1.device)
    return on_cuda and state.upper.numel() <= limit


def _certify(X1: Tensor, s: State) -> None:
    """Objectives at the current iterates."""
    torch.mm(s.w, X1.T, out=s.scores)
    loss, mass = losses(s.scores, s)
    judge(s.left @ X1, s, loss, mass)


def _advance(X1: Tensor, s: State, normal: NormalMatrices) -> None:
    """One predictor–corrector step of every problem in the batch."""
    mu = weigh(s.left, s.spare, s)
    factor = factored(normal(s.left), s.penalty, normal.unpack, s.working)
    dw = solved(s.spare @ X1, factor, s.penalty, s.w, s.working)
    torch.mm(dw, X1.T, out=s.scores)
    level = correct(s.scores, s.left, s, mu)
    dw = solved(s.left @ X1, factor, s.penalty, s.w, s.working)
    torch.mm(dw, X1.T, out=s.spare)
    move(dw, s, s.scores, s.spare, level)
    s.iteration += 1
