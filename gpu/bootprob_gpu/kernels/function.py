"""What is asked of a kernel, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bootprob_gpu.inputs import InputError

__all__ = ["KernelFunction"]

K = TypeVar("K", bound="KernelFunction")


@dataclass(frozen=True, eq=False)
class KernelFunction(ABC):
    """A kernel for every value of its γ; rows are as a replicate sees them, divided by its scale.

    A kernel is one module: a subclass that says what differs from what is here, and a line in
    `bootprob_gpu.kernels.named`.

    Attributes
    ----------
    gamma : Tensor of float64, shape (G,), or None
        Grid of γ; None for a kernel that has none.
    name : str
        As `Problem` takes it.
    parameters : tuple of str
        Arguments of `Problem` that belong to the kernel.
    is_linear : bool
        Scores are linear functions of the columns: models have coefficients in them.
    ignores_offset : bool
        To move all rows by the same vector changes no score, so they may be centred.
    has_unit_diagonal : bool
        ``k(x, x) = 1`` and ``0 ≤ k ≤ 1``: float32 holds its values well.
    has_features : bool
        Columns are features, which replicates may divide. Else they are kernel values with the
        training rows, and these need not be kept.
    has_terms : bool
        It is a function of a sum over the columns, and says so by `terms` and `of_sums`: a few
        rows are then scored for all replicates at once.
    slope_needs_products : bool
        `slope` asks for inner products.
    needs_products : bool
        `of_products` looks at inner products; else it is `gram`, and they need not be made.
    term_degree : int
        The power of the columns that `terms` grow with.
    gamma_rules : mapping of str to callable
        Rules by which γ follows rows (n, p), by name; "grid" goes by "median".
    """

    gamma: Tensor | None = None

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ()
    is_linear: ClassVar[bool] = False
    ignores_offset: ClassVar[bool] = False
    has_unit_diagonal: ClassVar[bool] = False
    has_features: ClassVar[bool] = True
    has_terms: ClassVar[bool] = False
    slope_needs_products: ClassVar[bool] = False
    needs_products: ClassVar[bool] = True
    term_degree: ClassVar[int] = 2
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {}

    @property
    def others(self) -> dict[str, Any]:
        """Parameters besides γ, by name."""
        return {name: getattr(self, name) for name in self.parameters if name != "gamma"}

    @property
    def power(self) -> int:
        """The power of squared columns that values may grow with; 1 by default."""
        return 1

    @property
    def n_values(self) -> int:
        """Values of γ, G; 1 where there is none."""
        return 1 if self.gamma is None else len(self.gamma)

    def take(self: K, values: Tensor | slice) -> K:
        """The same for some values of γ."""
        return self if self.gamma is None else replace(self, gamma=self.gamma[values])

    def with_gamma(self: K, gamma: Tensor) -> K:
        """The same for another grid of γ, shape (G,)."""
        if self.gamma is None:
            raise InputError(
                f"gamma was given with the {self.name} kernel, which has none; leave it out."
            )
        return replace(self, gamma=gamma)

    def to(self: K, device: torch.device) -> K:
        """The same on a device."""
        return self if self.gamma is None else replace(self, gamma=self.gamma.to(device))

    def checked(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Training rows (n, p) to go on with; scale (p,) or (B, p). Refuses what does not suit."""
        return X

    def check_float32(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> None:
        """Refuse training rows whose values float32 cannot hold."""
        deviation = np.abs(X - X.mean(axis=0)).max(axis=0)
        largest = np.square(deviation / scale).sum(axis=-1).max()
        if largest > torch.finfo(torch.float32).max / 4:
            raise InputError(
                f"Squared rows reach {largest:.1e}, beyond float32; standardise the columns or use "
                "torch.float64."
            )

    def gram(self, rows: Tensor, others: Tensor) -> Tensor:
        """Kernel between rows (..., m, p) and others (..., n, p), shape (..., G, m, n)."""
        return self.of_products(rows @ others.mT, rows, others)

    def diagonal(self, rows: Tensor) -> Tensor:
        """Kernel between each row (m, p) and itself, shape (G, m)."""
        alone = rows.unsqueeze(-2)
        return self.gram(alone, alone)[..., 0, 0].mT

    def largest(self, product: float) -> float:
        """The most that it may be of two rows with this inner product or a smaller one, or 1."""
        rows = torch.tensor([[product], [1.0]], dtype=torch.float64, device="cpu")
        return max(self.gram(rows[:1], rows[1:]).max().item(), 1.0)

    @abstractmethod
    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """The kernel from inner products (..., m, n), which may be overwritten; (..., G, m, n)."""

    def with_known(
        self, rows: Tensor, known: Tensor | None, support: Tensor, scale: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """Kernel between new rows and some of the training rows, shape (G, m, k).

        Parameters
        ----------
        rows : Tensor, shape (m, p)
        known : Tensor, shape (k, p), or None
            Training rows about the same point; None for a kernel that needs none.
        support : Tensor of int, shape (k,)
            Which of the training rows they are.
        scale : Tensor, shape (p,)
        dtype : torch.dtype
        """
        assert known is not None
        others = self.ready(self.seen(known, scale, dtype))
        return self.between(self.seen(rows, scale, dtype), others)

    @property
    def looks_at(self) -> tuple[str, ...]:
        """What `seen` makes of rows, by name, where not all kernels of a kind see the same."""
        return ()

    def seen(self, rows: Tensor, scale: Tensor, dtype: torch.dtype) -> Any:
        """What `between` compares of rows."""
        return (rows / scale).to(dtype)

    def ready(self, seen: Any) -> Any:
        """The same of others that many rows are compared with: what is made of it once."""
        return seen

    def between(self, rows: Any, others: Any) -> Tensor:
        """Kernel between rows as they are `seen` and others that are `ready`, shape (G, m, n)."""
        return self.gram(rows, others)

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Of each γ; those of one kind take the same `met`."""
        return (self.name,) * self.n_values

    def met(self, rows: Any, others: Any) -> Any:
        """What kernels of one kind between rows and others, as for `between`, are made of."""
        return rows, others

    def of_met(self, met: Any) -> Tensor:
        """As `between`, from what was `met` and is kept."""
        return self.between(*met)

    def matrix(
        self,
        rows: NDArray[np.float64],
        known: NDArray[np.float64],
        support: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """As `with_known`, for one γ and in float64, of rows that are divided; shape (m, k).

        Without `support` the `known` are all training rows.
        """
        support = np.arange(len(known)) if support is None else support
        seen, of, at = (torch.tensor(each, device="cpu") for each in (rows, known, support))
        one = torch.ones(rows.shape[1], dtype=torch.float64, device="cpu")
        return self.with_known(seen, of, at, one, torch.float64)[0].numpy()

    def terms(self, known: Tensor, row: Tensor, unit: Tensor, dtype: torch.dtype) -> Tensor:
        """What a row and training rows (n, p) have in common, column by column, shape (n, p).

        Sums of these, weighted by ``(unit / scale)^term_degree``, are what `of_sums` takes: so many
        scales cost one matrix product.
        """
        return (known / unit).to(dtype) * (row / unit).to(dtype)

    def of_sums(self, sums: Tensor, gamma: float) -> Tensor:
        """The kernel for one γ from sums of `terms`."""
        raise NotImplementedError

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """Derivative ``dk / dγ`` of kernel values, each with its γ and, if asked for, product."""
        raise InputError(f"The {self.name} kernel does not say how it changes with gamma.")
