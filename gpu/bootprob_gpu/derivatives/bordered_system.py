"""The linear systems of the free support vectors of many models, solved together."""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.derivatives.kernel_products import KernelProducts

__all__ = ["BorderedSystem"]

_RIDGE = 1e-10  # of the diagonal; what it changes is taken back by refinement
_REFINEMENTS = 3
_SINGULAR = 1e-8  # pivots below this share of the diagonal
_LEAST = 1e-2  # of the median of the diagonal: rows at the centre have none of their own


class BorderedSystem:
    """``[K_FF, 1; 1ᵀ, 0] [v; β] = [r; ρ]`` for each model, padded to the largest |F|.

    The matrix is singular where free support vectors are affinely dependent in the feature space
    (duplicated rows, or more than p + 1 of them on a linear model's margin). Right-hand sides made
    of kernel products are consistent all the same, and any solution gives the same scores; here
    it is that of least norm up to rounding, by a ridge of 1e-10 and iterative refinement.

    A model without free support vectors leaves its intercept anywhere in an interval, the ends of
    which belong to two rows (`pair`); its middle is taken.

    Parameters
    ----------
    products : LinearProducts or RbfProducts
        Kernel among the training rows, G groups.
    free : Tensor of bool, shape (G, M, n)
    pair : Tensor of int, shape (G, M, 2)
        The two rows, for models without a free support vector.
    dead : Tensor of bool, shape (G, M)
        Models of a single class: all solutions are 0.

    Attributes
    ----------
    singular : Tensor of bool, shape (G, M)
    """

    def __init__(self, products: KernelProducts, free: Tensor, pair: Tensor, dead: Tensor) -> None:
        count = free.sum(-1)
        width = max(2, int(count.max()) if count.numel() else 0)
        width = min(width, free.shape[-1])
        order = torch.argsort(free.to(torch.int8), dim=-1, descending=True, stable=True)
        self._index = order[..., :width]
        self._valid = torch.arange(width, device=free.device) < count[..., None]
        self._paired = (count == 0) & ~dead
        ends = pair[..., : min(2, width)]
        self._index[..., : ends.shape[-1]] = torch.where(
            self._paired[..., None], ends, self._index[..., : ends.shape[-1]]
        )
        self._ends = torch.zeros_like(self._valid)
        self._ends[..., : ends.shape[-1]] = self._paired[..., None]
        self._n = free.shape[-1]
        self._regular = (count > 0) & ~dead
        self._assemble(products)

    def _assemble(self, products: KernelProducts) -> None:
        used = self._valid & self._regular[..., None]
        block = products.block(self._index)
        diagonal = block.diagonal(dim1=-2, dim2=-1)
        typical = torch.where(used, diagonal, torch.nan).nanmedian(-1, keepdim=True).values
        typical = torch.where(typical > 0, typical, 1.0)
        # In units in which the diagonal of K is 1, so that an outlier does not hide the others.
        self._unit = torch.where(used, torch.maximum(diagonal, _LEAST * typical).rsqrt(), 0.0)
        largest = self._unit.amax(-1)
        self._border_unit = torch.where(largest > 0, 1 / largest, 1.0)
        matrix = block.new_empty(*block.shape[:-2], block.shape[-1] + 1, block.shape[-1] + 1)
        inner = torch.mul(block, self._unit[..., None], out=matrix[..., :-1, :-1])
        inner.mul_(self._unit[..., None, :])
        matrix[..., -1, :-1] = self._unit * self._border_unit[..., None]
        matrix[..., :-1, -1] = matrix[..., -1, :-1]
        matrix[..., -1, -1] = 0.0
        every = matrix.diagonal(dim1=-2, dim2=-1)
        every += torch.nn.functional.pad(~used, (0, 1)).to(block.dtype)
        every[..., -1] += ~self._regular
        ridge = _RIDGE * torch.nn.functional.pad(used, (0, 1))
        every += ridge
        factors = torch.linalg.lu_factor_ex(matrix)
        every -= ridge
        self._matrix, self._factor, self._pivots = matrix, factors.LU, factors.pivots
        pivots = self._factor.diagonal(dim1=-2, dim2=-1).abs()
        self.singular = self._regular & (pivots.amin(-1) < _SINGULAR)

    def gather(self, values: Tensor) -> Tensor:
        """Entries of (G, M, k, n) that belong to the system, (G, M, k, f); 0 where padded."""
        index = self._index[:, :, None].expand(*values.shape[:-1], -1)
        used = self._valid | self._ends
        return values.gather(-1, index) * used[:, :, None]

    def scatter(self, values: Tensor) -> Tensor:
        """Back to all rows, (G, M, k, f) to (G, M, k, n)."""
        full = values.new_zeros(*values.shape[:-1], self._n)
        index = self._index[:, :, None].expand(values.shape)
        return full.scatter_add_(-1, index, values)

    def solve(self, right: Tensor, border: Tensor) -> tuple[Tensor, Tensor]:
        """Solution v (G, M, k, f) and β (G, M, k) for r (G, M, k, f) and ρ (G, M, k)."""
        v, beta = self._solve_regular(right, border)
        middle = 0.5 * (right * self._ends[:, :, None]).sum(-1)
        return v, torch.where(self._paired[..., None], middle, beta)

    def solve_adjoint(self, right: Tensor, border: Tensor) -> tuple[Tensor, Tensor]:
        """Solution of the transposed system: they differ where there is no free support vector."""
        v, beta = self._solve_regular(right, border)
        ends = 0.5 * border[..., None] * self._ends[:, :, None]
        return torch.where(self._paired[..., None, None], ends, v), beta

    def _solve_regular(self, right: Tensor, border: Tensor) -> tuple[Tensor, Tensor]:
        unit, border_unit = self._unit[:, :, None], self._border_unit[..., None]
        border = border * border_unit * self._regular[..., None]
        wanted = torch.cat([right * unit, border[..., None]], dim=-1).mT
        found = torch.linalg.lu_solve(self._factor, self._pivots, wanted)
        for _ in range(_REFINEMENTS):
            residual = wanted - self._matrix @ found
            found = found + torch.linalg.lu_solve(self._factor, self._pivots, residual)
        found = found.mT
        return found[..., :-1] * unit, found[..., -1] * border_unit
