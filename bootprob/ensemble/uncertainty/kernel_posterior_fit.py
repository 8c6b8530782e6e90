"""The kernel's posterior of true logits from rows and labels: over γ, σ and the function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.ensemble.uncertainty.expectation_propagation import Approximation, Sites, approximate
from bootprob.ensemble.uncertainty.groups_left_out import without_groups
from bootprob.ensemble.uncertainty.kernel_posterior import KernelPosterior, landmark_values
from bootprob.ensemble.uncertainty.labelled_rows import EXAMINED_ROWS, LabelledRows
from bootprob.preparation.labels import spaced_over_classes
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["fit_kernel_posterior"]


_DEVIATIONS = tuple(2.0**k for k in range(-3, 5))  # σ, in logits, each as likely as any other
_INTERCEPT_PRECISION = 0.01  # of a normal prior with a standard deviation of ten logits
_LANDMARKS = 256
_MOST_PAIRS = 8
_IMPOSSIBLE = 7.0  # logarithm of the evidence behind the best pair of γ and σ: 0.1 % of its weight
_RANK = 1e-6  # relative eigenvalue below which landmarks depend on each other
_HELD = 2**25  # numbers of columns that are kept rather than made again, 256 MiB


def fit_kernel_posterior(
    rows: Floats,
    positive: NDArray[np.bool_],
    weight: Floats,
    kernel: KernelFunction,
    device: torch.device,
    groups: Groups | None = None,
) -> tuple[KernelPosterior, Floats]:
    """Fit the posterior of the logits, and leave each training row out of it in turn.

    ``logit P(y = 1 | x) = b + f(x)`` with ``b ~ N(0, 10²)`` and f a Gaussian process of kernel
    ``σ² k(x, z) / u`` (see `KernelPosterior`), on up to 256 landmarks (Nyström; the part of the
    prior variance that they do not reach is added to the posterior's). Posterior and evidence for γ
    of the grid and σ = 2⁻³, 2⁻², …, 2⁴ are those of
    `bootprob.ensemble.uncertainty.expectation_propagation`, and the pairs count by their evidence;
    no more than eight are kept. Of more than 1,000 rows, that
    many tell which pairs are possible, then 10,000, and all rows which of those count.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        As the kernel sees them; of a precomputed kernel (n, n), of constant diagonal.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights, positive, of mean 1 or less; of groups less, by their design effects.
    kernel : KernelFunction
        With its grid of γ.
    device : torch.device
    groups : ndarray of int, shape (n,), optional
        Of rows that are left out together.

    Returns
    -------
    posterior : KernelPosterior
    left_out : ndarray, shape (n, g, 2)
        Mean and standard deviation of the logit of each training row under each pair of γ and σ,
        its own label, or those of its group, left out.
    """
    every = LabelledRows.of(rows, positive, weight, device)
    kernel = kernel.to(device)
    stages = [spaced_over_classes(positive, size) for size in EXAMINED_ROWS if size < len(rows)]
    first = stages[0] if stages else np.arange(len(rows))
    # Always the same draw: the posterior is part of the model and must not depend on its seed.
    drawn = np.random.default_rng(0).permutation(len(first))[:_LANDMARKS]
    which = first[np.sort(drawn)]
    landmarks = _Landmarks(
        kernel, torch.from_numpy(rows[which]).to(device), torch.from_numpy(which).to(device), every
    )
    data = [*(every.part(stage) for stage in stages), every]
    gammas = np.zeros(1) if kernel.gamma is None else np.unique(kernel.gamma.cpu().numpy())
    posteriors = _possible(_climb(data[0], landmarks, gammas))
    for more in data[1:]:
        kept = [(each.columns.gamma, each.deviation) for each in posteriors]
        columns = {gamma: _Columns(more, landmarks, gamma) for gamma, _ in kept}
        posteriors = _possible([columns[gamma].posterior(sigma, None) for gamma, sigma in kept])
    return _mixture(posteriors, landmarks, groups)


@dataclass(frozen=True)
class _Landmarks:
    """Rows (l, p) that stand for all, by which kernel, and which of all they are."""

    kernel: KernelFunction
    rows: Tensor
    which: Tensor
    every: LabelledRows

    def of_gamma(self, gamma: float) -> KernelFunction:
        """The kernel for one γ."""
        if self.kernel.gamma is None:
            return self.kernel
        return self.kernel.with_gamma(self.kernel.gamma.new_tensor([gamma]))

    def values(self, kernel: KernelFunction, rows: Tensor) -> Tensor:
        """Kernel between rows (m, p) and landmarks, (m, l)."""
        return landmark_values(kernel, rows, self.rows, self.which)[0]

    def unit(self, kernel: KernelFunction) -> float | None:
        """Mean of the diagonal over all rows, if it is not 0; None where it is 1 everywhere."""
        if kernel.has_unit_diagonal:
            return None
        return float(kernel.diagonal(self.every.rows).mean()) or 1.0


class _Columns:
    """For one γ: a leading 1, and columns whose inner products are the kernel's.

    Attributes
    ----------
    gamma : float
    unit : float or None
    basis : Tensor, shape (l + 1, r + 1)
        From kernel values at the landmarks, after a 1, to the columns.
    """

    def __init__(self, data: LabelledRows, landmarks: _Landmarks, gamma: float) -> None:
        self.gamma, self._data, self._landmarks = float(gamma), data, landmarks
        self._kernel = landmarks.of_gamma(gamma)
        self.unit = landmarks.unit(self._kernel)
        values, vectors = torch.linalg.eigh(self._values(landmarks.rows))
        kept = values > _RANK * values[-1]
        basis = vectors[:, kept] / values[kept].sqrt()
        self.basis = torch.block_diag(basis.new_ones(1, 1), basis)
        held = len(data.rows) * self.basis.shape[1] <= _HELD
        self._held = list(self) if held else None

    @property
    def blocks(self) -> Iterable[tuple[slice, Tensor]]:
        """Slices of rows with their columns (m, r + 1): kept, or made whenever it is iterated."""
        return self if self._held is None else self._held

    def __iter__(self) -> Iterator[tuple[slice, Tensor]]:
        for block in row_blocks(len(self._data.rows), len(self.basis), 2**22):
            kernel = self._values(self._data.rows[block])
            ones = torch.ones_like(kernel[:, :1])
            yield block, torch.cat([ones, kernel], dim=1) @ self.basis

    def _values(self, rows: Tensor) -> Tensor:
        values = self._landmarks.values(self._kernel, rows)
        return values if self.unit is None else values / self.unit

    def posterior(self, deviation: float, start: Sites | None) -> _Posterior:
        """Condition on the labels, for one σ."""
        label, weight = self._data.label, self._data.weight
        precision = torch.full_like(self.basis[0], deviation**-2)
        precision[0] = _INTERCEPT_PRECISION
        start = start or Sites.beginning(label, weight)
        return _Posterior(
            self, deviation, approximate(self.blocks, label, weight, precision, start)
        )

    def missing(self) -> Tensor:
        """Share of the prior variance that the columns do not reach, shape (n,)."""
        reached = torch.cat([part[:, 1:].square().sum(1) for _, part in self.blocks])
        whole: float | Tensor = 1.0  # also of precomputed kernels, whose diagonal is constant
        if self.unit is not None and self._kernel.has_features:
            whole = self._kernel.diagonal(self._data.rows)[0] / self.unit
        return (whole - reached).clamp_min(0)


@dataclass(frozen=True)
class _Posterior:
    """The posterior for one γ and σ, of the coefficients of the columns."""

    columns: _Columns
    deviation: float
    found: Approximation


def _climb(data: LabelledRows, landmarks: _Landmarks, gammas: Floats) -> list[_Posterior]:
    """Posteriors for every γ and the σ that may count.

    The evidence has one peak over σ; from where the γ before had it, both sides are followed as
    long as it rises or is close to the best known.
    """
    found: list[_Posterior] = []
    best, middle = -np.inf, _DEVIATIONS.index(1.0)
    for gamma in gammas:
        columns = _Columns(data, landmarks, gamma)
        own = {middle: columns.posterior(_DEVIATIONS[middle], None)}
        best = max(best, own[middle].found.evidence)
        for step, end in ((1, len(_DEVIATIONS)), (-1, -1)):
            last = own[middle]
            for k in range(middle + step, end, step):
                own[k] = columns.posterior(_DEVIATIONS[k], last.found.sites)
                evidence = own[k].found.evidence
                falls = evidence < last.found.evidence
                best, last = max(best, evidence), own[k]
                if falls and evidence < best - _IMPOSSIBLE:
                    break
        middle = max(own, key=lambda k: own[k].found.evidence)
        found.extend(own.values())
    return found


def _possible(posteriors: list[_Posterior]) -> list[_Posterior]:
    """Those whose γ and σ the labels have not ruled out, best first."""
    ranked = sorted(posteriors, key=lambda each: -each.found.evidence)
    least = ranked[0].found.evidence - _IMPOSSIBLE
    return [each for each in ranked[:_MOST_PAIRS] if each.found.evidence >= least]


def _mixture(
    posteriors: list[_Posterior], landmarks: _Landmarks, groups: Groups | None
) -> tuple[KernelPosterior, Floats]:
    """All of them together, for new rows and for the training rows left out in turn."""
    evidence = np.array([each.found.evidence for each in posteriors])
    weight = np.exp(evidence - evidence.max())
    coefficients, quadratic, left_out = [], [], []
    for each in posteriors:
        basis, found, variance = each.columns.basis, each.found, each.deviation**2
        form = basis @ found.covariance @ basis.T
        form[1:, 1:] -= variance * (basis[1:, 1:] @ basis[1:, 1:].T)
        coefficients.append(basis @ found.mean)
        quadratic.append(form)
        own_mean, own_variance = found.left_out_mean, found.left_out_variance
        if groups is not None:
            own_mean, own_variance = without_groups(each.columns.blocks, found, None, groups)
        spread = own_variance + variance * each.columns.missing()
        left_out.append(torch.stack([own_mean, spread.sqrt()], dim=1))
    of_values = not landmarks.kernel.has_features
    units = [each.columns.unit for each in posteriors]
    posterior = KernelPosterior(
        gamma=np.array([each.columns.gamma for each in posteriors]),
        prior_variance=np.array([each.deviation**2 for each in posteriors]),
        weight=weight / weight.sum(),
        coefficients=torch.stack(coefficients).cpu().numpy(),
        quadratic=torch.stack(quadratic).cpu().numpy(),
        landmarks=None if of_values else landmarks.rows.cpu().numpy(),
        support=landmarks.which.cpu().numpy() if of_values else None,
        unit=None if None in units else np.array(units),
    )
    return posterior, np.ascontiguousarray(torch.stack(left_out, dim=1).cpu().numpy())
