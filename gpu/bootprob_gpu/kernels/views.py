"""Several kernels at once, each of a view of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.rbf import Rbf

__all__ = ["RELEVANT", "ColumnViews", "View", "ViewKernels", "ViewSum"]

View = Literal[
    "columns",
    "scores",
    "levels",
    "relevant columns",
    "relevant scores",
    "relevant levels",
    "components",
]
RELEVANT = "relevant "
_Others = dict[tuple[str, View], Any]  # rows that others are compared with, of each family and view

_FAMILIES: dict[str, type[Linear | Rbf | Laplacian]] = {
    each.name: each for each in (Linear, Rbf, Laplacian)
}


@dataclass(frozen=True, eq=False)
class ColumnViews:
    """Columns themselves, increasing functions of each, scores and levels, and components.

    Attributes
    ----------
    knots, scores : Tensor of float64, shape (p, k)
        "scores" goes through these points of each column in straight lines, and is constant beyond
        the first and the last; knots of a column ascend, and the last may be repeated.
    thresholds : Tensor of float64, shape (p, q)
        "levels" is how many of these a column is above; they ascend.
    relevance : Tensor of float64, shape (p,), or None
        Not negative. "relevant columns" and so on are the same, times this, of columns where it is
        positive; None, or 0 everywhere, where there are none.
    components : Tensor of float64, shape (p, r), or None
        "components" are the columns times this; None where there are none.
    """

    knots: Tensor
    scores: Tensor
    thresholds: Tensor
    relevance: Tensor | None = None
    components: Tensor | None = None

    def __post_init__(self) -> None:
        p, k = self.knots.shape
        if k < 2 or self.scores.shape != (p, k) or len(self.thresholds) != p:
            raise InputError(
                f"knots, scores and thresholds have the shapes {tuple(self.knots.shape)}, "
                f"{tuple(self.scores.shape)} and {tuple(self.thresholds.shape)}; they are of the "
                "same columns, each with two knots or more."
            )
        if self.relevance is not None and self.relevance.shape != (p,):
            raise InputError(
                f"relevance has the shape {tuple(self.relevance.shape)}, and there are {p} columns."
            )
        if self.components is not None and len(self.components) != p:
            raise InputError(
                f"components are of {len(self.components)} columns, and there are {p}."
            )

    @property
    def known(self) -> tuple[View, ...]:
        """Views that there are."""
        relevant = self.relevance is not None and bool(self.relevance.any())
        return tuple(
            view
            for view in get_args(View)
            if (relevant or not view.startswith(RELEVANT))
            and (self.components is not None or view != "components")
        )

    def of(self, view: View, rows: Tensor) -> Tensor:
        """A view of rows (..., p) in float64, same shape, but of what is relevant or components."""
        if view.startswith(RELEVANT):
            assert self.relevance is not None
            counts = self.relevance > 0
            whole: View = view.removeprefix(RELEVANT)  # type: ignore[assignment]
            return self.among(counts).of(whole, rows[..., counts]) * self.relevance[counts]
        if view == "columns":
            return rows
        if view == "components":
            assert self.components is not None
            return rows @ self.components
        columns = rows.flatten(0, -2).mT.contiguous()  # (p, m)
        if view == "levels":
            found = torch.searchsorted(self.thresholds, columns).to(rows.dtype)
        else:
            found = self._scores(columns)
        return found.mT.reshape(rows.shape)

    def _scores(self, columns: Tensor) -> Tensor:
        after = torch.searchsorted(self.knots, columns).clamp_(1, self.knots.shape[1] - 1)
        left, right = (self.knots.gather(1, at) for at in (after - 1, after))
        low, high = (self.scores.gather(1, at) for at in (after - 1, after))
        width = right - left
        share = ((columns - left) / torch.where(width > 0, width, 1.0)).clamp_(0, 1)
        return torch.lerp(low, high, share)

    def among(self, columns: Tensor) -> ColumnViews:
        """Those of some columns alone, all of them relevant."""
        return ColumnViews(self.knots[columns], self.scores[columns], self.thresholds[columns])

    def arrays(self) -> dict[str, Tensor]:
        """All that there are, by name."""
        return {name: each for name, each in vars(self).items() if each is not None}

    def to(self, device: torch.device) -> ColumnViews:
        """The same on a device."""
        return ColumnViews(**{name: each.to(device) for name, each in self.arrays().items()})


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewKernels(KernelFunction):
    """A grid of kernels, linear, RBF and Laplacian, of views of the columns.

    Each stands where others have a value of γ. A linear one is ``γ ⟨x, z⟩``, so that C means the
    same to all.

    Attributes
    ----------
    gamma : Tensor of float64, shape (G,)
        γ of each, positive.
    families : tuple of {"linear", "rbf", "laplacian"}, length G
    views : tuple of str, length G
        In `View`.
    of_columns : ColumnViews
    """

    gamma: Tensor
    families: tuple[str, ...]
    views: tuple[View, ...]
    of_columns: ColumnViews

    name: ClassVar[str] = "auto"
    parameters: ClassVar[tuple[str, ...]] = ("gamma", "families", "views", "of_columns")
    needs_products: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not len(self.gamma) == len(self.families) == len(self.views):
            raise InputError(
                f"gamma, families and views are {len(self.gamma)}, {len(self.families)} and "
                f"{len(self.views)}; each kernel needs one of each."
            )
        families, views = (self.families, tuple(_FAMILIES)), (self.views, self.of_columns.known)
        for given, known in (families, views):
            for each in given:
                if each not in known:
                    raise InputError(f"{each!r} is none of {', '.join(known)}.")

    @property
    def power(self) -> int:
        """That of squares of products, which go with them in posteriors."""
        return 2

    @property
    def others(self) -> dict[str, Any]:
        """Names of families and views; what the views are is no parameter."""
        return {"families": list(self.families), "views": list(self.views)}

    @property
    def looks_at(self) -> tuple[View, ...]:
        """The views."""
        return tuple(dict.fromkeys(self.views))

    def take(self, values: Tensor | slice) -> ViewKernels:
        """Some of them."""
        every = torch.arange(len(self.gamma), device=self.gamma.device)
        which = every[values].tolist()
        return replace(
            self,
            gamma=self.gamma[values],
            families=tuple(self.families[at] for at in which),
            views=tuple(self.views[at] for at in which),
        )

    def summed(self, shares: Tensor) -> ViewSum:
        """Their sum, weighted with shares (G,)."""
        return ViewSum(
            **{each.name: getattr(self, each.name) for each in fields(self)}, shares=shares
        )

    def to(self, device: torch.device) -> ViewKernels:
        """The same on a device."""
        return replace(self, gamma=self.gamma.to(device), of_columns=self.of_columns.to(device))

    def checked(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuse rows of which these are no views."""
        if X.shape[1] != len(self.of_columns.knots):
            raise InputError(
                f"X has {X.shape[1]} columns, and the views are of {len(self.of_columns.knots)}."
            )
        return X

    def gram(self, rows: Tensor, others: Tensor) -> Tensor:
        """Each on its view of the rows (..., m, p) and others (..., n, p); (..., G, m, n)."""
        return self.between(
            self._seen(rows, rows.dtype), self.ready(self._seen(others, rows.dtype))
        )

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """As `gram`: products of the columns say nothing of other views."""
        return self.gram(rows, others)

    def largest(self, product: float) -> float:
        """As of every kernel; scores are bounded by what the training rows have."""
        bounded = self.of_columns.scores.abs().amax(1).square().sum().item()
        if (components := self.of_columns.components) is not None:
            product *= max(components.square().sum().item(), 1.0)
        return max(self.gamma.max().item() * max(product, bounded), 1.0)

    def seen(self, rows: Tensor, scale: Tensor, dtype: torch.dtype) -> dict[View, Tensor]:
        """The views of rows, taken in float64, whatever the precision of values."""
        return self._seen(rows / scale, dtype)

    def ready(self, seen: Mapping[View, Tensor]) -> _Others:
        """The views as the families want them."""
        return {
            (family, view): _FAMILIES[family](self.gamma).ready(seen[view])
            for family, view in set(zip(self.families, self.views, strict=True))
        }

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """As of the family of each, one after the other in a batch (b · G, m, n)."""
        G = len(self.gamma)
        found = torch.empty_like(gram)
        for g, family in enumerate(self.families):
            own = gram[g::G]
            if family == "linear":
                found[g::G] = own / gamma[g::G]
            else:
                of_one = _FAMILIES[family](self.gamma[g : g + 1])
                found[g::G] = of_one.slope(own, gamma[g::G], None)
        return found

    def _seen(self, rows: Tensor, dtype: torch.dtype) -> dict[View, Tensor]:
        rows = rows.double()
        return {view: self.of_columns.of(view, rows).to(dtype) for view in self.looks_at}

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Family and view."""
        return tuple(zip(self.families, self.views, strict=True))

    def met(self, rows: Mapping[View, Tensor], others: _Others) -> Any:
        """What one family on one view is made of: products or distances."""
        (family, view), known = self.kinds[0], others[self.kinds[0]]
        if family == "linear":
            return rows[view] @ known.mT
        return _FAMILIES[family](self.gamma).met(rows[view], known)

    def of_met(self, met: Any) -> Tensor:
        """From these, of kernels of one kind."""
        if self.families[0] == "linear":
            return self.gamma.to(met.dtype)[:, None, None] * met
        return _FAMILIES[self.families[0]](self.gamma).of_met(met)

    def between(self, rows: Mapping[View, Tensor], others: _Others) -> Tensor:
        """As `gram`, of rows whose views were taken already."""
        parts, start = [], 0
        for (family, view), same in groupby(zip(self.families, self.views, strict=True)):
            end = start + len(list(same))
            gamma, known = self.gamma[start:end], others[family, view]
            parts.append(_of_family(family, gamma, rows[view], known))
            start = end
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-3)


def _of_family(family: str, gamma: Tensor, rows: Tensor, others: Any) -> Tensor:
    """Kernels of some γ (G,) between views of rows and others made ready, (..., G, m, n)."""
    if family == "linear":
        return gamma.to(rows.dtype)[:, None, None] * (rows @ others.mT).unsqueeze(-3)
    return _FAMILIES[family](gamma).between(rows, others)


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewSum(ViewKernels):
    """The weighted sum of kernels of views, which is one kernel.

    Attributes
    ----------
    shares : Tensor of float64, shape (G,)
        Of each of the kernels, not negative.
    """

    shares: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shares.shape != self.gamma.shape or bool((self.shares < 0).any()):
            raise InputError("shares are not of the kernels, or less than 0.")

    @property
    def n_values(self) -> int:
        """One: the sum."""
        return 1

    @property
    def kinds(self) -> tuple[Any, ...]:
        """One."""
        return (self.name,)

    def met(self, rows: Mapping[View, Tensor], others: _Others) -> Any:
        """All."""
        return rows, others

    def of_met(self, met: Any) -> Tensor:
        """As `between`."""
        return self.between(*met)

    def take(self, values: Tensor | slice) -> ViewSum:
        """The same."""
        return self

    def to(self, device: torch.device) -> ViewSum:
        """The same on a device."""
        return replace(
            self,
            gamma=self.gamma.to(device),
            of_columns=self.of_columns.to(device),
            shares=self.shares.to(device),
        )

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """Of sums the slope is not known."""
        raise InputError("A sum of kernels does not say how it changes with gamma.")

    def between(self, rows: Mapping[View, Tensor], others: _Others) -> Tensor:
        """The sum of those of each."""
        found: Tensor | None = None
        for family, view, gamma, share in zip(
            self.families, self.views, self.gamma, self.shares, strict=True
        ):
            part = _of_family(family, gamma[None], rows[view], others[family, view])
            part = part.mul_(share.to(part.dtype))
            found = part if found is None else found.add_(part)
        assert found is not None
        return found
