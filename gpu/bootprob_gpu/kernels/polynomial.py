"""The polynomial kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bootprob_gpu.inputs import LARGEST, InputError
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.rbf import scale_gamma

__all__ = ["Polynomial"]


@dataclass(frozen=True, eq=False)
class Polynomial(KernelFunction):
    """``k(x, z) = (γ ⟨x, z⟩ + coef0)^degree``, as in scikit-learn.

    Attributes
    ----------
    degree : int
        At least 1.
    coef0 : float
        At least 0: below, the kernel is not positive semidefinite.
    """

    gamma: Tensor
    degree: int = 3
    coef0: float = 0.0

    name: ClassVar[str] = "poly"
    parameters: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")
    gamma_rules: ClassVar[Mapping[str, Callable[[ArrayLike], float]]] = {"scale": scale_gamma}
    has_terms: ClassVar[bool] = True
    slope_needs_products: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole = isinstance(self.degree, (int, np.integer)) and not isinstance(self.degree, bool)
        if not whole or self.degree < 1:
            raise InputError(f"degree is {self.degree!r}; give a whole number, 1 or more.")
        if not isinstance(self.coef0, (Real, np.number)) or not 0 <= self.coef0 <= LARGEST:
            raise InputError(
                f"coef0 is {self.coef0!r}; give a finite number ≥ 0, as the kernel is not positive "
                "semidefinite with less."
            )

    @property
    def power(self) -> int:
        """The degree."""
        return self.degree

    def checked(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuse values that overflow when they are summed."""
        largest = self._largest(X, scale)
        if not largest <= LARGEST:
            raise InputError(
                f"The polynomial kernel reaches {largest:.1e}; standardise the columns, or give a "
                "smaller gamma or degree."
            )
        return X

    def check_float32(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> None:
        """Refuse values that float32 cannot hold and sum."""
        single = torch.finfo(torch.float32)
        norm, largest = _squared_norm(X, scale), self._largest(X, scale)
        if largest > single.max / 2**24 or norm > single.max / 4 or self.gamma.min() < single.tiny:
            raise InputError(
                f"Squared rows reach {norm:.1e} and the polynomial kernel {largest:.1e}, which is "
                "not for float32; standardise the columns, or use torch.float64."
            )

    def _largest(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> float:
        """No value is larger, by the inequality of Cauchy and Schwarz."""
        with np.errstate(over="ignore"):
            base = np.float64(self.gamma.max()) * _squared_norm(X, scale) + self.coef0
            return float(base**self.degree)

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """By the definition."""
        products = products.unsqueeze(-3)
        gammas = self.gamma.to(products.dtype)
        one = len(gammas) == 1  # in place: the products are not needed for another
        scaled = products.mul_(gammas[0]) if one else products * gammas[:, None, None]
        return scaled.add_(self.coef0).pow_(self.degree)

    def of_sums(self, sums: Tensor, gamma: float) -> Tensor:
        """From inner products."""
        return (gamma * sums).add_(self.coef0).pow_(self.degree)

    def slope(self, gram: Tensor, gamma: Tensor, products: Tensor | None) -> Tensor:
        """``dk / dγ = degree (γ ⟨x, z⟩ + coef0)^(degree − 1) ⟨x, z⟩``."""
        assert products is not None
        below = (gamma * products).add_(self.coef0).pow_(self.degree - 1)
        return below.mul_(products).mul_(self.degree)


def _squared_norm(X: NDArray[np.float64], scale: NDArray[np.float64]) -> np.float64:
    """No row, divided by any scale, has a larger one."""
    with np.errstate(over="ignore"):
        return np.square(np.abs(X).max(axis=0) / scale).sum(axis=-1).max()
