"""Support vector machines whose rows each have a margin and a cost of their own.

Machine k minimises ``½ vᵀ Λ_k v + Σ_i u_ki max(0, t_ki − s_ki (vᵀ x_i + b))``. The batched engine
asks for the same margin of all rows, so these have solvers of their own: a batched interior point
for the linear kernel, and libsvm, by way of regression, for RBF.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["linear_machines", "machine_of_kernel"]


_MAX_ITER = 100
_NUMBERS_AT_ONCE = 2**21  # in the arrays of some machines, and among products of columns
_SHORTEN = 0.995  # of the way to the boundary
_PATIENCE = 5  # iterations without progress after which rounding has the last word,
_ENOUGH = 100  # if the tolerance is this near


def linear_machines(
    rows: Floats,
    sign: Floats,
    target: Floats,
    upper: Floats,
    penalty: Floats,
    *,
    tol: float = 1e-7,
) -> tuple[Floats, Floats]:
    """Train a batch of linear machines by Mehrotra's interior point.

    S. Mehrotra, SIAM J. Optimization 2 (1992) 575–601, on the primal and dual together. The normal
    matrices of all machines come from one matrix product, as in the engine.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Columns of about unit scale.
    sign : ndarray, shape (K, n)
        Side that each row is wanted on, −1 or +1; both occur among the rows that count.
    target : ndarray, shape (K, n)
        Margins asked for, t > 0.
    upper : ndarray, shape (K, n)
        Costs u ≥ 0; a row of cost 0 does not count.
    penalty : ndarray, shape (K, p)
        Diagonal of Λ, positive.
    tol : float, default 1e-7
        Relative duality gap.

    Returns
    -------
    coef : ndarray, shape (K, p)
    intercept : ndarray, shape (K,)

    Warns
    -----
    ConvergenceWarning
        If a machine does not get there.
    """
    n, p = rows.shape
    step = max(1, _NUMBERS_AT_ONCE // (n + (p + 1) ** 2))  # machines at a time
    parts = [
        _interior_point(rows, sign[k], target[k], upper[k], penalty[k], tol)
        for k in (slice(start, start + step) for start in range(0, len(sign), step))
    ]
    gap = np.concatenate([part[1] for part in parts])
    unsolved = gap > _ENOUGH * tol
    if unsolved.any():
        warnings.warn(
            f"{unsolved.sum()} of {len(gap)} machines were not solved to the tolerance; "
            f"the largest relative duality gap is {gap.max():.1e}. Standardise the columns, or "
            "drop the largest values of C.",
            ConvergenceWarning,
            stacklevel=3,
        )
    solution = np.concatenate([part[0] for part in parts])
    return solution[:, :-1], solution[:, -1]


def _interior_point(
    rows: Floats, sign: Floats, target: Floats, upper: Floats, penalty: Floats, tol: float
) -> tuple[Floats, Floats]:
    """Coefficients, intercept last, and relative residuals, of machines small enough together."""
    state = _State(rows, sign, target, upper, penalty)
    index = np.arange(len(sign))
    best, least = state.w.copy(), np.full(len(sign), np.inf)
    since = np.zeros(len(sign), dtype=np.intp)  # iterations without progress
    for _ in range(_MAX_ITER):
        residual = state.residual()
        better = residual < least[index]
        since[index] = np.where(better, 0, since[index] + 1)
        best[index[better]], least[index[better]] = state.w[better], residual[better]
        as_good_as_solved = (since[index] >= _PATIENCE) & (least[index] <= _ENOUGH * tol)
        working = (least[index] > tol) & ~as_good_as_solved
        if not working.any():
            break
        if not working.all():
            index = index[working]
            state.keep(working)
        state.advance()
    return best, least


_PER_MACHINE = (
    *("penalty", "sign", "target", "counts", "u", "pairs", "w", "a", "c", "z", "xi"),
    *("lost", "pull", "gap"),
)


class _State:
    """Iterates of a batch of machines.

    ``a`` and ``c = u − a`` are the multipliers of ``s f + ξ ≥ t``, whose slack is z, and of
    ``ξ ≥ 0``. Rows that do not count keep numbers that trouble nothing.
    """

    def __init__(
        self, rows: Floats, sign: Floats, target: Floats, upper: Floats, penalty: Floats
    ) -> None:
        K, n = sign.shape
        self.design = np.hstack([rows, np.ones((n, 1))])
        self.penalty = np.hstack([penalty, np.zeros((K, 1))])
        self.normal = _NormalMatrices(self.design)
        self.sign, self.target, self.counts = sign, target, upper > 0
        self.u = np.where(self.counts, upper, 1.0)
        self.pairs = 2 * self.counts.sum(axis=1)
        self.w = np.zeros((K, self.design.shape[1]))
        self.a, self.c = self.u / 2, self.u / 2
        self.z, self.xi = np.ones_like(self.u), target + 1.0

    def residual(self) -> Floats:
        """Largest relative gap or infeasibility, shape (K,); keeps what the step needs."""
        f = self.sign * (self.w @ self.design.T)
        a = np.where(self.counts, self.a, 0.0)
        self.lost = np.where(self.counts, f + self.xi - self.target - self.z, 0.0)
        self.pull = self.penalty * self.w - (self.sign * a) @ self.design
        self.gap = np.where(self.counts, self.a * self.z + self.c * self.xi, 0.0).sum(axis=1)
        cost = np.where(self.counts, self.u, 0.0)
        objective = 0.5 * (self.penalty * np.square(self.w)).sum(axis=1)
        objective += (cost * np.maximum(0.0, self.target - f)).sum(axis=1)
        floor = 1e-12 * (cost * self.target).sum(axis=1)  # no cost at all is no scale
        return np.max(
            [
                self.gap / np.maximum(objective, floor),
                np.abs(self.pull).max(axis=1) / (1e-3 + a.sum(axis=1)),
                np.abs(self.lost).max(axis=1),
            ],
            axis=0,
        )

    def keep(self, working: NDArray[np.bool_]) -> None:
        """Leave the other machines out from here on."""
        for name in _PER_MACHINE:
            setattr(self, name, getattr(self, name)[working])

    def advance(self) -> None:
        """One predictor–corrector step."""
        self.d = np.where(self.counts, 1.0 / (self.xi / self.c + self.z / self.a), 0.0)
        self.solve = self.normal.factored(self.d, self.penalty)
        mu = self.gap / self.pairs
        _, da, dz, dxi = self._direction(-self.a * self.z, -self.c * self.xi)
        length = self._longest(da, dz, dxi)
        after = (self.a + length * da) * (self.z + length * dz)
        after += (self.c - length * da) * (self.xi + length * dxi)
        after = np.where(self.counts, after, 0.0).sum(axis=1) / self.pairs
        level = (mu * np.clip(after / mu, 0.0, 1.0) ** 3)[:, None]
        dw, da, dz, dxi = self._direction(
            level - self.a * self.z - da * dz, level - self.c * self.xi + da * dxi
        )
        length = np.minimum(1.0, _SHORTEN * self._longest(da, dz, dxi))
        self.w += length * dw
        length = np.where(self.counts, length, 0.0)
        self.a += length * da
        self.c -= length * da
        self.z += length * dz
        self.xi += length * dxi

    def _direction(self, r_az: Floats, r_cxi: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Newton steps of w, a, z and ξ for these residuals of complementarity."""
        h = -self.lost - r_cxi / self.c + r_az / self.a
        dw = self.solve(-self.pull + (self.sign * self.d * h) @ self.design)
        da = self.d * (h - self.sign * (dw @ self.design.T))
        return dw, da, (r_az - self.z * da) / self.a, (r_cxi + self.xi * da) / self.c

    def _longest(self, da: Floats, dz: Floats, dxi: Floats) -> Floats:
        """Step up to 1 that keeps everything at 0 or above, shape (K, 1)."""
        longest = np.ones(len(self.w))
        for value, change in ((self.a, da), (self.c, -da), (self.z, dz), (self.xi, dxi)):
            falls = self.counts & (change < 0)
            ratio = np.where(falls, -value / np.where(falls, change, 1.0), 1.0)
            longest = np.minimum(longest, ratio.min(axis=1))
        return longest[:, None]


class _NormalMatrices:
    """``Λ + Xᵀ D X`` of all machines, and systems with them."""

    def __init__(self, design: Floats) -> None:
        q = design.shape[1]
        self._design = design
        self._corner = np.triu_indices(q)
        self._diagonal = np.arange(q)

    def factored(self, d: Floats, penalty: Floats) -> Callable[[Floats], Floats]:
        """Return what solves systems with these D, shape (K, n), and Λ, shape (K, q)."""
        K, q = penalty.shape
        matrix = np.zeros((K, q, q))
        i, j = self._corner
        packed = np.zeros((K, len(i)))
        for block in row_blocks(len(self._design), len(i), _NUMBERS_AT_ONCE):
            part = self._design[block]
            packed += d[:, block] @ (part[:, i] * part[:, j])
        matrix[:, i, j] = packed
        matrix[:, j, i] = packed
        matrix[:, self._diagonal, self._diagonal] += penalty
        # Jacobi scaling, and a ridge that rounding asks for and the next residual takes back.
        root = np.sqrt(matrix[:, self._diagonal, self._diagonal])
        root[root == 0] = 1.0
        matrix /= root[:, :, None] * root[:, None, :]
        matrix[:, self._diagonal, self._diagonal] += 1e-13

        def solve(right: Floats) -> Floats:
            return np.linalg.solve(matrix, (right / root)[..., None])[..., 0] / root

        return solve


def machine_of_kernel(
    kernel: Floats, sign: Floats, target: Floats, upper: Floats, *, tol: float = 1e-4
) -> tuple[Floats, float]:
    """Train one machine on a kernel matrix by ε-insensitive regression, exactly.

    With the value ``s_i (t_i + ε)`` regression loses ``max(0, t_i − s_i f_i)`` below its tube; the
    other side of the tube, ``s_i f_i > t_i + 2 ε``, is out of reach once ε is large.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
    sign, target, upper : ndarray, shape (n,)
        As for `linear_machines`, all positive costs.
    tol : float, default 1e-4
        Largest violation of the KKT conditions, as libsvm measures it.

    Returns
    -------
    dual_coef : ndarray, shape (n,)
    intercept : float
    """
    epsilon = 10.0
    while True:
        model = SVR(kernel="precomputed", C=1.0, epsilon=epsilon, tol=tol, cache_size=500)
        model.fit(kernel, sign * (target + epsilon), sample_weight=upper)
        dual_coef = np.zeros(len(kernel))
        dual_coef[model.support_] = model.dual_coef_[0]
        intercept = float(model.intercept_[0])
        reached = sign * (kernel @ dual_coef + intercept)
        if (reached <= target + epsilon).all():  # well inside the tube
            return dual_coef, intercept
        epsilon *= 10
