"""Families of kernels for the curved part of a composite posterior, known on landmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.rbf import Rbf

__all__ = ["INTERACTION", "KERNELS", "Family", "Near"]


_LEAST_SIZE = 1e-6  # of a column, which says nothing otherwise


@dataclass(frozen=True)
class Near:
    """Landmarks as the curves of some columns of a view see them.

    Attributes
    ----------
    rows : Tensor, shape (l, q)
    n_knots : int
        Of each column.
    stride : int
        Every which row is enough.
    """

    rows: Tensor
    n_knots: int
    stride: int

    @cached_property
    def spread(self) -> Tensor:
        """Rows that are enough."""
        return self.rows[:: self.stride].contiguous()

    @cached_property
    def knots(self) -> Tensor:
        """Quantiles of each column, (q, k)."""
        device = self.rows.device
        shares = torch.linspace(0, 1, self.n_knots, dtype=torch.float64, device=device)
        return self.rows.quantile(shares, dim=0).mT.contiguous()

    @cached_property
    def size(self) -> float:
        """Root of the mean of ``‖x‖⁴``."""
        return float(self.rows.square().sum(1).square().mean().sqrt()) or 1.0

    @cached_property
    def size_of_product(self) -> float:
        """Root of the mean square of the product of the columns."""
        return float(self.rows.prod(1).square().mean().sqrt()) or 1.0

    @cached_property
    def size_of_columns(self) -> Tensor:
        """Root of the mean square of each column, (q,)."""
        size = self.rows.square().mean(0).sqrt()
        return torch.where(size > _LEAST_SIZE, size, 1.0)


class Family(ABC):
    """A kernel for each γ, between rows (m, q) as curves see them."""

    @abstractmethod
    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        """Kernel between rows and landmarks, or knots of their columns; (m, l)."""

    @abstractmethod
    def own_values(self, gamma: float, near: Near) -> Tensor:
        """What `values` have to be divided by, as a matrix, to be the kernel; (l, l)."""

    @abstractmethod
    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        """Kernel between each of the rows and the one of others (m, q) in its place, (m,)."""

    @abstractmethod
    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        """Kernel between each of the rows and each of others (k, q), (m, k)."""

    def diagonal(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        """Kernel between the rows and themselves, (m,)."""
        return self.beside(gamma, rows, rows, near)


@dataclass(frozen=True)
class _Stationary(Family):
    """``exp(−γ ‖x − z‖²)`` or ``exp(−γ ‖x − z‖₁)``."""

    kernel: type[Rbf | Laplacian]

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, near.spread)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return self._gram(gamma, near.spread, near.spread)

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return (self._distances(rows - others).sum(1) * -gamma).exp()

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, others)

    def diagonal(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return torch.ones_like(rows[:, 0])

    def of_column(self, gamma: float, apart: Tensor) -> Tensor:
        """The kernel of one column, of differences of any shape."""
        return (self._distances(apart) * -gamma).exp()

    def between_columns(self, gamma: float, column: Tensor, other: Tensor) -> Tensor:
        """The kernel of one column, between its values (m,) and others (l,)."""
        return self._gram(gamma, column[:, None], other[:, None])

    def _distances(self, apart: Tensor) -> Tensor:
        return apart.abs() if self.kernel is Laplacian else apart.square()

    def _gram(self, gamma: float, rows: Tensor, others: Tensor) -> Tensor:
        return self.kernel(rows.new_tensor([gamma])).gram(rows, others)[0]


_SMOOTH, _ROUGH = _Stationary(Rbf), _Stationary(Laplacian)


class _Additive(Family):
    """Mean over the columns of ``exp(−γ (x_j − z_j)²)``."""

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        apart = rows.unsqueeze(2) - near.knots
        return _SMOOTH.of_column(gamma, apart).flatten(1)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return len(near.knots) * torch.block_diag(*_of_knots(_SMOOTH, gamma, near))

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return _SMOOTH.of_column(gamma, rows - others).mean(1)

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        total = rows.new_zeros(len(rows), len(others))
        for columns in zip(rows.mT, others.mT, strict=True):
            total += _SMOOTH.between_columns(gamma, *columns)
        return total / rows.shape[1]


class _Linear(Family):
    """``γ ⟨x, z⟩``."""

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return rows

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return torch.eye(near.rows.shape[1], dtype=near.rows.dtype, device=near.rows.device) / gamma

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return gamma * (rows * others).sum(1)

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return gamma * (rows @ others.mT)


class _Quadratic(Family):
    """``⟨x, z⟩² / u²``, where u² is the mean of ``‖x‖⁴`` over the landmarks."""

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        enough = near.rows[: rows.shape[1] * (rows.shape[1] + 1)]  # twice the rank
        return (rows @ (enough.mT / near.size)).square_()

    def own_values(self, gamma: float, near: Near) -> Tensor:
        values = self.values(gamma, near.rows, near)
        return values[: values.shape[1]]

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return ((rows * others).sum(1) / near.size).square()

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return (rows @ others.mT / near.size).square()


class _Product(Family):
    """``Π x_j Π z_j / u²``, with the mean square u² of ``Π x_j``."""

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return rows.prod(1, keepdim=True).div_(near.size_of_product)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return near.rows.new_ones(1, 1)

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return (self.values(gamma, rows, near) * self.values(gamma, others, near)).flatten()

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return self.values(gamma, rows, near) @ self.values(gamma, others, near).mT


@dataclass(frozen=True)
class _Varying(Family):
    """Mean over ordered pairs of columns of ``x_i z_i k(x_j, z_j) / u_i²``.

    u_i² is the mean of ``x_i²``, and k what says how slopes vary.
    """

    of_slopes: _Stationary

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        slope, other = _pairs(rows)
        varying = self.of_slopes.of_column(gamma, rows.unsqueeze(2) - near.knots)[:, other]
        return varying.mul_((rows / near.size_of_columns)[:, slope].unsqueeze(2)).flatten(1)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        _, other = _pairs(near.rows)
        of_knots = _of_knots(self.of_slopes, gamma, near)
        return len(other) * torch.block_diag(*of_knots[other])

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        slope, other = _pairs(rows)
        varying = self.of_slopes.of_column(gamma, rows - others)[:, other]
        return (varying * (rows * others / near.size_of_columns.square())[:, slope]).mean(1)

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        sized, of_others = rows / near.size_of_columns, others / near.size_of_columns
        every, total = sized @ of_others.mT, rows.new_zeros(len(rows), len(others))
        for j in range(rows.shape[1]):  # all slopes but its own
            varying = self.of_slopes.between_columns(gamma, rows[:, j], others[:, j])
            total += varying.mul_(every - torch.outer(sized[:, j], of_others[:, j]))
        return total / (rows.shape[1] * (rows.shape[1] - 1))


class _Moderated(Family):
    """``exp(−γ (x_1 − z_1)²)`` times the mean over all other columns of ``x_i z_i / u_i²``.

    u_i² is the mean of ``x_i²``.
    """

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, near.spread, near)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return self._gram(gamma, near.spread, near.spread, near)

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        slopes = (rows * others / near.size_of_columns.square())[:, 1:].mean(1)
        return slopes * _SMOOTH.of_column(gamma, rows[:, 0] - others[:, 0])

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, others, near)

    def _gram(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        squares = near.size_of_columns[1:].square() * (rows.shape[1] - 1)
        slopes = rows[:, 1:] @ (others[:, 1:] / squares).mT
        return slopes.mul_(_SMOOTH.of_column(gamma, rows[:, :1] - others[:, 0]))


class _Interaction(Family):
    """Product over the columns of kernels ``exp(−γ |x_j − z_j|)`` that are centred on their knots.

    Without its part that is constant over the knots, a kernel has functions whose sum over these is
    0 (N. Durrande et al., J. Multivar. Anal. 115 (2013) 57–67), and a product of such kernels has
    those that no sum of functions of fewer columns says. Each has a mean of 1 on the diagonal.
    """

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, near.spread, near)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return self._gram(gamma, near.spread, near.spread, near)

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        of_rows, of_others = (self.constant(gamma, each, near) for each in (rows, others))
        found = _ROUGH.of_column(gamma, rows - others) - of_rows * of_others
        return (found / self.size(gamma, near)).prod(1)

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        return self._gram(gamma, rows, others, near)

    def constant(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        """Of each column, whose products are what is constant in its kernel, (m, q)."""
        of_knots = _ROUGH.of_column(gamma, rows.unsqueeze(2) - near.knots).mean(2)
        return of_knots / self.unit(gamma, near)

    def unit(self, gamma: float, near: Near) -> Tensor:
        """Root of the mean of each column's kernel between the knots, (q,)."""
        return _of_knots(_ROUGH, gamma, near).mean((1, 2)).sqrt()

    def size(self, gamma: float, near: Near) -> Tensor:
        """Mean over the knots of what is left of the diagonal, (q,)."""
        left = 1 - self.constant(gamma, near.knots.mT, near).square().mean(0)
        return left.clamp_min(_LEAST_SIZE)

    def _gram(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        of_rows, of_others = (self.constant(gamma, each, near) for each in (rows, others))
        found = rows.new_ones(len(rows), len(others))
        for k, size in enumerate(self.size(gamma, near).tolist()):
            of_column = _ROUGH.between_columns(gamma, rows[:, k], others[:, k])
            of_column -= torch.outer(of_rows[:, k], of_others[:, k])
            found *= of_column.div_(size)
        return found


class _Both(Family):
    """Mean of the additive and the quadratic one."""

    def values(self, gamma: float, rows: Tensor, near: Near) -> Tensor:
        return torch.cat([each.values(gamma, rows, near) for each in _MEAN_OF], dim=1)

    def own_values(self, gamma: float, near: Near) -> Tensor:
        return 2 * torch.block_diag(*(each.own_values(gamma, near) for each in _MEAN_OF))

    def beside(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        additive, quadratic = (each.beside(gamma, rows, others, near) for each in _MEAN_OF)
        return (additive + quadratic) / 2

    def between(self, gamma: float, rows: Tensor, others: Tensor, near: Near) -> Tensor:
        additive, quadratic = (each.between(gamma, rows, others, near) for each in _MEAN_OF)
        return (additive + quadratic) / 2


_MEAN_OF = _Additive(), _Quadratic()

INTERACTION = _Interaction()

KERNELS: Mapping[str, Family] = {
    "rbf": _SMOOTH,
    "laplacian": _ROUGH,
    "additive": _MEAN_OF[0],
    "quadratic": _MEAN_OF[1],
    "both": _Both(),
    "product": _Product(),
    "varying": _Varying(_SMOOTH),
    "varying roughly": _Varying(_ROUGH),
    "interaction": INTERACTION,
    "linear": _Linear(),
    "moderated": _Moderated(),
}
"""By the name of the family; files know them by their place."""


def _of_knots(kernel: _Stationary, gamma: float, near: Near) -> Tensor:
    """Kernel of each column between its knots, (q, k, k)."""
    return kernel.of_column(gamma, near.knots.unsqueeze(2) - near.knots.unsqueeze(1))


def _pairs(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Ordered pairs of different columns."""
    every = torch.arange(rows.shape[1], device=rows.device)
    first, second = torch.cartesian_prod(every, every).T
    return first[first != second], second[first != second]
