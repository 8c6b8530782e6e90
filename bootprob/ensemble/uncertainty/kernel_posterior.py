"""What a kernel can say of the true logit of a row, given the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats, Integers
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.hardware.threads import in_threads
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["LEAST_VARIANCE", "KernelPosterior", "landmark_values"]


_NUMBERS_AT_ONCE = {"cpu": 2**19, "cuda": 2**24}
LEAST_VARIANCE = 1e-12  # where rounding leaves none


@dataclass(frozen=True)
class KernelPosterior:
    """Logits that are a Gaussian process with the model's kernel, given the labels.

    Machines trained for the hinge loss bend where classes meet and flatten elsewhere: they smooth
    probabilities by an amount that does not vanish with more rows, and resampling shows nothing
    of it. A Gaussian process of the same kernel on the logits, whose likelihood is that of the
    labels, has no such preference, and its posterior covers smooth truths on average over the
    rows (G. Wahba, J. R. Stat. Soc. B 45 (1983) 133–150; D. Nychka, J. Am. Stat. Assoc. 83 (1988)
    1134–1143). `bootprob.ensemble.uncertainty.kernel_posterior_fit` fits it.

    The process has the kernel ``σ² k(x, z) / u`` with unknown γ and σ, so that the posterior is a
    mixture over the pairs of them that the labels leave possible; u is 1 for kernels that are 1 on
    their diagonal, as RBF kernels are, else the mean of the diagonal over the training rows. With
    ``κ(x)`` the kernel (σ = 1) between x and the landmarks, after a leading 1 for the intercept,
    each pair's logit is normal, of mean ``c · κ(x)`` and variance
    ``σ² k(x, x) / u + κ(x)ᵀ S κ(x)``. Pairs differ in scale, and the mixture is skewed: its
    quantiles are not those of its moments. New rows of a precomputed kernel have the diagonal of
    the training rows, which must be constant.

    Attributes
    ----------
    gamma, prior_variance : ndarray, shape (g,)
        γ, or 0 for a kernel without one, and σ² of each pair.
    weight : ndarray, shape (g,)
        Its posterior probability.
    coefficients : ndarray, shape (g, l + 1)
        c.
    quadratic : ndarray, shape (g, l + 1, l + 1)
        S.
    landmarks : ndarray, shape (l, p), or None
        Rows as the kernel sees them.
    support : ndarray of int, shape (l,), or None
        Of a precomputed kernel, which training rows they are.
    unit : ndarray, shape (g,), or None
        u, where it is not 1.
    """

    gamma: Floats
    prior_variance: Floats
    weight: Floats
    coefficients: Floats
    quadratic: Floats
    landmarks: Floats | None = None
    support: Integers | None = None
    unit: Floats | None = None

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks, l."""
        return self.coefficients.shape[1] - 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that there are, by name."""
        return {name: array for name, array in vars(self).items() if array is not None}

    def moments(
        self, rows: Floats | torch.Tensor, kernel: KernelFunction, device: torch.device
    ) -> Floats:
        """Mean and standard deviation of the true logits of rows, under each pair.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            As the kernel sees them; a tensor on any device.
        kernel : KernelFunction
            Whose γ are those here.
        device : torch.device
            Where to work; in float64.

        Returns
        -------
        ndarray, shape (m, g, 2)
        """
        arrays = {name: torch.from_numpy(a).to(device) for name, a in self.arrays().items()}
        at_once = _NUMBERS_AT_ONCE["cpu" if device.type == "cpu" else "cuda"]
        blocks = list(row_blocks(len(rows), len(self.gamma) * (self.n_landmarks + 1), at_once))
        if not blocks:
            return np.zeros((0, len(self.gamma), 2))

        def some(which: slice) -> list[torch.Tensor]:
            each = (torch.as_tensor(rows[block], device=device) for block in blocks[which])
            return [_moments(block, kernel, arrays) for block in each]

        found = in_threads(some, len(blocks), device)
        return np.ascontiguousarray(torch.cat(list(chain.from_iterable(found))).cpu().numpy())


def _moments(
    rows: torch.Tensor, kernel: KernelFunction, arrays: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    gammas, which = arrays["gamma"].unique(return_inverse=True)
    if kernel.gamma is not None:
        kernel = replace(kernel, gamma=gammas)
    values = landmark_values(kernel, rows, arrays.get("landmarks"), arrays.get("support"))
    columns = torch.cat([torch.ones_like(values[..., :1]), values], dim=-1)  # (γ, m, l + 1)
    known = None if "unit" not in arrays or not kernel.has_features else kernel.diagonal(rows)
    found = []
    for pair, gamma in enumerate(which.tolist()):
        own, prior = columns[gamma], arrays["prior_variance"][pair]
        if "unit" in arrays:
            unit = arrays["unit"][pair]
            own = torch.cat([own[:, :1], own[:, 1:] / unit], dim=1)
            if known is not None:
                prior = prior * known[gamma] / unit
        variance = ((own @ arrays["quadratic"][pair]) * own).sum(1) + prior
        deviation = variance.clamp_min(LEAST_VARIANCE).sqrt()
        found.append(torch.stack([own @ arrays["coefficients"][pair], deviation], dim=1))
    return torch.stack(found, dim=1)


def landmark_values(
    kernel: KernelFunction,
    rows: torch.Tensor,
    landmarks: torch.Tensor | None,
    support: torch.Tensor | None,
) -> torch.Tensor:
    """Kernel between rows (m, p) and landmarks, or training rows by number; (G, m, l)."""
    if support is None:
        support = rows.new_empty(0, dtype=torch.int64)
    return kernel.with_known(rows, landmarks, support, rows.new_ones(1), torch.float64)
