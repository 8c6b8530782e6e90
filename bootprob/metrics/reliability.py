"""Do the stated probabilities agree with what happened? Curves and errors over bins of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.intervals.shares import effective_rows, wilson_interval
from bootprob.metrics.row_weights import without_unit
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import Groups, checked_groups
from bootprob.runtime.whole_numbers import checked_whole

__all__ = [
    "ReliabilityCurve",
    "calibration_error",
    "calibration_error_by_chance",
    "check_rows",
    "equal_mass_bins",
    "groups_of_rows",
    "kept_decisions",
    "kept_numbers",
    "kept_rows",
    "numbers_of_rows",
    "reliability_curve",
    "resampling_parts",
]


N_RESAMPLES = 1000
_CELLS_AT_ONCE = 4_000_000  # resamples × rows held in memory together: 32 MB a matrix
_LABELS = "y must hold 0 for the negative class and 1 for the positive one"
_ROUNDING = 1e-9  # a weighted share of votes may leave [0, 1] by rounding


@dataclass(frozen=True)
class ReliabilityCurve:
    """Observed frequency against stated probability, one entry per bin, in rising order.

    Attributes
    ----------
    probability : ndarray, shape (n_bins,)
        Weighted mean of the stated probabilities.
    observed : ndarray, shape (n_bins,)
        Weighted share of positive rows.
    lower, upper : ndarray, shape (n_bins,)
        Wilson interval of `observed`.
    n_rows : ndarray of int, shape (n_bins,)
        Rows in the bin.
    weight : ndarray, shape (n_bins,)
        Share of all weight that lies in the bin; adds up to 1.

    Examples
    --------
    >>> from bootprob.metrics import reliability_curve
    >>> p = [0.1, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.9]
    >>> curve = reliability_curve([0, 0, 0, 1, 1, 1, 0, 1], p, n_bins=2)
    >>> curve.n_rows, curve.weight
    (array([4, 4]), array([0.5, 0.5]))
    >>> bool((curve.lower < curve.observed).all())
    True
    """

    probability: Floats
    observed: Floats
    lower: Floats
    upper: Floats
    n_rows: NDArray[np.int64]
    weight: Floats


def reliability_curve(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    level: float = 0.95,
    *,
    groups: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Observed frequency of the positive class against the stated probability, by bins.

    Bins are those of `calibration_error`. The interval in each bin is Wilson's (1927); with
    unequal weights the number of rows is replaced by the effective ``(Σw)² / Σw²`` (Kish 1965).

    Parameters
    ----------
    y : array-like, shape (n,)
        1 for the positive class, 0 for the negative one.
    p : array-like, shape (n,)
        Probability of the positive class; rows with NaN are left out.
    weights : array-like, shape (n,), optional
        Row weights; rows of weight 0 are as good as absent.
    n_bins : int, default 10
        Groups of about the same weight.
    level : float, default 0.95
        Nominal confidence, between 0 and 1.
    groups : array-like, shape (n,), optional
        Which rows belong together; a group in a bin tells as much as one row.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> from bootprob.metrics import reliability_curve
    >>> p = [0.1, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.9]
    >>> curve = reliability_curve([0, 0, 0, 1, 1, 1, 0, 1], p, n_bins=2)
    >>> curve.observed  # of four rows each
    array([0.25, 0.75])
    """
    check_level(level)
    codes = groups_of_rows(groups, p, weights)
    y, p, weights, _ = check_rows(y, p, weights)
    members = equal_mass_bins(p, weights, n_bins)
    mass = weights @ members
    observed = (weights * y) @ members / mass
    of_bins = (members > 0).T
    n_rows = [effective_rows(weights[b], None if codes is None else codes[b]) for b in of_bins]
    bounds = wilson_interval(observed, np.array(n_rows), level)
    return ReliabilityCurve(
        probability=(weights * p) @ members / mass,
        observed=observed,
        lower=bounds[:, 0],
        upper=bounds[:, 1],
        n_rows=members.sum(0).astype(np.int64),
        weight=mass / mass.sum(),
    )


def calibration_error(
    y: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None, n_bins: int = 10
) -> float:
    """Expected calibration error: mean over bins of |observed frequency − mean probability|.

    The bins hold equal weight (equal mass): rows are taken in order of probability, and a bin is
    closed as soon as it holds ``1 / n_bins`` of the weight. Rows of equal probability stay
    together, so that bins are fewer and fuller where there are many ties; a last bin with less
    than half of its due joins the one before. Bins count by their weight (Naeini, Cooper and
    Hauskrecht 2015, with equal mass in place of equal width).

    Parameters
    ----------
    y, p, weights
        As in `reliability_curve`.
    n_bins : int, default 10

    Returns
    -------
    float
        Between 0 and 1.
    """
    y, p, weights, _ = check_rows(y, p, weights)
    members = equal_mass_bins(p, weights, n_bins)
    return float(np.abs((weights * (y - p)) @ members).sum() / weights.sum())


def calibration_error_by_chance(
    p: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    correlation: float = 1.0,
) -> tuple[float, float]:
    """Calibration error that perfect probabilities would show with these rows.

    A finite table never matches its probabilities exactly. Labels are drawn 1,000 times from `p`
    itself; what `calibration_error` then finds is noise alone.

    Parameters
    ----------
    p, weights
        As in `calibration_error`, whose ten bins these are.
    groups : array-like, shape (n,), optional
        Which rows belong together.
    correlation : float, default 1.0
        Of the labels of two rows of a group (`bootprob.metrics.intraclass`).

    Returns
    -------
    mean, quantile : float
        An observed error above `quantile`, which is that of 0.95, is more than chance explains.
    """
    codes = groups_of_rows(groups, p, weights)
    _, p, weights, _ = check_rows(np.zeros(np.shape(p)), p, weights)
    members = equal_mass_bins(p, weights, 10)
    rng = np.random.default_rng(0)
    errors = []
    for size in resampling_parts(len(p)):
        drawn = rng.random((size, len(p)))
        if codes is not None:  # a row has its group's number with a probability of √ρ
            alike = rng.random((size, int(codes.max()) + 1))[:, codes]
            drawn = np.where(rng.random(drawn.shape) < np.sqrt(correlation), alike, drawn)
        residual = (drawn < p) - p
        errors.append(np.abs((residual * weights) @ members).sum(1) / weights.sum())
    found = np.concatenate(errors)
    return float(found.mean()), float(np.quantile(found, 0.95))


def groups_of_rows(
    groups: ArrayLike | None, p: ArrayLike, weights: ArrayLike | None
) -> Groups | None:
    """Groups of the rows that `check_rows` keeps; parameters as there."""
    codes = checked_groups(groups, numbers_of_rows("p", p).size)
    return None if codes is None else codes[kept_rows(p, weights)]


def kept_rows(p: ArrayLike, weights: ArrayLike | None) -> NDArray[np.bool_]:
    """Which rows `check_rows` keeps, shape (n,); parameters as there."""
    known = ~np.isnan(stated := numbers_of_rows("p", p))
    return known if weights is None else known & (_numbers_beside("weights", weights, stated) > 0)


def numbers_of_rows(what: str, values: ArrayLike) -> Floats:
    """Values as numbers; a `DataError` where they are none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} must hold numbers, one a row.") from None


def kept_numbers(what: str, given: ArrayLike, p: ArrayLike, weights: ArrayLike | None) -> Floats:
    """Numbers of the rows that `check_rows` keeps; parameters as there."""
    values = _numbers_beside(what, given, numbers_of_rows("p", p))[kept_rows(p, weights)]
    if not np.isfinite(values).all():
        raise DataError(f"{what} must be finite where there is a probability.")
    return values


def _numbers_beside(what: str, given: ArrayLike, stated: Floats) -> Floats:
    """Values as numbers, one for each probability."""
    values = numbers_of_rows(what, given)
    if values.shape != stated.shape:
        raise DataError(
            f"{what} and p must be of one length, got the shapes {values.shape} and {stated.shape}."
        )
    return values


def kept_decisions(
    decided: ArrayLike, p: ArrayLike, weights: ArrayLike | None
) -> NDArray[np.bool_]:
    """Whether rows that `check_rows` keeps are decided positive; parameters as there."""
    chosen = kept_numbers("decided", decided, p, weights)
    if not np.isin(chosen, (0, 1)).all():
        raise DataError("decided has values other than true and false; give one of them a row.")
    return chosen == 1


def check_rows(
    y: ArrayLike, p: ArrayLike, weights: ArrayLike | None, called: str = "p"
) -> tuple[Floats, Floats, Floats, int]:
    """Check labels, probabilities and weights; drop rows without probability or weight.

    Parameters
    ----------
    y, p, weights : array-like, shape (n,)
        As in `reliability_curve`.
    called : str, default "p"
        What errors call the probabilities.

    Returns
    -------
    y, p, weights : ndarray, shape (k,)
        The rows kept; weights without their unit.
    n_left_out : int
        Rows of positive weight without a probability.

    Raises
    ------
    DataError
        For other shapes or values than these, weights that are too far apart
        (`bootprob.metrics.row_weights.without_unit`), or when no row is left.
    """
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{_LABELS}, not text.") from error
    stated = numbers_of_rows(called, p)
    mass = np.ones(stated.shape) if weights is None else numbers_of_rows("weights", weights)
    if not (labels.ndim == 1 and labels.shape == stated.shape == mass.shape):
        raise DataError(
            f"y, {called} and weights must be vectors of one length, got the shapes "
            f"{labels.shape}, {stated.shape} and {mass.shape}."
        )
    if not np.isin(labels, (0, 1)).all():
        raise DataError(f"{_LABELS}.")
    if not (np.isfinite(mass) & (mass >= 0)).all():
        raise DataError("weights must be finite and at least 0.")
    missing = np.isnan(stated)
    if not (np.abs(stated[~missing] - 0.5) <= 0.5 + _ROUNDING).all():
        raise DataError(
            f"{called} must hold probabilities between 0 and 1, or NaN where there is none."
        )
    kept = ~missing & (mass > 0)
    if not kept.any():
        raise DataError("No row has both a probability and a weight above 0.")
    n_left_out = int((missing & (mass > 0)).sum())
    return labels[kept], np.clip(stated[kept], 0.0, 1.0), without_unit(mass[kept]), n_left_out


def equal_mass_bins(p: Floats, weights: Floats, n_bins: int) -> Floats:
    """Membership of rows in bins of equal mass, ties kept together: 0/1, shape (n, bins)."""
    n_bins = checked_whole("n_bins", n_bins, 1)
    _, group = np.unique(p, return_inverse=True)
    reached = np.cumsum(np.bincount(group, weights))
    due = reached[-1] / n_bins * (1 - _ROUNDING)
    last_groups = [-1]
    while last_groups[-1] < len(reached) - 1:
        start = reached[last_groups[-1]] if last_groups[-1] >= 0 else 0.0
        if reached[-1] - start < due / 2:
            last_groups[-1] = len(reached) - 1
        else:
            last = int(np.searchsorted(reached, start + due))
            last_groups.append(min(last, len(reached) - 1))
    index = np.searchsorted(last_groups[1:], group)
    return np.eye(len(last_groups) - 1)[index]


def resampling_parts(n_rows: int) -> Iterator[int]:
    """Split the resamples so that each part of them fits a modest piece of memory."""
    size = max(1, min(N_RESAMPLES, _CELLS_AT_ONCE // n_rows))
    for start in range(0, N_RESAMPLES, size):
        yield min(size, N_RESAMPLES - start)
