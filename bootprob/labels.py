"""Two classes: their labels, and what each row of them weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bootprob.exceptions import DataError

__all__ = ["encode_labels", "weigh_classes"]

Floats = NDArray[np.float64]


def encode_labels(y: NDArray[Any], weight: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Find the two classes.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Labels.
    weight : ndarray, shape (n,)
        Row weights; each class needs some.

    Returns
    -------
    classes : ndarray, shape (2,)
        Sorted; the second is the positive one.
    positive : ndarray of bool, shape (n,)

    Raises
    ------
    ValueError
        If there are not two classes, in scikit-learn's words.
    DataError
        If a class has no weight.
    """
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    if len(classes) < 2:
        raise ValueError(f"Two classes are needed in y; the data contain 1 class: {classes[0]}.")
    positive = codes == 1
    for label, rows in zip(classes, (~positive, positive), strict=True):
        if not (weight[rows] > 0).any():
            raise DataError(
                f"Class {label} has no row with a positive sample_weight; both classes need some."
            )
    return classes, positive


def weigh_classes(
    class_weight: str | dict[Any, float] | None,
    classes: NDArray[Any],
    y: NDArray[Any],
    weight: Floats,
) -> tuple[Floats, Floats]:
    """Row weights for accuracies and calibration, and those for training.

    "balanced" weights are for training only; those of a dict are row weights like any other.

    Parameters
    ----------
    class_weight : "balanced", dict or None
    classes : ndarray, shape (2,)
    y : ndarray, shape (n,)
    weight : ndarray, shape (n,)

    Returns
    -------
    weight, training_weight : ndarray, shape (n,)
    """
    if class_weight == "balanced":
        positive = y == classes[1]
        masses = np.array([weight[~positive].sum(), weight[positive].sum()])
        return weight, weight * (weight.sum() / (2 * masses))[positive.astype(int)]
    factors = compute_class_weight(class_weight, classes=classes, y=y)
    if not (factors > 0).all():
        raise DataError(f"class_weight gives {factors.tolist()}; both must be positive.")
    weight = weight * factors[np.searchsorted(classes, y)]
    return weight, weight
