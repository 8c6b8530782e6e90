"""Normal matrices of all problems of a batch from one matrix product, and systems with them.

The matrices ``Σ_i θ_ki [x_i, 1] [x_i, 1]ᵀ`` are linear in ``θ (problems × n)``: their lower
triangles are ``θ Z``, where row i of ``Z`` holds the products of all pairs of entries of
``[x_i, 1]`` (a row-wise Khatri–Rao square).
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.hardware.triton_choice import with_twin

__all__ = ["LARGEST_FACTORED", "NormalMatrices", "factored", "solved"]

LARGEST_FACTORED = 128  # columns of a matrix that the kernel's registers can hold
_LARGEST_SOLVED = 1024
_STREAMED_ROWS = 2**14  # enough for a matrix product at full speed
_DAMPING = 1e-12  # of the diagonal, times the columns


class NormalMatrices:
    """The matrices ``Σ_i θ_ki [x_i, 1] [x_i, 1]ᵀ`` of all problems at once.

    Parameters
    ----------
    X1 : Tensor, shape (n, q)
        The rows with a column of ones appended.
    available : int
        Bytes that the Khatri–Rao square of the rows may use; where it needs more, it is made
        again for one block of rows after another each time.

    Attributes
    ----------
    unpack : Tensor of int64, shape (q · q,)
        Where each entry of a matrix stands among those of its lower triangle.
    nbytes : int
        Bytes that the square, or one block of it, does use.
    """

    def __init__(self, X1: Tensor, available: int) -> None:
        n, q = X1.shape
        self._X1 = X1
        pairs = q * (q + 1) // 2
        rows, columns = torch.tril_indices(q, q, device=X1.device)
        position = torch.zeros(q, q, dtype=torch.int64, device=X1.device)
        position[rows, columns] = torch.arange(pairs, device=X1.device)
        self.unpack = torch.maximum(position, position.T).reshape(-1)
        fits = int(available // (pairs * X1.element_size()))
        self._block = n if fits >= n else max(1, min(fits, _STREAMED_ROWS))
        self._square = X1.new_empty(self._block, pairs)
        self.nbytes = self._square.nbytes
        if self._block >= n:
            self._fill(slice(0, n))

    def _fill(self, rows: slice) -> Tensor:
        """The square of some rows, in the one buffer that there is, without temporaries."""
        X1 = self._X1[rows]
        square = self._square[: len(X1)]
        for j in range(X1.shape[1]):
            at = j * (j + 1) // 2
            torch.mul(X1[:, : j + 1], X1[:, j : j + 1], out=square[:, at : at + j + 1])
        return square

    def __call__(self, theta: Tensor) -> Tensor:
        """Lower triangles, shape (problems, q (q + 1) / 2), for weights (problems, n)."""
        n = len(self._X1)
        if self._block >= n:
            return theta @ self._square
        packed = theta.new_zeros(len(theta), self._square.shape[1])
        for start in range(0, n, self._block):
            rows = slice(start, min(start + self._block, n))
            packed.addmm_(theta[:, rows], self._fill(rows))
        return packed


def _factored(packed: Tensor, penalty: Tensor, unpack: Tensor, working: Tensor) -> Tensor:
    k, q = penalty.shape
    H = packed.index_select(1, unpack).view(k, q, q)
    H.diagonal(dim1=1, dim2=2).add_(penalty)
    factor, info = torch.linalg.cholesky_ex(H)
    indefinite = (info > 0) & (working > 0)
    if bool(indefinite.any()):
        H.diagonal(dim1=1, dim2=2).mul_(1 + _DAMPING * q * indefinite[:, None].to(H.dtype))
        del factor
        factor, _ = torch.linalg.cholesky_ex(H)
    return factor


@with_twin(_factored, name="Cholesky factor")
def factored(packed: Tensor, penalty: Tensor, unpack: Tensor, working: Tensor) -> Tensor:
    """Cholesky factors of the normal matrices with the penalty on their diagonals.

    Where rounding made a matrix indefinite, its diagonal is damped a little. Where that is not
    enough, the kernel leaves the direction of a bad pivot out of all solutions.

    Parameters
    ----------
    packed : Tensor, shape (problems, q (q + 1) / 2)
        Lower triangles, row by row.
    penalty : Tensor, shape (problems, q)
        Added to the diagonals.
    unpack : Tensor
        Of the `NormalMatrices`.
    working : Tensor of int64, shape (problems,)
        0 where a problem is answered: what stands there is no factor of anything.

    Returns
    -------
    Tensor, shape (problems, q, q)
        Of which the lower triangles count.
    """
    if penalty.shape[1] > LARGEST_FACTORED:
        return _factored(packed, penalty, unpack, working)
    from bootprob_gpu.interior_point import triton_cholesky

    return triton_cholesky.factored(packed, penalty, working, damping=_DAMPING)


def _solved(right: Tensor, factor: Tensor, penalty: Tensor, w: Tensor, working: Tensor) -> Tensor:
    return torch.cholesky_solve((right - penalty * w).unsqueeze(-1), factor).squeeze(-1)


@with_twin(_solved, name="Cholesky solve")
def solved(right: Tensor, factor: Tensor, penalty: Tensor, w: Tensor, working: Tensor) -> Tensor:
    """Solutions of ``L Lᵀ dw = right − Λ w``; all of shape (problems, q), the factor (…, q, q).

    Where `working` (problems,) is 0, the problem is answered and anything may stand.
    """
    if right.shape[1] > _LARGEST_SOLVED:
        return _solved(right, factor, penalty, w, working)
    from bootprob_gpu.interior_point import triton_cholesky

    return triton_cholesky.solved(right, factor, penalty, w, working)
