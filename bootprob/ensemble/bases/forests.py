"""A random forest's own trees as the replicates: each is of a bootstrap sample already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from bootprob.runtime.arrays import Floats

__all__ = ["counts_of_trees", "is_forest", "scores_of_trees"]


def is_forest(classifier: Any) -> bool:
    """Whether it is scikit-learn's forest, whose trees are of bootstrap samples."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # heavy

    forests = RandomForestClassifier, ExtraTreesClassifier
    return isinstance(classifier, forests) and bool(classifier.bootstrap)


def counts_of_trees(forest: Any, n: int) -> NDArray[np.uint16]:
    """How often each tree of a fitted forest saw each of n training rows, shape (B, n)."""
    counts = np.zeros((len(forest.estimators_), n), dtype=np.uint16)
    for count, drawn in zip(counts, forest.estimators_samples_, strict=True):
        count += np.bincount(drawn, minlength=n).astype(np.uint16)
    return counts


def scores_of_trees(trees: Sequence[Any], X: Any) -> Floats:
    """What each tree says of rows, shape (m, B, 1) or (m, B, K).

    Shares of its leaf's rows, and not their log-odds: leaves are pure, and a forest is the mean of
    shares. Of two classes that of the second, less one half, so that a tree votes by its sign.
    """
    with np.errstate(over="ignore"):  # it becomes infinite, and is refused
        rows = check_array(X, dtype=np.float32, accept_sparse="csr", ensure_all_finite="allow-nan")
    shares = np.stack([tree.predict_proba(rows, check_input=False) for tree in trees], axis=1)
    return shares[..., 1:] - 0.5 if shares.shape[2] == 2 else shares
