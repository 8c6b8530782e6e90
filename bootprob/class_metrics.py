"""How good the probabilities of several classes are, out of bag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.several_classes import CLOSEST

if TYPE_CHECKING:
    from bootprob.predictions import FittedEnsemble

__all__ = ["class_metrics", "out_of_bag_of_classes"]

Floats = NDArray[np.float64]


def class_metrics(
    codes: NDArray[np.integer], probability: Floats, weight: Floats
) -> dict[str, tuple[float, float]]:
    """Accuracy, log-loss and Brier score of class probabilities, with standard errors.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        True classes, as columns of `probability`.
    probability : ndarray, shape (n, K)
    weight : ndarray, shape (n,)
        Row weights.

    Returns
    -------
    dict of str to tuple of float
        "accuracy", "log-loss" and "Brier score" (``Σ_k (p_k − [y = k])²``, from 0 to 2, so for
        two classes twice the usual one): the weighted mean over the rows and its standard error,
        the rows taken for independent.
    """
    rows = np.arange(len(codes))
    truth = np.zeros_like(probability)
    truth[rows, codes] = 1.0
    of_rows = {
        "accuracy": (probability.argmax(axis=1) == codes).astype(np.float64),
        "log-loss": -np.log(probability[rows, codes].clip(CLOSEST)),
        "Brier score": np.square(probability - truth).sum(axis=1),
    }
    share = weight / weight.sum()
    found = {}
    for name, values in of_rows.items():
        mean = float(share @ values)
        found[name] = mean, float(np.sqrt(np.square(share) @ np.square(values - mean)))
    return found


def out_of_bag_of_classes(model: FittedEnsemble) -> dict[str, tuple[float, float]]:
    """`class_metrics` of the training rows, by the replicates that did not see them.

    Parameters
    ----------
    model : BootstrapSVC
        Fitted, of any number of classes.

    Raises
    ------
    DataError
        If no row was ever out of bag.
    """
    known = np.isfinite(model.oob_proba_).all(axis=1) & (model.sample_weight_ > 0)
    if not known.any():
        raise DataError("No row was ever out of bag; raise n_bootstraps.")
    return class_metrics(model.y_[known], model.oob_proba_[known], model.sample_weight_[known])
