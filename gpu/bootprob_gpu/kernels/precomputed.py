"""Kernel values that the caller made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob_gpu.inputs import InputError
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["Precomputed"]

_SINGLE = float(np.finfo(np.float32).eps)  # matrices made in float32 will do


@dataclass(frozen=True, eq=False)
class Precomputed(KernelFunction):
    """A row is its kernel values with all training rows, these in their order."""

    name: ClassVar[str] = "precomputed"
    has_features: ClassVar[bool] = False

    def checked(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuse what is no Gram matrix: not square, not symmetric but for rounding, or indefinite.

        Duality, and with it every certificate, rests on ``sᵀ K s ≥ 0``. Cholesky's factorisation
        of the matrix, with as much on its diagonal as rounding to float32 may take away, tells.
        """
        n, p = X.shape
        if n != p:
            raise InputError(
                f"X has shape {X.shape}; with a precomputed kernel it must be the (n, n) matrix of "
                "kernel values of the training rows."
            )
        largest = np.abs(X).max()
        apart = max(np.abs(X[i, : i + 1] - X[: i + 1, i]).max() for i in range(n))
        if apart > 4 * _SINGLE * largest:
            raise InputError(
                f"The precomputed kernel is not symmetric (by {apart:.1e}); give (K + K.T) / 2."
            )
        if apart > 0:
            X = 0.5 * (X + X.T)
        shift = 4 * _SINGLE * np.sqrt(n) * largest
        matrix = torch.tensor(X, device="cpu")
        matrix.diagonal().add_(shift if shift > 0 else 1.0)
        if int(torch.linalg.cholesky_ex(matrix).info):
            raise InputError(
                "The precomputed kernel is indefinite (it has a negative eigenvalue), so there is "
                "no optimum to certify; clip its eigenvalues at 0, or add to its diagonal."
            )
        return X

    def check_float32(self, X: NDArray[np.float64], scale: NDArray[np.float64]) -> None:
        """Refuse values that float32 cannot sum."""
        largest = np.abs(X).max()
        if largest > torch.finfo(torch.float32).max / 2**24:
            raise InputError(
                f"The precomputed kernel reaches {largest:.1e}, too much for float32; divide it by "
                "a number, or use torch.float64."
            )

    def gram(self, rows: Tensor, others: Tensor) -> Tensor:
        """What the rows are; `others` are all training rows."""
        return rows.unsqueeze(-3)

    def diagonal(self, rows: Tensor) -> Tensor:
        """Of all training rows, in their order."""
        return rows.diagonal().unsqueeze(0)

    def of_products(self, products: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """Not made of products."""
        return self.gram(rows, others)

    def matrix(
        self,
        rows: NDArray[np.float64],
        known: NDArray[np.float64],
        support: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """Some of the columns, or all."""
        return rows if support is None else rows[:, support]

    def with_known(
        self, rows: Tensor, known: Tensor | None, support: Tensor, scale: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """Some of the columns."""
        return rows[:, support].to(dtype).unsqueeze(0)
