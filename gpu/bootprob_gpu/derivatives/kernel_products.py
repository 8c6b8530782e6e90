"""Products with the kernel matrices of a batch of models, which are not formed where they need not.

Models are laid out in G groups of M: those of a group share their kernel matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["GramProducts", "KernelProducts", "LinearProducts", "kernel_products"]


@dataclass(frozen=True)
class LinearProducts:
    """The linear kernel between m rows and n others, kept as the rows themselves.

    Attributes
    ----------
    rows : Tensor, shape (G, m, p)
    others : Tensor, shape (G, n, p)
    """

    rows: Tensor
    others: Tensor

    def times(self, s: Tensor) -> Tensor:
        """``K s`` for s of shape (G, M, n): shape (G, M, m)."""
        return (s @ self.others) @ self.rows.mT

    def adjoint(self, c: Tensor) -> Tensor:
        """``Kᵀ c`` for c of shape (G, M, m): shape (G, M, n)."""
        return (c @ self.rows) @ self.others.mT

    def block(self, index: Tensor) -> Tensor:
        """Entries between some rows and the same of the others, (G, M, f) to (G, M, f, f)."""
        group = _groups(index)
        return self.rows[group, index] @ self.others[group, index].mT

    def take(self, groups: Tensor) -> LinearProducts:
        """The same for some of the groups."""
        return LinearProducts(self.rows[groups], self.others[groups])


@dataclass(frozen=True)
class GramProducts:
    """Any other kernel between m rows and n others.

    Attributes
    ----------
    gram : Tensor, shape (G, m, n)
    kernel : KernelFunction
    gamma : Tensor, shape (G,), or None
        None for a kernel without γ.
    products : Tensor, shape (G, m, n), or None
        Inner products, for a kernel whose slope needs them.
    """

    gram: Tensor
    kernel: KernelFunction
    gamma: Tensor | None
    products: Tensor | None

    def times(self, s: Tensor) -> Tensor:
        """``K s`` for s of shape (G, M, n): shape (G, M, m)."""
        return s @ self.gram.mT

    def times_derivative(self, s: Tensor) -> Tensor:
        """``(dK / dγ) s``, shape (G, M, m)."""
        assert self.gamma is not None
        slope = self.kernel.slope(self.gram, self.gamma[:, None, None], self.products)
        return s @ slope.mT

    def adjoint(self, c: Tensor) -> Tensor:
        """``Kᵀ c`` for c of shape (G, M, m): shape (G, M, n)."""
        return c @ self.gram

    def block(self, index: Tensor) -> Tensor:
        """Entries between some rows and the same of the others, (G, M, f) to (G, M, f, f)."""
        group = _groups(index)
        return self.gram[group[..., None], index[..., :, None], index[..., None, :]]

    def take(self, groups: Tensor) -> GramProducts:
        """The same for some of the groups."""
        gamma, products = (
            None if each is None else each[groups] for each in (self.gamma, self.products)
        )
        return GramProducts(self.gram[groups], self.kernel, gamma, products)


KernelProducts = LinearProducts | GramProducts


def kernel_products(
    rows: Tensor, others: Tensor, scale: Tensor, kernel: KernelFunction
) -> KernelProducts:
    """Kernel between two sets of rows for every scale and γ, groups in this order.

    Parameters
    ----------
    rows : Tensor, shape (m, p)
        About the same centre as `others`; best near 0.
    others : Tensor, shape (n, p)
    scale : Tensor, shape (b, p)
        What each group divides the columns by.
    kernel : KernelFunction
    """
    seen, known = rows / scale[:, None], others / scale[:, None]
    if kernel.is_linear:
        if others.shape[1] <= len(others):
            return LinearProducts(seen, known)
        # More columns than rows: with the identity for columns, products are those of the matrix.
        identity = torch.eye(len(others), dtype=known.dtype, device=known.device)
        return LinearProducts(seen @ known.mT, identity.expand(len(scale), -1, -1))
    gram = kernel.gram(seen, known).flatten(0, 1)
    gamma = None if kernel.gamma is None else kernel.gamma.to(gram.dtype).repeat(len(scale))
    products = None
    if kernel.slope_needs_products:
        products = (seen @ known.mT).repeat_interleave(kernel.n_values, dim=0)
    return GramProducts(gram, kernel, gamma, products)


def _groups(index: Tensor) -> Tensor:
    """Number of the group of each entry of `index`, (G, 1, 1)."""
    return torch.arange(len(index), device=index.device)[:, None, None]
