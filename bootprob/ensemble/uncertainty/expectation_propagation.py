"""A Gaussian approximation of logits that many labels inform, by expectation propagation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.functional import softplus

from bootprob.ensemble.uncertainty.spike_and_slab import PriorFactors, SpikeAndSlab

__all__ = [
    "Approximation",
    "Blocks",
    "Link",
    "Sites",
    "approximate",
    "attempt",
    "factor_of",
    "sums",
    "warn_of_rough_intervals",
]

Blocks = Iterable[tuple[slice, Tensor]]
"""Slices of rows with their columns (m, d), the same ones each time that it is iterated."""

Link = Callable[[Tensor], Tensor]

_NODES, _WEIGHTS = (torch.from_numpy(each) for each in np.polynomial.hermite.hermgauss(32))
_SQUARES = _NODES.square()
_ITERATIONS = 100
_TOLERANCE = 1e-3  # of a logit's standard deviation
_OF_FEW = 60, 1e-2  # where few coefficients count, whose factors drift for long and change little
_LEAST_PRECISION = 1e-12
_MOST_PRECISION = 1e9  # of a row of weight 1; with the logit ¼ is the most
_LEAST_LEFT = 1e-9  # of a precision, where a row is left out
_PANEL = 96  # columns of a product of which half is wanted: what BLAS multiplies at full speed
_MORE_ON_DIAGONAL = (1e-14, 1e-12, 1e-10, 1e-8)  # of the largest


@dataclass(frozen=True)
class Sites:
    """What each label says, as a Gaussian factor ``exp(ν f − τ f² / 2)`` of its row's logit f.

    Attributes
    ----------
    precision, shift : Tensor, shape (n,)
        τ and ν.
    """

    precision: Tensor
    shift: Tensor

    @classmethod
    def beginning(cls, label: Tensor, weight: Tensor) -> Sites:
        """Weak factors, to start from."""
        return cls(0.1 * weight, 0.25 * (2 * label - 1) * weight)

    def without(self, noise: Tensor | None) -> Sites:
        """Factors of logits before normal noise of these variances is added."""
        if noise is None:
            return self
        shrunk = 1 / (1 + self.precision * noise)
        return Sites(self.precision * shrunk, self.shift * shrunk)

    def towards(self, others: Sites, share: float) -> Sites:
        """A share of the way to others."""
        return Sites(
            torch.lerp(self.precision, others.precision, share),
            torch.lerp(self.shift, others.shift, share),
        )

    def log_mass(self, noise: Tensor) -> Tensor:
        """Logarithm of what `without` leaves out as a constant, summed over the rows."""
        wider = 1 + self.precision * noise
        return (self.shift.square() * noise / wider - wider.log()).sum() / 2


@dataclass(frozen=True)
class Approximation:
    """Gaussian approximation of the posterior of coefficients.

    Attributes
    ----------
    evidence : float
        Logarithm of the marginal likelihood.
    mean : Tensor, shape (d,)
    covariance : Tensor, shape (d, d)
    left_out_mean, left_out_variance : Tensor, shape (n,)
        Of each row's logit without its own label (the cavity).
    sites : Sites
    settled : bool
        Whether the factors have converged.
    """

    evidence: float
    mean: Tensor
    covariance: Tensor
    left_out_mean: Tensor
    left_out_variance: Tensor
    sites: Sites
    settled: bool


def _identity(logit: Tensor) -> Tensor:
    return logit


def approximate(
    blocks: Blocks,
    label: Tensor,
    weight: Tensor,
    precision: Tensor,
    start: Sites,
    link: Link = _identity,
    noise: Tensor | None = None,
) -> Approximation:
    """Approximate the posterior of β, where ``logit P(y_i = 1) = a_i · β``, ``β ~ N(0, P⁻¹)``.

    Expectation propagation (T. Minka 2001; C. Rasmussen, C. Williams, "Gaussian Processes for
    Machine Learning", 2006, section 3.6), all rows at once: a label's factor is that which gives
    its row's logit the mean and variance which the label itself would give it. Laplace's method
    around the mode is quicker and fails where classes are nearly separated: posteriors there are
    skewed, the mode is far too close to 0 for their width (M. Kuss, C. Rasmussen, J. Mach. Learn.
    Res. 6 (2005) 1679–1704).

    Parameters
    ----------
    blocks : iterable of (slice, Tensor)
        The columns a, some rows at a time.
    label : Tensor, shape (n,)
        0 or 1.
    weight : Tensor, shape (n,)
        How often each row counts; positive.
    precision : Tensor, shape (d,)
        The diagonal of P.
    start : Sites
        Of a similar problem, or `Sites.beginning`.
    link : callable, optional
        Increasing function h, of tensors, with ``logit P(y_i = 1) = h(a_i · β)``; left out, the
        identity.
    noise : Tensor, shape (n,), optional
        Variance of a normal part of each row's logit that no other row shares: what landmarks do
        not reach of a Gaussian process (the "fully independent" approximation of E. Snelson,
        Z. Ghahramani, NIPS 18 (2006)). What is said of logits, and left out, has it.

    Returns
    -------
    Approximation

    Warns
    -----
    ConvergenceWarning
        The factors have not settled.
    """
    found = attempt(blocks, label, weight, precision, start, link, noise)
    if not found.settled:
        warn_of_rough_intervals(stacklevel=2)
    return found


def warn_of_rough_intervals(stacklevel: int) -> None:
    """Say that factors have not settled, in the words of who fits a model."""
    warnings.warn(
        "Expectation propagation has not converged: intervals of models with this kernel are "
        "rough.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def attempt(
    blocks: Blocks,
    label: Tensor,
    weight: Tensor,
    precision: Tensor,
    start: Sites,
    link: Link = _identity,
    noise: Tensor | None = None,
    few: SpikeAndSlab | None = None,
    steepness: Tensor | None = None,
) -> Approximation:
    """As `approximate`, without a warning: of one setting among many it says nothing.

    Where factors do not settle from those of a similar problem, which may lead far astray, they
    begin anew; where few coefficients count they begin near enough.

    Parameters
    ----------
    few : SpikeAndSlab, optional
        Prior of some coefficients, in place of the normal one.
    steepness : Tensor, shape (n,), optional
        s > 0 with ``logit P(y_i = 1) = h(s_i (a_i · β))``. All that is said is of ``a_i · β``.
    """
    problem = label, weight, precision, link, noise, few, steepness
    found = _attempt(blocks, start, *problem)
    beginning = Sites.beginning(label, weight)
    if not found.settled and few is None and not torch.equal(start.precision, beginning.precision):
        anew = _attempt(blocks, beginning, *problem)
        found = anew if anew.settled else found
    return found


def _attempt(
    blocks: Blocks,
    start: Sites,
    label: Tensor,
    weight: Tensor,
    precision: Tensor,
    link: Link,
    noise: Tensor | None,
    few: SpikeAndSlab | None,
    steepness: Tensor | None,
) -> Approximation:
    settled = False
    sites, damping = start, 1.0
    prior = matched = PriorFactors.normal(precision)
    matrix, vector = sums(blocks, sites.without(noise), prior.precision, prior.shift)
    factor = factor_of(matrix)
    mean = _mean(factor, vector)
    logits = torch.full_like(label, torch.inf)
    last_change, last_step = torch.inf, torch.zeros_like(label)
    iterations, tolerance = (_ITERATIONS, _TOLERANCE) if few is None else _OF_FEW
    for _ in range(iterations):
        found = _update(blocks, label, weight, sites, mean, factor, link, noise, steepness)
        step = (found.logit - logits) / found.deviation
        change = float(step.abs().max())
        logits = found.logit
        if few is not None:
            matched = few.match(mean, factor, prior)
        if change < tolerance:
            settled = True
            break
        if change > last_change and float(step @ last_step) < 0:  # factors chase each other
            damping = max(damping / 2, 0.1)
        last_change, last_step = change, step
        moved = sites.towards(found.sites, damping)
        moved_prior = prior if few is None else prior.towards(matched, damping)
        matrix, vector = sums(
            blocks, moved.without(noise), moved_prior.precision, moved_prior.shift
        )
        moved_factor, failed = torch.linalg.cholesky_ex(matrix)
        if failed:
            break  # precisions grow without bound: what was before is the last
        sites, prior = moved, moved_prior
        factor, mean = moved_factor, _mean(moved_factor, vector)
    # Beyond rounding factors stand still, wherever they are.
    astray = not (sites.precision < _MOST_PRECISION * weight).all()
    return Approximation(
        _log_mass(mean, factor, sites, matched.log_mass, noise, found.log_factors),
        mean,
        torch.cholesky_inverse(factor),
        found.left_out_mean,
        found.left_out_variance,
        sites,
        settled and not astray,
    )


def _log_mass(
    mean: Tensor,
    factor: Tensor,
    sites: Sites,
    log_prior: Tensor,
    noise: Tensor | None,
    log_factors: Tensor,
) -> float:
    log_determinants = log_prior - factor.diagonal().log().sum()
    found = log_factors + log_determinants + (factor.T @ mean).square().sum() / 2
    return float(found if noise is None else found + sites.log_mass(noise))


@dataclass(frozen=True)
class _Update:
    """What one look at all labels says; of rows (n,)."""

    logit: Tensor
    deviation: Tensor
    left_out_mean: Tensor
    left_out_variance: Tensor
    sites: Sites
    log_factors: Tensor


def sums(blocks: Blocks, sites: Sites, precision: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Precision matrix of the coefficients, below its diagonal, and what it makes of their mean."""
    matrix, vector = precision.clone(), shift.clone()
    for block, columns in blocks:
        weighted = columns * sites.precision[block].unsqueeze(1)
        for start in range(0, len(vector), _PANEL):
            panel = slice(start, start + _PANEL)
            matrix[start:, panel] += columns[:, start:].T @ weighted[:, panel]
        vector += columns.T @ sites.shift[block]
    return matrix, vector


def factor_of(matrix: Tensor) -> Tensor:
    """Cholesky's factor of positive definite matrices (..., d, d).

    Where columns or factors are so uneven that rounding leaves one without, of it and a little more
    on its diagonal.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    for share in _MORE_ON_DIAGONAL:
        if not failed.any():
            break
        more = share * (failed > 0) * matrix.diagonal(dim1=-2, dim2=-1).amax(-1)
        diagonal = more.unsqueeze(-1).expand(matrix.shape[:-1])
        factor, failed = torch.linalg.cholesky_ex(matrix + torch.diag_embed(diagonal))
    if failed.any():
        return torch.linalg.cholesky(matrix)  # which says why not
    return factor


def _mean(factor: Tensor, vector: Tensor) -> Tensor:
    return torch.cholesky_solve(vector.unsqueeze(1), factor).squeeze(1)


def _update(
    blocks: Blocks,
    label: Tensor,
    weight: Tensor,
    sites: Sites,
    mean: Tensor,
    factor: Tensor,
    link: Link,
    noise: Tensor | None,
    steepness: Tensor | None,
) -> _Update:
    parts = []
    for block, columns in blocks:
        spread = torch.linalg.solve_triangular(factor, columns.T, upper=False)
        own = Sites(sites.precision[block], sites.shift[block])
        known = columns @ mean, spread.square().sum(0)
        if noise is not None:
            known = _noisy(*known, own, noise[block])
        own_link = link
        if steepness is not None:
            own_link = partial(_steep, link, steepness[block].unsqueeze(1))
        parts.append(
            _match(
                *known,
                own.precision,
                own.shift,
                2 * label[block] - 1,
                weight[block],
                own_link,
            )
        )
    logit, deviation, left_mean, left_variance, tau, nu, log_factor = torch.cat(parts, dim=1)
    return _Update(logit, deviation, left_mean, left_variance, Sites(tau, nu), log_factor.sum())


def _steep(link: Link, steepness: Tensor, logit: Tensor) -> Tensor:
    return link(steepness * logit)


def _noisy(mean: Tensor, variance: Tensor, sites: Sites, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of logits with their noise, from those without it."""
    before = sites.without(noise)
    left = (1 - before.precision * variance).clamp_min(_LEAST_LEFT)
    left_variance = variance / left + noise
    left_mean = (mean - variance * before.shift) / left
    found = left_variance / (1 + sites.precision * left_variance)
    return found * (left_mean / left_variance + sites.shift), found


def _match(
    mean: Tensor,
    variance: Tensor,
    tau: Tensor,
    nu: Tensor,
    sign: Tensor,
    weight: Tensor,
    link: Link,
) -> Tensor:
    """Moments with the label itself in place of its factor, by Gauss–Hermite quadrature.

    Nodes lie where the present approximation is, which is where the moments are once it is good.
    """
    left = (1 - tau * variance).clamp_min(_LEAST_LEFT)
    left_variance = variance / left
    left_mean = (mean - variance * nu) / left
    nodes, squares, weights = (each.to(mean.device) for each in (_NODES, _SQUARES, _WEIGHTS))
    left_precision = left_variance.reciprocal()
    deviation = variance.sqrt()
    unit = 2**0.5 * deviation
    logit = mean.unsqueeze(1) + unit.unsqueeze(1) * nodes
    exponent = (
        -weight.unsqueeze(1) * softplus(-sign.unsqueeze(1) * link(logit))
        - (logit - left_mean.unsqueeze(1)).square() / (2 * left_variance).unsqueeze(1)
        + squares
    )
    largest = exponent.amax(1)
    mass = (exponent - largest.unsqueeze(1)).exp() * weights
    total = mass.sum(1)
    first = mass @ nodes / total
    second = mass @ squares / total
    matched = (2 * variance * (second - first.square())).clamp_min(1e-12 * variance)
    matched_mean = mean + unit * first
    log_mass = largest + total.log() + 0.5 * (variance / left_variance / torch.pi).log()
    log_factor = (
        log_mass
        + 0.5 * torch.log1p(tau * left_variance)
        - 0.5 * (mean.square() / variance - left_mean.square() / left_variance)
    )
    precision = (matched.reciprocal() - left_precision).clamp_min(_LEAST_PRECISION)
    shift = matched_mean * (precision + left_precision) - left_mean / left_variance
    rows = mean, deviation, left_mean, left_variance, precision, shift, log_factor
    return torch.stack(rows)
