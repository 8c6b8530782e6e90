"""Names of the intervals, confidence levels and their quantiles."""

from __future__ import annotations

import reprlib
from numbers import Real
from statistics import NormalDist

import numpy as np
from scipy import stats

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = [
    "OF_SCORES",
    "check_level",
    "check_score_method",
    "listed",
    "normal_quantile",
    "separated",
    "student_quantile",
]


OF_SCORES = ("basic", "percentile", "bca", "studentised")


def check_level(level: float) -> float:
    """Check that a confidence level lies strictly between 0 and 1.

    Parameters
    ----------
    level : float
        Nominal confidence, between 0 and 1.

    Returns
    -------
    float
        The same.

    Raises
    ------
    DataError
        It does not.

    Examples
    --------
    >>> from bootprob.intervals import check_level
    >>> check_level(0.95)
    0.95
    """
    is_number = isinstance(level, Real) and not isinstance(level, bool)
    if not (is_number and level > 0 and 0.5 + level / 2 < 1):  # of which there are quantiles
        shown = reprlib.repr(level)
        raise DataError(f"level is {shown}; give a number between 0 and 1, such as 0.95.")
    return float(level)


def check_score_method(method: str) -> str:
    """Check the name of an interval for scores.

    Parameters
    ----------
    method : str
        One of `OF_SCORES`.

    Returns
    -------
    str
        The same.

    Raises
    ------
    DataError
        There is no such method.

    Examples
    --------
    >>> from bootprob.intervals import check_score_method
    >>> check_score_method("basic")
    'basic'
    """
    if method not in OF_SCORES:
        raise DataError(f"method is {method!r}; give {listed(OF_SCORES)}.")
    return method


def normal_quantile(level: float) -> float:
    """``z`` such that a standard normal lies within ±z with this probability.

    Parameters
    ----------
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> from bootprob.intervals import normal_quantile
    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + check_level(level) / 2)


def student_quantile(level: float, degrees_of_freedom: float) -> float:
    """The same for Student's t.

    Parameters
    ----------
    level : float
        Between 0 and 1.
    degrees_of_freedom : float
        Above 0.

    Examples
    --------
    >>> from bootprob.intervals import student_quantile
    >>> round(student_quantile(0.95, 10), 3)
    2.228
    """
    return float(stats.t.ppf(0.5 + check_level(level) / 2, degrees_of_freedom))


def separated(bounds: Floats) -> Floats:
    """Move bounds apart, by the last bit, that rounding has made equal, shape as given.

    Parameters
    ----------
    bounds : ndarray, shape (..., 2)
        Lower and upper ones.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.intervals import separated
    >>> bool(np.diff(separated(np.array([[0.5, 0.5]])))[0, 0] > 0)
    True
    """
    lower, upper = bounds[..., 0], bounds[..., 1]
    equal = lower == upper
    return np.stack(
        [
            np.where(equal, np.nextafter(lower, -np.inf), lower),
            np.where(equal, np.nextafter(upper, np.inf), upper),
        ],
        axis=-1,
    )


def listed(names: tuple[str, ...]) -> str:
    """Names for a message, the last after "or"."""
    *first, last = [repr(name) for name in names]
    return f"{', '.join(first)} or {last}"
