"""Coefficients of which few may count: what a prior says of them, as Gaussian factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["SPIKE", "PriorFactors", "SpikeAndSlab"]

SPIKE = 0.1
"""Standard deviation of a coefficient that does not count, as a share of one that does."""

_LEAST_PRECISION = 0.01  # of a factor, as a share of the slab's


@dataclass(frozen=True)
class PriorFactors:
    """What is known of coefficients beforehand, as ``exp(ν · β − βᵀ T β / 2)``.

    Attributes
    ----------
    precision : Tensor, shape (d, d)
        T.
    shift : Tensor, shape (d,)
        ν.
    log_mass : Tensor
        Logarithm of what it is to be multiplied by, and by ``(2π)^(−d/2)``.
    """

    precision: Tensor
    shift: Tensor
    log_mass: Tensor

    @classmethod
    def normal(cls, precision: Tensor) -> PriorFactors:
        """Of independent ones around 0."""
        return cls(torch.diag(precision), torch.zeros_like(precision), precision.log().sum() / 2)

    def towards(self, others: PriorFactors, share: float) -> PriorFactors:
        """A share of the way to others, which say what they are to be multiplied by."""
        return PriorFactors(
            torch.lerp(self.precision, others.precision, share),
            torch.lerp(self.shift, others.shift, share),
            others.log_mass,
        )


@dataclass(frozen=True)
class SpikeAndSlab:
    """Prior of coefficients, some of which count or do not: two normal variances of each.

    ``β ~ w N(0, σ²) + (1 − w) N(0, s² σ²)`` (E. George, R. McCulloch, J. Am. Stat. Assoc. 88 (1993)
    881–889, (1)), for a column and its scores together: both count or neither does. A narrow spike
    instead of an exact 0 keeps many small effects inside the interval. All other coefficients are
    normal.

    Attributes
    ----------
    precision : Tensor, shape (d,)
        1 / σ² of each.
    groups : sequence of Tensor of int, shape (k, g)
        Coefficients that count together, by their number g.
    inclusion : float
        w.
    spike : float
        s.
    """

    precision: Tensor
    groups: Sequence[Tensor]
    inclusion: float
    spike: float = SPIKE

    def match(self, mean: Tensor, factor: Tensor, present: PriorFactors) -> PriorFactors:
        """Gaussian factors with which coefficients have the moments that the prior gives them.

        As `bootprob.ensemble.uncertainty.expectation_propagation` does for labels (J. M.
        Hernández-Lobato, D. Hernández-Lobato, A. Suárez, Mach. Learn. 99 (2015) 437–487, section
        3; of groups, ibid. J. Mach. Learn. Res. 14 (2013) 1891–1945); the moments are known in
        closed form.

        Parameters
        ----------
        mean : Tensor, shape (d,)
            Of the coefficients under the present approximation.
        factor : Tensor, shape (d, d)
            Cholesky's factor of its precision.
        present : PriorFactors
        """
        precision, shift = present.precision.clone(), present.shift.clone()
        log_mass = self.precision.log().sum() / 2
        unit = torch.eye(len(mean), dtype=mean.dtype, device=mean.device)
        for group in self.groups:
            spread = torch.linalg.solve_triangular(factor, unit[:, group.flatten()], upper=False)
            spread = spread.unflatten(1, group.shape)
            inverse = torch.linalg.inv(torch.einsum("dki,dkj->kij", spread, spread))
            first, second = group.unsqueeze(2), group.unsqueeze(1)
            own = precision[first, second], shift[group]
            found = self._matched(mean[group], inverse, *own, self.precision[group])
            precision[first, second], shift[group], of_group = found
            log_mass = log_mass + of_group
        return PriorFactors(precision, shift, log_mass)

    def _matched(
        self, mean: Tensor, inverse: Tensor, precision: Tensor, shift: Tensor, slab: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of groups (k, g) their factors and the logarithm of what these are to be multiplied by.

        All in precisions, since labels may say nothing of a coefficient.
        """
        left = inverse - precision  # without the present factor
        reached = (inverse @ mean.unsqueeze(2)).squeeze(2)
        left_shift = reached - shift
        prior = torch.stack([slab, slab / self.spike**2])  # (2, k, g)
        of_each = left + torch.diag_embed(prior)
        covariance = torch.linalg.inv(of_each)
        means = (covariance @ left_shift.unsqueeze(2)).squeeze(3)
        log_each = torch.logdet(covariance) + prior.log().sum(2) + (means * left_shift).sum(2)
        shares = slab.new_tensor([self.inclusion, 1 - self.inclusion])
        log_each = shares.log().unsqueeze(1) + log_each / 2
        log_mass = log_each.logsumexp(0)
        share = (log_each - log_mass).exp().unsqueeze(2)
        matched_mean = (share * means).sum(0)
        apart = (means - matched_mean).unsqueeze(3)
        matched = (share.unsqueeze(3) * (covariance + apart @ apart.mT)).sum(0)
        scale = slab.rsqrt()
        scaled = scale.unsqueeze(2) * (torch.linalg.inv(matched) - left) * scale.unsqueeze(1)
        values, vectors = torch.linalg.eigh(scaled)
        vectors = vectors / scale.unsqueeze(2)
        found = (vectors * values.clamp_min(_LEAST_PRECISION).unsqueeze(1)) @ vectors.mT
        found_shift = ((found + left) @ matched_mean.unsqueeze(2)).squeeze(2) - left_shift
        present = (reached * mean).sum(1) - torch.logdet(inverse) + slab.log().sum(1)
        return found, found_shift, (log_mass - present / 2).sum()
