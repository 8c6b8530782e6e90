"""How good the probabilities of several classes are, out of bag."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.calibration.logits import CLOSEST
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, sums_of_groups

__all__ = ["class_metrics"]


def class_metrics(
    codes: NDArray[np.integer],
    probability: Floats,
    weight: Floats,
    groups: Groups | None = None,
    decided: NDArray[np.integer] | None = None,
) -> dict[str, tuple[float, float]]:
    """Accuracy, log-loss and Brier score of class probabilities, with standard errors.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        True classes, as columns of `probability`.
    probability : ndarray, shape (n, K)
        Of each class.
    weight : ndarray, shape (n,)
        Row weights.
    groups : ndarray of int, shape (n,), optional
        Of rows that belong together, numbered from 0.
    decided : ndarray of int, shape (n,), optional
        The class that each row is given; by default the most probable one.

    Returns
    -------
    dict of str to tuple of float
        "accuracy", "log-loss" and "Brier score" (``Σ_k (p_k − [y = k])²``, from 0 to 2, so for
        two classes twice the usual one): the weighted mean over the rows and its standard error,
        the rows, or groups, taken for independent.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import class_metrics
    >>> probability = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]])
    >>> found = class_metrics(np.array([0, 2]), probability, weight=np.ones(2))
    >>> found["accuracy"][0], round(found["Brier score"][0], 2)
    (0.5, 0.46)
    """
    decided = probability.argmax(axis=1) if decided is None else decided
    rows = np.arange(len(codes))
    truth = np.zeros_like(probability)
    truth[rows, codes] = 1.0
    of_rows = {
        "accuracy": (decided == codes).astype(np.float64),
        "log-loss": -np.log(probability[rows, codes].clip(CLOSEST)),
        "Brier score": np.square(probability - truth).sum(axis=1),
    }
    share = weight / weight.max()  # a sum of very large ones is none
    share /= share.sum()
    found = {}
    for name, values in of_rows.items():
        mean = float(share @ values)
        found[name] = mean, float(np.linalg.norm(sums_of_groups(share * (values - mean), groups)))
    return found
