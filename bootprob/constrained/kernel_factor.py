"""Coordinates in which a machine of any kernel is a linear one.

With ``K = Φ Φᵀ`` over the rows of a problem, the machine of kernel K is the linear machine on the
rows of Φ: the same objective, the same margins. Fixing anchors, swaps and mixed-integer solvers
then need to know of linear machines only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, svd
from scipy.spatial.distance import cdist

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["KernelFactor"]


_TOLERANCE = 1e-10
"""Eigenvalues of K (squared singular values of linear rows) below this share of the largest one
are left out."""


@dataclass(frozen=True)
class KernelFactor:
    """A map of rows to columns Φ whose inner products are the kernel.

    For rows that the factor was made of, the inner products are K but for the eigenvalues left
    out, less than ``1e-10`` of the largest each. New rows are projected on the span of the old
    ones in the kernel's feature space, which is where every solution lies (representer theorem).

    Attributes
    ----------
    gamma : float or None
        γ of ``exp(−γ ‖x − z‖²)``; None for the linear kernel.
    rows : ndarray, shape (n, p) or None
        What the RBF kernel is taken with.
    projection : ndarray, shape (n, q) or (p, q), or None
        ``Φ(x) = k(x, rows) · projection`` or, linear, ``x · projection``; None leaves linear rows
        as they are.
    """

    gamma: float | None
    rows: Floats | None
    projection: Floats | None

    @classmethod
    def linear(cls, rows: Floats) -> KernelFactor:
        """Leave rows as they are, or, with more columns than rows, turn them into their span."""
        n, p = rows.shape
        if p <= n:
            return cls(None, None, None)
        _, singular, right = svd(rows, full_matrices=False)
        used = singular > np.sqrt(_TOLERANCE) * max(singular[0], np.finfo(float).tiny)
        used[0] = True
        return cls(None, None, right[used].T)

    @classmethod
    def rbf(cls, rows: Floats, gamma: float) -> KernelFactor:
        """Eigendecomposition of the kernel matrix of rows, shape (n, p)."""
        values, vectors = eigh(np.exp(-gamma * cdist(rows, rows, "sqeuclidean")))
        used = values > _TOLERANCE * values[-1]
        return cls(gamma, rows, vectors[:, used] / np.sqrt(values[used]))

    def transform(self, rows: Floats) -> Floats:
        """Map rows (m, p) to columns (m, q)."""
        if self.projection is None:
            return rows
        columns = np.empty((len(rows), self.projection.shape[1]))
        for block in row_blocks(len(rows), len(self.projection)):
            columns[block] = self.kernel(rows[block]) @ self.projection
        return columns

    def about(self, coef: Floats, n_columns: int) -> tuple[KernelFactor, Floats]:
        """A factor of fewer columns: those of the largest eigenvalues, and one machine.

        Parameters
        ----------
        coef : ndarray, shape (q,)
            The machine, which the new columns span too.
        n_columns : int
            How many to keep besides it, at least 0.

        Returns
        -------
        factor : KernelFactor
            Its columns are orthonormal directions of this one's.
        coef : ndarray
            The machine on them.
        """
        assert self.projection is not None
        dropped = len(coef) - n_columns  # the last are the largest
        if dropped <= 0:
            return self, coef
        length = float(np.linalg.norm(coef[:dropped])) or 1.0
        rest = self.projection[:, :dropped] @ (coef[:dropped] / length)
        projection = np.column_stack([rest, self.projection[:, dropped:]])
        return replace(self, projection=projection), np.append(length, coef[dropped:])

    def kernel(self, rows: Floats) -> Floats:
        """What `transform` projects: the kernel with the stored rows, or the rows themselves."""
        if self.gamma is None:
            return rows
        assert self.rows is not None
        return np.exp(-self.gamma * cdist(rows, self.rows, "sqeuclidean"))

    def push_forward(self, coef: Floats) -> Floats:
        """Coefficients (p,) of a linear machine as those on Φ, shape (q,); the reverse."""
        return coef if self.projection is None else coef @ self.projection

    def pull_back(self, coef: Floats) -> Floats:
        """Coefficients (q,) on Φ as those on what `kernel` gives, shape (n,) or (p,)."""
        return coef if self.projection is None else self.projection @ coef
