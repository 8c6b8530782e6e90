"""Distributions whose true class probabilities are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KnownTruth:
    """A distribution to draw training sets from, with P(y = 1 | x) in closed form."""

    name: str
    n: int
    n_features: int
    logit: Callable[[Floats], Floats]

    def rows(self, generator: np.random.Generator, n: int) -> Floats:
        return generator.normal(size=(n, self.n_features))

    def probability(self, X: Floats) -> Floats:
        return expit(self.logit(X))

    def draw(self, generator: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
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
