"""Distributions with known class probabilities, and the narrowest honest intervals of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from bootprob.runtime.arrays import Floats, Integers

__all__ = ["CAUCHIT", "CLOGLOG", "LOGIT", "PROBIT", "KnownTruth", "Link", "flipped"]

_PENALTY = 1e-4  # on slopes: training sets that the true model separates have no maximum


@dataclass(frozen=True)
class Link:
    """From the predictor η to P(y = 1), with its derivative by η."""

    name: str
    probability: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


def _logistic_slope(eta: Floats) -> Floats:
    return expit(eta) * expit(-eta)


def _log_log(eta: Floats) -> Floats:
    return -np.expm1(-np.exp(np.minimum(eta, 30.0)))


def _log_log_slope(eta: Floats) -> Floats:
    low = np.minimum(eta, 30.0)
    return np.exp(low - np.exp(low))


LOGIT = Link("logit", expit, _logistic_slope)
PROBIT = Link("probit", ndtr, lambda eta: np.exp(-np.square(eta) / 2) / np.sqrt(2 * np.pi))
CAUCHIT = Link(
    "cauchit",
    lambda eta: 0.5 + np.arctan(eta) / np.pi,
    lambda eta: 1 / (np.pi * (1 + np.square(eta))),
)
CLOGLOG = Link("complementary log-log", _log_log, _log_log_slope)


def flipped(negative: float, positive: float) -> Link:
    """Logit of labels of which these shares of each class are recorded as the other."""
    kept = 1 - negative - positive
    return Link(
        "logit, flipped labels",
        lambda eta: negative + kept * expit(eta),
        lambda eta: kept * _logistic_slope(eta),
    )


@dataclass(frozen=True)
class KnownTruth:
    """A distribution to draw training sets from, with P(y = 1 | x) in closed form."""

    name: str
    n: int
    """Rows of a training set; ``replace(truth, n=...)`` for others."""
    n_features: int
    predictor: Callable[[Floats], Floats]
    distribution: Callable[[np.random.Generator, int, int], Floats] = lambda generator, n, p: (
        generator.normal(size=(n, p))
    )
    family: str = "linear"
    link: Link = LOGIT
    sizes: tuple[int, ...] = (200, 500, 2000)
    """Numbers of rows that it is for."""
    smooth: bool = True
    linear: bool = True
    """Whether the logit is linear in the columns."""
    columns: Callable[[Floats], Floats] = lambda X: X
    """The true model's design, in which the predictor is linear."""
    rows_of_subject: int = 1
    """Consecutive rows that share one label: they are not independent."""
    of_subjects: Callable[[Floats], Floats] | None = None
    """P(y = 1) of each row given all rows of its subject, where one row does not say as much."""
    options: dict[str, Any] = field(default_factory=dict)
    """Parameters of the `BootstrapSVC` that it is for."""
    within_reach: bool | None = True
    """Whether those parameters can express the truth; None: nearly."""

    def rows(self, generator: np.random.Generator, n: int) -> Floats:
        """Fresh rows, shape (n, n_features); n is a number of whole subjects."""
        return self.distribution(generator, n, self.n_features)

    def probability(self, X: Floats) -> Floats:
        """P(y = 1 | x) of rows."""
        return self.link.probability(self.predictor(X))

    def sample(self, generator: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Fresh rows and their P(y = 1 | x)."""
        X = self.rows(generator, n)
        return X, self.probability(X)

    def draw(self, generator: np.random.Generator) -> tuple[Floats, Integers]:
        """A training set."""
        X = self.rows(generator, self.n)
        subjects = self.n // self.rows_of_subject
        uniform = np.repeat(generator.uniform(size=subjects), self.rows_of_subject)
        chances = self.probability(X) if self.of_subjects is None else self.of_subjects(X)
        return X, (uniform < chances).astype(np.int64)

    def limit(self, X: Floats, y: Integers, new: Floats, level: float) -> Floats:
        """Interval of P(y = 1) of new rows by the true model's maximum likelihood, shape (m, 2).

        As narrow as can be had: it knows the form of the truth. Fisher scoring, and the
        expected information at the maximum (P. McCullagh, J. Nelder, "Generalized Linear Models",
        1989, section 2.5); a penalty of 1e-4 on the slopes stands in where the classes are
        separated.

        Raises
        ------
        ValueError
            The maximum was not found.
        """
        design, asked = (np.column_stack([np.ones(len(Z)), self.columns(Z)]) for Z in (X, new))
        penalty = np.full(design.shape[1], _PENALTY)
        penalty[0] = 0.0
        beta = _maximum(self.link, design, y, penalty)
        information = _information(self.link, design, beta)
        variance = np.einsum("ij,ij->i", asked @ np.linalg.pinv(information), asked)
        half = -ndtri((1 - level) / 2) * np.sqrt(np.maximum(variance, 0))
        center = asked @ beta
        return np.column_stack([self.link.probability(center + s * half) for s in (-1, 1)])


def _maximum(link: Link, design: Floats, y: Integers, penalty: Floats) -> Floats:
    """Penalised maximum likelihood by Fisher scoring with halved steps."""
    beta = np.zeros(design.shape[1])
    reached = _loss(link, design, y, penalty, beta)
    for _ in range(200):
        eta = design @ beta
        p = link.probability(eta).clip(1e-12, 1 - 1e-12)
        score = design.T @ ((y - p) * link.slope(eta) / (p * (1 - p))) - penalty * beta
        curvature = _information(link, design, beta) + np.diag(penalty)
        step = np.linalg.lstsq(curvature, score, rcond=None)[0]
        if score @ step < 1e-9:
            return beta
        for halved in 0.5 ** np.arange(30):
            tried = _loss(link, design, y, penalty, beta + halved * step)
            if tried <= reached:
                break
        beta, reached = beta + halved * step, tried
    raise ValueError("the maximum of the likelihood was not found")


def _loss(link: Link, design: Floats, y: Integers, penalty: Floats, beta: Floats) -> float:
    p = link.probability(design @ beta).clip(1e-12, 1 - 1e-12)
    return float(-np.log(np.where(y == 1, p, 1 - p)).sum() + penalty @ np.square(beta) / 2)


def _information(link: Link, design: Floats, beta: Floats) -> Floats:
    eta = design @ beta
    p = link.probability(eta).clip(1e-12, 1 - 1e-12)
    return (design * (np.square(link.slope(eta)) / (p * (1 - p)))[:, None]).T @ design
