"""LightGBM's trees as nodes of a graph, from what `Booster.dump_model` says of them.

LightGBM looks at float64 and goes left where a value is at most the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bootprob.exceptions import DataError

__all__ = ["is_lightgbm", "lightgbm_nodes"]

_OF_SPLIT = (
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_falsenodeids",
    "nodes_missing_value_tracks_true",
)
_OF_NODE = ("nodes_treeids", "nodes_nodeids", *_OF_SPLIT)
_OF_LEAF = ("target_treeids", "target_nodeids", "target_ids")


def is_lightgbm(classifier: Any) -> bool:
    """Whether it is an LGBMClassifier of 4.7 or later, and of no other class.

    Earlier ones have no `decision_function`, which is the sum of the leaves.
    """
    kind = type(classifier)
    named = (kind.__module__, kind.__name__) == ("lightgbm.sklearn", "LGBMClassifier")
    return named and hasattr(classifier, "decision_function")


def lightgbm_nodes(fitted: Sequence[Any], K: int) -> dict[str, Any]:
    """Attributes of a ``TreeEnsembleRegressor`` of what their `decision_function` says.

    A target for each classifier of two classes, or for each class of each classifier.

    Parameters
    ----------
    fitted : sequence of LGBMClassifier
        Of the same parameters.
    K : int
        Number of classes.

    Raises
    ------
    DataError
        Trees split categories, have linear models in their leaves, or take zeros for gaps; or not
        all of them are asked about every row.
    """
    made, width = _Nodes(), 1 if K == 2 else K
    for b, classifier in enumerate(fitted):
        booster = classifier.booster_
        if booster.params.get("pred_early_stop"):
            raise DataError(
                "LGBMClassifier with pred_early_stop leaves trees out, row by row, and a graph has "
                "all; serve the model, or score files with it."
            )
        dumped = booster.dump_model()
        of_iteration = dumped["num_tree_per_iteration"]
        for number, tree in enumerate(dumped["tree_info"]):
            k = number % of_iteration
            # two classes may have a score each, of which the difference counts
            sign = -1 if (K, of_iteration, k) == (2, 2, 0) else 1
            made.add_tree(tree["tree_structure"], b * width + k % width, sign)
    return made.attributes(len(fitted) * width)


class _Nodes:
    def __init__(self) -> None:
        self._n_trees = 0
        self._integers: dict[str, list[int]] = {name: [] for name in (*_OF_NODE, *_OF_LEAF)}
        self._modes: list[str] = []
        self._values: list[float] = []
        self._weights: list[float] = []

    def add_tree(self, root: dict[str, Any], target: int, sign: int) -> None:
        """Add a tree, by its root, or take it away."""
        waiting, last = [(0, root)], 0
        while waiting:
            number, node = waiting.pop()
            if "leaf_value" in node:
                self._add_leaf(number, node, target, sign)
            else:
                self._add_split(number, node, last + 1)
                waiting += [(last + 1, node["left_child"]), (last + 2, node["right_child"])]
                last += 2
        self._n_trees += 1

    def attributes(self, n_targets: int) -> dict[str, Any]:
        """Of a ``TreeEnsembleRegressor``."""
        return {
            "n_targets": n_targets,
            "post_transform": "NONE",
            "aggregate_function": "SUM",
            "nodes_modes": self._modes,
            "nodes_values_as_tensor": np.array(self._values),
            "target_weights_as_tensor": np.array(self._weights),
            **self._integers,
        }

    def _add_split(self, number: int, node: dict[str, Any], left: int) -> None:
        missing = node["missing_type"]
        if node["decision_type"] != "<=":
            raise DataError(
                "LGBMClassifier with categorical_feature splits categories, and a graph of trees "
                "splits numbers; serve the model, or score files with it."
            )
        if missing == "Zero":
            raise DataError(
                "LGBMClassifier with zero_as_missing is not exported as ONNX, whose trees know "
                "gaps as NaN alone; serve the model, or score files with it."
            )
        # without gaps in training, those of new rows are zeros
        gaps_left = node["default_left"] if missing == "NaN" else node["threshold"] >= 0
        split = node["split_feature"], left, left + 1, int(gaps_left)
        self._add(number, "BRANCH_LEQ", node["threshold"], split)

    def _add_leaf(self, number: int, node: dict[str, Any], target: int, sign: int) -> None:
        if "leaf_coeff" in node:
            raise DataError(
                "LGBMClassifier with linear_tree has linear models in its leaves, and a graph has "
                "numbers; serve the model, or score files with it."
            )
        self._add(number, "LEAF", 0.0, (0,) * len(_OF_SPLIT))
        for name, value in zip(_OF_LEAF, (self._n_trees, number, target), strict=True):
            self._integers[name].append(value)
        self._weights.append(sign * node["leaf_value"])

    def _add(self, number: int, mode: str, value: float, split: Sequence[int]) -> None:
        for name, each in zip(_OF_NODE, (self._n_trees, number, *split), strict=True):
            self._integers[name].append(each)
        self._modes.append(mode)
        self._values.append(value)
