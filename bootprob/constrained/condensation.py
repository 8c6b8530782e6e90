"""Fewer rows: one in the place of equal ones, or centres of clusters, thesis 2.3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Bools, Floats, Indices

__all__ = ["Centres", "DistinctRows", "Rows", "centres_of", "condense", "distinct", "merge_rows"]

Rows = tuple[Floats, Bools, Floats]
"""Values, shape (n, p), whether they are positives, and weights."""

_MINI_BATCH_ROWS = 10_000  # of a class, beyond which k-means looks at samples
_SEED = 0  # of k-means: the same rows have the same centres


@dataclass(frozen=True)
class DistinctRows:
    """The sets I and J with equal rows of a class as one.

    Attributes
    ----------
    train, held : Rows
        Of I and J; the very same object where J = I.
    group : ndarray of int, shape (n_anchors,)
        Which row of J each anchor has become.
    """

    train: Rows
    held: Rows
    group: Indices


@dataclass(frozen=True)
class Centres:
    """Centres that stand for the rows of I and J.

    Attributes
    ----------
    train, held : Rows
        The very same object where J = I.
    of_train : ndarray of int, shape (len(train rows),)
        Which centre stands for each row of I.
    """

    train: Rows
    held: Rows
    of_train: Indices

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.train[0]) + (0 if self.held is self.train else len(self.held[0]))


def distinct(
    rows: Floats, positive: Bools, weight: Floats, training: Indices, anchors: Indices
) -> DistinctRows:
    """Standardised rows (n, p), labels and weights (n,) of I and J, equal rows being one."""

    def of(which: Indices) -> tuple[Rows, Indices]:
        chosen = rows[which], positive[which], weight[which]
        first, group, total = merge_rows(*chosen)
        if len(first) == len(which):  # in their own order
            return chosen, np.arange(len(which))
        return (chosen[0][first], chosen[1][first], total), group

    held, group = of(anchors)
    train = held if np.array_equal(training, anchors) else of(training)[0]
    return DistinctRows(train, held, group)


def centres_of(sets: DistinctRows, max_rows: int | None) -> Centres | None:
    """Centres in the place of more distinct rows of I and J than `max_rows` (None: never).

    They are the same for the same rows.
    """
    same = sets.held is sets.train
    n_train, n_held = len(sets.train[0]), 0 if same else len(sets.held[0])
    if max_rows is None or n_train + n_held <= max_rows:
        return None

    def some(chosen: Rows) -> tuple[Rows, Indices]:
        if len(chosen[0]) == 0:
            return chosen, np.zeros(0, dtype=np.intp)
        return condense(*chosen, max(2, int(max_rows * len(chosen[0]) / (n_train + n_held))))

    train, of_train = some(sets.train)
    return Centres(train, train if same else some(sets.held)[0], of_train)


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


def condense(rows: Floats, positive: Bools, weight: Floats, n_centres: int) -> tuple[Rows, Indices]:
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

    Returns
    -------
    centres : Rows
        Weighted means of their rows, labels, and sums of the weights of their rows.
    own : ndarray of int, shape (n,)
        The centre of each row.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    parts: list[Rows] = []
    own = np.empty(len(rows), dtype=np.intp)
    done = 0
    for label in (False, True):
        here = positive == label
        if not here.any():
            continue
        members, mass = rows[here], weight[here]
        wanted = max(1, round(n_centres * here.mean()))
        k = min(wanted, len(np.unique(members, axis=0)))
        method = KMeans if len(members) <= _MINI_BATCH_ROWS else MiniBatchKMeans
        means = method(n_clusters=k, n_init=1, random_state=_SEED)
        _, cluster = np.unique(means.fit_predict(members, sample_weight=mass), return_inverse=True)
        total = np.bincount(cluster, mass)
        centres = np.zeros((len(total), members.shape[1]))
        np.add.at(centres, cluster, members * mass[:, None])
        labels = np.full(len(total), label, dtype=np.bool_)
        parts.append((centres / total[:, None], labels, total.astype(np.float64)))
        own[here] = done + cluster
        done += len(total)
    values, classes, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return (values, classes, weights), own
