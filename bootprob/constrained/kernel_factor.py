"""Coordinates in which a machine of any kernel is a linear one.

With ``K = Φ Φᵀ`` over the rows of a problem, the machine of kernel K is the linear machine on the
rows of Φ: the same objective, the same margins. Fixing anchors, swaps and mixed-integer solvers
then need to know of linear machines only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import eigh, svd

from bootprob.runtime.arrays import Floats, Indices
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["KernelFactor"]


_TOLERANCE = 1e-10
"""Eigenvalues of K with a diagonal of 1 (squared singular values of linear rows) below this share
of the largest one are left out."""


@dataclass(frozen=True)
class KernelFactor:
    """A map of rows to columns Φ whose inner products are the kernel.

    For rows that the factor was made of, the inner products are K but for the eigenvalues left
    out, less than ``1e-10`` of the largest each. New rows are projected on the span of the old
    ones in the kernel's feature space, which is where every solution lies (representer theorem).

    Attributes
    ----------
    kernel : KernelFunction
        Of one γ.
    rows : ndarray, shape (n, p) or None
        What a kernel that is not linear is taken with.
    support : ndarray of int, shape (n,), or None
        Which of the training rows these are; None: all.
    projection : ndarray, shape (n, q) or (p, q), or None
        ``Φ(x) = k(x, rows) · projection`` or, linear, ``x · projection``; None leaves linear rows
        as they are.
    """

    kernel: KernelFunction
    rows: Floats | None
    support: Indices | None
    projection: Floats | None

    @classmethod
    def of(cls, kernel: KernelFunction, rows: Floats, support: Indices | None = None) -> Self:
        """Decompose the kernel between rows (n, p), all training rows if `support` says no other.

        Linear rows are left as they are or, with more columns than rows, turned into their span.
        """
        if kernel.is_linear:
            return cls(kernel, None, support, _span(rows))
        matrix = kernel.matrix(rows, rows, support)
        # Rows of any length count alike: a long one hides no other.
        length = np.sqrt(np.maximum(matrix.diagonal(), 0))
        length[length == 0] = 1.0
        cosines = (matrix / length[:, None] / length).clip(-1, 1)
        values, vectors = eigh(cosines)
        used = values > _TOLERANCE * values[-1]
        used[-1] = True
        root = np.sqrt(values[used]) if values[-1] > 0 else np.inf  # of nothing, nothing is made
        return cls(kernel, rows, support, vectors[:, used] / root / length[:, None])

    def transform(self, rows: Floats) -> Floats:
        """Map rows (m, p) to columns (m, q)."""
        if self.projection is None:
            return rows
        columns = np.empty((len(rows), self.projection.shape[1]))
        for block in row_blocks(len(rows), len(self.projection)):
            columns[block] = self.values(rows[block]) @ self.projection
        return columns

    def about(self, coef: Floats, n_columns: int) -> tuple[KernelFactor, Floats]:
        """A factor of fewer columns: those of the largest eigenvalues, and one machine.

        `coef` (q,) is the machine, which the new columns span too, and `n_columns` how many
        to keep besides it, at least 0. The columns of the factor are orthonormal directions
        of this one's; with it comes the machine on them.
        """
        assert self.projection is not None
        dropped = len(coef) - n_columns  # the last are the largest
        if dropped <= 0:
            return self, coef
        length = float(np.linalg.norm(coef[:dropped])) or 1.0
        rest = self.projection[:, :dropped] @ (coef[:dropped] / length)
        projection = np.column_stack([rest, self.projection[:, dropped:]])
        return replace(self, projection=projection), np.append(length, coef[dropped:])

    def values(self, rows: Floats) -> Floats:
        """What `transform` projects: the kernel with the stored rows, or the rows themselves."""
        return rows if self.rows is None else self.kernel.matrix(rows, self.rows, self.support)

    def push_forward(self, coef: Floats) -> Floats:
        """Coefficients (p,) of a linear machine as those on Φ, shape (q,); the reverse."""
        return coef if self.projection is None else coef @ self.projection

    def pull_back(self, coef: Floats) -> Floats:
        """Coefficients (q,) on Φ as those on what `values` gives, shape (n,) or (p,)."""
        return coef if self.projection is None else self.projection @ coef


def _span(rows: Floats) -> Floats | None:
    """Orthonormal directions (p, q) that span rows with more columns than there are rows."""
    n, p = rows.shape
    if p <= n:
        return None
    _, singular, right = svd(rows, full_matrices=False)
    used = singular > np.sqrt(_TOLERANCE) * max(singular[0], np.finfo(float).tiny)
    used[0] = True
    return right[used].T
