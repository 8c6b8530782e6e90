"""Is the truth within the kernel's reach? A test on out-of-bag residuals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from bootprob.runtime.arrays import Floats

__all__ = ["SIGNIFICANT", "lack_of_fit"]


SIGNIFICANT = 0.01
"""p-value below which intervals warn."""

_ROWS = 1000
_DRAWS = 999
_AT_ONCE = 111  # draws, which bounds memory
_BANDWIDTHS = (1.0, 4.0, 16.0)  # γ in units of the inverse median squared distance


def lack_of_fit(
    rows: Floats,
    positive: NDArray[np.bool_],
    probability: Floats,
    weight: Floats,
    *,
    precomputed: bool = False,
) -> dict[str, float]:
    """Test whether out-of-bag residuals of neighbouring rows agree in sign.

    ``T = Σ_{i ≠ j} K_ij r_i r_j`` with ``r = y − p`` is large where probabilities are wrong in the
    same way over whole regions, as those of a linear kernel are of a curved truth (S. le Cessie,
    J. van Houwelingen, Biometrics 47 (1991) 1267–1282). It is compared with labels drawn from the
    probabilities; the largest standardised T over three widths of an RBF kernel counts. The test
    errs on the safe side: out of bag, residuals of neighbours repel one another a little, because
    the label of each moves the probability of the other. What it finds is real; what is rough, or
    lies where few rows are, it does not find.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised training rows; of more than 1,000, that many, evenly spaced.
    positive : ndarray of bool, shape (n,)
    probability : ndarray, shape (n,)
        Out-of-bag probabilities, NaN for a row never out of bag.
    weight : ndarray, shape (n,)
        Row weights; rows without weight, or without probability, are left out.
    precomputed : bool, default False
        Whether `rows` is the matrix of a kernel, (n, n), which has the distances between them.

    Returns
    -------
    dict
        "p_value" (at least 0.001; 1 for fewer than ten rows or without any distance between
        them), "statistic", the largest T in standard deviations, and "n_rows".
    """
    known = np.flatnonzero(np.isfinite(probability) & (weight > 0))
    if len(known) > _ROWS:
        known = known[np.linspace(0, len(known) - 1, _ROWS).astype(np.intp)]
    n = len(known)
    found = {"p_value": 1.0, "statistic": 0.0, "n_rows": float(n)}
    if n < 10:
        return found
    distance = _in_feature_space(rows, known) if precomputed else pdist(rows[known], "sqeuclidean")
    median = float(np.median(distance))
    if median == 0:
        return found
    p = probability[known]
    scale = np.sqrt(weight[known] / weight[known].mean())
    spread = np.square(scale) * p * (1 - p)
    largest = np.full(_DRAWS + 1, -np.inf)
    for bandwidth in _BANDWIDTHS:
        # Zero on the diagonal, which is left out of T.
        gram = squareform(np.exp(distance * (-bandwidth / median)))
        deviation = np.sqrt(2 * spread @ np.square(gram) @ spread)
        if deviation > 0:
            statistic = _statistics(gram, positive[known], p, scale) / deviation
            largest = np.maximum(largest, statistic)
    if np.isfinite(largest).all():
        found["statistic"] = float(largest[0])
        found["p_value"] = float((largest >= largest[0]).mean())
    return found


def _in_feature_space(kernel: Floats, known: NDArray[np.intp]) -> Floats:
    """Squared distances ``k(x, x) + k(z, z) − 2 k(x, z)`` of each pair once."""
    own = kernel[np.ix_(known, known)]
    first, second = np.triu_indices(len(known), 1)
    diagonal = own.diagonal()
    return np.maximum(diagonal[first] + diagonal[second] - 2 * own[first, second], 0.0)


def _statistics(
    gram: Floats, positive: NDArray[np.bool_], p: Floats, scale: Floats
) -> NDArray[np.float64]:
    """T of the labels and of labels drawn from the probabilities, shape (1 + draws,).

    Always the same draws: the test is part of the model and must not depend on its seed.
    """
    generator = np.random.default_rng(0)
    found = []
    for start in range(0, _DRAWS, _AT_ONCE):
        size = (min(_AT_ONCE, _DRAWS - start), len(p))
        labels = generator.uniform(size=size) < p
        if start == 0:
            labels = np.vstack([positive, labels])
        residuals = scale * (labels - p)
        found.append(np.einsum("dn,dn->d", residuals, residuals @ gram))
    return np.concatenate(found)
