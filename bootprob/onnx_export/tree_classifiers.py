"""Trees of classifiers as one node of a graph for each candidate: all replicates side by side.

skl2onnx says what the nodes of a tree of scikit-learn are. Forests compare float32 with a
threshold, as they do in scikit-learn, and boosting float64; the sums come out as float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from bootprob.ensemble.bases.class_scores import least_probability
from bootprob.ensemble.state import TwoClassState
from bootprob.exceptions import DataError
from bootprob.onnx_export.graph import MOST_BYTES, Graph
from bootprob.onnx_export.lightgbm_trees import is_lightgbm, lightgbm_nodes
from bootprob.onnx_export.linear_classifiers import without_freezing

__all__ = ["add_tree_scores", "are_trees"]

_FORESTS = RandomForestClassifier, ExtraTreesClassifier
_KINDS = (DecisionTreeClassifier, ExtraTreeClassifier, *_FORESTS, HistGradientBoostingClassifier)
_BYTES = 60  # of a node in a file, at most


def are_trees(classifier: Any) -> bool:
    """Whether it is a tree of scikit-learn, made of them or LightGBM's, and of no other class."""
    found = without_freezing(classifier)
    return type(found) in _KINDS or is_lightgbm(found)


def add_tree_scores(graph: Graph, state: TwoClassState, X: str, candidate: int) -> str:
    """Add scores for the second class of two by each replicate of a candidate, (m, B).

    Parameters
    ----------
    graph : Graph
    state : TwoClassState
        Of classifiers, or of a pair of classes of such.
    X : str
        Rows, float64, shape (m, p).
    candidate : int
        Whose replicates `are_trees`.

    Raises
    ------
    DataError
        skl2onnx is missing; boosting is of a kind that a graph cannot have; or the file would be
        too large.
    """
    assert state.estimators_ is not None
    fitted = [without_freezing(replicate[candidate]) for replicate in state.estimators_]
    boosting = isinstance(fitted[0], HistGradientBoostingClassifier) or is_lightgbm(fitted[0])
    K, B = state.n_classes, len(fitted)
    width = 1 if boosting and K == 2 else K
    key = f"trees {id(state.estimators_)} {candidate}"
    if key not in graph.shared:  # which pairs of classes share
        graph.shared[key] = _add_sums(graph, fitted, X, K)
    sums, first = graph.shared[key], np.arange(B) * width
    if width == 1:
        return sums

    def of_class(k: int) -> str:
        share = graph.add("Gather", sums, first + k, axis=1)
        if boosting or state.drawn_counts_ is not None:
            return share
        least = least_probability(state.whole_weight)
        return graph.add("Clip", share, np.float64(least), np.float64(1 - least if K == 2 else 1))

    one, other = state.pair
    if K == 2 and state.drawn_counts_ is not None:  # a forest's own trees
        return graph.add("Sub", of_class(1), np.float64(0.5))
    second, against = of_class(other), of_class(one)
    if boosting or state.drawn_counts_ is not None:
        return graph.add("Sub", second, against)
    return graph.add("Sub", graph.add("Log", second), graph.add("Log", against))


def _add_sums(graph: Graph, fitted: list[Any], X: str, K: int) -> str:
    """What leaves add up to, float64, shape (m, B), or for each class of each (m, B · K)."""
    if is_lightgbm(fitted[0]):
        made = lightgbm_nodes(fitted, K)
        return _add_nodes(graph, X, _bytes_of(len(made["nodes_modes"])), made)
    try:
        from skl2onnx.common import tree_ensemble
    except ImportError as error:
        raise DataError(
            f"Graphs of trees are made by skl2onnx: {error}; pip install skl2onnx."
        ) from error
    from onnx import TensorProto

    boosting = isinstance(fitted[0], HistGradientBoostingClassifier)
    width = 1 if boosting and K == 2 else K
    if boosting and any(each.is_categorical_ is not None for each in fitted):
        raise DataError(
            "HistGradientBoostingClassifier with categorical_features splits categories, and a "
            "graph of trees splits numbers; serve the model, or score files with it."
        )
    trees = [tree for each in fitted for tree, _ in _trees(each)]
    size = _bytes_of(sum(len(tree.nodes) if boosting else tree.node_count for tree in trees))
    made = tree_ensemble.get_default_tree_regressor_attribute_pairs()
    number = 0
    for b, each in enumerate(fitted):
        share = 1.0 / sum(1 for _ in _trees(each))
        for tree, k in _trees(each):
            at = made, False, tree, number
            if boosting:
                tree_ensemble.add_tree_to_attribute_pairs_hist_gradient_boosting(
                    *at, 1.0, b * width + k, False, False, dtype=np.float64
                )
            else:
                tree_ensemble.add_tree_to_attribute_pairs(
                    *at, share, b * width, True, True, dtype=np.float32
                )
            number += 1
    made["n_targets"] = len(fitted) * width
    del made["nodes_hitrates"]
    tracks = "nodes_missing_value_tracks_true"
    made[tracks] = list(map(int, made[tracks]))
    rows = X
    if boosting:
        for name in ("nodes_values", "target_weights"):
            made[f"{name}_as_tensor"] = np.array(made.pop(name), dtype=np.float64)
    else:
        rows = graph.add("Cast", X, to=TensorProto.FLOAT)
        for name in ("nodes_values", "target_weights"):
            made[name] = list(map(float, made[name]))
    sums = _add_nodes(graph, rows, size, made)
    if not boosting:
        return sums
    base = np.concatenate([np.ravel(each._baseline_prediction) for each in fitted])
    return graph.add("Add", sums, base[None].astype(np.float64))


def _add_nodes(graph: Graph, rows: str, size: int, made: dict[str, Any]) -> str:
    from onnx import TensorProto

    return graph.add("Cast", graph.add_trees(rows, size, made), to=TensorProto.DOUBLE)


def _bytes_of(n_nodes: int) -> int:
    """Of a file; too many are refused."""
    size = n_nodes * _BYTES
    if size > MOST_BYTES:
        raise DataError(
            f"The trees have {n_nodes:,} nodes, some {size / 1e9:.1f} GB, and an ONNX file may "
            "have 2; give fewer samples (n_bootstraps, tolerance) or smaller trees."
        )
    return size


def _trees(classifier: Any) -> Iterator[tuple[Any, int]]:
    """Its trees, each with the class that it is of, where it is of one."""
    if isinstance(classifier, HistGradientBoostingClassifier):
        for iteration in classifier._predictors:
            yield from ((tree, k) for k, tree in enumerate(iteration))
    elif isinstance(classifier, _FORESTS):
        yield from ((each.tree_, 0) for each in classifier.estimators_)
    else:
        yield classifier.tree_, 0
