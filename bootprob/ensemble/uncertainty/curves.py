"""Kernels of the curved part of a composite posterior, on views of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

import torch
from torch import Tensor

from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.kernels.views import ColumnViews, View, ViewKernels

__all__ = [
    "FAMILIES",
    "MOST_MULTIPLIED",
    "OF_ALL_COLUMNS",
    "VIEWS",
    "Curve",
    "Landmarks",
    "Seen",
    "candidates",
]

FAMILIES = ("none", "rbf", "laplacian", "additive", "quadratic", "both", "product")
"""Kernels, by their number."""
OF_ALL_COLUMNS: tuple[View, ...] = ("columns", "scores", "levels")
"""Views with all columns, in their order, of which curves may look at few."""
VIEWS: tuple[View, ...] = get_args(View)
_MOST_KNOTS, _LEAST_KNOTS = 10, 4  # of a column
_LANDMARKS_OF_COLUMN = 48  # for each of few columns that a curve looks at
_RANK = 1e-6  # relative eigenvalue below which landmarks depend on each other
_ADDITIVE_GAMMAS = (1 / 8, 1 / 2, 2.0)
MOST_MULTIPLIED = 8
"""Columns of a product, which far from all rows would overflow."""
_MULTIPLIED_OF_ALL = 3  # the most, where a product is one of all columns

Seen = Mapping[View, Tensor]
"""Rows by the view of their columns."""


@dataclass(frozen=True, order=True)
class Curve:
    """A kernel of a view of the columns.

    "rbf" and "laplacian" are those of `bootprob_gpu`. "additive" is the mean over the columns of
    ``exp(−γ (x_j − z_j)²)``: functions are sums of smooth functions of one column (T. Hastie,
    R. Tibshirani, "Generalized Additive Models", 1990). "quadratic" is ``⟨x, z⟩² / u²``, where u²
    is the mean of ``‖x‖⁴`` over the landmarks: squares and products of two columns. "both" is the
    mean of these two. "product" is ``Π x_j Π z_j / u²``, with the mean square of ``Π x_j``: an
    interaction of the columns, and nothing else.

    Attributes
    ----------
    family, view : str
        In `FAMILIES` and `VIEWS`.
    gamma : float
        0 for "quadratic" and "product", which have none.
    columns : tuple of int
        Those that it looks at, of a view in `OF_ALL_COLUMNS`; empty for all.
    """

    family: str
    view: View
    gamma: float
    columns: tuple[int, ...] = ()

    def of(self, view_rows: Tensor) -> Tensor:
        """The columns that it looks at."""
        return view_rows[:, list(self.columns)] if self.columns else view_rows

    def among(self, columns: tuple[int, ...], p: int) -> Curve:
        """The same of some of p columns, whose distances are shorter."""
        gamma = self.gamma * (p / len(columns) if self.family in ("rbf", "laplacian") else 1.0)
        return replace(self, columns=columns, gamma=gamma)


@dataclass(frozen=True)
class _Known:
    """Landmarks as the curves of some columns of a view see them.

    Attributes
    ----------
    rows : Tensor, shape (l, q)
    n_knots : int
        Of each column.
    """

    rows: Tensor
    n_knots: int

    @cached_property
    def knots(self) -> Tensor:
        """Quantiles of each column, (q, k)."""
        device = self.rows.device
        shares = torch.linspace(0, 1, self.n_knots, dtype=torch.float64, device=device)
        return self.rows.quantile(shares, dim=0).mT.contiguous()

    @property
    def stride(self) -> int:
        """Every which row is enough for so few columns."""
        return max(1, len(self.rows) // (_LANDMARKS_OF_COLUMN * self.rows.shape[1]))

    @cached_property
    def size(self) -> float:
        """Root of the mean of ``‖x‖⁴``."""
        return float(self.rows.square().sum(1).square().mean().sqrt()) or 1.0

    @cached_property
    def size_of_product(self) -> float:
        """Root of the mean square of the product of the columns."""
        return float(self.rows.prod(1).square().mean().sqrt()) or 1.0


@dataclass(frozen=True)
class Landmarks:
    """Where curves are known: rows (l, p), and of additive ones knots of each column."""

    rows: Tensor
    views: ColumnViews
    _known: dict[tuple[View, tuple[int, ...]], _Known] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _bases: dict[Curve, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    def few(self, number: int) -> Landmarks:
        """No more than so many of them."""
        return replace(self, rows=self.rows[:: -(-len(self.rows) // number)].contiguous())

    def n_knots(self, n_columns: int) -> int:
        """Of each of so many columns; 0 where they are too many."""
        found = min(_MOST_KNOTS, len(self.rows) // max(1, n_columns))
        return found if found >= _LEAST_KNOTS else 0

    def seen(self, rows: Tensor, views: Iterable[View] | None = None) -> Seen:
        """Views of rows (m, p), all that there are by default."""
        wanted = self.views.known if views is None else views
        return {view: self.views.of(view, rows) for view in wanted}

    def values(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between rows and landmarks; (m, l).

        Of an additive kernel, those of single columns with quantiles of the landmarks'.
        """
        if curve.family == "both":
            return torch.cat([self.values(each, rows) for each in _single(curve)], dim=1)
        own, known = curve.of(rows[curve.view]), self.of(curve)
        if curve.family == "additive":
            apart = own.unsqueeze(2) - known.knots
            return (apart.square_() * -curve.gamma).exp_().flatten(1)
        if curve.family == "quadratic":
            enough = known.rows[: own.shape[1] * (own.shape[1] + 1)]  # twice the rank
            return (own @ (enough.mT / known.size)).square_()
        if curve.family == "product":
            return own.prod(1, keepdim=True).div_(known.size_of_product)
        return _kernel(curve, own).gram(own, self._near(curve))[0]

    def basis(self, curve: Curve) -> Tensor:
        """From values (m, l) to columns (m, r) whose inner products are the kernel; (l, r)."""
        if curve not in self._bases:
            values, vectors = torch.linalg.eigh(self.own_values(curve))
            kept = values > _RANK * values[-1]
            self._bases[curve] = vectors[:, kept] / values[kept].sqrt()
        return self._bases[curve]

    def own_values(self, curve: Curve) -> Tensor:
        """What `values` have to be divided by, as a matrix, to be the kernel; (l, l)."""
        if curve.family == "both":
            return 2 * torch.block_diag(*(self.own_values(each) for each in _single(curve)))
        if curve.family == "additive":
            knots = self.of(curve).knots
            apart = knots.unsqueeze(2) - knots.unsqueeze(1)
            return len(knots) * torch.block_diag(*(apart.square() * -curve.gamma).exp())
        if curve.family == "quadratic":
            values = self.values(curve, self.seen(self.rows, [curve.view]))
            return values[: values.shape[1]]
        if curve.family == "product":
            return self.rows.new_ones(1, 1)
        near = self._near(curve)
        return _kernel(curve, near).gram(near, near)[0]

    def diagonal(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between rows (m, p) and themselves, (m,)."""
        own = curve.of(rows[curve.view])
        if curve.family == "quadratic":
            return (own.square().sum(1) / self.of(curve).size).square()
        if curve.family == "product":
            return self.values(curve, rows).square_().flatten()
        if curve.family == "both":
            additive, quadratic = (self.diagonal(each, rows) for each in _single(curve))
            return (additive + quadratic) / 2
        return torch.ones_like(own[:, 0])

    def between(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between each two of rows (m, p), (m, m)."""
        if curve.family == "both":
            additive, quadratic = (self.between(each, rows) for each in _single(curve))
            return (additive + quadratic) / 2
        own = curve.of(rows[curve.view])
        if curve.family == "quadratic":
            return (own @ own.mT / self.of(curve).size).square()
        if curve.family == "product":
            values = self.values(curve, rows)
            return values @ values.mT
        if curve.family == "additive":
            kernel = Rbf(own.new_tensor([curve.gamma]))
            total = torch.zeros_like(own[:, :1] @ own[:, :1].mT)
            for column in own.mT:
                total += kernel.gram(column[:, None], column[:, None])[0]
            return total / own.shape[1]
        return _kernel(curve, own).gram(own, own)[0]

    def beside(self, curve: Curve, rows: Seen, others: Seen) -> Tensor:
        """Kernel between each of rows (m, p) and the one of others (m, p) in its place, (m,)."""
        if curve.family == "both":
            parts = (self.beside(each, rows, others) for each in _single(curve))
            return torch.stack(list(parts)).mean(0)
        own, other = curve.of(rows[curve.view]), curve.of(others[curve.view])
        if curve.family == "quadratic":
            return ((own * other).sum(1) / self.of(curve).size).square()
        if curve.family == "product":
            return (self.values(curve, rows) * self.values(curve, others)).flatten()
        apart = own - other
        if curve.family == "additive":
            return (apart.square_() * -curve.gamma).exp_().mean(1)
        distance = apart.abs() if curve.family == "laplacian" else apart.square()
        return (distance.sum(1) * -curve.gamma).exp()

    def stride(self, curve: Curve) -> int:
        """Every which landmark an "rbf" or "laplacian" curve is known on."""
        return self.of(curve).stride if curve.columns else 1

    def _near(self, curve: Curve) -> Tensor:
        return self.of(curve).rows[:: self.stride(curve)].contiguous()

    def of(self, curve: Curve) -> _Known:
        """What a curve sees of them."""
        key = curve.view, curve.columns
        if key not in self._known:
            rows = curve.of(self.views.of(curve.view, self.rows))
            self._known[key] = _Known(rows, self.n_knots(rows.shape[1]))
        return self._known[key]


def _kernel(curve: Curve, rows: Tensor) -> Rbf | Laplacian:
    gamma = rows.new_tensor([curve.gamma])
    return Rbf(gamma) if curve.family == "rbf" else Laplacian(gamma)


def _single(curve: Curve) -> list[Curve]:
    return [replace(curve, family=family) for family in ("additive", "quadratic")]


def candidates(kernels: ViewKernels, landmarks: Landmarks) -> list[Curve]:
    """The curved ones of a grid, and additive, quadratic and products on the same views."""
    found = [
        Curve(family, view, float(gamma))
        for family, view, gamma in zip(
            kernels.families, kernels.views, kernels.gamma.tolist(), strict=True
        )
        if family in FAMILIES
    ]
    for view in dict.fromkeys(view for view in kernels.views if not view.endswith("levels")):
        if landmarks.n_knots(landmarks.rows.shape[1]):
            found += [
                Curve(family, view, gamma)
                for family in ("additive", "both")
                for gamma in _ADDITIVE_GAMMAS
            ]
        found.append(Curve("quadratic", view, 0.0))
        if 1 < landmarks.rows.shape[1] <= _MULTIPLIED_OF_ALL:
            found.append(Curve("product", view, 0.0))
    return found
