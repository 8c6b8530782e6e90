"""Distributions whose true class probabilities are known, for the tests of promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from bootprob.runtime.arrays import Floats, Integers


@dataclass(frozen=True)
class KnownTruth:
    """A distribution to draw training sets from, with P(y = 1 | x) in closed form."""

    name: str
    n: int
    n_features: int
    logit: Callable[[Floats], Floats]
    distribution: Callable[[np.random.Generator, int, int], Floats] = lambda generator, n, p: (
        generator.normal(size=(n, p))
    )
    options: dict[str, Any] = field(default_factory=dict)
    """Parameters of the `BootstrapSVC` that it is for."""
    within_reach: bool | None = True
    """Whether those parameters can express the truth; None: nearly."""
    columns: Callable[[Floats], Floats] = lambda X: X
    """Columns in which the logit is linear."""

    def rows(self, generator: np.random.Generator, n: int) -> Floats:
        """Fresh rows."""
        return self.distribution(generator, n, self.n_features)

    def probability(self, X: Floats) -> Floats:
        """P(y = 1 | x) of rows."""
        return expit(self.logit(X))

    def draw(self, generator: np.random.Generator) -> tuple[Floats, Integers]:
        """A training set."""
        X = self.rows(generator, self.n)
        y = (generator.uniform(size=self.n) < self.probability(X)).astype(np.int64)
        return X, y


def _linear(slopes: list[float], intercept: float) -> Callable[[Floats], Floats]:
    w = np.array(slopes)
    return lambda X: X @ w + intercept


TRUTHS = (
    KnownTruth("linear, 5 features", 500, 5, _linear([1.0, -0.8, 0.6, 0.4, 0.0], 0.3)),
    # exp(-3.4) at the centre: about 6 % of the rows are positive.
    KnownTruth("rare class (6 %)", 1000, 5, _linear([1.0, -0.8, 0.6, 0.4, 0.0], -3.4)),
    KnownTruth(
        "20 features", 300, 20, _linear([0.8, -0.8, 0.6, -0.6, 0.4, -0.4] + [0.0] * 14, 0.0)
    ),
)


def _heavy_tails(generator: np.random.Generator, n: int, p: int) -> Floats:
    return generator.standard_t(3, size=(n, p))


def _uneven_scales(generator: np.random.Generator, n: int, p: int) -> Floats:
    """The first column sets the scale of the others: heteroscedastic columns."""
    X = generator.normal(size=(n, p))
    X[:, 1:] *= np.exp(0.7 * X[:, :1])
    return X


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


_FIVE = [1.0, -0.8, 0.6, 0.4, 0.0]
_RBF = {"kernel": "rbf", "gamma": [0.12, 0.5], "C": [2.0**k for k in (-4, 0, 4)]}

COVERED = (
    KnownTruth("linear, 5 columns", 500, 5, _linear(_FIVE, 0.3)),
    KnownTruth("rare class (6 %)", 500, 5, _linear(_FIVE, -3.4)),
    KnownTruth("rare class (3 %)", 500, 5, _linear(_FIVE, -4.3)),
    KnownTruth(
        "20 columns, 14 of them noise", 500, 20,
        _linear([0.8, -0.8, 0.6, -0.6, 0.4, -0.4] + [0.0] * 14, 0.0),
    ),
    KnownTruth("heavy tails (t, 3 df)", 500, 5, _linear([0.8, -0.6, 0.5, 0.3, 0.0], 0.3),
        _heavy_tails),
    KnownTruth("uneven scales", 500, 4, _linear([0.5, 0.8, -0.6, 0.3], 0.2), _uneven_scales),
    KnownTruth("hills, RBF", 500, 2, _hilly, options=_RBF, columns=_hills),
    KnownTruth("hills, RBF, one γ", 500, 2, _hilly, options=_RBF | {"gamma": "scale"},
        within_reach=None, columns=_hills),
    KnownTruth("curved, linear kernel", 500, 3, _curved, within_reach=False, columns=_curves),
)  # fmt: skip
"""For the coverage of intervals, at several numbers of rows."""
