"""What an RBF kernel can say of the true logit of a row, given the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu.kernels.rbf import Rbf

__all__ = ["KernelPosterior"]


_NUMBERS_AT_ONCE = {"cpu": 2**19, "cuda": 2**24}
_LEAST_VARIANCE = 1e-12  # where rounding leaves none


@dataclass(frozen=True)
class KernelPosterior:
    """Logits that are a Gaussian process with the model's kernel, given the labels.

    Machines trained for the hinge loss bend where classes meet and flatten elsewhere: they smooth
    probabilities by an amount that does not vanish with more rows, and resampling shows nothing
    of it. A Gaussian process of the same kernel on the logits, whose likelihood is that of the
    labels, has no such preference, and its posterior covers smooth truths on average over the
    rows (G. Wahba, J. R. Stat. Soc. B 45 (1983) 133–150; D. Nychka, J. Am. Stat. Assoc. 83 (1988)
    1134–1143). `bootprob.ensemble.uncertainty.kernel_posterior_fit` fits it.

    The kernel is ``σ² exp(−γ ‖x − z‖²)`` with unknown γ and σ, so that the posterior is a mixture
    over the pairs of them that the labels leave possible. With ``κ(x)`` the kernel (σ = 1) between
    x and the landmarks, after a leading 1 for the intercept, each pair's logit is normal, of mean
    ``c · κ(x)`` and variance ``σ² + κ(x)ᵀ S κ(x)``. Pairs differ in scale, and the mixture is
    skewed: its quantiles are not those of its moments.

    Attributes
    ----------
    landmarks : ndarray, shape (l, p)
        Rows as the kernel sees them.
    gamma, prior_variance : ndarray, shape (g,)
        γ and σ² of each pair.
    weight : ndarray, shape (g,)
        Its posterior probability.
    coefficients : ndarray, shape (g, l + 1)
        c.
    quadratic : ndarray, shape (g, l + 1, l + 1)
        S.
    """

    landmarks: Floats
    gamma: Floats
    prior_variance: Floats
    weight: Floats
    coefficients: Floats
    quadratic: Floats

    def moments(self, rows: Floats | torch.Tensor, device: torch.device) -> Floats:
        """Mean and standard deviation of the true logits of rows, under each pair.

        Parameters
        ----------
        rows : ndarray or Tensor of float64, shape (m, p)
            As the kernel sees them; a tensor on any device.
        device : torch.device
            Where to work; in float64.

        Returns
        -------
        ndarray, shape (m, g, 2)
        """
        arrays = {name: torch.from_numpy(array).to(device) for name, array in vars(self).items()}
        at_once = _NUMBERS_AT_ONCE["cpu" if device.type == "cpu" else "cuda"]
        blocks = row_blocks(len(rows), len(self.gamma) * (len(self.landmarks) + 1), at_once)
        parts = [_moments(torch.as_tensor(rows[block]).to(device), arrays) for block in blocks]
        if not parts:
            return np.zeros((0, len(self.gamma), 2))
        return np.ascontiguousarray(torch.cat(parts).cpu().numpy())


def _moments(rows: torch.Tensor, arrays: Mapping[str, torch.Tensor]) -> torch.Tensor:
    gammas, which = arrays["gamma"].unique(return_inverse=True)
    kernel = Rbf(gammas).gram(rows, arrays["landmarks"])
    columns = torch.cat([torch.ones_like(kernel[..., :1]), kernel], dim=-1)  # (γ, m, l + 1)
    found = []
    for pair, gamma in enumerate(which.tolist()):
        own = columns[gamma]
        variance = ((own @ arrays["quadratic"][pair]) * own).sum(1) + arrays["prior_variance"][pair]
        deviation = variance.clamp_min(_LEAST_VARIANCE).sqrt()
        found.append(torch.stack([own @ arrays["coefficients"][pair], deviation], dim=1))
    return torch.stack(found, dim=1)
