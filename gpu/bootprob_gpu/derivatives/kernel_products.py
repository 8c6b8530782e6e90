"""Products with the kernel matrices of a batch of models, which are not formed where they need not.

Models are laid out in G groups of M: those of a group share their kernel matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.kernels import cross_gram

__all__ = ["KernelProducts", "LinearProducts", "RbfProducts", "kernel_products"]


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
class RbfProducts:
    """The kernel ``exp(−γ ‖x − z‖²)`` between m rows and n others.

    Attributes
    ----------
    gram : Tensor, shape (G, m, n)
    gamma : Tensor, shape (G,)
    """

    gram: Tensor
    gamma: Tensor

    def times(self, s: Tensor) -> Tensor:
        """``K s`` for s of shape (G, M, n): shape (G, M, m)."""
        return s @ self.gram.mT

    def times_derivative(self, s: Tensor) -> Tensor:
        """``(dK / dγ) s``, shape (G, M, m): ``dK / dγ = −‖x − z‖² K = K log K / γ``."""
        derivative = torch.special.xlogy(self.gram, self.gram).div_(self.gamma[:, None, None])
        return s @ derivative.mT

    def adjoint(self, c: Tensor) -> Tensor:
        """``Kᵀ c`` for c of shape (G, M, m): shape (G, M, n)."""
        return c @ self.gram

    def block(self, index: Tensor) -> Tensor:
        """Entries between some rows and the same of the others, (G, M, f) to (G, M, f, f)."""
        group = _groups(index)
        return self.gram[group[..., None], index[..., :, None], index[..., None, :]]

    def take(self, groups: Tensor) -> RbfProducts:
        """The same for some of the groups."""
        return RbfProducts(self.gram[groups], self.gamma[groups])


KernelProducts = LinearProducts | RbfProducts


def kernel_products(
    rows: Tensor, others: Tensor, scale: Tensor, gamma: Tensor | None
) -> KernelProducts:
    """Kernel between two sets of rows for every scale and γ, groups in this order.

    Parameters
    ----------
    rows : Tensor, shape (m, p)
        About the same centre as `others`; best near 0.
    others : Tensor, shape (n, p)
    scale : Tensor, shape (b, p)
        What each group divides the columns by.
    gamma : Tensor, shape (n_gamma,), optional
        None for the linear kernel; else there are b · n_gamma groups.
    """
    seen, known = rows / scale[:, None], others / scale[:, None]
    if gamma is None:
        if others.shape[1] <= len(others):
            return LinearProducts(seen, known)
        # More columns than rows: with the identity for columns, products are those of the matrix.
        identity = torch.eye(len(others), dtype=known.dtype, device=known.device)
        return LinearProducts(seen @ known.mT, identity.expand(len(scale), -1, -1))
    gram = cross_gram(seen, known, gamma).flatten(0, 1)
    return RbfProducts(gram, gamma.to(gram.dtype).repeat(len(scale)))


def _groups(index: Tensor) -> Tensor:
    """Number of the group of each entry of `index`, (G, 1, 1)."""
    return torch.arange(len(index), device=index.device)[:, None, None]
