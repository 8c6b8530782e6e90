"""A test of independent rows: whether they are repeated measurements of few subjects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import norm

from bootprob.runtime.arrays import Floats, Integers

__all__ = ["repeated_rows"]

_FEWEST = 60
_ASKED, _LEAST_ASKED = 1000, 200  # rows whose neighbours are looked for
_PAIRS = 20_000_000  # of rows, above which fewer are asked
_AT_ONCE = 2_000_000
_ROUNDING = 1e-12  # of a squared distance, relative to that from the mean
_NEAR, _FAR = 10, 20
_SHARED = 0.2  # correlation of residuals beyond that of rows a little further away
_CLOSER = 0.97  # distance of the nearest row, relative to that of independent rows
_MEDIAN_OF_NEAREST = 1 - 0.5 ** (1 / 9)  # of Beta(1, 9): volume up to the 1st of 10 neighbours


def repeated_rows(rows: Floats, positive: NDArray[np.bool_], probability: Floats) -> float:
    """Test whether the nearest row has the same label because it is of the same subject.

    Residuals of a row and its nearest one agree more than those of the row and its 11th to 20th
    neighbour: ``S = Σ r_i (r_i1 − mean r_i11…r_i20)`` is compared with its variance for independent
    labels. Where probabilities are wrong over whole regions both agree. Two more conditions tell
    subjects from a truth that is merely rough: the residuals' correlation is at least .2, and the
    nearest row is closer than it is among independent rows of that dimension (the dimension is
    that of the 10th and 20th neighbours' distances: E. Levina, P. Bickel, NIPS 17 (2004) 777–784).

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    probability : ndarray, shape (n,)

    Returns
    -------
    float
        p-value; 1 where the conditions do not hold, or for fewer than 60 rows.
    """
    n = len(rows)
    if n < _FEWEST:
        return 1.0
    n_asked = min(n, max(_LEAST_ASKED, min(_ASKED, _PAIRS // n)))
    asked = np.linspace(0, n - 1, n_asked).astype(np.intp)
    near, distance = _nearest(rows, asked)
    if not _closer(distance):
        return 1.0
    weight = np.zeros(_FAR)
    weight[0], weight[_NEAR:] = 1.0, -1 / (_FAR - _NEAR)
    used = weight != 0
    index = np.repeat(asked, used.sum()), near[:, used].ravel()
    pairs = csr_array((np.tile(weight[used], len(asked)), index), shape=(n, n))
    pairs = pairs + pairs.T
    residual, variance = positive - probability, probability * (1 - probability)
    agreement = residual @ (pairs @ residual) / 2
    deviation = np.sqrt(variance @ (pairs.multiply(pairs) @ variance) / 2)
    if not agreement > _SHARED * variance[asked].sum():
        return 1.0
    return float(norm.sf(agreement / deviation))


def _nearest(rows: Floats, asked: Integers) -> tuple[Integers, Floats]:
    """The 20 nearest other rows of each, and their distances, in order, shape (m, 20)."""
    near, distance = [], []
    norms = np.square(rows).sum(axis=1)
    for block in np.array_split(asked, -(-len(asked) // max(1, _AT_ONCE // len(rows)))):
        squared = norms[block, None] + norms - 2 * rows[block] @ rows.T
        squared[squared < _ROUNDING * norms] = 0.0
        squared[np.arange(len(block)), block] = np.inf
        found = np.argpartition(squared, _FAR, axis=1)[:, :_FAR]
        of_found = np.take_along_axis(squared, found, axis=1)
        order = of_found.argsort(axis=1)
        near.append(np.take_along_axis(found, order, axis=1))
        distance.append(np.sqrt(np.take_along_axis(of_found, order, axis=1)))
    return np.vstack(near), np.vstack(distance)


def _closer(distance: Floats) -> bool:
    """Whether nearest rows are closer than among independent rows, but no copies."""
    first, near, far = distance[:, (0, _NEAR - 1, _FAR - 1)].T
    apart = (first > 0) & (far > near)
    if 2 * np.count_nonzero(apart) < len(distance):
        return False
    dimension = np.log(_FAR / _NEAR) / np.log(np.median(far[apart] / near[apart]))
    ratio = np.median(first[apart] / near[apart])
    return bool(ratio < _CLOSER * _MEDIAN_OF_NEAREST ** (1 / dimension))
