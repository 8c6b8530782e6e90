"""Classes: their labels, and what each row of them weighs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats
from bootprob.runtime.counted import counted
from bootprob.runtime.groups import Groups

__all__ = [
    "encode_classes",
    "encode_labels",
    "of_mean_one",
    "refuse_far_weights",
    "refuse_single_groups",
    "refuse_single_rows",
    "spaced_over_classes",
    "usable_labels",
    "usable_weight",
    "weigh_classes",
]


_LEAST = 1e-100  # weights below are 0: products with them would vanish
_LEAST_LARGEST = 1e-80  # beside a weight of which they change no digit
_LARGEST = 1e80
_FURTHEST = 1e14  # how many times as much as others a row may weigh where kernels are chosen


def usable_weight(weight: Floats) -> Floats:
    """Row weights, in which those below 1e-100 are 0.

    Parameters
    ----------
    weight : ndarray, shape (n,)
        Finite, ≥ 0.

    Raises
    ------
    DataError
        All are that small, or hardly larger, without being 0; or one is above 1e80.
    """
    largest = weight.max()
    if 0 < largest < _LEAST_LARGEST:
        raise DataError(
            f"The largest sample_weight is {largest:.0e}, and products with it vanish; multiply "
            "all by one number."
        )
    if largest > _LARGEST:
        raise DataError(
            f"The largest sample_weight is {largest:.0e}, and products with it overflow; divide "
            "all by one number."
        )
    return np.where(weight < _LEAST, 0.0, weight)


def refuse_far_weights(weight: Floats) -> None:
    """Kernels are told apart by all rows, so that none may weigh as good as nothing.

    Raises
    ------
    DataError
        A row weighs 10¹⁴ times as much as another that weighs something.
    """
    least, most = weight[weight > 0].min(), weight.max()
    if most > _FURTHEST * least:
        raise DataError(
            f"sample_weight goes from {least:.0e} to {most:.0e}, too far for a choice of kernels: "
            "give 0 for rows that are not to count, or name a kernel."
        )


def usable_labels(y: ArrayLike) -> ArrayLike:
    """Labels as they are given, but those of pandas's own types as numpy has them, exactly.

    Parameters
    ----------
    y : array-like, shape (n,)

    Raises
    ------
    DataError
        Labels are missing (None, NaN or NA; NaN in arrays of numbers is scikit-learn's), or text
        beside numbers.
    """
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype != np.object_:
        return y
    if dtype is None and not isinstance(y, (list, tuple)):
        return y
    import pandas as pd  # which numbers do without

    labels = np.asarray(y, dtype=object)
    missing = np.asarray(pd.isna(labels))
    if missing.any():
        first = np.argwhere(missing)[0][0]
        raise DataError(
            f"{counted(missing.sum(), 'label in y is', 'labels in y are')} missing, the first in "
            f"row {first} (counted from 0); leave out rows without a label."
        )
    texts = [label for label in labels.flat if isinstance(label, str)]
    others = [label for label in labels.flat if isinstance(label, Number | np.bool_)]
    if texts and others:
        raise DataError(
            f"y holds text beside numbers, such as {texts[0]!r} and {others[0]!r}; give labels of "
            "one kind."
        )
    kind = getattr(dtype, "kind", "O")
    return labels.astype(bool if kind == "b" else np.int64) if kind in "bi" else y


def encode_classes(
    y: NDArray[Any], weight: Floats, called: Sequence[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Find the classes, two or more.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Labels.
    weight : ndarray, shape (n,)
        Row weights; each class needs some.
    called : sequence, optional
        What errors call the classes, sorted; by default as they are.

    Returns
    -------
    classes : ndarray, shape (K,)
        Sorted.
    codes : ndarray of int, shape (n,)
        Position of each row's class among them.

    Raises
    ------
    ValueError
        If `y` holds quantities, in scikit-learn's words.
    DataError
        If there is one class only, labels are dates, or a class has no weight.
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.dtype.kind in "mM":
        raise DataError(
            f"The labels in y are of dtype {classes.dtype}, which no model file holds; give text "
            "or numbers."
        )
    if len(classes) < 2:
        raise DataError(f"Two classes are needed in y; the data contain 1 class: {classes[0]}.")
    names: Sequence[Any] = classes.tolist() if called is None else called
    sizes = np.bincount(codes[weight > 0], minlength=len(classes))
    weighed = sizes > 0
    if not weighed.all():
        needed = "both classes need" if len(classes) == 2 else "every class needs"
        raise DataError(
            f"Class {names[int(weighed.argmin())]} has no row with a positive sample_weight; "
            f"{needed} some."
        )
    return classes, codes


def refuse_single_rows(codes: NDArray[np.intp], weight: Floats, names: Sequence[Any]) -> None:
    """Raise a DataError where a class has one row that counts: no machine would leave it out.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's class.
    weight : ndarray, shape (n,)
    names : sequence, length K
        Of the classes.
    """
    sizes = np.bincount(codes[weight > 0], minlength=len(names))
    if sizes.min() == 1:
        several = len(names) > 2
        advice = "Put rare classes together, or leave them out" if several else "Give more of it"
        raise DataError(
            f"Class {names[int(sizes.argmin())]} has a single row; each class needs two, one to "
            f"train on and one to leave out. {advice}."
        )


def refuse_single_groups(
    codes: NDArray[np.intp], weight: Floats, names: Sequence[Any], groups: Groups, *, in_time: bool
) -> None:
    """Raise a DataError where one group holds all rows of a class: every sample needs the group.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's class.
    weight : ndarray, shape (n,)
    names : sequence, length K
        Of the classes.
    groups : ndarray of int, shape (n,)
    in_time : bool
        Whether the groups are stretches of time.
    """
    counted = weight > 0
    for name, k in zip(names, range(len(names)), strict=True):
        own = groups[counted & (codes == k)]
        if len(own) and (own == own[0]).all():
            group, advice = "group", "give rows of it in several groups"
            if in_time:
                group, advice = "stretch of time", "give rows of it from other times, or no time"
            raise DataError(
                f"All rows of class {name} are in one {group}. Samples draw whole "
                f"{'stretches' if in_time else 'groups'}, and each needs this one: the class "
                f"would never be left out, and nothing be known of new rows; {advice}."
            )


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
    if len(np.unique(y)) > 2:
        kind = type_of_target(y, input_name="y")
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes, codes = encode_classes(y, weight)
    return classes, codes == 1


def weigh_classes(
    class_weight: str | dict[Any, float] | None,
    classes: NDArray[Any],
    y: NDArray[Any],
    weight: Floats,
) -> tuple[Floats, Floats]:
    """Row weights for accuracies and calibration, and those for training.

    "balanced" weights, ``n / (K n_class)``, are for training only; those of a dict are row weights
    like any other.

    Parameters
    ----------
    class_weight : "balanced", dict or None
    classes : ndarray, shape (K,)
    y : ndarray, shape (n,)
    weight : ndarray, shape (n,)

    Returns
    -------
    weight, training_weight : ndarray, shape (n,)
    """
    if class_weight == "balanced":
        codes = np.searchsorted(classes, y)
        masses = np.array([weight[codes == code].sum() for code in range(len(classes))])
        return weight, weight * (weight.sum() / (len(classes) * masses))[codes]
    for label, factor in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(factor, Real):
            raise DataError(f"class_weight of {label!r} is {factor!r}; give a positive number.")
    try:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    except ValueError:  # of others that have none, in numbers of labels that are none
        given = list(class_weight or ())
        raise DataError(
            f"class_weight is of {given}, and the classes are {classes.tolist()}; give each of "
            "these its weight."
        ) from None
    if not (factors > 0).all():
        every = "both" if len(classes) == 2 else "all"
        raise DataError(f"class_weight gives {factors.tolist()}; {every} must be positive.")
    weight = weight * factors[np.searchsorted(classes, y)]
    return weight, weight


def of_mean_one(weight: Floats) -> Floats:
    """The same weights with a mean of 1 over the rows that have any."""
    return weight * (np.count_nonzero(weight) / weight.sum())


def spaced_over_classes(labels: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Up to so many rows, evenly spaced in the order of their labels: with the classes' shares.

    Of two classes they are the same ones whichever is the first.

    Parameters
    ----------
    labels : ndarray, shape (n,) or (P, n)
        Of each row, or those that it has for each pair of classes.
    size : int
    """
    every = np.atleast_2d(labels)
    n = every.shape[1]
    if n <= size:
        return np.arange(n)
    order = np.lexsort(every)
    if len(every) == 1:  # from either end towards where the classes meet
        second = every[0, order] == every.max()
        order[second] = order[second][::-1]
    half = np.linspace(0, n - 1, size)[: -(-size // 2)].astype(np.intp)
    spaced = np.concatenate([half, n - 1 - half[: size // 2]])
    return np.sort(order[spaced])
