"""A test of any kernel: whether out-of-bag residuals of neighbouring rows agree in sign."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from bootprob.metrics.drawn_labels import drawn_residuals, tail_p_values
from bootprob.runtime.arrays import Floats

__all__ = ["residual_neighbours"]

_BANDWIDTHS = (1.0, 4.0, 16.0)  # γ in units of the inverse median squared distance


def residual_neighbours(
    rows: Floats,
    positive: NDArray[np.bool_],
    probability: Floats,
    weight: Floats,
    *,
    precomputed: bool = False,
) -> tuple[float, float]:
    """Test whether probabilities are wrong in the same way over whole regions.

    ``T = Σ_{i ≠ j} K_ij r_i r_j`` with ``r = y − p`` is large where they are (S. le Cessie,
    J. van Houwelingen, Biometrics 47 (1991) 1267–1282). It is compared with labels drawn from the
    probabilities; the largest standardised T over three widths of an RBF kernel counts. The test
    errs on the safe side: out of bag, residuals of neighbours repel one another a little, because
    the label of each moves the probability of the other. What it finds is real; what is rough, or
    lies where few rows are, it does not find.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised, or of the matrix of a kernel (n, n).
    positive : ndarray of bool, shape (n,)
    probability, weight : ndarray, shape (n,)
        Out-of-bag probabilities, and positive row weights.
    precomputed : bool, default False
        Whether `rows` are values of a kernel.

    Returns
    -------
    p_value : float
        1 without any distance between the rows.
    statistic : float
        The largest T in standard deviations.
    """
    distance = _in_feature_space(rows) if precomputed else pdist(rows, "sqeuclidean")
    median = float(np.median(distance))
    if median == 0:
        return 1.0, 0.0
    scale = np.sqrt(weight / weight.mean())
    spread = np.square(scale) * probability * (1 - probability)
    residuals = scale * drawn_residuals(positive, probability)
    largest = np.full(len(residuals), -np.inf)
    for bandwidth in _BANDWIDTHS:
        # Zero on the diagonal, which is left out of T.
        gram = squareform(np.exp(distance * (-bandwidth / median)))
        deviation = np.sqrt(2 * spread @ np.square(gram) @ spread)
        if deviation > 0:
            forms = np.einsum("dn,dn->d", residuals, residuals @ gram)
            largest = np.maximum(largest, forms / deviation)
    if not np.isfinite(largest).all():
        return 1.0, 0.0
    return float(tail_p_values(largest[:, None])[0, 0]), float(largest[0])


def _in_feature_space(kernel: Floats) -> Floats:
    """Squared distances ``k(x, x) + k(z, z) − 2 k(x, z)`` of each pair once."""
    first, second = np.triu_indices(len(kernel), 1)
    diagonal = kernel.diagonal()
    return np.maximum(diagonal[first] + diagonal[second] - 2 * kernel[first, second], 0.0)
