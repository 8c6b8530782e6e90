"""Logistic calibration: slope, intercept and smooth curves of what was observed by what was stated.

``logit P(y = 1) = intercept + slope · logit p`` is 0 and 1 where probabilities are right (D. Cox,
Biometrika 45 (1958) 562–565); a slope below 1 says that they are too extreme. The curve is the same
with a restricted cubic spline of ``logit p`` in place of the line, as in Harrell's Hmisc and in
pmcalibration, whose ``smooth = "rcs"`` it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from bootprob.calibration.logits import CLOSEST
from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.intervals.shares import effective_rows
from bootprob.metrics.bounds import quantile_of_few
from bootprob.metrics.intervals import MetricInterval
from bootprob.metrics.metrics import check_both_classes
from bootprob.metrics.reliability import check_rows, groups_of_rows
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import sums_of_groups

__all__ = ["CalibrationCurve", "LogisticLine", "calibration_line", "logistic_line", "spline_curve"]

_STEPS, _HALVINGS = 60, 30
_CONVERGED = 1e-14  # gain of a Newton step, in units of the log-likelihood
_FARTHEST = 5.0  # logits that a step moves a row: beyond, the likelihood may be flat
_N_KNOTS = 5
_OUTER = 0.05  # share of the rows beyond the outer knots
_FEW = 100  # rows below which the outer knots are the fifth from either end

_LABELS = {
    "calibration_slope": (
        "Calibration slope",
        "1 where probabilities are neither too extreme (below 1) nor too timid (above 1).",
    ),
    "calibration_in_the_large": (
        "Calibration in the large",
        "Log-odds to be added to every probability for the mean to be right: 0 where it is.",
    ),
}


@dataclass(frozen=True)
class LogisticLine:
    """Logistic calibration of one set of probabilities.

    Attributes
    ----------
    slope, intercept : float
        ``logit P(y = 1) = intercept + slope · logit p``; NaN where all probabilities are the same
        or tell the classes apart without a mistake, so that there is no largest likelihood.
    in_the_large : float
        The intercept at slope 1.
    """

    slope: float
    intercept: float
    in_the_large: float


@dataclass(frozen=True)
class CalibrationCurve:
    """A smooth curve.

    Attributes
    ----------
    probability, observed : ndarray, shape (k,)
        Stated, from the least to the largest; and the frequency that the curve has there.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> y = (rng.uniform(size=200) < p).astype(int)
    >>> replicates = np.clip(p + rng.normal(0, 0.05, size=(20, 200)), 0.01, 0.99)
    >>> from bootprob.metrics import stability
    >>> curve = stability(y, p, replicates).curve
    >>> bool(np.abs(curve.observed - curve.probability).max() < 0.3)
    True
    """

    probability: Floats
    observed: Floats


def logistic_line(y: Floats, p: Floats, weights: Floats) -> LogisticLine:
    """Slope and intercepts of checked rows; probabilities of 0 and 1 count as 1e-15 off them.

    Parameters
    ----------
    y : ndarray, shape (n,)
        0 or 1, with rows of both.
    p, weights : ndarray, shape (n,)
        Weights count as if rows were repeated.
    """
    x = _logits(p)
    alone = np.ones((len(x), 1))
    (in_the_large,) = _fitted(alone, y, weights, offset=x)
    if np.ptp(x) == 0 or _apart(y, x):
        return LogisticLine(np.nan, np.nan, float(in_the_large))
    intercept, slope = _fitted(np.column_stack([alone, x]), y, weights)
    return LogisticLine(float(slope), float(intercept), float(in_the_large))


def calibration_line(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    *,
    groups: ArrayLike | None = None,
) -> dict[str, MetricInterval]:
    """Calibration slope and calibration in the large, with intervals.

    Intervals with the sandwich variance, which weights and groups do not deceive (H. White,
    Econometrica 50 (1982) 1–25), and Student's quantile for as many rows, or groups.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one; rows of both.
    p : array_like, shape (n,)
        Probability of the positive class, from rows that took no part in training; rows with NaN
        are left out and counted. 0 and 1 count as 1e-15 off them.
    weights : array_like, shape (n,), optional
        Row weights.
    level : float, default 0.95
        Nominal confidence, between 0 and 1.
    groups : array_like, shape (n,), optional
        Which rows belong together.

    Returns
    -------
    dict of str to MetricInterval
        Keys ``calibration_slope`` and ``calibration_in_the_large``.

    Raises
    ------
    DataError
        As of `metric_intervals`, or where the probabilities are all the same or separate the
        classes, so that there is no slope.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import calibration_line
    >>> p = np.tile([0.1, 0.3, 0.7, 0.9], 50)
    >>> y = np.random.default_rng(1).random(200) < p
    >>> slope = calibration_line(y, p)["calibration_slope"]
    >>> bool(slope.lower < 1 < slope.upper)
    True
    """
    level = check_level(level)
    codes = groups_of_rows(groups, p, weights)
    y, p, weights, n_left_out = check_rows(y, p, weights)
    check_both_classes(y)
    line = logistic_line(y, p, weights)
    if np.isnan(line.slope):
        raise DataError(
            "The probabilities are all the same, or tell the classes apart without a mistake: "
            "there is no calibration slope."
        )
    x = _logits(p)
    alone, n_units = np.ones((len(x), 1)), effective_rows(weights, codes)
    found = {}
    for name, design, coefficients, offset in (
        ("calibration_slope", np.column_stack([alone, x]), [line.intercept, line.slope], 0.0 * x),
        ("calibration_in_the_large", alone, [line.in_the_large], x),
    ):
        fitted = expit(design @ coefficients + offset)
        scores = design * (weights * (y - fitted))[:, None]
        of_units = np.column_stack([sums_of_groups(column, codes) for column in scores.T])
        bread = np.linalg.inv((design.T * (weights * fitted * (1 - fitted))) @ design)
        variance = bread @ (of_units.T @ of_units) @ bread
        value = coefficients[-1]
        half = quantile_of_few(level, n_units) * float(np.sqrt(variance[-1, -1]))
        found[name] = MetricInterval(
            name,
            *_LABELS[name],
            *(value, value - half, value + half),
            level,
            "sandwich",
            len(y),
            n_left_out,
        )
    return found


def spline_curve(y: Floats, p: Floats, weights: Floats, n_points: int = 100) -> CalibrationCurve:
    """Smooth calibration curve of checked rows.

    A logistic regression on the restricted cubic spline of ``logit p`` with five knots at the
    quantiles .05, .275, .5, .725 and .95 (of fewer than 100 rows the outer ones at the fifth row
    from either end), looked at between the least and the largest probability. Where fewer than
    three knots differ it is the line of `logistic_line`.

    Parameters
    ----------
    y, p, weights
        As of `logistic_line`; quantiles are those of the rows, whatever their weight.
    n_points : int, default 100
    """
    x, stated = _logits(p), np.linspace(p.min(), p.max(), n_points)
    at = _logits(stated)
    knots = _knots(x)
    if len(knots) >= 3:
        design, there = _spline(x, knots), _spline(at, knots)
    else:
        design, there = (np.column_stack([np.ones(len(each)), each]) for each in (x, at))
    return CalibrationCurve(stated, expit(there @ _fitted(design, y, weights)))


def _logits(p: Floats) -> Floats:
    return logit(np.clip(p, CLOSEST, 1 - CLOSEST))


def _apart(y: Floats, x: Floats) -> bool:
    """Whether a threshold tells the classes apart without a mistake."""
    positive, negative = x[y == 1], x[y == 0]
    return bool(negative.max() <= positive.min() or positive.max() <= negative.min())


def _knots(x: Floats) -> Floats:
    knots = np.quantile(x, np.linspace(_OUTER, 1 - _OUTER, _N_KNOTS))
    if len(x) < _FEW and len(x) > _N_KNOTS:
        ordered = np.sort(x)
        knots[0], knots[-1] = ordered[_N_KNOTS - 1], ordered[-_N_KNOTS]
    return np.unique(knots)


def _spline(x: Floats, knots: Floats) -> Floats:
    """Constant, line and restricted cubic terms, F. Harrell, "Regression Modeling Strategies"."""
    last, before = knots[-1], knots[-2]
    unit = last - knots[0]

    def cubed(knot: float) -> Floats:
        found: Floats = np.maximum((x - knot) / unit, 0.0) ** 3
        return found

    terms = [
        cubed(knot)
        + ((before - knot) * cubed(last) - (last - knot) * cubed(before)) / (last - before)
        for knot in knots[:-2]
    ]
    return np.column_stack([np.ones(len(x)), x, *terms])


def _fitted(design: Floats, y: Floats, weights: Floats, offset: Floats | float = 0.0) -> Floats:
    """Coefficients of a logistic regression by Newton steps, cut, and halved till likelihood rises.

    Where it has no maximum, what is reached once it rises no more.
    """
    # Columns of one size, or the information has no inverse that numbers can tell.
    r = np.linalg.qr(design * np.sqrt(weights)[:, None], mode="r")
    inverse = np.linalg.pinv(r, rcond=1e-10)
    unit = design @ inverse

    def log_likelihood(eta: Floats) -> float:
        return float(weights @ (y * eta - np.logaddexp(0.0, eta)))

    beta, eta = np.zeros(unit.shape[1]), np.zeros(len(y)) + offset
    reached = log_likelihood(eta)
    for _ in range(_STEPS):
        fitted = expit(eta)
        gradient = unit.T @ (weights * (y - fitted))
        curvature = (unit.T * (weights * fitted * (1 - fitted))) @ unit
        step = np.linalg.pinv(curvature, hermitian=True) @ gradient
        step /= max(1.0, np.abs(unit @ step).max() / _FARTHEST)
        least = _CONVERGED * max(1.0, abs(reached))
        if gradient @ step <= least:  # too short to tell, and twice as many digits
            if log_likelihood(unit @ (beta + step) + offset) >= reached - least:
                beta = beta + step
            break
        for _ in range(_HALVINGS):
            moved = unit @ (beta + step) + offset
            if (found := log_likelihood(moved)) >= reached:
                break
            step = step / 2
        else:
            break
        beta, eta, reached = beta + step, moved, found
    return inverse @ beta
