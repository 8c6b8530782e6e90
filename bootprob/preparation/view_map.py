"""A map to columns whose inner products come close to a sum of kernels of views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.views import ViewSum

__all__ = ["ViewMap"]

_NUMBERS_AT_ONCE = 2**21  # mapped numbers made at a time, 16 MiB
_RANK = 1e-10  # relative eigenvalue below which landmarks depend on each other


@dataclass(frozen=True)
class ViewMap:
    """Nyström's map of rows to D columns (C. Williams, M. Seeger, NIPS 13 (2001) 682–688).

    Attributes
    ----------
    sum_of_kernels : ViewSum
    landmarks : ndarray, shape (D, p)
        Standardised rows of the table.
    normalization : ndarray, shape (D, D)
        The inverse square root of their kernel.
    """

    sum_of_kernels: ViewSum
    landmarks: Floats
    normalization: Floats

    @classmethod
    def fit(cls, sum_of_kernels: ViewSum, landmarks: Floats) -> Self:
        """The map of these landmarks."""
        unmapped = cls(sum_of_kernels, landmarks, np.empty((0, 0)))
        values, vectors = np.linalg.eigh(unmapped.kernel(landmarks, landmarks))
        known = values > _RANK * values[-1]
        basis = vectors[:, known]
        return replace(unmapped, normalization=basis / np.sqrt(values[known]) @ basis.T)

    @classmethod
    def restore(cls, sum_of_kernels: ViewSum, arrays: Mapping[str, Floats]) -> Self:
        """The map that these `arrays` are of."""
        return cls(sum_of_kernels, arrays["landmarks"], arrays["normalization"])

    @property
    def arrays(self) -> dict[str, Floats]:
        """What it is made of, with γ and the share of each kernel in the sum."""
        kernels = self.sum_of_kernels
        return {
            "landmarks": self.landmarks,
            "normalization": self.normalization,
            "gamma": kernels.gamma.numpy(),
            "shares": kernels.shares.numpy(),
        }

    @property
    def n_components(self) -> int:
        """Columns that a row is mapped to, D."""
        return len(self.landmarks)

    def kernel(self, rows: Floats, others: Floats) -> Floats:
        """The sum of kernels between standardised rows (m, p) and others (n, p), shape (m, n)."""
        found: Floats = self.sum_of_kernels.gram(_tensor(rows), _tensor(others))[0].numpy()
        return found

    def transform(self, rows: Floats) -> Floats:
        """Map standardised rows (m, p) to columns (m, D)."""
        mapped = np.empty((len(rows), self.n_components))
        for block in row_blocks(*mapped.shape, _NUMBERS_AT_ONCE):
            mapped[block] = self.kernel(rows[block], self.landmarks) @ self.normalization
        return mapped


def _tensor(rows: Floats) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows))
