"""Sollich's closed form for the evidence, from the machine and its marginal support vectors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import lsq_linear

from bootprob.baselines.hinge_posterior import PriorColumns, log_kappa
from bootprob.ensemble.scoring.rows import warn_of_unsolved
from bootprob.runtime.arrays import Floats
from bootprob_gpu import Problem, iter_fit, resolve_device

__all__ = ["laplace_evidence"]


_ON_MARGIN = 1e-4  # 1 − y θ of linear machines below which a row may be a marginal support vector
_AT_BOUND = 1e-6  # α / C, or 1 − α / C, below which it is none
_RANK = 1e-10  # relative eigenvalue below which marginal support vectors depend on each other


def laplace_evidence(
    prior: PriorColumns,
    rows: Floats,
    label: Floats,
    C: Floats,
    amplitude: Floats,
    gamma: float | None,
    *,
    device: str,
    tol: float | None,
) -> Floats:
    """Approximate ``ln Q(Y | X)`` for every pair of amplitude and C.

    Around the machine θ* with multipliers α (0 < α_i < C on the marginal support vectors m),

    ``−½ ‖w*‖² − C Σ_i l_i + n ln κ(C) − ½ ln det(L_m K_m)``,
    ``L_m = diag(2π [α_i (C − α_i) / C]²)``:

    each marginal support vector is held by a kink with slopes α_i and C − α_i, whose integral is
    ``C / (α_i (C − α_i))``; the other rows enter at their maximum. K_m is the kernel, amplitude
    included, between them. The machine's intercept is free (a flat prior of density 1), so
    ``ln det(2π K_m)`` becomes ``(m − 1) ln 2π + ln m + ln det(Zᵀ K_m Z)`` with Z an orthonormal
    basis of what is orthogonal to 1. The curvature of the prior along the kinks is left out, and
    so is that other rows come to their kinks within the posterior's reach: with many rows near
    the margin compared with 1/C the formula is off by tens.

    Parameters
    ----------
    prior : PriorColumns
        Of the rows.
    rows : ndarray, shape (n, p)
        Standardised.
    label : ndarray, shape (n,)
        −1 or +1.
    C : ndarray, shape (n_C,)
    amplitude : ndarray, shape (n_A,)
    gamma : float or None
        None for the linear kernel.

    Returns
    -------
    ndarray, shape (n_A, n_C)
    """
    # With the kernel times A, the machine of C is that of C · A without.
    products = np.outer(amplitude, C) / prior.mean_square
    costs, machine_of = np.unique(products, return_inverse=True)
    kernel = "linear" if gamma is None else "rbf"
    problem = Problem(
        rows,
        label,
        np.ones((1, len(rows)), dtype=np.uint8),
        costs,
        kernel=kernel,  # type: ignore[arg-type]
        gamma=gamma,
    )
    [block] = iter_fit(problem, tol=tol, device=resolve_device(device))
    warn_of_unsolved({name: getattr(block, name).cpu().numpy() for name in ("status", "gap")})
    assert block.train_scores is not None
    scores = block.train_scores[0].cpu().numpy()
    dual = None if block.dual_coef is None else block.dual_coef[0].cpu().numpy()
    found = np.empty(products.shape)
    for (a, c), r in np.ndenumerate(machine_of.reshape(products.shape)):
        shrunk = amplitude[a] / prior.mean_square  # α of the engine is α of the model times this
        alpha = None if dual is None else np.abs(dual[r]) / shrunk
        found[a, c] = _of_machine(prior, label, scores[r], alpha, float(C[c]), float(amplitude[a]))
    return found


def _of_machine(
    prior: PriorColumns,
    label: Floats,
    score: Floats,
    alpha: Floats | None,
    C: float,
    amplitude: float,
) -> float:
    columns, missing = prior.columns, 1 - label * score
    if alpha is None:
        alpha = _multipliers(columns, label, score, missing, C, amplitude)
    marginal = (alpha > _AT_BOUND * C) & (alpha < (1 - _AT_BOUND) * C)
    pull = (alpha * label) @ columns  # w over the amplitude
    value = -0.5 * amplitude * pull @ pull - C * np.maximum(missing, 0.0).sum()
    value += len(label) * log_kappa(C)
    m = int(marginal.sum())
    if m == 0:  # nothing holds the intercept but the ends of a plateau: the loss along it
        return float(value + _log_plateau(label, score, C))
    slopes = alpha[marginal]
    value += np.log(C / (slopes * (C - slopes))).sum() - 0.5 * np.log(m)
    if m > 1:
        spanned = null_space(np.ones((1, m))).T @ columns[marginal] * np.sqrt(amplitude)
        values = np.square(np.linalg.svd(spanned, compute_uv=False))
        values = values[values > _RANK * values[0]]
        value -= 0.5 * np.log(2 * np.pi * values).sum()
    return float(value)


def _multipliers(
    columns: Floats, label: Floats, score: Floats, missing: Floats, C: float, amplitude: float
) -> Floats:
    """Multipliers of a linear machine from its scores, shape (n,).

    They are C inside the margin and 0 outside; those on it make up what is missing from
    ``w = A Σ α_i y_i z_i`` and ``Σ α_i y_i = 0``.
    """
    signed = label[:, None] * np.hstack([columns, np.ones((len(label), 1))])
    centered = columns - columns.mean(axis=0)
    coef = np.linalg.lstsq(centered, score - score.mean(), rcond=None)[0] / amplitude
    alpha = np.where(missing > _ON_MARGIN, C, 0.0)
    margin = np.flatnonzero(np.abs(missing) <= _ON_MARGIN)
    if len(margin):
        rest = np.append(coef, 0.0) - alpha @ signed
        alpha[margin] = lsq_linear(signed[margin].T, rest, (0.0, C), method="bvls").x
    return alpha


def _log_plateau(label: Floats, score: Floats, C: float) -> float:
    """``ln ∫ db exp(−C (Σ l(θ + b) − Σ l(θ)))`` with everything but the intercept held."""
    kinks = np.sort(label - score)  # where a row reaches its margin
    loss = np.array([np.maximum(0.0, 1 - label * (score + b)).sum() for b in kinks])
    g = C * (loss - np.maximum(0.0, 1 - label * score).sum())
    ends = [(label > 0).sum() * C, (label < 0).sum() * C]  # slopes beyond the first and the last
    total = np.exp(-g[0]) / ends[0] + np.exp(-g[-1]) / ends[1]
    step, rise = np.diff(kinks), np.diff(g)
    flat = np.abs(rise) < 1e-9
    safe = np.where(flat, 1.0, rise)
    pieces = np.where(flat, step, -step * np.expm1(-safe) / safe)
    return float(np.log(total + (np.exp(-g[:-1]) * pieces).sum()))
