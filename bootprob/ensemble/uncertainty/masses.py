"""Integrals of Gaussian factors of labels over the coefficients that they look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob.ensemble.uncertainty.expectation_propagation import Blocks, Sites, factor_of, sums

__all__ = ["Masses", "log_masses_of_rows"]

_NUMBERS_AT_ONCE = 2**23


@dataclass(frozen=True)
class Masses:
    """What given factors say of coefficients β, whatever the prior of these.

    Attributes
    ----------
    matrix : Tensor, shape (d, d)
        Precision of β, below its diagonal.
    vector : Tensor, shape (d,)
        That times the mean.
    log_mass : float
        Logarithm of what noise leaves out.
    """

    matrix: Tensor
    vector: Tensor
    log_mass: float

    @classmethod
    def of(cls, blocks: Blocks, sites: Sites, noise: Tensor | None) -> Masses:
        """From columns and factors, as `approximate` has them."""
        _, first = next(iter(blocks))
        nothing = first.new_zeros(first.shape[1])
        matrix, vector = sums(blocks, sites.without(noise), torch.diag(nothing), nothing)
        return cls(matrix, vector, 0.0 if noise is None else float(sites.log_mass(noise)))

    def beside(self, precisions: Tensor) -> list[float]:
        """Logarithms of the integral over β, but for what depends on the factors alone.

        Parameters
        ----------
        precisions : Tensor, shape (m, d)
            Prior precisions of β, of several settings.
        """
        found = []
        for chunk in precisions.split(max(1, _NUMBERS_AT_ONCE // self.matrix.numel())):
            factors = factor_of(self.matrix + torch.diag_embed(chunk))
            reached = torch.linalg.solve_triangular(
                factors, self.vector[None, :, None], upper=False
            )
            log_diagonals = factors.diagonal(dim1=1, dim2=2).log().sum(1)
            found.append(chunk.log().sum(1) / 2 - log_diagonals + reached.square().sum((1, 2)) / 2)
        return (torch.cat(found) + self.log_mass).tolist()


def log_masses_of_rows(
    grams: Tensor, sites: Sites, variances: Tensor, noise: Tensor | None
) -> list[float]:
    """The same from inner products of rows, which is quicker where columns are more than rows.

    With ``K = Σ_b σ_b² G_b`` and the noise on its diagonal, factors of precision T and shift ν:
    ``½ νᵀ (K⁻¹ + T)⁻¹ ν − ½ log det(1 + T^½ K T^½)``.

    Parameters
    ----------
    grams : Tensor, shape (b, n, n)
        Of blocks of columns.
    sites : Sites
    variances : Tensor, shape (m, b)
        Prior variances σ² of these, of several settings.
    noise : Tensor, shape (m, n), or None
        As of `approximate`, for each setting.
    """
    root, found = sites.precision.sqrt(), []
    for number, own in enumerate(variances):
        covariance = torch.tensordot(own, grams, dims=1)
        if noise is not None:
            covariance.diagonal().add_(noise[number])
        reached = covariance @ sites.shift
        covariance *= root
        covariance *= root.unsqueeze(1)
        covariance.diagonal().add_(1)
        factor = factor_of(covariance)
        known = torch.linalg.solve_triangular(factor, (root * reached).unsqueeze(1), upper=False)
        fitted = sites.shift @ reached - known.square().sum()
        found.append(fitted / 2 - factor.diagonal().log().sum())
    return torch.stack(found).tolist()
