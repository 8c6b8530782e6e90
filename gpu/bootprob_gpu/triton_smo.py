"""Sequential minimal optimisation along paths of C on a GPU: one launch trains all paths.

The same algorithm as `bootprob_gpu.smo_compiled`, one program of a Triton kernel for each path. A
path of few enough rows keeps its state in registers, a longer one in memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.smo_batched import smo_batched
from bootprob_gpu.triton_choice import with_twin

__all__ = ["smo_fused"]

IN_REGISTERS = 2048  # rows whose state the registers of one program hold
TILE = 1024  # rows taken at a time beyond


@with_twin(smo_batched, name="smo")
def smo_fused(
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
        Symmetric Gram matrices, float32 or float64; path number k goes with number ``k % G``. The
        models are float64 either way; only which pair moves next is decided in float32.
    y : Tensor of float64, shape (n,) or (P, n)
        Labels, −1 or +1; of all paths, or of each its own.
    upper : Tensor of float64, shape (P, R, n)
        Box bounds; fastest when they grow from model to model.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Iterations allowed for each model.
    kkt_tol : float or None, default None
        A model is also called converged when its largest violation of the optimality conditions
        (libsvm's stopping rule) is at most this. None: the gap decides alone.

    Returns
    -------
    dual_coef : Tensor of float64, shape (P, R, n)
    intercept : Tensor of float64, shape (P, R)
    certificate : Certificate
        With tensors of shape (P, R).
    """
    return launch(K, y, upper, tol=tol, max_iter=max_iter, kkt_tol=kkt_tol)


def launch(
    K: Tensor,
    y: Tensor,
    upper: Tensor,
    *,
    tol: float,
    max_iter: int,
    kkt_tol: float | None = None,
    block: int | None = None,
) -> tuple[Tensor, Tensor, Certificate]:
    """Launch the kernel; see `smo_fused`.

    Parameters
    ----------
    block : int or None, default None
        Rows that a program takes at a time, a power of 2: the state of a path stays in registers
        where this is no less than n. None: by n.
    """
    from bootprob_gpu.triton_smo_registers import path_in_registers, shape_of
    from bootprob_gpu.triton_smo_tiles import path_in_tiles

    P, R, n = upper.shape
    G = len(K)
    K, y, upper = K.contiguous(), y.contiguous(), upper.contiguous()
    diagonal = K.diagonal(dim1=1, dim2=2).contiguous()
    limits = upper.new_full((2,), tol)
    limits[1] = -torch.inf if kkt_tol is None else kkt_tol
    dual_coef = torch.empty_like(upper)
    intercept, primal, dual, gap = (upper.new_empty(P, R) for _ in range(4))
    n_iter, status = (torch.empty(P, R, dtype=torch.int64, device=K.device) for _ in range(2))
    if block is None:
        block = shape_of(n)["BLOCK"] if n <= IN_REGISTERS else TILE
    # Neighbouring programs share a matrix where paths do.
    replicates, step = (P // G, G) if P % G == 0 else (P, 1)
    arguments = (
        K, diagonal, y, 0 if y.ndim == 1 else n, upper, limits, dual_coef, intercept, primal, dual,
        gap, n_iter, status, n, R, G, max_iter, replicates, step,
    )  # fmt: skip
    if n <= block:
        path_in_registers[(P,)](*arguments, **shape_of(block))
    else:
        gradient = upper.new_empty(P, n)
        path_in_tiles[(P,)](
            gradient, *arguments, BLOCK=block, num_warps=max(1, min(8, block // 128))
        )
    certificate = Certificate(primal=primal, dual=dual, gap=gap, n_iter=n_iter, status=status)
    return dual_coef, intercept, certificate
