"""A band that contains the whole calibration curve with a confidence that holds in any sample.

T. Dimitriadis, L. Dümbgen, A. Henzi, M. Puke, J. Ziegel, "Honest calibration assessment for binary
outcome predictions", Biometrika 110 (2023) 663–680. All that is taken for granted is that the
curve, the frequency of the positive class by the probability stated, does not fall. Then among rows
whose probability lies in any interval the frequency is at least that at its lower end and at most
that at its upper one: Clopper and Pearson's bounds of all intervals, at a level that all of them
share, bound the curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, xlogy
from sklearn.isotonic import isotonic_regression

from bootprob.exceptions import DataError
from bootprob.intervals import check_level
from bootprob.metrics.reliability import check_rows, groups_of_rows, numbers_of_rows
from bootprob.runtime.arrays import Floats, Integers
from bootprob.runtime.groups import Groups

__all__ = ["CalibrationBand", "calibration_band", "has_band"]

_LEAST_VALUES = 20
_MOST_DIGITS = 4
_FARTHEST = 0.5 * np.log(8.0)


@dataclass(frozen=True)
class CalibrationBand:
    """A simultaneous confidence band of a calibration curve that does not fall.

    Attributes
    ----------
    probability : ndarray, shape (k,)
        Where the band changes, from 0 to 1.
    lower, upper : ndarray, shape (k,)
        Bounds there. In between the lower bound is that of the value before, the upper one that of
        the value after.
    stated : ndarray, shape (m,)
        First and last probability stated of each step of the isotonic regression.
    observed : ndarray, shape (m,)
        Isotonic regression of the labels there, which the band surrounds unless it crosses.
    n_rows : int
        Rows that it was made of.
    level : float
        Nominal confidence, between 0 and 1.
    digits : int or None
        That probabilities were rounded to; None for none.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import calibration_band
    >>> p = np.repeat([0.2, 0.7], 500)
    >>> band = calibration_band(np.random.default_rng(0).uniform(size=1000) < p, p)
    >>> band.contains_diagonal
    True
    """

    probability: Floats
    lower: Floats
    upper: Floats
    stated: Floats
    observed: Floats
    n_rows: int
    level: float
    digits: int | None

    def at(self, probability: ArrayLike) -> tuple[Floats, Floats]:
        """Lower and upper bound at probabilities.

        Parameters
        ----------
        probability : array_like
            Within [0, 1].

        Raises
        ------
        DataError
            For other values than these.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.metrics import calibration_band
        >>> p = np.repeat([0.2, 0.7], 500)
        >>> band = calibration_band(np.random.default_rng(0).uniform(size=1000) < p, p)
        >>> lower, upper = band.at(0.2)
        >>> bool(lower < 0.2 < upper)
        True
        """
        x = numbers_of_rows("probability", probability)
        outside = ~((x >= 0) & (x <= 1))
        if outside.any():
            raise DataError(
                f"The band is of probabilities between 0 and 1, not of {x[outside][0]:g}."
            )
        before = np.searchsorted(self.probability, x, side="right") - 1
        return self.lower[before], self.upper[np.searchsorted(self.probability, x)]

    @cached_property
    def miscalibrated(self) -> tuple[tuple[float, float], ...]:
        """Open intervals of probabilities that the band proves wrong, from the least on."""
        x, found = self.probability, list[tuple[float, float]]()
        for start, end, lower, upper in zip(
            x[:-1], x[1:], self.lower[:-1], self.upper[1:], strict=True
        ):
            # Between two values the bounds are constant, and the diagonal rises.
            for a, b in ((start, min(end, lower)), (max(start, upper), end)):
                if a < b and found and found[-1][1] == a:
                    found[-1] = (found[-1][0], float(b))
                elif a < b:
                    found.append((float(a), float(b)))
        return tuple(found)

    @property
    def contains_diagonal(self) -> bool:
        """Whether all stated probabilities can be right: a test of level ``1 − level``."""
        return not self.miscalibrated

    @property
    def crosses(self) -> bool:
        """Whether its bounds cross, which proves that the curve falls somewhere."""
        return bool((self.lower > self.upper).any())


def has_band(weights: Floats, groups: Groups | None) -> bool:
    """Whether the rows with a weight are independent and count the same."""
    used = weights > 0
    alone = groups is None or len(np.unique(groups[used])) == np.count_nonzero(used)
    return alone and len(np.unique(weights[used])) <= 1


def calibration_band(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    *,
    groups: ArrayLike | None = None,
    digits: int | str | None = "auto",
) -> CalibrationBand:
    """Band that contains the calibration curve as a whole, with this confidence at least.

    Parameters
    ----------
    y : array_like, shape (n,)
        1 for the positive class, 0 for the negative one, of independent rows.
    p : array_like, shape (n,)
        Probability of the positive class, which owes nothing to the labels of these rows; rows with
        NaN are left out.
    weights : array_like, shape (n,), optional
        0 for rows to leave out; all others have to be the same.
    level : float, default 0.95
        Nominal confidence, between 0 and 1.
    groups : array_like, shape (n,), optional
        Which rows belong together. The band is of independent rows: groups of more than one row are
        refused.
    digits : int, "auto" or None, default "auto"
        Decimals that probabilities are rounded to, down for the upper bound and up for the lower
        one, which keeps the confidence: fewer intervals share it, and the band of many rows is
        narrower and quicker. "auto" takes two, or up to four where less than 20 values remain; None
        does not round, and takes seconds for 10,000 rows and minutes beyond.

    Returns
    -------
    CalibrationBand

    Raises
    ------
    DataError
        For other shapes or values than these, unequal weights, or groups.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.metrics import calibration_band
    >>> generator = np.random.default_rng(0)
    >>> p = generator.random(2000)
    >>> calibration_band(generator.random(2000) < p, p).contains_diagonal
    True
    >>> calibration_band(generator.random(2000) < p**2, p).contains_diagonal
    False
    """
    level, codes = check_level(level), groups_of_rows(groups, p, weights)
    y, p, weights, _ = check_rows(y, p, weights)
    if not has_band(weights, codes):
        raise DataError(
            "A calibration band is of independent rows that count the same, and rows have "
            "different weights or belong together; reliability_curve takes both."
        )
    digits = _checked_digits(digits, p)
    x, index = np.unique(p, return_inverse=True)
    positive, n_rows = np.bincount(index[y == 1], minlength=len(x)), np.bincount(index)
    down, up = (x, x) if digits is None else _rounded(x, digits)
    (below, lower), (above, upper) = (
        _lower_bounds(x, up, positive, n_rows, 1 - level),
        _lower_bounds(-x[::-1], -down[::-1], (n_rows - positive)[::-1], n_rows[::-1], 1 - level),
    )
    values = np.unique(np.concatenate([[0.0, 1.0], below, -above]))
    observed = isotonic_regression(positive / n_rows, sample_weight=n_rows)
    ends = np.diff(observed, prepend=-1, append=2) > 0
    steps = ends[:-1] | ends[1:]
    return CalibrationBand(
        values,
        _at_or_before(values, below, lower),
        1 - _at_or_before(-values, above, upper),
        x[steps],
        observed[steps],
        len(y),
        level,
        digits,
    )


def _checked_digits(digits: int | str | None, p: Floats) -> int | None:
    if digits is None:
        return None
    if digits == "auto":
        tried = range(2, _MOST_DIGITS)
        enough = (d for d in tried if len(np.unique(_rounded(p, d)[0])) >= _LEAST_VALUES)
        return next(enough, _MOST_DIGITS)
    if isinstance(digits, bool) or not isinstance(digits, Integral) or not 1 <= digits <= 15:
        raise DataError(f"digits is {digits!r}; give a number from 1 to 15, 'auto' or None.")
    return int(digits)


def _rounded(x: Floats, digits: int) -> tuple[Floats, Floats]:
    """Down and up; what has so few digits stays, though its product may be a hair off a number."""
    scale = 10.0**digits
    near = np.rint(x * scale) / scale
    down, up = np.floor(x * scale) / scale, np.ceil(x * scale) / scale
    return np.where(near == x, x, down), np.where(near == x, x, up)


def _at_or_before(values: Floats, known: Floats, bounds: Floats) -> Floats:
    """The bound at the last known value that is not after each; 0 before all of them."""
    return np.append(0.0, bounds)[np.searchsorted(known, values, side="right")]


def _lower_bounds(
    x: Floats, rounded: Floats, positive: Integers, n_rows: Integers, alpha: float
) -> tuple[Floats, Floats]:
    """Values (k,) in rising order, and the lower bound of the curve from each of them on.

    Half of alpha is shared by the ``k (k + 1) / 2`` intervals of rounded values.

    Parameters
    ----------
    x : ndarray, shape (m,)
        Different values, in rising order.
    rounded : ndarray, shape (m,)
        The same, rounded up; bounds are those of the largest x of each.
    positive, n_rows : ndarray, shape (m,)
        Of the rows of each value.
    alpha : float
    """
    starts = np.flatnonzero(np.diff(rounded, prepend=-np.inf) > 0)
    hits = np.add.reduceat(positive, starts)
    misses = np.add.reduceat(n_rows, starts) - hits
    last = np.append(starts[1:], len(x)) - 1
    k = len(starts)
    return x[last], np.array(list(_running_bounds(hits, misses, alpha / (k * (k + 1.0)))))


def _running_bounds(hits: Integers, misses: Integers, tail: float) -> Iterator[float]:
    """Largest Clopper–Pearson lower bound of all intervals of values that end at or before each.

    The bound of h hits and m misses, the beta quantile of h and m + 1 at `tail`, is above c only if
    fewer than `tail` of the samples with probability c have h hits; of such samples at least
    ``√((h + m) / 8 h m) exp(−(h + m) KL)`` have (J. MacWilliams, N. Sloane, "The Theory of
    Error-Correcting Codes", 1977, chapter 10, lemma 7). So most intervals need no quantile.
    """
    numbers = np.arange(hits.sum() + misses.sum() + 1)
    # k log k and half the logarithm of k, which sum up to the exponent and the root.
    table = xlogy(numbers, numbers) + 0.5 * np.log(np.maximum(numbers, 1))
    h, m = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    reached = 0.0
    for more_hits, more_misses in zip(hits, misses, strict=True):
        h, m = np.append(h, 0) + more_hits, np.append(m, 0) + more_misses
        near = _near(h, m, reached, tail, table)
        a, b = h[near], m[near]
        while len(a):
            # The likeliest first: what it reaches leaves few others.
            best = int(np.argmax(a / (a + b) - np.sqrt(a * (b + 1.0) / (a + b) ** 3)))
            found = float(betaincinv(a[best], b[best] + 1.0, tail))
            if found <= reached:
                break
            reached = found
            left = _near(a, b, reached, tail, table)
            a, b = a[left], b[left]
        if len(a):
            beyond = betainc(a, b + 1.0, reached) < tail
            if beyond.any():
                bounds = betaincinv(a[beyond], b[beyond] + 1.0, tail)
                reached = max(reached, float(bounds.max()))
        yield reached


def _near(h: Integers, m: Integers, c: float, tail: float, table: Floats) -> Integers:
    """Which intervals can have a bound above c, and some that have not."""
    if c <= 0:
        return np.flatnonzero(h > 0)
    exponent = table[h] + table[m] - table[h + m] - h * np.log(c) - m * np.log1p(-c)
    above = h * (1 - c) > m * c
    return np.flatnonzero(above & (exponent + _FARTHEST > -np.log(tail)))
