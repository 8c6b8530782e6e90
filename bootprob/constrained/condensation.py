"""Fewer rows: the centres of clusters in the place of the rows of a class, thesis 2.3.4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["condense"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MINI_BATCH_ROWS = 10_000  # of a class, beyond which k-means looks at samples


def condense(
    rows: Floats,
    positive: Bools,
    weight: Floats,
    n_centres: int,
    random_state: np.random.RandomState,
) -> tuple[Floats, Bools, Floats]:
    """Replace the rows of each class by k-means centres.

    Each class gets centres in proportion to its rows, one at least.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Positive.
    n_centres : int
        Wanted in all; fewer where there are fewer distinct rows.
    random_state : RandomState

    Returns
    -------
    centres : ndarray, shape (k, p)
        Weighted means of their rows.
    positive : ndarray of bool, shape (k,)
    weight : ndarray, shape (k,)
        Sum of the weights of their rows.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    parts = []
    for label in (False, True):
        here = positive == label
        if not here.any():
            continue
        members, mass = rows[here], weight[here]
        wanted = max(1, round(n_centres * here.mean()))
        k = min(wanted, len(np.unique(members, axis=0)))
        method = KMeans if len(members) <= _MINI_BATCH_ROWS else MiniBatchKMeans
        means = method(n_clusters=k, n_init=1, random_state=random_state)
        cluster = means.fit_predict(members, sample_weight=mass)
        total = np.bincount(cluster, mass, k)
        centres = np.zeros((k, members.shape[1]))
        np.add.at(centres, cluster, members * mass[:, None])
        some = total > 0
        parts.append((centres[some] / total[some, None], np.full(some.sum(), label), total[some]))
    centres_of, labels, weights = zip(*parts, strict=True)
    return np.concatenate(centres_of), np.concatenate(labels), np.concatenate(weights)
