"""How good the probabilities of several classes are, out of bag."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.calibration.logits import CLOSEST
from bootprob.exceptions import DataError
from bootprob.metrics.reliability import numbers_of_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import checked_groups, sums_of_groups

__all__ = ["class_metrics"]


def class_metrics(
    codes: ArrayLike,
    probability: ArrayLike,
    weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    decided: ArrayLike | None = None,
) -> dict[str, tuple[float, float]]:
    """Accuracy, log-loss and Brier score of class probabilities, with standard errors.

    Parameters
    ----------
    codes : array_like of int, shape (n,)
        True classes, as columns of `probability`.
    probability : array_like, shape (n, K)
        Of each class.
    weight : array_like, shape (n,), optional
        Row weights.
    groups : array_like, shape (n,), optional
        Which rows belong together.
    decided : array_like of int, shape (n,), optional
        The class that each row is given; by default the most probable one.

    Returns
    -------
    dict of str to tuple of float
        "accuracy", "log-loss" and "Brier score" (``Σ_k (p_k − [y = k])²``, from 0 to 2, so for
        two classes twice the usual one): the weighted mean over the rows and its standard error,
        the rows, or groups, taken for independent.

    Raises
    ------
    DataError
        For classes that are no columns of `probability`, numbers outside [0, 1], weights below 0,
        or groups of another number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import class_metrics
    >>> probability = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]])
    >>> found = class_metrics(np.array([0, 2]), probability)
    >>> found["accuracy"][0], round(found["Brier score"][0], 2)
    (0.5, 0.46)
    """
    known = numbers_of_rows("probability", probability)
    if known.ndim != 2 or not known.size or not ((known >= 0) & (known <= 1)).all():
        raise DataError(
            "probability must have the shape (n, K), of numbers from 0 to 1; leave rows without "
            "any out."
        )
    n, rows = len(known), np.arange(len(known))
    own = _places("codes", codes, known)
    chosen = known.argmax(axis=1) if decided is None else _places("decided", decided, known)
    mass = np.ones(n) if weight is None else numbers_of_rows("weight", weight)
    if mass.shape != (n,) or not (np.isfinite(mass) & (mass >= 0)).all() or not mass.any():
        raise DataError("weight must hold a number of at least 0 for each row, and not 0 for all.")
    of_groups = checked_groups(groups, n)
    truth = np.zeros_like(known)
    truth[rows, own] = 1.0
    of_rows = {
        "accuracy": (chosen == own).astype(np.float64),
        "log-loss": -np.log(known[rows, own].clip(CLOSEST)),
        "Brier score": np.square(known - truth).sum(axis=1),
    }
    share = mass / mass.max()  # a sum of very large ones is none
    share /= share.sum()
    found = {}
    for name, values in of_rows.items():
        mean = float(share @ values)
        of_each = sums_of_groups(share * (values - mean), of_groups)
        found[name] = mean, float(np.linalg.norm(of_each))
    return found


def _places(what: str, given: ArrayLike, probability: Floats) -> NDArray[np.intp]:
    """Classes of the rows as columns of their probabilities."""
    found, (n, K) = np.asarray(given), probability.shape
    whole = found.dtype.kind in "biu" and found.shape == (n,)
    if not whole or not ((found >= 0) & (found < K)).all():
        raise DataError(
            f"{what} must hold a whole number from 0 to {K - 1} for each of {n} rows, the column "
            "of its class."
        )
    return found.astype(np.intp)
