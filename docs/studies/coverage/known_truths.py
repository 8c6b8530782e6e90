"""The bank of known truths, for the tests of promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bootprob.runtime.arrays import Floats
from docs.studies.coverage.known_truth import (
    CAUCHIT,
    CLOGLOG,
    PROBIT,
    KnownTruth,
    flipped,
)

__all__ = ["BANK", "BENT", "COVERED", "TRUTHS"]


def _linear(slopes: list[float], intercept: float) -> Callable[[Floats], Floats]:
    w = np.array(slopes)
    return lambda X: X @ w + intercept


def _heavy_tails(generator: np.random.Generator, n: int, p: int) -> Floats:
    return generator.standard_t(3, size=(n, p))


def _uneven_scales(generator: np.random.Generator, n: int, p: int) -> Floats:
    """The first column sets the scale of the others: heteroscedastic columns."""
    X = generator.normal(size=(n, p))
    X[:, 1:] *= np.exp(0.7 * X[:, :1])
    return X


def _correlated(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Correlations of .8 between neighbours."""
    X = generator.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    return X


def _log_normal(generator: np.random.Generator, n: int, p: int) -> Floats:
    return np.exp(generator.normal(size=(n, p)))


def _uniform(generator: np.random.Generator, n: int, p: int) -> Floats:
    return generator.uniform(-2, 2, size=(n, p))


def _mixed(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Two dummies, two skewed columns, the rest normal."""
    X = generator.normal(size=(n, p))
    X[:, :2] = generator.uniform(size=(n, 2)) < (0.5, 0.2)
    X[:, 2:4] = generator.gamma(2.0, size=(n, 2))
    return X


def _levels(generator: np.random.Generator, n: int, p: int) -> Floats:
    """A column of p − 1 levels as dummies, and a number."""
    X = np.zeros((n, p))
    X[np.arange(n), generator.integers(p - 1, size=n)] = 1.0
    X[:, -1] = generator.normal(size=n)
    return X


def _subgroup(generator: np.random.Generator, n: int, p: int) -> Floats:
    """The last column tells a quarter of the rows."""
    X = generator.normal(size=(n, p))
    X[:, -1] = generator.uniform(size=n) < 0.25
    return X


def _remeasured(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Five rows a subject, all columns but the last two the same in all five."""
    X = generator.normal(size=(n, p))
    X[:, :-2] = np.repeat(X[::5, :-2], 5, axis=0)
    return X


_NOISE = 0.3  # of a measurement, in standard deviations between subjects


def _noisy_subjects(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Five rows a subject, measured with noise."""
    return np.repeat(generator.normal(size=(n // 5, p)), 5, axis=0) + _NOISE * generator.normal(
        size=(n, p)
    )


_OF_SUBJECT = np.array([1.0, -0.8, 0.6, 0.4, 0.0])  # probit slopes of what is measured


def _of_measurements(mean: Floats, n_rows: int) -> Floats:
    """Probit of a normal subject's label given the mean of some of its rows."""
    noise = _NOISE**2 / n_rows
    known = 1 / (1 + noise)
    return known * (mean @ _OF_SUBJECT) / np.sqrt(1 + noise * known * _OF_SUBJECT @ _OF_SUBJECT)


def _of_subjects(X: Floats) -> Floats:
    """P(y = 1) of each row given the five rows of its subject."""
    means = X.reshape(-1, 5, X.shape[1]).mean(axis=1)
    return np.repeat(ndtr(_of_measurements(means, 5)), 5)


def _curves(X: Floats) -> Floats:
    return np.column_stack([np.sin(1.5 * X[:, 0]), X[:, 1] * X[:, 2]])


def _curved(X: Floats) -> Floats:
    return _curves(X) @ [2.0, 1.0] - 0.3


def _hills(X: Floats) -> Floats:
    """Three hills and valleys, as wide as the RBF kernel's can be."""
    centers = [(1, 1), (-1, 0.5), (0.5, -1.5)]
    return np.column_stack([np.exp(-0.5 * np.square(X - center).sum(axis=1)) for center in centers])


def _hilly(X: Floats) -> Floats:
    return _hills(X) @ [3.0, -3.0, 2.0] - 0.5


def _of(
    family: str,
    name: str,
    n_features: int,
    columns: Callable[[Floats], Floats],
    slopes: list[float] | Floats,
    intercept: float,
    **others: Any,
) -> KnownTruth:
    """A truth that is linear in columns of its own, not in those of the table."""
    w = np.array(slopes)
    return KnownTruth(
        name, 500, n_features, lambda X: columns(X) @ w + intercept, family=family,
        linear=False, columns=columns, within_reach=False, **others,
    )  # fmt: skip


def _stack(*columns: NDArray[Any]) -> Floats:
    return np.column_stack(columns).astype(np.float64)


_FIVE = [1.0, -0.8, 0.6, 0.4, 0.0]
_RBF = {"kernel": "rbf", "gamma": [0.12, 0.5], "C": [2.0**k for k in (-4, 0, 4)]}

_STRAIGHT = KnownTruth("linear, 5 columns", 500, 5, _linear(_FIVE, 0.3))
# exp(-3.4) at the centre: about 6 % of the rows are positive.
_RARE = KnownTruth("rare class (6 %)", 500, 5, _linear(_FIVE, -3.4), family="rare")
_WIDE = KnownTruth(
    "20 columns, 14 of them noise", 500, 20,
    _linear([0.8, -0.8, 0.6, -0.6, 0.4, -0.4] + [0.0] * 14, 0.0), family="wide",
)  # fmt: skip
_HILLS = KnownTruth(
    "hills, RBF", 500, 2, _hilly, family="hills", linear=False, columns=_hills, options=_RBF
)
_CURVED = KnownTruth(
    "curved, linear kernel", 500, 3, _curved, family="hills", linear=False, columns=_curves,
    within_reach=False,
)  # fmt: skip

TRUTHS = (_STRAIGHT, replace(_RARE, n=1000), replace(_WIDE, n=300))
"""For rates, costs, metrics and prediction sets."""

COVERED = (
    _STRAIGHT,
    _RARE,
    KnownTruth("rare class (3 %)", 500, 5, _linear(_FIVE, -4.3), family="rare"),
    _WIDE,
    KnownTruth("heavy tails (t, 3 df)", 500, 5, _linear([0.8, -0.6, 0.5, 0.3, 0.0], 0.3),
        _heavy_tails, family="heavy tails"),
    KnownTruth("uneven scales", 500, 4, _linear([0.5, 0.8, -0.6, 0.3], 0.2), _uneven_scales,
        family="uneven scales"),
    _HILLS,
    replace(_HILLS, name="hills, RBF, one γ", options=_RBF | {"gamma": "scale"},
        within_reach=None),
    _CURVED,
)  # fmt: skip
"""For the coverage of all intervals with the kernel that fits, at several numbers of rows."""

_SIX = [1.0, -0.8, 0.6, 0.0, 0.0, 0.0]


def _divided(X: Floats) -> Floats:
    return _stack(X[:, 0] / (np.abs(X[:, 1]) + 0.3), X[:, 2])


def _leaves(X: Floats) -> Floats:
    """A tree of depth three in four columns."""
    above = np.where(X[:, 2] > 0, 2.5, -2.0), np.where(X[:, 3] > 0, 1.0, -2.5)
    others = np.where(X[:, 1] > 0, -2.5, 2.0), np.where(X[:, 3] > 0, -1.0, 2.5)
    left, right = np.where(X[:, 1] > 0.2, *above), np.where(X[:, 2] > -0.3, *others)
    return _stack(np.where(X[:, 0] > 0, left, right))


_NETWORK = np.random.default_rng(1)
_INTO_UNITS = _NETWORK.normal(size=(6, 8)) * 1.5 / np.sqrt(6)
_SHIFTS, _OUT_OF_UNITS = _NETWORK.normal(size=8), 1.2 * _NETWORK.normal(size=8)
_MANY_LEVELS = np.random.default_rng(20).normal(size=30)

BANK = (
    *COVERED[:6],
    KnownTruth("correlated columns", 500, 8,
        _linear([0.8, 0.0, -0.8, 0.0, 0.6, 0.0, 0.0, 0.4], 0.0), _correlated),
    KnownTruth("dummies and skewed columns", 500, 6,
        _linear([0.8, -1.0, 0.6, -0.4, 0.5, 0.0], -0.5), _mixed, family="uneven scales"),
    KnownTruth("skewed columns (log-normal)", 500, 5, _linear([0.5, -0.4, 0.3, 0.0, 0.0], -0.3),
        _log_normal, family="heavy tails"),
    KnownTruth("40 columns, 30 of them noise", 500, 40,
        _linear([0.5, -0.5] * 5 + [0.0] * 30, 0.0), family="wide", sizes=(500, 2000)),
    KnownTruth("a column of 30 levels", 1000, 31, _linear([*_MANY_LEVELS, 1.0], 0.0), _levels,
        family="many levels", sizes=(1000, 2000)),
    KnownTruth("strong signal", 500, 5, _linear([3.0, -2.4, 1.8, 1.2, 0.0], 0.9),
        family="near 0 and 1"),
    KnownTruth("strong signal, rare", 500, 5, _linear([3.0, -2.4, 1.8, 1.2, 0.0], -5.0),
        family="near 0 and 1", sizes=(500, 2000)),
    KnownTruth("no signal, 5 columns", 500, 5, _linear([0.0] * 5, 0.4), family="no signal"),
    KnownTruth("no signal, 20 columns", 500, 20, _linear([0.0] * 20, -0.8), family="no signal"),
    _of("interactions", "two interactions", 6,
        lambda X: _stack(X[:, 0], X[:, 1], X[:, 0] * X[:, 1], X[:, 2] * X[:, 3]),
        [0.7, -0.5, 1.0, -0.8], 0.2),
    _of("interactions", "an interaction among 20 columns", 20,
        lambda X: _stack(X[:, 0], X[:, 1], X[:, 2] * X[:, 3]), [0.8, -0.8, 1.0], 0.0),
    _of("logarithms", "logarithms", 5, lambda X: np.log(X), [1.2, -1.0, 0.7, 0.0, 0.0], 0.0,
        distribution=_log_normal),
    _of("logarithms", "a logarithm beside straight columns", 5,
        lambda X: _stack(X[:, 0], X[:, 1], np.log(np.exp(2 * X[:, 2]) + 0.05)),
        [0.8, -0.6, 1.0], 0.0),
    _of("subgroup", "a quarter has the opposite slope", 6,
        lambda X: _stack(X[:, 0], X[:, 1], X[:, 5], X[:, 0] * X[:, 5], X[:, 1] * X[:, 5]),
        [1.2, -0.8, 0.3, -2.4, 1.6], 0.0, distribution=_subgroup),
    KnownTruth("labels flipped (10 %)", 500, 6, _linear([2.0, -1.5, 1.0, 0.0, 0.0, 0.0], 0.0),
        family="links", link=flipped(0.1, 0.1), linear=False, within_reach=False),
    KnownTruth("positives missed (25 %)", 500, 6, _linear([2.0, -1.5, 1.0, 0.0, 0.0, 0.0], 0.0),
        family="links", link=flipped(0.0, 0.25), linear=False, within_reach=False),
    KnownTruth("probit", 500, 6, _linear(_SIX, 0.2), family="links", link=PROBIT, linear=False,
        within_reach=None),
    KnownTruth("cauchit", 500, 6, _linear([2.0, -1.6, 1.2, 0.0, 0.0, 0.0], 0.3), family="links",
        link=CAUCHIT, linear=False, within_reach=False),
    KnownTruth("complementary log-log", 500, 6, _linear(_SIX, -0.5), family="links",
        link=CLOGLOG, linear=False, within_reach=None),
    _of("steps", "a step", 5, lambda X: _stack(X[:, 0] > 0.4, X[:, 1]), [2.5, 0.6], -1.0,
        smooth=False),
    _of("steps", "two thresholds", 5,
        lambda X: _stack(np.abs(X[:, 0]) > 1, X[:, 1] > 0, X[:, 2]), [2.5, 1.5, 0.5], -1.2,
        distribution=_uniform, smooth=False),
    _of("steps", "a box", 4, lambda X: _stack((X[:, 0] > 0) & (X[:, 1] > 0)), [3.0], -1.5,
        smooth=False),
    replace(_HILLS, name="hills", options={}, within_reach=False),
    replace(_CURVED, name="a wave and a product"),
    _of("hills", "a parabola", 5, lambda X: _stack(X[:, 0], np.square(X[:, 1]), X[:, 2]),
        [0.8, 0.8, -0.5], -0.8),
    KnownTruth("300 columns, 100 rows", 100, 300, _linear([0.5] * 5 + [0.0] * 295, 0.0),
        family="more columns than rows", sizes=(100, 200), columns=lambda X: X[:, :5],
        within_reach=False),
    KnownTruth("300 columns, 5 of them count", 500, 300, _linear([0.8] * 5 + [0.0] * 295, 0.0),
        family="more columns than rows", sizes=(500,), columns=lambda X: X[:, :5],
        within_reach=False),
    KnownTruth("five rows a subject, two columns measured anew", 500, 6,
        _linear([1.0, -0.8, 0.6, 0.4, 0.0, 0.0], 0.2), _remeasured, family="clustered rows",
        rows_of_subject=5, within_reach=False),
    KnownTruth("five rows a subject, measured with noise", 500, 5,
        lambda X: _of_measurements(X, 1), _noisy_subjects, family="clustered rows", link=PROBIT,
        linear=False, rows_of_subject=5, of_subjects=_of_subjects, within_reach=False),
    _of("interactions", "three columns interact", 6,
        lambda X: _stack(X[:, 3], X[:, :3].prod(axis=1)), [0.5, 1.5], 0.0),
    _of("weak bends", "a network of eight units", 6,
        lambda X: np.tanh(X @ _INTO_UNITS + _SHIFTS), _OUT_OF_UNITS, 0.0, sizes=(500,)),
    _of("subgroup", "a slope only above a threshold", 5,
        lambda X: _stack((X[:, 0] > 0.5) * X[:, 1], X[:, 2]), [2.0, 0.5], 0.0, smooth=False,
        sizes=(500,)),
    _of("weak bends", "a column divided by another", 5, _divided, [1.0, 0.3], 0.0, sizes=(500,)),
    _of("steps", "a tree of depth three", 5, _leaves, [1.0], 0.0, smooth=False, sizes=(500,)),
)  # fmt: skip
"""Truths of many shapes, for a kernel that nobody chose by them."""


def _unit(generator: np.random.Generator, n: int, p: int) -> Floats:
    return generator.uniform(size=(n, p))


def _grades(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Whole numbers from 1 to 5."""
    return generator.integers(1, 6, size=(n, p)).astype(np.float64)


def _nearly_one(generator: np.random.Generator, n: int, p: int) -> Floats:
    """Columns with correlations of .999, as of one thing measured in several ways."""
    return generator.normal(size=(n, 1)) + _APART * generator.normal(size=(n, p))


def _friedman(X: Floats) -> Floats:
    """J. Friedman, Ann. Stat. 19 (1991) 1–67, section 4.3."""
    return _stack(np.sin(np.pi * X[:, 0] * X[:, 1]), np.square(X[:, 2] - 0.5), X[:, 3], X[:, 4])


_APART = 0.03
_DIFFERENCE = 1 / (np.sqrt(2) * _APART)  # which brings that of two such columns to variance 1

BENT = (
    _of("weak bends", "an exponential", 4, lambda X: _stack(np.exp(X[:, 0]), X[:, 1]),
        [1.0, 0.5], -1.5, sizes=(500,)),
    _of("weak bends", "a column whose effect levels off", 4,
        lambda X: _stack(np.tanh(2 * X[:, 0]), X[:, 1]), [3.0, 0.5], -0.5, sizes=(500,)),
    _of("weak bends", "noise that grows with a column", 4,
        lambda X: _stack(X[:, 0] - 0.5 * X[:, 1] + 0.2) / np.exp(0.5 * X[:, 2:3]), [1.0], 0.0,
        link=PROBIT, sizes=(500,)),
    _of("steps", "a jump between grades", 5, lambda X: _stack(X[:, 0] >= 4, X[:, 1]),
        [1.2, 0.5], -1.9, distribution=_grades, smooth=False, sizes=(500,)),
    _of("hills", "Friedman's function", 6, _friedman, [3.5, 7.0, 3.5, 1.75], -5.04,
        distribution=_unit, sizes=(500,)),
    _of("steps", "an exclusive or", 4, lambda X: np.sign(X[:, :1] * X[:, 1:2]), [2.0], 0.0,
        smooth=False, sizes=(500,)),
    _of("hinges", "the larger of two columns", 5, lambda X: X[:, :2].max(axis=1)[:, None],
        [2.0], -1.0, sizes=(500,)),
    _of("weak bends", "a sum of three columns that counts where positive", 5,
        lambda X: np.maximum(X[:, :3].sum(axis=1), 0.0)[:, None], [2.0], -1.5, sizes=(500,)),
    KnownTruth("two columns that are nearly one differ", 500, 5,
        _linear([1.5 * _DIFFERENCE, -1.5 * _DIFFERENCE, 0.0, 0.0, 0.0], 0.0), _nearly_one,
        family="collinear columns", sizes=(500,)),
    _of("collinear columns", "a bend where such columns differ", 5,
        lambda X: np.square(_DIFFERENCE * (X[:, :1] - X[:, 1:2])), [1.2], -1.2,
        distribution=_nearly_one, sizes=(500,)),
)  # fmt: skip
"""More such truths, which were looked at after the default was built by those of `BANK`."""
