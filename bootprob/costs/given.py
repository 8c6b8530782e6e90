"""Costs as users give them, and which classifiers they can decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.costs.matrix import CostMatrix
from bootprob.exceptions import DataError
from bootprob.intervals import OF_VOTES

__all__ = ["cost_matrix_of", "refuse_uncalibrated"]


def cost_matrix_of(given: CostMatrix | ArrayLike, classes: NDArray[Any]) -> CostMatrix:
    """Costs in the order of the classes; a data frame says which are whose.

    Parameters
    ----------
    given : CostMatrix, array_like of shape (2, 2) or (m, 2, 2), or DataFrame
    classes : ndarray, shape (2,)

    Raises
    ------
    DataError
        A data frame is labelled otherwise, or `CostMatrix` refuses the costs.
    """
    import pandas as pd

    if isinstance(given, CostMatrix):
        return given
    if isinstance(given, pd.DataFrame):
        order: list[Any] = np.asarray(classes).tolist()
        for axis, labels in (("index", given.index), ("columns", given.columns)):
            if len(labels) != len(order) or set(labels) != set(order):
                raise DataError(
                    f"The {axis} of cost_matrix is {list(labels)}; give the class labels {order}, "
                    "true classes down and decided ones across, or an array."
                )
        places = [[list(each).index(one) for one in order] for each in (given.index, given.columns)]
        given = given.to_numpy()[np.ix_(*places)]
    return CostMatrix.from_array(given)


def refuse_uncalibrated(classifier: Any) -> None:
    """Refuse an ensemble whose vote shares are no probabilities, or that controls a rate.

    Other classifiers are taken as they are.

    Raises
    ------
    DataError
        Says why no cost can decide.
    """
    if not hasattr(classifier, "vote_proba"):
        return
    if classifier.calibration is None:
        raise DataError(
            "Vote shares (calibration=None) are no probabilities, and no cost follows from them; "
            "use calibration='sigmoid'."
        )
    if classifier.control is not None:
        raise DataError(
            f"control={classifier.control!r} decides so that a rate holds, and costs would decide "
            "otherwise. Costs take the place of rates; use control=None."
        )
    if classifier.interval in OF_VOTES:
        raise DataError(
            f"interval={classifier.interval!r} is about vote shares, and no interval for a cost "
            "follows from it; use 'normal' or 'replicate'."
        )
