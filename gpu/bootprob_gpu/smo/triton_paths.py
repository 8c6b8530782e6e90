"""Sequential minimal optimisation along paths of C on a GPU: one launch trains all paths.

The same algorithm as `bootprob_gpu.smo.compiled`, one program of a Triton kernel for each path. A
path of few enough rows keeps its state in registers, a longer one in memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate
from bootprob_gpu.hardware.launch_shapes import tuned_limit
from bootprob_gpu.hardware.triton_choice import with_twin
from bootprob_gpu.smo.batched import REFUTED, smo_batched

__all__ = ["smo_fused"]

IN_REGISTERS = 2048  # rows whose state the registers of one program hold
GATHERED_IN_REGISTERS = 512  # of float64 matrices through an index; beyond, registers are spilled
TILE = 1024  # rows taken at a time beyond
_NO_END = 2**31 - 1


@with_twin(smo_batched, name="smo")
def smo_fused(
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
) -> tuple[Tensor, Tensor, Certificate]:
    """Train P paths of R support vector machines each.

    Parameters
    ----------
    K : Tensor, shape (G, ≥ n, ≥ n)
        Symmetric Gram matrices, float32 or float64. The models are float64 either way; only which
        pair moves next is decided in float32.
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
    exact : Tensor of float64, shape (G, ≥ n, ≥ n), or None, default None
        What `K` is rounded from: models end, and are judged, by gradients that are computed with
        these. A model whose end these did not confirm a number of times is left as
        `Status.STALLED`. None: `K`.
    matrix : Tensor of int, shape (P,), or None, default None
        Which Gram matrix a path goes with. None: path number k goes with number ``k % G``.
    rows : Tensor of int, shape (P, n), or None, default None
        Which rows and columns of its matrix are those of a path. None: the first n.
    order : Tensor of int, shape (P,), or None, default None
        Paths in the order in which they are begun: the longest first, or the last ones to end
        leave the device idle. None: those of one matrix stand together.
    unit_diagonal : bool, default False
        The diagonals are 1 up to rounding, and need not be read.

    Returns
    -------
    dual_coef : Tensor of float64, shape (P, R, n)
    intercept : Tensor of float64, shape (P, R)
    certificate : Certificate
        With tensors of shape (P, R).
    """
    return launch(
        K, y, upper, tol=tol, max_iter=max_iter, kkt_tol=kkt_tol, exact=exact, matrix=matrix,
        rows=rows, order=order, unit_diagonal=unit_diagonal,
    )  # fmt: skip


def launch(
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
    block: int | None = None,
) -> tuple[Tensor, Tensor, Certificate]:
    """Launch the kernel; see `smo_fused`.

    Parameters
    ----------
    block : int or None, default None
        Rows that a program takes at a time, a power of 2: the state of a path stays in registers
        where this is no less than n. None: by n.
    """
    from bootprob_gpu.smo.triton_registers import path_in_registers, shape_of
    from bootprob_gpu.smo.triton_tiles import path_in_tiles

    P, R, n = upper.shape
    y, upper = y.contiguous(), upper.contiguous()
    claims = _NO_END if exact is None else REFUTED
    exact = K if exact is None else exact
    K, exact = (each if each.stride(2) == 1 else each.contiguous() for each in (K, exact))
    diagonal = K.diagonal(dim1=1, dim2=2).contiguous()
    limits = upper.new_full((2,), tol)
    limits[1] = -torch.inf if kkt_tol is None else kkt_tol
    dual_coef = torch.empty_like(upper)
    intercept, primal, dual, gap = (upper.new_empty(P, R) for _ in range(4))
    n_iter, status = (torch.empty(P, R, dtype=torch.int64, device=K.device) for _ in range(2))
    if matrix is None:
        matrix = torch.arange(P, device=K.device) % len(K)
    if order is None:
        order = torch.argsort(matrix, stable=True)
    paths, matrices = order.to(torch.int32), matrix.to(torch.int32)
    gathered = rows is not None
    places = paths if rows is None else rows.to(torch.int32).contiguous()
    rounded = K.dtype == torch.float32
    if block is None:
        in_registers = tuned_limit(IN_REGISTERS, "smo_in_registers")
        tile = tuned_limit(TILE, "smo_tile")
        if gathered and not rounded:
            in_registers = min(in_registers, GATHERED_IN_REGISTERS)
            tile = min(tile, GATHERED_IN_REGISTERS)
        block = shape_of(n)["BLOCK"] if n <= in_registers else tile
    arguments = (
        paths, matrices, places, K, *K.stride()[:2], exact, *exact.stride()[:2], diagonal,
        diagonal.shape[1], y, 0 if y.ndim == 1 else n, upper, limits, dual_coef, intercept, primal,
        dual, gap, n_iter, status, n, R, max_iter, claims, gathered,
        unit_diagonal,
    )  # fmt: skip
    if n <= block:
        path_in_registers[(P,)](*arguments, **shape_of(block, rounded=rounded, unit=unit_diagonal))
    else:
        gradient = upper.new_empty(P, n)
        path_in_tiles[(P,)](
            gradient, *arguments, BLOCK=block, num_warps=max(1, min(8, block // 128))
        )
    certificate = Certificate(primal=primal, dual=dual, gap=gap, n_iter=n_iter, status=status)
    return dual_coef, intercept, certificate
