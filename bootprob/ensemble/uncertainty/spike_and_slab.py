"""Coefficients of which few may count: what a prior says of each, as a Gaussian factor."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Tensor

__all__ = ["SPIKE", "SpikeAndSlab"]

SPIKE = 0.1
"""Standard deviation of a coefficient that does not count, as a share of one that does."""

_LEAST_PRECISION = 0.01  # of a factor, as a share of the slab's
_LEAST_LEFT = 1e-9  # of a precision, where a factor is left out
_LOG_TWO_PI = log(2 * pi)


@dataclass(frozen=True)
class SpikeAndSlab:
    """Prior of some coefficients: each counts with a given probability, of two normal variances.

    ``β ~ w N(0, σ²) + (1 − w) N(0, σ²/100)``, independent (E. George, R. McCulloch, J. Am. Stat.
    Assoc. 88 (1993) 881–889, (1)). A narrow spike instead of an exact 0 keeps many small effects
    inside the interval.

    Attributes
    ----------
    which : slice
        The coefficients.
    variance : Tensor, shape (k,)
        σ² of each.
    inclusion : float
        w.
    """

    which: slice
    variance: Tensor
    inclusion: float

    def match(
        self, mean: Tensor, variance: Tensor, precision: Tensor, shift: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gaussian factors with which coefficients have the moments that the prior gives them.

        As `bootprob.ensemble.uncertainty.expectation_propagation` does for labels (J. M.
        Hernández-Lobato, D. Hernández-Lobato, A. Suárez, Mach. Learn. 99 (2015) 437–487, section
        3); the moments are known in closed form.

        Parameters
        ----------
        mean, variance : Tensor, shape (k,)
            Of the coefficients under the present approximation.
        precision, shift : Tensor, shape (k,)
            Of the present factors.

        Returns
        -------
        precision, shift : Tensor, shape (k,)
            Of factors that match.
        log_factor : Tensor, shape (k,)
            Logarithms of what the present ones are to be multiplied by.
        """
        left = (1 - precision * variance).clamp_min(_LEAST_LEFT)
        left_variance = variance / left
        left_mean = (mean - variance * shift) / left
        prior = self.variance.unsqueeze(1) * self.variance.new_tensor([1.0, SPIKE**2])
        total = left_variance.unsqueeze(1) + prior
        log_share = self.variance.new_tensor([self.inclusion, 1 - self.inclusion]).log()
        log_each = log_share - (total.log() + left_mean.unsqueeze(1).square() / total) / 2
        log_mass = log_each.logsumexp(1)
        share = (log_each - log_mass.unsqueeze(1)).exp()
        means = left_mean.unsqueeze(1) * prior / total
        matched_mean = (share * means).sum(1)
        within = left_variance.unsqueeze(1) * prior / total
        matched = (share * (within + (means - matched_mean.unsqueeze(1)).square())).sum(1)
        left_precision = left_variance.reciprocal()
        found = torch.maximum(
            matched.reciprocal() - left_precision, _LEAST_PRECISION / self.variance
        )
        log_factor = log_mass - _LOG_TWO_PI / 2 + torch.log1p(precision * left_variance) / 2
        log_factor -= (mean.square() / variance - left_mean.square() / left_variance) / 2
        return (
            found,
            matched_mean * (found + left_precision) - left_mean * left_precision,
            log_factor,
        )
