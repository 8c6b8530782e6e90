"""What a composite posterior thinks possible before it sees labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, product
from math import comb

import numpy as np

from bootprob.ensemble.uncertainty.curves import (
    MODERATED,
    N_COLUMNS,
    OF_KNOTS,
    Curve,
    Landmarks,
    of_few_columns,
)
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Tails, levels_off, slope_at
from bootprob.ensemble.uncertainty.spike_and_slab import SPIKE
from bootprob.ensemble.uncertainty.steepness import EVEN, RATES, THRESHOLDS, Steepness
from bootprob.ensemble.uncertainty.straight import Straight
from bootprob.runtime.arrays import Floats
from bootprob_gpu.kernels.views import RELEVANT

__all__ = [
    "CURVED",
    "INCLUSIONS",
    "LEVELS",
    "NOTHING",
    "STRAIGHT",
    "TAILS",
    "Kernel",
    "Model",
    "Rest",
    "Setting",
]

Kernel = tuple[Curve, ...]
"""Curves whose sum it is."""

STRAIGHT = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # σ₁ and σ₂, in logits a column's standard deviation
_STEEPEST_SHARE = 0.01  # of the last, which labels that nearly separate ask for
CURVED = tuple(2.0 ** (k - 1.5) for k in range(6))  # σ of a curve, in logits
INCLUSIONS = (0.5, 0.2, 0.05)  # of straight columns that count, where not all do
_OF_VERY_MANY = (32, 8, 2)  # columns that count, where too many have no coefficients
_VARY_ALIKE = 100  # columns whose spikes vary as much as those of more columns
_ALL_COUNT = 1 / 2  # prior probability that all do
_STRAIGHT_SHARE = 1 / 2  # prior probability of no curve
_LOGIT_SHARE, _LEVELLED_SHARE = 0.3, 0.05  # of links; beside the others, of all that level off
_ONE_PART = 0.6  # of linear parts without a curve: the columns alone, or their scores alone
_ALL_COLUMNS = 1 / 3  # of curves: the rest look at few columns
_ANOTHER = 1 / 2  # of sums of curves in few columns: there is one more
_PROBED = 96  # landmarks of curves that are compared
_KINDS = 3  # families and views that say different things of few columns
TAILS: tuple[Tails, ...] = tuple(
    (*pair, 0.0, 0.0) for a in (-0.8, -0.3, 0.25, 0.6) for pair in ((a, a), (a, 0.0), (0.0, a))
)
_MOST_BENT = 20.0  # how much flatter than the logit's a link may be at the base rate
LEVELS = (0.0, 0.03, 0.06, 0.1, 0.16, 0.25, 0.36)  # below 1 and above 0
_STEEP_SHARE = 0.2  # prior probability that the logit is steeper for some rows
_LEAST_MODERATED = 3  # columns; of two there is one slope that varies
_DOUBLING = -0.5  # logarithm of the prior probability of a curve for each doubling of its σ
_INTERCEPT_PRECISION = 0.01  # of a normal prior with a standard deviation of ten logits


@dataclass(frozen=True)
class Rest:
    """Curves that the labels leave possible besides the others, with scales that are not searched.

    Attributes
    ----------
    kernel : tuple of Curve
    scales : tuple of float
        σ of each.
    log_odds : float
        Logarithm of the prior probability that they are there, beside that of the same without.
    """

    kernel: Kernel
    scales: tuple[float, ...]
    log_odds: float


NOTHING = Rest((), (), 0.0)


@dataclass(frozen=True)
class Setting:
    """What is unknown besides the coefficients.

    Attributes
    ----------
    kernel : tuple of Curve
        Whose sum the curve is; empty for none.
    linear : (float, float)
        σ₁ of the columns and σ₂ of their scores; 0 leaves them out. Columns that are their own
        scores have that of either; of more than 256 columns, where most have others, they are in
        both parts, and where most have none σ₁ is not 0.
    scales : tuple of float
        σ of each of the curves.
    tails : Tails
        Of the link.
    rest : Rest
    inclusion : float
        Prior probability that a column of the linear parts counts
        (`bootprob.ensemble.uncertainty.spike_and_slab`), with the σ of its part; 1 where all do.
    steepness : Steepness
        With which column all of the logit grows.
    """

    kernel: Kernel
    linear: tuple[float, float]
    scales: tuple[float, ...]
    tails: Tails
    rest: Rest = NOTHING
    inclusion: float = 1.0
    steepness: Steepness = EVEN

    @property
    def curves(self) -> Kernel:
        """All there are."""
        return self.kernel + self.rest.kernel


@dataclass(frozen=True)
class Model:
    """What all stages share."""

    landmarks: Landmarks
    straight: Straight
    curved: list[Curve]
    few: list[Curve] | None = None  # those that may look at few columns, where they are others
    n_rows: int = 1  # of the table, whose relevant columns its labels have told
    base: float = 0.0  # logit of the share of positive labels

    @property
    def n_relevant(self) -> int:
        """Columns of which labels have said how relevant they are."""
        relevance = self.landmarks.views.relevance
        return 0 if relevance is None else int((relevance > 0).sum())

    @cached_property
    def probes(self) -> Landmarks:
        """Few of the landmarks, for curves that are compared."""
        return self.landmarks.few(_PROBED)

    @cached_property
    def of_columns(self) -> list[Curve]:
        """Curves that may look at few columns, where there are some."""
        if self.landmarks.rows.shape[1] == 1:
            return []
        return of_few_columns(self.curved if self.few is None else self.few)

    @cached_property
    def plain(self) -> list[Curve]:
        """Of these one of each family and view, of a γ in the middle."""
        return [each for each in _middle(self.of_columns) if each.family != "additive"]

    @cached_property
    def of_all(self) -> list[Curve]:
        """The same of curves in all columns that may be whatever others leave."""
        left_out = "quadratic", "both", "product"
        kept = (each for each in self.curved if each.family not in left_out)
        return _middle(kept)

    def among(self, columns: tuple[int, ...], curves: Iterable[Curve]) -> list[Curve]:
        """Curves in some columns; some families are of several, and not of many, or of one."""
        p, size = self.landmarks.rows.shape[1], len(columns)
        left_out = {
            family for family, (least, most) in N_COLUMNS.items() if not least <= size <= most
        }
        if p < _LEAST_MODERATED:
            left_out.add(MODERATED)
        if not self.landmarks.n_knots(size):  # too few rows
            left_out.update(OF_KNOTS)
        kept = (each for each in curves if each.family not in left_out)
        return [each.among(columns, p) for each in kept]

    def variances(self, setting: Setting) -> list[float]:
        """Prior variances of the intercept, both linear parts and the curves, before the link.

        What σ are told in is what a logit is made of where it is the base rate's: else links that
        are flat there would leave columns nothing to say, whatever σ is.
        """
        deviations = (*setting.linear, *setting.scales, *setting.rest.scales)
        prior = [1 / _INTERCEPT_PRECISION, *(s**2 for s in deviations)]
        return [variance * self.unit(setting.tails) ** 2 for variance in prior]

    def unit(self, tails: Tails) -> float:
        """What grows by so much as the logit of the base rate grows by 1."""
        return 1 / slope_at(self.base, tails)

    @cached_property
    def tails(self) -> list[Tails]:
        """Other links with which most rows' logits still say something of their columns."""
        return [tails for tails in TAILS if self.unit(tails) < _MOST_BENT]

    def linear(self, kernel: Kernel) -> list[tuple[float, float]]:
        """What is thought possible of both linear parts; a curve does for what one leaves out."""
        return self._beside_curves if kernel else self._alone

    @cached_property
    def _alone(self) -> list[tuple[float, float]]:
        if not self.straight.n_others:
            return self._beside_curves
        every = product((*STRAIGHT, 0.0), repeat=2)
        return [(a, b) for a, b in every if a or (b and self._scores_alone)]

    @cached_property
    def _scores_alone(self) -> bool:
        return self.straight.may_be_scores_alone(self.landmarks.rows.shape[1])

    @cached_property
    def _beside_curves(self) -> list[tuple[float, float]]:
        if not self.straight.n_others:
            return [(s, 0.0) for s in STRAIGHT]
        return [(a, b) for a, b in product(STRAIGHT, repeat=2)]

    @cached_property
    def alone(self) -> list[tuple[int, ...]]:
        """Columns at which the first coefficients of either linear part look, each at one."""
        return self.straight.of_coefficients(self.landmarks.rows.shape[1])

    def may_be_few(self, setting: Setting) -> bool:
        """Whether the linear parts look at several columns each by itself."""
        return self._n_columns[_used(setting)][0] > 1

    @cached_property
    def _n_columns(self) -> dict[tuple[bool, ...], tuple[int, int]]:
        """How many columns of the linear parts that are used have coefficients, and have none."""
        every = self.straight.columns(self.landmarks.rows.shape[1])
        own_scores = self.straight.own_scores(self.landmarks.rows.shape[1])
        found = {}
        for used in product((False, True), repeat=2):
            alone = set(chain(own_scores, *compress(self.alone, used)))
            found[used] = len(alone), len(set(chain.from_iterable(compress(every, used))) - alone)
        return found

    @property
    def inclusions(self) -> tuple[float, ...]:
        """Shares of the columns that may count, of very many so many columns."""
        if self.straight.directions[0] is None:
            return INCLUSIONS
        return tuple(number / self.landmarks.rows.shape[1] for number in _OF_VERY_MANY)

    @property
    def spike(self) -> float:
        """`SPIKE`; of more than 100 columns less, so that together they vary as much as these."""
        return SPIKE * min(1.0, (_VARY_ALIKE / self.landmarks.rows.shape[1]) ** 0.5)

    def log_prior(self, setting: Setting) -> float:
        """Logarithm of the probability of a setting before labels are seen."""
        probability = self._probability_of_linear(setting)
        if setting.tails == LOGIT:
            probability *= _LOGIT_SHARE
        elif levels_off(setting.tails):
            probability *= _LEVELLED_SHARE / (len(LEVELS) ** 2 - 1)
        else:
            probability *= (1 - _LOGIT_SHARE) / len(self.tails)
        if setting.steepness == EVEN:
            probability *= 1 - _STEEP_SHARE
        else:
            shape = 1 / 2 / len(THRESHOLDS) if setting.steepness.shape else 1 / 2
            probability *= shape * _STEEP_SHARE / self.landmarks.rows.shape[1] / len(RATES)
        if self.may_be_few(setting):
            few = (1 - _ALL_COUNT) / len(self.inclusions)
            probability *= _ALL_COUNT if setting.inclusion == 1 else few
        if self.curved:
            probability *= 1 - _STRAIGHT_SHARE if setting.kernel else _STRAIGHT_SHARE
        found = np.log(probability) + setting.rest.log_odds
        if setting.inclusion < 1:  # none of those counts that have no coefficients
            found += self._n_columns[_used(setting)][1] * np.log1p(-setting.inclusion)
        if setting.kernel and setting.kernel[0].columns:
            found += np.log(1 - _ALL_COLUMNS)
        elif setting.kernel:
            relevant = setting.kernel[0].view.startswith(RELEVANT) or not self.of_columns
            found += np.log((1.0 if relevant else _ALL_COLUMNS) / len(self.curved))
        number = 0
        for curve, scale in zip(setting.kernel, setting.scales, strict=True):
            found += self.log_share(scale)
            if curve.columns:
                found += self.log_odds(number, len(curve.columns))
                number += 1
        return float(found)

    def _probability_of_linear(self, setting: Setting) -> float:
        """One part alone, both of one scale, and the rest share what they have among themselves."""
        first, second = (_share_of_straight(each) for each in setting.linear)
        if not self.straight.n_others:
            return first
        if not (first and second):
            return _ONE_PART / (2 if self._scores_alone else 1) * (first or second)
        both = first
        if setting.linear[0] != setting.linear[1]:
            both *= second / (1 - sum(_share_of_straight(each) ** 2 for each in STRAIGHT))
        return (0.5 if setting.curves else (1 - _ONE_PART) / 2) * both

    def log_odds(self, number: int, size: int) -> float:
        """Logarithm of what one more curve, in given columns, has of the prior of so many before.

        There is one more with probability ½. Of the columns 1 / (q (q + 1)) is for q of them, of
        sets of so many each has the same; and a third of that is each curve's, because families,
        views and γ of few columns say much the same. As a sum has no order, it has that of all its
        orders. A curve in all columns, which comes first, is not counted.
        """
        p = self.landmarks.rows.shape[1]
        another = _ANOTHER * (number + 1)
        return float(np.log(another / (size * (size + 1)) / comb(p, size) / _KINDS))

    def log_odds_beside(self, kernel: Kernel, size: int) -> float:
        """Logarithm of the prior odds of one more curve, in given columns, beside these alone."""
        number = sum(bool(curve.columns) for curve in kernel)
        first = 1.0 if kernel else (1 - _STRAIGHT_SHARE) * (1 - _ALL_COLUMNS) / _STRAIGHT_SHARE
        return self.log_odds(number, size) + float(np.log(first))

    def log_share(self, scale: float) -> float:
        """Logarithm of the prior probability of the σ of a curve that is nearest."""
        return float(self.log_shares[np.abs(np.log(np.divide(CURVED, scale))).argmin()])

    @cached_property
    def log_shares(self) -> Floats:
        """Logarithms of the prior probabilities of the σ in `CURVED`."""
        falling = _DOUBLING * np.arange(len(CURVED))
        return np.asarray(falling - np.logaddexp.reduce(falling))


def _share_of_straight(deviation: float) -> float:
    """Prior probability of one of `STRAIGHT`; 0 for no such part."""
    if deviation in (0.0, STRAIGHT[-1]):
        return _STEEPEST_SHARE if deviation else 0.0
    return (1 - _STEEPEST_SHARE) / (len(STRAIGHT) - 1)


def _used(setting: Setting) -> tuple[bool, ...]:
    """Which linear parts there are."""
    return tuple(deviation > 0 for deviation in setting.linear)


def _middle(curves: Iterable[Curve]) -> list[Curve]:
    """One of each family and view, of a γ in the middle."""
    kinds: dict[tuple[str, str], list[Curve]] = {}
    for each in sorted(curves):
        kinds.setdefault((each.family, each.view), []).append(each)
    return [of_kind[len(of_kind) // 2] for of_kind in kinds.values()]
