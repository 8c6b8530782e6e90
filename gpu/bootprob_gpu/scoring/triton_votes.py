"""Votes of linear models in Triton: a matrix product whose result is counted, not written.

What the compiler makes of it for Hopper (compute capability 9.0, Triton 3.6), seen in its machine
code: float32 in "ieee" precision runs on the ordinary floating-point units, with nothing spilled;
"tf32x3" (three products of 11-bit parts, added up) and float64 run on the tensor cores.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from bootprob_gpu.hardware.launch_shapes import tuned_shape

__all__ = ["count_votes"]

_SHAPES: dict[tuple[torch.dtype, str], dict[str, int]] = {
    # Fewer registers than 170 a thread leave room for three programs on a multiprocessor, one of
    # which computes while others wait for memory.
    (torch.float32, "ieee"): {
        "BLOCK_M": 64, "BLOCK_B": 128, "BLOCK_K": 16, "num_warps": 4, "num_stages": 3,
    },
    (torch.float32, "tf32x3"): {
        "BLOCK_M": 128, "BLOCK_B": 128, "BLOCK_K": 32, "num_warps": 8, "num_stages": 3,
    },
    (torch.float64, "ieee"): {
        "BLOCK_M": 64, "BLOCK_B": 64, "BLOCK_K": 16, "num_warps": 4, "num_stages": 3,
    },
}  # fmt: skip


# Compiled once, not again for one model or for the last rows; and one model as a constant takes so
# many registers that a program fewer fits onto a multiprocessor.
@triton.jit(do_not_specialize=["m", "R"])
def _votes(  # type: ignore[no-untyped-def]
    rows, coef, intercept, counts, m, R, B, K,
    PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One block of rows under the B replicates of one model; neighbours share their rows.

    `coef` is (R, K, B): with the replicates side by side, a warp reads its part of a tile in one
    go. K and B are multiples of their blocks, so that only rows need a mask.
    """
    program = tl.program_id(0)
    r = (program % R).to(tl.int64)
    i = (program // R).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    b = tl.arange(0, BLOCK_B)
    k = tl.arange(0, BLOCK_K)
    inside = i < m
    row = tl.where(inside, i, 0)  # rows beyond the last are read as the first, and not written
    x_start = rows + row[:, None] * K + k[None, :]
    w_start = coef + r * K * B + k[:, None] * B + b[None, :]
    bias_at = intercept + r * B + b
    stride = B.to(tl.int64)
    votes = tl.zeros((BLOCK_M,), dtype=tl.int32)
    for b_start in range(0, B, BLOCK_B):
        scores = tl.zeros((BLOCK_M, BLOCK_B), dtype=coef.dtype.element_ty)
        for k_start in range(0, K, BLOCK_K):
            x = tl.load(x_start + k_start)
            w = tl.load(w_start + (k_start * stride + b_start))
            scores = tl.dot(x, w, scores, input_precision=PRECISION, out_dtype=scores.dtype)
        scores += tl.load(bias_at + b_start)[None, :]
        votes += tl.sum((scores > 0).to(tl.int32), axis=1)
    tl.store(counts + r * m + i, votes, mask=inside)


def count_votes(
    rows: Tensor,
    coef: Tensor,
    intercept: Tensor,
    *,
    precision: Literal["ieee", "tf32x3"] = "ieee",
) -> Tensor:
    """How many replicates score each row above 0.

    Parameters
    ----------
    rows : Tensor of float32 or float64, shape (m, k)
        Rows.
    coef : Tensor, shape (R, k, B)
        Coefficients.
    intercept : Tensor, shape (R, B)
        Intercepts.
    precision : {"ieee", "tf32x3"}, default "ieee"
        Of the products of float32 numbers.

    Returns
    -------
    Tensor of int32, shape (R, m)
    """
    (m, columns), (R, _, B) = rows.shape, coef.shape
    counts = torch.empty(R, m, dtype=torch.int32, device=rows.device)
    if m == 0 or R == 0:
        return counts
    name = f"{str(rows.dtype).removeprefix('torch.')} {precision}"
    shape = tuned_shape(_SHAPES[rows.dtype, precision], "votes", name)
    more_columns = -columns % shape["BLOCK_K"]
    more_replicates = -B % shape["BLOCK_B"]
    # Columns of zeros change no score, and replicates that score −1 everywhere add no vote.
    rows = pad(rows, (0, more_columns)).contiguous()
    coef = pad(coef, (0, more_replicates, 0, more_columns)).contiguous()
    intercept = pad(intercept, (0, more_replicates), value=-1.0).contiguous()
    launch: Any = _votes[(triton.cdiv(m, shape["BLOCK_M"]) * R,)]
    launch(
        rows, coef, intercept, counts, m, R, coef.shape[2], coef.shape[1],
        PRECISION=precision, **shape,
    )  # fmt: skip
    return counts
