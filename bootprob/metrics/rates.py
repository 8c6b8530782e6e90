"""Rates that must hold: what share of the rows has to be right so that a floor is kept.

A floor ``p ≥ p0`` on the true positive rate, the true negative rate or the accuracy is asked of a
sample of n rows. Without a confidence level the observed share has to reach p0. With one, it has
to reach a larger share p*, such that a rate of p0 or less would be observed that high with
probability ``α = 1 − confidence`` at most: thesis chapter 2, formulas (2.2) to (2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, floor, log, sqrt
from numbers import Real
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bootprob.exceptions import DataError, UnattainableRateError

__all__ = [
    "OF_CLASSES",
    "OF_DECISIONS",
    "OF_TWO_CLASSES",
    "RATE_NAMES",
    "Bound",
    "Rate",
    "RateFloor",
    "rate_floors",
]

Rate = Literal["tpr", "tnr", "accuracy", "ppv", "npv", "decided"]
Bound = Literal["binomial", "hoeffding"]

OF_CLASSES: tuple[Rate, ...] = ("tpr", "tnr", "accuracy")
"""Shares of rows that are known before anything is decided."""

OF_DECISIONS: tuple[Rate, ...] = ("ppv", "npv")
"""Shares of the rows that are decided positive, and negative."""

OF_TWO_CLASSES: tuple[Rate, ...] = ("tpr", "tnr", *OF_DECISIONS, "decided")
"""What an ensemble can be asked to keep."""

RATE_NAMES: dict[str, str] = {
    "tpr": "Sensitivity",
    "tnr": "Specificity",
    "accuracy": "Accuracy",
    "ppv": "Precision",
    "npv": "Negative predictive value",
    "decided": "Share decided",
}
"""What rates are called in tables for people."""

_WHOSE = {
    "tpr": "positives",
    "tnr": "negatives",
    "accuracy": "rows",
    "ppv": "rows decided positive",
    "npv": "rows decided negative",
    "decided": "rows",
}
_ROUNDING = 1e-9  # of a row: .95 · 20 must not ask for 20 rows


@dataclass(frozen=True)
class RateFloor:
    """A rate, the least that it may be, and how sure one wants to be of it.

    Attributes
    ----------
    rate : {"tpr", "tnr", "accuracy", "ppv", "npv", "decided"}
    at_least : float
        p0, in (0, 1].
    confidence : float or None
        ``1 − α``; None asks for the observed share only.
    bound : {"binomial", "hoeffding"}
        Exact binomial (Clopper and Pearson), or thesis (2.4), which asks for more.
    """

    rate: Rate
    at_least: float
    confidence: float | None = None
    bound: Bound = "binomial"

    @property
    def spoken(self) -> str:
        """What the rate is called in messages."""
        return self.rate

    @property
    def whose(self) -> str:
        """What it is a share of."""
        return _WHOSE[self.rate]

    def members(
        self, positive: NDArray[np.bool_], decided: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Which rows the rate is a share of, shape (n,).

        Parameters
        ----------
        positive : ndarray of bool, shape (n,)
        decided : ndarray of bool, shape (n,), optional
            Which rows are decided positive, for "ppv" and "npv".
        """
        if self.rate in ("accuracy", "decided"):
            return np.ones_like(positive)
        if self.rate in OF_DECISIONS:
            assert decided is not None
            return decided if self.rate == "ppv" else ~decided
        return positive if self.rate == "tpr" else ~positive

    def at_level(self, alpha: float) -> Self:
        """The same where a wrong promise may be made with probability `alpha`, if any may."""
        return self if self.confidence is None else replace(self, confidence=1 - alpha)

    def required_share(self, n: float) -> float:
        """Share of the rows that has to be right, p*, where the promise is from n rows.

        It is not rounded to whole rows: p0 itself without a confidence level, (2.4) with
        Hoeffding's bound. "decided" is of thresholds that labels chose: the share of n rows between
        any two is off by less than twice ``√(log(2/α) / 2n)`` (P. Massart, Annals of Probability 18
        (1990) 1269–1283). Only the exact binomial names a number of the n rows. So it can be asked
        of other rows too, such as a bootstrap sample's, and rounded there.

        Parameters
        ----------
        n : float
            Number of rows that the rate is a share of; with weights, the `effective_rows`.

        Raises
        ------
        UnattainableRateError
            All n rows right would not be enough; says how many rows would be, and what n rows can
            promise.
        """
        if self.confidence is None:
            return self.at_least
        n = floor(n + _ROUNDING)
        if n == 0:
            raise self._too_few(n)
        alpha = 1 - self.confidence
        if self.rate == "decided":
            share = self.at_least + _off_by(alpha, n)
        elif self.bound == "hoeffding":
            share = self.at_least + sqrt(log(alpha) / (-2 * n))
        else:  # the least m with P(Bin(n, p0) ≥ m) ≤ α
            share = (int(stats.binom.isf(alpha, n, self.at_least)) + 1) / n
        if share * n > n + _ROUNDING:
            raise self._too_few(n)
        return min(share, 1.0)

    def required_rows(self, n: int) -> int:
        """How many of n rows of equal weight have to be right.

        Raises
        ------
        UnattainableRateError
            As `required_share`.
        """
        return ceil(self.required_share(n) * n - _ROUNDING)

    def least_rows(self) -> int | None:
        """Fewest rows with which the floor can be kept with confidence; None if none suffice."""
        if self.confidence is None:
            return 1
        if self.at_least == 1:
            return None
        alpha = 1 - self.confidence
        if self.rate == "decided":
            return ceil(2 * log(2 / alpha) / (1 - self.at_least) ** 2 - _ROUNDING)
        if self.bound == "hoeffding":
            return ceil(log(alpha) / (-2 * (1 - self.at_least) ** 2) - _ROUNDING)
        return ceil(log(alpha) / log(self.at_least) - _ROUNDING)

    def attainable(self, n: float) -> float:
        """Highest floor that n rows can keep, were all of them right."""
        if self.confidence is None:
            return 1.0
        n = floor(n + _ROUNDING)
        if n == 0:
            return 0.0
        alpha = 1 - self.confidence
        if self.rate == "decided":
            return max(0.0, 1 - _off_by(alpha, n))
        if self.bound == "hoeffding":
            return max(0.0, 1 - sqrt(log(alpha) / (-2 * n)))
        return exp(log(alpha) / n)

    def _too_few(self, n: int) -> UnattainableRateError:
        whose, best, rows = self.whose, self.attainable(n), self.least_rows()
        bound = "bound of all thresholds" if self.rate == "decided" else f"{self.bound} bound"
        more = "" if rows is None else f"give at least {rows} {whose}, or "
        return UnattainableRateError(
            f"{self.spoken} ≥ {self.at_least:g} cannot be promised with confidence "
            f"{self.confidence:g} ({bound}) from {n} {whose}: were all of them right, "
            f"that would show {self.spoken} ≥ {floor(best * 1000) / 1000:g}. To go on, {more}lower "
            "the rate or the confidence.",
            rate=self.rate,
            wanted=self.at_least,
            attainable=best,
        )


def rate_floors(
    rates: Mapping[str, float] | None,
    confidence: float | None = None,
    bound: str = "binomial",
    known: tuple[Rate, ...] = OF_CLASSES,
) -> tuple[RateFloor, ...]:
    """Check what a user gave and make floors of it.

    Parameters
    ----------
    rates : mapping of str to float, or None
        Names to the least that the rate may be.
    confidence : float, optional
        Of each of the floors.
    bound : {"binomial", "hoeffding"}, default "binomial"
    known : tuple of str, default ("tpr", "tnr", "accuracy")
        Rates that can be asked for.

    Raises
    ------
    DataError
        For unknown names and for numbers outside (0, 1].
    """
    if bound not in get_args(Bound):
        raise DataError(f"bound is {bound!r}; give 'binomial' or 'hoeffding'.")
    if confidence is not None and not (_is_number(confidence) and 0 < confidence < 1):
        raise DataError(f"confidence is {confidence!r}; give a number between 0 and 1, or None.")
    if rates is None:
        return ()
    if not isinstance(rates, Mapping):
        raise DataError(f"rates is {rates!r}; give a dict such as {{'tpr': 0.95}}.")
    for name, least in rates.items():
        if name not in known:
            *others, last = map(repr, known)
            raise DataError(f"rates has {name!r}; give {', '.join(others)} or {last}.")
        if not (_is_number(least) and 0 < least <= 1):
            raise DataError(f"rates[{name!r}] is {least!r}; give a number above 0, up to 1.")
    return tuple(
        RateFloor(name, float(rates[name]), confidence, bound)  # type: ignore[arg-type]
        for name in get_args(Rate)
        if name in rates
    )


def _off_by(alpha: float, n: float) -> float:
    """By how much the share of n rows between any two thresholds can be off."""
    return 2 * sqrt(log(2 / alpha) / (2 * n))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)
