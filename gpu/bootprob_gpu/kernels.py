"""Gram matrices of the rows that replicates see, and rules for γ."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bootprob_gpu.problem import InputError

__all__ = ["cross_gram", "median_gamma", "scale_gamma"]

_MEDIAN_ROWS = 1000  # rows whose pairwise distances the median rule looks at


def cross_gram(rows: Tensor, others: Tensor, gammas: Tensor | None) -> Tensor:
    """Kernel between two sets of rows, for every γ.

    Parameters
    ----------
    rows : Tensor, shape (..., m, p)
        Rows as a replicate sees them: centred near 0, divided by its scale.
    others : Tensor, shape (..., n, p)
        The rows against them.
    gammas : Tensor, shape (G,), optional
        Values of γ for ``exp(−γ ‖x − z‖²)``; None for the linear kernel ``x·z``.

    Returns
    -------
    Tensor, shape (..., G, m, n)
        With G = 1 for the linear kernel.
    """
    products = rows @ others.mT
    if gammas is None:
        return products.unsqueeze(-3)
    squares = rows.square().sum(-1).unsqueeze(-1) + others.square().sum(-1).unsqueeze(-2)
    distances = products.mul_(-2).add_(squares).clamp_min_(0).unsqueeze(-3)
    if distances.dtype != torch.float64:
        # Squares beyond float32 make ∞ − ∞ of what is simply far apart.
        largest = torch.finfo(distances.dtype).max
        distances = distances.nan_to_num_(nan=largest, posinf=largest)
        gammas = gammas.clamp_max(largest)
    gammas = gammas.to(distances.dtype)
    if len(gammas) == 1:
        return distances.mul_(-gammas[0]).exp_()
    return (-gammas[:, None, None] * distances).exp_()  # in place: 1 + G matrices at the peak


def scale_gamma(X: ArrayLike) -> float:
    """γ by scikit-learn's rule "scale": 1 / (p · variance of all entries of X).

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows as the kernel sees them.
    """
    X = np.asarray(X, dtype=np.float64)
    variance = X.var()
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def median_gamma(X: ArrayLike) -> float:
    """γ by the "sigest" rule: 1 / median of the squared distances between rows.

    Caputo, Sim, Furesjö, Smola, "Appearance-based object recognition using SVMs: which kernel
    should I use?", NIPS workshop 2002. At most 1,000 rows, evenly spaced, are looked at;
    distances of 0 (duplicated rows) are left out.

    Parameters
    ----------
    X : array_like, shape (n, p)
        The rows as the kernel sees them.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}; it must be two-dimensional.")
    picked = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MEDIAN_ROWS)).astype(int))
    rows = torch.from_numpy(X[picked] - X[picked].mean(axis=0))
    distances = torch.pdist(rows).square()
    distances = distances[distances > 0]
    return 1.0 / float(distances.median()) if len(distances) else 1.0
