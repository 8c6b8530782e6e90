"""Fewer rows: one in the place of equal ones, or centres of clusters, thesis 2.3.4."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "condense", "fewer_rows", "merge_rows"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
Rows = tuple[Floats, Bools, Floats]
"""Values, shape (n, p), whether they are positives, and weights."""

_MINI_BATCH_ROWS = 10_000  # of a class, beyond which k-means looks at samples


def fewer_rows(
    max_rows: int | None,
    rows: Floats,
    positive: Bools,
    weight: Floats,
    training: Indices,
    anchors: Indices,
    random_state: np.random.RandomState,
) -> tuple[Rows, Rows, Indices | None]:
    """Rows, labels and weights of I and J: equal rows are one, and too many are condensed.

    Parameters
    ----------
    max_rows : int or None
        Distinct rows of I and J from which they are condensed; None: never.
    rows : ndarray, shape (n, p)
        Standardised.
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
    training, anchors : ndarray of int
        Rows of I and J.
    random_state : RandomState

    Returns
    -------
    training, anchors : Rows
        The very same object where J = I.
    group : ndarray of int, shape (len(anchors),), or None
        Which row of J each anchor has become; None if condensed.
    """

    def distinct(which: Indices) -> tuple[Rows, Indices]:
        chosen = rows[which], positive[which], weight[which]
        first, group, total = merge_rows(*chosen)
        if len(first) == len(which):  # in their own order
            return chosen, np.arange(len(which))
        return (chosen[0][first], chosen[1][first], total), group

    held, group = distinct(anchors)
    same = np.array_equal(training, anchors)
    train = held if same else distinct(training)[0]
    inside = len(train[0]) + (0 if same else len(held[0]))
    if max_rows is None or min(inside, len(np.union1d(training, anchors))) <= max_rows:
        return train, held, group

    def some(chosen: Rows) -> Rows:
        if len(chosen[0]) == 0:
            return chosen
        return condense(*chosen, max(2, int(max_rows * len(chosen[0]) / inside)), random_state)

    condensed = some(train)
    return condensed, condensed if same else some(held), None


def merge_rows(
    rows: Floats, labels: NDArray[Any], amount: Floats
) -> tuple[Indices, Indices, Floats]:
    """One row in the place of those with equal values and labels.

    Parameters
    ----------
    rows : ndarray, shape (n, p)
    labels : ndarray, shape (n,) or (n, k)
    amount : ndarray, shape (n,)
        Costs or weights.

    Returns
    -------
    first : ndarray of int, shape (m,)
        A row of each group.
    group : ndarray of int, shape (n,)
        The group that each row is in.
    total : ndarray, shape (m,)
        Sum of the amounts of each group.
    """
    keys = np.column_stack([rows, labels])
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    return first, group, np.bincount(group, amount, len(first)).astype(np.float64)


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
