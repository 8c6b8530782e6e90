"""Tests of calibration: whether labels can come from the probabilities stated.

For independent rows and probabilities that owe nothing to their labels. How often each rejects,
rightly or wrongly, is measured in docs/calibration_band.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from bootprob.exceptions import DataError
from bootprob.metrics.reliability import check_rows, groups_of_rows
from bootprob.runtime.arrays import Floats

__all__ = ["CalibrationTest", "calibration_tests"]

_LEAST = 0.1  # statistic below which the p-value is 1 but for 1e-50
_TERMS = np.arange(1, 201)


@dataclass(frozen=True)
class CalibrationTest:
    """What a test of calibration found.

    Attributes
    ----------
    name : str
        "spiegelhalter", "kolmogorov-smirnov" or "kuiper".
    statistic : float
        In standard deviations.
    p_value : float
        Chance of one that is as large where all probabilities are right.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import calibration_tests
    >>> p = np.random.default_rng(0).uniform(size=1000)
    >>> found = calibration_tests(np.random.default_rng(1).uniform(size=1000) < p**2, p)
    >>> found["kuiper"].p_value < 0.001
    True
    """

    name: str
    statistic: float
    p_value: float


def calibration_tests(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
) -> dict[str, CalibrationTest]:
    """Test whether probabilities are calibrated.

    - "spiegelhalter": ``z = Σ w (y − p)(1 − 2p) / √(Σ w² (1 − 2p)² p (1 − p))``, two-sided normal
      (D. Spiegelhalter, Statistics in Medicine 5 (1986) 421–433): whether the Brier score is what
      the probabilities promise. It finds probabilities that are too extreme or too timid.
    - "kolmogorov-smirnov": the largest absolute value of the cumulative differences, the sums of
      ``w (y − p)`` over the rows up to each probability, in units of the standard deviation of the
      last of them; as the largest absolute value of a Brownian motion on [0, 1]. It finds
      probabilities that are too high or too low.
    - "kuiper": the same of their range, as that of a Brownian motion (W. Feller, Annals of
      Mathematical Statistics 22 (1951) 427–432): miscalibration of any stretch of probabilities.

    Both of these after I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu, "Metrics of
    calibration for probabilistic predictions", Journal of Machine Learning Research 23 (2022) 1–54.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one.
    p : array_like, shape (n,)
        Probability of the positive class, of rows that took no part in training; rows with NaN are
        left out.
    weights : array_like, shape (n,), optional
        Row weights.
    groups : array_like, shape (n,), optional
        Which rows belong together. The tests are of independent rows: groups of more than one row
        are refused.

    Returns
    -------
    dict of str to CalibrationTest
        By name. Where no label can differ from what is stated, p is 1 if none does and else 0.

    Raises
    ------
    DataError
        For other shapes or values than these, or groups.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import calibration_tests
    >>> generator = np.random.default_rng(0)
    >>> p = generator.random(500)
    >>> tests = calibration_tests(generator.random(500) < np.sqrt(p), p)
    >>> max(tests["kolmogorov-smirnov"].p_value, tests["kuiper"].p_value) < 0.001
    True
    """
    codes = groups_of_rows(groups, p, weights)
    if codes is not None and len(np.unique(codes)) < len(codes):
        raise DataError(
            "Tests of calibration are of independent rows, and rows belong together; "
            "calibration_line takes groups."
        )
    y, p, weights, _ = check_rows(y, p, weights)
    share: Floats = weights / weights.max()
    off: Floats = share * (y - p)
    variance: Floats = np.square(share) * p * (1 - p)
    values, index = np.unique(p, return_inverse=True)
    # Rows of one probability together: their order means nothing.
    walk = np.append(0.0, np.cumsum(np.bincount(index, off, len(values))))
    deviation = float(np.sqrt(variance.sum()))
    tilt = 1 - 2 * p
    return {
        "spiegelhalter": _test(
            "spiegelhalter",
            float(off @ tilt),
            float(np.sqrt(variance @ np.square(tilt))),
            lambda z: 2 * float(ndtr(-abs(z))),
        ),
        "kolmogorov-smirnov": _test(
            "kolmogorov-smirnov", float(np.abs(walk).max()), deviation, _largest_p_value
        ),
        "kuiper": _test("kuiper", float(np.ptp(walk)), deviation, _range_p_value),
    }


def _test(
    name: str, sum_: float, deviation: float, p_value: Callable[[float], float]
) -> CalibrationTest:
    if deviation == 0:
        wrong = sum_ != 0
        return CalibrationTest(
            name, float(np.copysign(np.inf, sum_)) if wrong else 0.0, 1.0 - wrong
        )
    statistic = sum_ / deviation
    return CalibrationTest(name, statistic, min(1.0, max(0.0, p_value(statistic))))


def _largest_p_value(x: float) -> float:
    """Chance that the largest absolute value of a Brownian motion on [0, 1] is above x."""
    if x < _LEAST:
        return 1.0
    odd = 2 * _TERMS - 1
    return float(4 * (_signs() * ndtr(-odd * x)).sum())


def _range_p_value(x: float) -> float:
    """Chance that the range of a Brownian motion on [0, 1] is above x."""
    if x < 3 * _LEAST:
        return 1.0
    return float(8 * (_signs() * _TERMS * ndtr(-_TERMS * x)).sum())


def _signs() -> Floats:
    return np.where(_TERMS % 2, 1.0, -1.0)
