"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["Linear"]


@dataclass(frozen=True, eq=False)
class Linear(KernelFunction):
    """``k(x, z) = ⟨x, z⟩``."""

    name: ClassVar[str] = "linear"
    is_linear: ClassVar[bool] = True
    ignores_offset: ClassVar[bool] = True  # there is a free intercept

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """The products themselves."""
        return products.unsqueeze(-3)
