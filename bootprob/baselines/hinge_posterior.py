"""The posterior of Sollich's model: draws by Gibbs sampling, and its evidence by chaining.

The score of a row is ``θ = v·z + b`` with columns z such that ``z·z'`` is the kernel, a prior
``v ~ N(0, A · I)``, ``b ~ N(0, B²)``, and the likelihood ``κ(C) exp(−C max(0, 1 − y θ))`` with
``κ(C) = 1 / (1 + exp(−2 C))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from bootprob.baselines.single_machine import kernel_of
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["INTERCEPT_SD", "PriorColumns", "chained_evidence", "gibbs", "log_kappa"]


INTERCEPT_SD = 10.0
"""B, in units of the margin: wide enough to leave the intercept free, and a proper prior."""

_NUMBERS_AT_ONCE = 2**24  # products of pairs of columns
_FEW_CHAINS = 8
_RANK = 1e-10  # relative eigenvalue of the kernel matrix below which there is but rounding
_NEAR_KINK = 1e-6  # distance to the margin below which the mixing weights grow no further
_LOWEST_RUNG = 1 / 16  # C · n of the first step away from C = 0, where the loss is known


def log_kappa(C: Floats | float) -> Floats:
    """``ln κ(C) = −ln(1 + exp(−2 C))``, which keeps ``Q(+1 | θ) + Q(−1 | θ) ≤ 1``."""
    return -np.logaddexp(0.0, -2.0 * np.asarray(C, dtype=np.float64))


@dataclass(frozen=True)
class PriorColumns:
    """Columns whose inner products are the kernel, scaled to mean 1 on the diagonal.

    Attributes
    ----------
    columns : ndarray, shape (n, q)
        Of the training rows.
    to_columns : ndarray, shape (n, q), or None
        Takes kernels with the training rows there; None where the columns are the rows' own.
    mean_square : float
        What the kernel was divided by.
    """

    columns: Floats
    to_columns: Floats | None
    mean_square: float

    @classmethod
    def of(cls, rows: Floats, gamma: float | None) -> Self:
        """Columns of training rows; γ None is the linear kernel."""
        n, p = rows.shape
        if gamma is None and p <= n:
            mean_square = _positive(np.square(rows).sum() / n)
            return cls(rows / np.sqrt(mean_square), None, mean_square)
        kernel = kernel_of(rows, rows, gamma)
        mean_square = _positive(float(np.trace(kernel)) / n)
        values, vectors = np.linalg.eigh(kernel / mean_square)
        used = values > _RANK * values[-1]
        if not used.any():  # rows that are all equal, under the linear kernel
            return cls(np.zeros((n, 1)), np.zeros((n, 1)), mean_square)
        root = np.sqrt(values[used])
        return cls(vectors[:, used] * root, vectors[:, used] / root, mean_square)

    def leading(self, most: int) -> Floats:
        """Principal columns, shape (n, at most `most`): the kernel, but for its small part."""
        if self.columns.shape[1] <= most:
            return self.columns
        left, values, _ = np.linalg.svd(self.columns, full_matrices=False)
        return left[:, :most] * values[:most]

    def of_new(self, rows: Floats, training: Floats, gamma: float | None) -> tuple[Floats, Floats]:
        """Columns of new rows, and the part of ``k(x, x)`` that is outside their span.

        Returns
        -------
        columns : ndarray, shape (m, q)
        residual : ndarray, shape (m,)
            The prior variance, over the amplitude, that the training rows say nothing of.
        """
        if self.to_columns is None:
            return rows / np.sqrt(self.mean_square), np.zeros(len(rows))
        columns = np.empty((len(rows), self.to_columns.shape[1]))
        for block in row_blocks(len(rows), len(training)):
            kernel = kernel_of(rows[block], training, gamma) / self.mean_square
            columns[block] = kernel @ self.to_columns
        own = np.square(rows).sum(axis=1) if gamma is None else np.ones(len(rows))
        residual = own / self.mean_square - np.square(columns).sum(axis=1)
        return columns, np.where(residual > _RANK * own, residual, 0.0)


def _positive(value: float) -> float:
    return float(value) if value > 0 else 1.0


def gibbs(
    columns: Floats,
    label: Floats,
    C: Floats,
    amplitude: Floats,
    coef: Floats,
    rng: np.random.Generator,
) -> Iterator[tuple[Floats, Floats]]:
    """Draw from the posteriors of several pairs (C, A) at once, for ever.

    The hinge is a mixture of normals: N. Polson, S. Scott, "Data augmentation for support vector
    machines", Bayesian Analysis 6 (2011) 1–24. With ``u = 1 − y θ``,
    ``exp(−C max(0, u)) = ∫ (2πλ)^−½ exp(−(λ + C u/2)² / 2λ) dλ``, so that ``1/λ`` is inverse
    Gaussian with mean ``2 / (C |u|)`` given θ, and v, b are normal given λ.

    Parameters
    ----------
    columns : ndarray, shape (n, q)
    label : ndarray, shape (n,)
        −1 or +1.
    C, amplitude : ndarray, shape (G,)
    coef : ndarray, shape (G, q + 1)
        Where the chains start: v, and b last.

    Yields
    ------
    coef : ndarray, shape (G, q + 1)
    loss : ndarray, shape (G,)
        Summed hinge losses there.
    """
    n, q = columns.shape
    signed = label[:, None] * np.hstack([columns, np.ones((n, 1))])
    i, j = np.triu_indices(q + 1)
    diagonal = np.arange(q + 1)
    precision = np.empty((len(C), q + 1))
    precision[:, :q], precision[:, q] = 1 / amplitude[:, None], INTERCEPT_SD**-2
    pairs = signed[:, i] * signed[:, j] if n * len(i) <= _NUMBERS_AT_ONCE else None
    missing = 1 - coef @ signed.T
    while True:
        mean = 2 / (C[:, None] * np.maximum(np.abs(missing), _NEAR_KINK))
        d = np.square(C[:, None]) / 4 * _inverse_gaussian(mean, rng)
        if len(C) < _FEW_CHAINS:
            matrix = np.stack([(signed * row[:, None]).T @ signed for row in d])
        else:  # one product for all chains
            packed = np.zeros((len(C), len(i)))
            for block in row_blocks(n, len(i), _NUMBERS_AT_ONCE):
                of_pairs = signed[block][:, i] * signed[block][:, j] if pairs is None else pairs
                packed += d[:, block] @ of_pairs
            matrix = np.empty((len(C), q + 1, q + 1))
            matrix[:, i, j] = packed
            matrix[:, j, i] = packed
        matrix[:, diagonal, diagonal] += precision
        root = np.sqrt(matrix[:, diagonal, diagonal])  # Jacobi scaling
        lower = np.linalg.cholesky(matrix / (root[:, :, None] * root[:, None, :]))
        pull = ((d + C[:, None] / 2) @ signed) / root
        half = np.linalg.solve(lower, pull[..., None]) + rng.normal(size=(len(C), q + 1, 1))
        coef = np.linalg.solve(lower.swapaxes(1, 2), half)[..., 0] / root
        missing = 1 - coef @ signed.T
        yield coef, np.maximum(missing, 0.0).sum(axis=1)


def _inverse_gaussian(mean: Floats, rng: np.random.Generator) -> Floats:
    """Draw inverse Gaussians of shape parameter 1, to full precision for large means too.

    J. Michael, W. Schucany, R. Haas, The American Statistician 30 (1976) 88–90, with the smaller
    root written without cancellation.
    """
    r = mean * np.square(rng.normal(size=mean.shape))
    small = 2 * mean / (2 + r + np.sqrt(r * (r + 4)))
    return np.where(rng.random(mean.shape) * (mean + small) <= mean, small, mean * mean / small)


def chained_evidence(
    columns: Floats,
    label: Floats,
    C: Floats,
    amplitude: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Evidence ``ln Q(Y | X)`` by integrating the mean loss over C ("Monte Carlo chaining").

    With ``Z(C) = ∫ dθ Q(θ) exp(−C Σ l_i)``, ``d ln Z / dC = −⟨Σ l_i⟩`` and
    ``d²ln Z / dC² = Var Σ l_i`` under the posterior of C. From ``Z(0) = 1`` on, the integral is
    taken rung by rung, each at most twice the one before, by the trapezium rule with its end
    correction; ``ln Q(Y | X) = ln Z(C) + n ln κ(C)``.

    Parameters
    ----------
    columns : ndarray, shape (n, q)
    label : ndarray, shape (n,)
    C : ndarray, shape (n_C,)
        Ascending.
    amplitude : ndarray, shape (n_A,)
    n_draws : int
        Draws of each chain; as many again come first and are thrown away.

    Returns
    -------
    ndarray, shape (n_A, n_C)
    """
    n, q = columns.shape
    rungs = _ladder(C, n)
    costs, amplitudes = np.tile(rungs, len(amplitude)), np.repeat(amplitude, len(rungs))
    start = np.zeros((len(costs), q + 1))
    total, squares = np.zeros(len(costs)), np.zeros(len(costs))
    centre = np.zeros(len(costs))
    draws = gibbs(columns, label, costs, amplitudes, start, rng)
    for t in range(2 * n_draws):
        _, loss = next(draws)
        if t == n_draws:
            centre = loss
        if t >= n_draws:
            total += loss - centre
            squares += np.square(loss - centre)
    shape = (len(amplitude), len(rungs))
    mean = (centre + total / n_draws).reshape(shape)
    variance = (squares / n_draws - np.square(total / n_draws)).reshape(shape)
    spread = np.sqrt(
        amplitude[:, None] * np.square(columns).sum(axis=1) + INTERCEPT_SD**2
    )  # of the scores, a priori
    density = np.exp(-0.5 / np.square(spread)) / np.sqrt(2 * np.pi)
    at_zero = (ndtr(1 / spread) + spread * density).sum(axis=1)
    width = np.diff(rungs)
    log_z = np.empty(shape)
    log_z[:, 0] = -0.5 * rungs[0] * (at_zero + mean[:, 0])
    steps = 0.5 * width * (mean[:, 1:] + mean[:, :-1])
    steps -= np.square(width) / 12 * (variance[:, :-1] - variance[:, 1:])
    log_z[:, 1:] = log_z[:, :1] - np.cumsum(steps, axis=1)
    return (log_z + n * log_kappa(rungs))[:, np.searchsorted(rungs, C)]


def _ladder(C: Floats, n: int) -> Floats:
    """Values of C to chain over: those asked for and what leads there, shape (k,)."""
    rungs = [min(_LOWEST_RUNG / n, C[0])]
    for target in C:
        if target > rungs[-1]:
            steps = int(np.ceil(np.log2(target / rungs[-1]) - 1e-9))
            rungs += list(rungs[-1] * (target / rungs[-1]) ** (np.arange(1, steps) / steps))
            rungs.append(target)
    return np.array(rungs)
