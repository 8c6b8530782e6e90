"""Kernels of the curved part of a composite posterior, on views of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.curve_families import KERNELS, Near
from bootprob_gpu.kernels.views import ColumnViews, View, ViewKernels

__all__ = [
    "FAMILIES",
    "MODERATED",
    "N_COLUMNS",
    "OF_ALL_COLUMNS",
    "OF_KNOTS",
    "VARYING",
    "VIEWS",
    "Curve",
    "Landmarks",
    "Seen",
    "candidates",
    "of_few_columns",
]

FAMILIES = ("none", *KERNELS)
"""Kernels, by their number."""
OF_ALL_COLUMNS: tuple[View, ...] = ("columns", "scores", "levels")
"""Views with all columns, in their order, of which curves may look at few."""
VIEWS: tuple[View, ...] = get_args(View)
_MOST_KNOTS, _LEAST_KNOTS = 10, 4  # of a column
_LANDMARKS_OF_COLUMN = 48  # for each of few columns that a curve looks at
_RANK = 1e-6  # relative eigenvalue below which landmarks depend on each other
_ADDITIVE_GAMMAS = (1 / 8, 1 / 2, 2.0)
MODERATED = "moderated"
"""The family of one column with which the slopes of all others vary."""
N_COLUMNS = {
    "product": (2, 8),
    "varying": (2, 4),
    "varying roughly": (2, 4),
    "interaction": (2, 4),
    MODERATED: (1, 1),
}
"""The fewest and the most columns of some families: products of many would overflow far from all
rows, and of slopes that vary each pair of columns has knots of its own."""
VARYING = ("varying", "varying roughly")
"""Families of slopes that vary."""
OF_KNOTS = (*VARYING, "interaction")
"""Families that need knots in each column."""
_ROUGH = ("laplacian", "varying roughly", "interaction")
_KNOTS_GAMMA, _MODERATED_GAMMAS = 1 / 2, (1 / 8, 1 / 2)
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
    interaction of the columns, and nothing else. "varying" is the mean over ordered pairs of
    columns of ``x_i z_i exp(−γ (x_j − z_j)²) / u_i²``: slopes that vary smoothly with another
    column (T. Hastie, R. Tibshirani, J. R. Stat. Soc. B 55 (1993) 757–796); "varying roughly" has
    ``exp(−γ |x_j − z_j|)`` instead, for slopes that may jump. "interaction" is the product of these
    last, each centred: what may jump with all of the columns together, and nothing of fewer.
    "moderated" is the mean over all columns but one of ``x_i z_i exp(−γ (x_j − z_j)²) / u_i²``,
    which is the j of its `columns`: all slopes vary with it, as where it says how much noise there
    is. "linear" is ``γ ⟨x, z⟩``, of components, that count as much where they hardly vary in the
    columns; what is linear in other views is no curve.

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

    @property
    def rough(self) -> bool:
        """Whether it may jump."""
        return self.family in _ROUGH

    def of(self, view_rows: Tensor) -> Tensor:
        """The columns that it looks at."""
        order = self.order(view_rows.shape[1])
        return view_rows[:, list(order)] if order else view_rows

    def order(self, p: int) -> tuple[int, ...]:
        """Which of p columns it looks at, and in which order; empty for all as they are."""
        if self.family != MODERATED:
            return self.columns
        return *self.columns, *(j for j in range(p) if j not in self.columns)

    def among(self, columns: tuple[int, ...], p: int) -> Curve:
        """The same of some of p columns, whose distances are shorter."""
        gamma = self.gamma * (p / len(columns) if self.family in ("rbf", "laplacian") else 1.0)
        return replace(self, columns=columns, gamma=gamma)


@dataclass(frozen=True)
class Landmarks:
    """Where curves are known: rows (l, p), or knots of each column."""

    rows: Tensor
    views: ColumnViews
    _near: dict[tuple[View, bool, tuple[int, ...]], Near] = field(
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
        """Kernel between rows and landmarks, or what it is made of; (m, l)."""
        return KERNELS[curve.family].values(curve.gamma, curve.of(rows[curve.view]), self.of(curve))

    def basis(self, curve: Curve) -> Tensor:
        """From values (m, l) to columns (m, r) whose inner products are the kernel; (l, r)."""
        if curve not in self._bases:
            own = KERNELS[curve.family].own_values(curve.gamma, self.of(curve))
            values, vectors = torch.linalg.eigh(own)
            kept = values > _RANK * values[-1]
            self._bases[curve] = vectors[:, kept] / values[kept].sqrt()
        return self._bases[curve]

    def diagonal(self, curve: Curve, rows: Seen) -> Tensor:
        """Kernel between rows (m, p) and themselves, (m,)."""
        own = curve.of(rows[curve.view])
        return KERNELS[curve.family].diagonal(curve.gamma, own, self.of(curve))

    def between(self, curve: Curve, rows: Seen, others: Seen) -> Tensor:
        """Kernel between each of rows (m, p) and each of others (k, p), (m, k)."""
        own, other = curve.of(rows[curve.view]), curve.of(others[curve.view])
        return KERNELS[curve.family].between(curve.gamma, own, other, self.of(curve))

    def beside(self, curve: Curve, rows: Seen, others: Seen) -> Tensor:
        """Kernel between each of rows (m, p) and the one of others (m, p) in its place, (m,)."""
        own, other = curve.of(rows[curve.view]), curve.of(others[curve.view])
        return KERNELS[curve.family].beside(curve.gamma, own, other, self.of(curve))

    def of(self, curve: Curve) -> Near:
        """What a curve sees of them."""
        key = curve.view, curve.family == MODERATED, curve.columns
        if key not in self._near:
            rows = curve.of(self.views.of(curve.view, self.rows))
            of_few = max(1, len(rows) // (_LANDMARKS_OF_COLUMN * rows.shape[1]))
            stride = of_few if curve.columns else 1
            self._near[key] = Near(rows, self.n_knots(rows.shape[1]), stride)
        return self._near[key]


def of_few_columns(curves: Iterable[Curve]) -> list[Curve]:
    """Those of all columns that may look at few, and others that look at no more than few."""
    every = [each for each in curves if each.view in OF_ALL_COLUMNS]
    smooth = list(dict.fromkeys(each.view for each in every if each.view != "levels"))
    products = [Curve("product", view, 0.0) for view in smooth]
    of_knots = [Curve(family, view, _KNOTS_GAMMA) for family in OF_KNOTS for view in smooth]
    moderated = [Curve(MODERATED, view, gamma) for view in smooth for gamma in _MODERATED_GAMMAS]
    return list(dict.fromkeys([*every, *products, *of_knots, *moderated]))


def candidates(kernels: ViewKernels, landmarks: Landmarks) -> list[Curve]:
    """The curved ones of a grid, and additive, quadratic and products on the same views."""
    found = [
        Curve(family, view, float(gamma))
        for family, view, gamma in zip(
            kernels.families, kernels.views, kernels.gamma.tolist(), strict=True
        )
        if family in FAMILIES and (family != "linear" or view == "components")
    ]
    for view in dict.fromkeys(view for view in kernels.views if not view.endswith("levels")):
        of_columns = view != "components"  # which may be turned into each other
        if of_columns and landmarks.n_knots(landmarks.rows.shape[1]):
            found += [
                Curve(family, view, gamma)
                for family in ("additive", "both")
                for gamma in _ADDITIVE_GAMMAS
            ]
        found.append(Curve("quadratic", view, 0.0))
        if of_columns and 1 < landmarks.rows.shape[1] <= _MULTIPLIED_OF_ALL:
            found.append(Curve("product", view, 0.0))
    return found
