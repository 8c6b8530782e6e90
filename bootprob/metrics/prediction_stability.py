"""How much predictions would change with other training rows, from the bootstrap replicates.

After R. Riley, G. Collins, "Stability of clinical prediction models developed using statistical or
machine learning methods", Biometrical Journal 65 (2023) 2200302: the model of each bootstrap sample
says something of the same rows, and stands beside the model of all rows. Definitions are those of
the R package pminternal (S. Rhodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from bootprob.exceptions import DataError
from bootprob.intervals import check_level, percentile
from bootprob.metrics.decision_curves import checked_thresholds, net_benefits
from bootprob.metrics.logistic_calibration import CalibrationCurve, logistic_line, spline_curve
from bootprob.metrics.metrics import check_both_classes
from bootprob.metrics.reliability import check_rows, kept_rows, numbers_of_rows
from bootprob.runtime.arrays import Floats

__all__ = ["THRESHOLDS", "Stability", "effective_sample_size", "stability"]

THRESHOLDS = tuple(k / 100 for k in range(100))
"""Of the decision curves, where no others are given."""


@dataclass(frozen=True)
class Stability:
    """Predictions of a model beside those of its bootstrap replicates, on the same n rows.

    Attributes
    ----------
    probability : ndarray, shape (n,)
        By the model.
    replicates : ndarray, shape (B, n)
        By the replicates.
    weights : ndarray, shape (n,)
        Of the rows.
    interval : ndarray, shape (n, 2)
        Stability interval: percentiles of the replicates.
    absolute_error : ndarray, shape (n,)
        Mean absolute prediction error of a row (MAPE): mean over the replicates of
        ``|p_b − p|``.
    mean_absolute_error : float
        Its mean over the rows, by weight.
    threshold : float
        Probability above which a row counts as positive.
    classification_instability : ndarray, shape (n,)
        Share of the replicates that put the row on the other side of the threshold.
    mean_classification_instability : float
        Its mean over the rows, by weight.
    effective_sample_size : ndarray, shape (n,)
        See `effective_sample_size`.
    slope, intercept, in_the_large : float
        Logistic calibration of the model on these rows; the first two NaN where there are none.
    slopes, intercepts, in_the_larges : ndarray, shape (B,)
        The same of each replicate.
    slope_interval, intercept_interval, in_the_large_interval : ndarray, shape (2,)
        Their percentiles.
    curve : CalibrationCurve
        Smooth calibration curve of the model.
    curves : tuple of CalibrationCurve
        Of the replicates.
    thresholds : ndarray, shape (k,)
        Of the decision curves.
    net_benefit : ndarray, shape (k,)
        Decision curve of the model.
    net_benefits : ndarray, shape (B, k)
        Of the replicates.
    net_benefit_band : ndarray, shape (k, 2)
        Their percentiles at each threshold.
    net_benefit_of_all : ndarray, shape (k,)
        Of treating every row.
    level : float
        Of the percentiles.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> y = (rng.uniform(size=200) < p).astype(int)
    >>> replicates = np.clip(p + rng.normal(0, 0.05, size=(20, 200)), 0.01, 0.99)
    >>> from bootprob.metrics import stability
    >>> found = stability(y, p, replicates)
    >>> found.absolute_error.shape
    (200,)
    """

    probability: Floats
    replicates: Floats
    weights: Floats
    interval: Floats
    absolute_error: Floats
    mean_absolute_error: float
    threshold: float
    classification_instability: Floats
    mean_classification_instability: float
    effective_sample_size: Floats
    slope: float
    intercept: float
    in_the_large: float
    slopes: Floats
    intercepts: Floats
    in_the_larges: Floats
    slope_interval: Floats
    intercept_interval: Floats
    in_the_large_interval: Floats
    curve: CalibrationCurve
    curves: tuple[CalibrationCurve, ...]
    thresholds: Floats
    net_benefit: Floats
    net_benefits: Floats
    net_benefit_band: Floats
    net_benefit_of_all: Floats
    level: float


def stability(
    y: ArrayLike,
    p: ArrayLike,
    replicates: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    threshold: float = 0.5,
    thresholds: ArrayLike = THRESHOLDS,
    level: float = 0.95,
) -> Stability:
    """Instability of predictions, classification, calibration and decision curves.

    Where rows belong together, the replicates have to come from samples of whole groups; nothing
    else changes.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one; rows of both.
    p : array_like, shape (n,)
        Probability of the positive class by the model.
    replicates : array_like, shape (B, n)
        By the models of two or more bootstrap samples, of the same rows. Riley and Collins ask for
        200 or more.
    weights : array_like, shape (n,), optional
        Row weights, of means, calibration and net benefit; rows of weight 0 are left out.
    threshold : float, default 0.5
        Of the classification: positive where ``p > threshold``.
    thresholds : array_like, shape (k,), optional
        Of the decision curves; default 0, 0.01, …, 0.99.
    level : float, default 0.95
        Of the percentiles.

    Returns
    -------
    Stability
        Of the rows of positive weight.

    Raises
    ------
    DataError
        For other shapes or values than these, or rows of one class.

    Examples
    --------
    >>> from bootprob.metrics import stability
    >>> y, p = [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9]
    >>> found = stability(y, p, [[0.1, 0.6, 0.4, 0.9], [0.3, 0.4, 0.6, 0.7]])
    >>> found.absolute_error.round(3).tolist()
    [0.1, 0.1, 0.1, 0.1]
    >>> found.classification_instability.tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    level, thresholds = check_level(level), checked_thresholds(thresholds)
    if not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise DataError(f"threshold is {threshold!r}; give a number between 0 and 1.")
    y, p, drawn, weights = _checked(y, p, replicates, weights)
    apart, other = np.abs(drawn - p), (drawn > threshold) != (p > threshold)
    line = logistic_line(y, p, weights)
    lines = [logistic_line(y, each, weights) for each in drawn]
    slopes, intercepts, in_the_larges = (
        np.array([getattr(each, name) for each in lines])
        for name in ("slope", "intercept", "in_the_large")
    )
    curves = net_benefits(y, drawn, thresholds, weights)
    of_row, of_class = apart.mean(axis=0), other.mean(axis=0)
    return Stability(
        probability=p,
        replicates=drawn,
        weights=weights,
        interval=percentile(drawn.T, level),
        absolute_error=of_row,
        mean_absolute_error=float(np.average(of_row, weights=weights)),
        threshold=float(threshold),
        classification_instability=of_class,
        mean_classification_instability=float(np.average(of_class, weights=weights)),
        effective_sample_size=effective_sample_size(p, drawn),
        slope=line.slope,
        intercept=line.intercept,
        in_the_large=line.in_the_large,
        slopes=slopes,
        intercepts=intercepts,
        in_the_larges=in_the_larges,
        slope_interval=_known_percentiles(slopes, level),
        intercept_interval=_known_percentiles(intercepts, level),
        in_the_large_interval=_known_percentiles(in_the_larges, level),
        curve=spline_curve(y, p, weights),
        curves=tuple(spline_curve(y, each, weights) for each in drawn),
        thresholds=thresholds,
        net_benefit=net_benefits(y, p[None], thresholds, weights)[0],
        net_benefits=curves,
        net_benefit_band=percentile(curves.T, level),
        net_benefit_of_all=net_benefits(y, np.ones((1, len(y))), thresholds, weights)[0],
        level=level,
    )


def effective_sample_size(p: ArrayLike, replicates: ArrayLike) -> Floats:
    """How many rows like this one a prediction is worth: ``p (1 − p) / Var(p̂)``, shape (n,).

    The number of rows with these columns whose share of positives would vary as much as the
    prediction does (D. Thomassen, S. le Cessie, H. van Houwelingen, E. Steyerberg, "Effective
    sample size: a measure of individual uncertainty in predictions", Statistics in Medicine 43
    (2024) 1384–1396); the variance is that over the replicates, with ``B − 1``, where they have a
    formula for generalised linear models.

    Parameters
    ----------
    p : array_like, shape (n,)
        Probability by the model.
    replicates : array_like, shape (B, n)
        By the models of the bootstrap samples.

    Returns
    -------
    ndarray, shape (n,)
        Infinite where all replicates say the same.

    Raises
    ------
    DataError
        Of other shapes, of one replicate, or of other numbers than probabilities.

    Examples
    --------
    >>> from bootprob.metrics import effective_sample_size
    >>> effective_sample_size([0.5, 0.1], [[0.4, 0.1], [0.5, 0.1], [0.6, 0.1]]).round(6).tolist()
    [25.0, inf]
    """
    p, drawn = _checked_probabilities(p, replicates)
    variance = drawn.var(axis=0, ddof=1)
    # The mean of equal numbers is not always that number.
    variance[np.ptp(drawn, axis=0) == 0] = 0.0
    with np.errstate(divide="ignore"):
        return np.where(variance > 0, p * (1 - p), np.inf) / np.where(variance > 0, variance, 1.0)


def _checked(
    y: ArrayLike, p: ArrayLike, replicates: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Floats, Floats, Floats]:
    stated, drawn = _checked_probabilities(p, replicates)
    labels, known, mass, _ = check_rows(y, stated, weights)
    check_both_classes(labels)
    return labels, known, drawn[:, kept_rows(stated, weights)], mass


def _checked_probabilities(p: ArrayLike, replicates: ArrayLike) -> tuple[Floats, Floats]:
    stated, drawn = numbers_of_rows("p", p), numbers_of_rows("replicates", replicates)
    if stated.ndim != 1 or drawn.ndim != 2 or drawn.shape[1:] != stated.shape:
        raise DataError(
            "p must have the shape (n,) and replicates (B, n), a row for each replicate; got "
            f"{stated.shape} and {drawn.shape}."
        )
    if len(drawn) < 2:
        raise DataError("One replicate shows no stability; give two or more, better 200.")
    if not all(((each >= 0) & (each <= 1)).all() for each in (stated, drawn)):
        raise DataError("p and replicates must hold probabilities between 0 and 1, without gaps.")
    return stated, drawn


def _known_percentiles(values: Floats, level: float) -> Floats:
    """Of the replicates that have one; NaN where none has."""
    known = values[~np.isnan(values)]
    return percentile(known, level) if len(known) else np.full(2, np.nan)
