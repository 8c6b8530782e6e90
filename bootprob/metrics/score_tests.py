"""Tests of a linear kernel: that the logit is linear in the columns, and of its link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement, permutations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, ndtri, xlogy
from scipy.stats import chi2, rankdata

from bootprob.metrics.drawn_labels import drawn_residuals, smallest_p_value, tail_p_values
from bootprob.runtime.arrays import Floats, Integers

__all__ = ["Bend", "LinearLogit"]

_RIDGE = 0.1
_CUTS = np.arange(1, 12) / 12
_MOST_TERMS = 2_000_000  # numbers in the matrix of products, and in that of steps
_MOST_OF_THREE = 500_000  # and in that of products of three
_CENTERS = 200
_NARROW = 2.0  # γ of the hills, in units of the inverse number of columns
_LEFT = 1e-6  # share of its size that a term must have beyond the columns to be one
_CLEAR = 0.01  # p-value below which a single term says where the logit bends


class Bend(NamedTuple):
    """What the test of a linear logit found.

    Attributes
    ----------
    p_value : float
    statistic : float
        Of the largest term, in standard deviations.
    columns : tuple of int
        Of that term, up to three, in one twice the same if the logit bends in it; empty if no term
        stands out.
    """

    p_value: float
    statistic: float
    columns: tuple[int, ...]


@dataclass(frozen=True)
class LinearLogit:
    """A logistic regression on the columns, which is what a linear kernel can say.

    Attributes
    ----------
    columns : ndarray, shape (n, p)
    positive : ndarray of bool, shape (n,)
    weight : ndarray, shape (n,)
        Row weights whose sum is the number of rows that they are worth.
    slopes : ndarray, shape (p,)
    intercept : float
    """

    columns: Floats
    positive: NDArray[np.bool_]
    weight: Floats
    slopes: Floats
    intercept: float

    @classmethod
    def fit(cls, columns: Floats, positive: NDArray[np.bool_], weight: Floats) -> Self:
        """Maximum likelihood, but for a small ridge that keeps it finite.

        Weights count within their class: between the classes they move the intercept alone, and
        drawn labels would not have them.

        Parameters
        ----------
        columns : ndarray, shape (n, p)
            Standardised.
        positive : ndarray of bool, shape (n,)
            Both classes are there.
        weight : ndarray, shape (n,)
            Positive.
        """
        weight = weight / np.where(positive, weight[positive].mean(), weight[~positive].mean())
        weight = weight * (weight.sum() / np.square(weight).sum())
        design = np.column_stack([columns, np.ones(len(columns))])
        ridge = np.full(design.shape[1], _RIDGE)
        ridge[-1] = 1e-6  # of an intercept that is free

        def loss(beta: Floats) -> tuple[float, Floats]:
            logit = design @ beta
            value = weight @ (np.logaddexp(0.0, logit) - positive * logit)
            gradient = design.T @ (weight * (expit(logit) - positive))
            return float(value + ridge @ np.square(beta) / 2), gradient + ridge * beta

        def hessian(beta: Floats) -> Floats:
            p = expit(design @ beta)
            return (design.T * (weight * p * (1 - p))) @ design + np.diag(ridge)

        start = np.zeros(design.shape[1])
        base = np.average(positive, weights=weight).clip(1e-9, 1 - 1e-9)
        start[-1] = np.log(base / (1 - base))
        beta = minimize(loss, start, jac=True, hess=hessian, method="trust-exact").x
        return cls(columns, positive, weight, beta[:-1], float(beta[-1]))

    @cached_property
    def logit(self) -> Floats:
        """Of its own rows, shape (n,)."""
        return self.predict(self.columns)

    def predict(self, columns: Floats) -> Floats:
        """Logits of rows, shape (m,)."""
        return columns @ self.slopes + self.intercept

    def bend(self) -> Bend:
        """Test whether the logit bends in a column, or columns interact.

        Terms are the normal scores of each column, its steps at the twelfths, squares and products
        of normal scores, products of three, of which two may be the same, and normal scores above a
        quartile of another column. Of each term the part that a linear logit cannot say is kept,
        so that its sum with the residuals does not depend, to first order, on the slopes having
        been fitted (C. Rao's score test, 1948). Four statistics are compared with those of labels
        drawn from the fit: the largest squared standardised sum, their total over the normal
        scores and over the products, and that of residuals smoothed by an RBF kernel at up to 200
        rows (S. le Cessie, J. van Houwelingen, Biometrics 47 (1991) 1267–1282).
        """
        p = self._probability_of_draws()
        information = self.weight * p * (1 - p)
        residuals = drawn_residuals(self.positive, p) * self.weight
        squares, columns = [], []
        for terms, of_columns in self._terms():
            beyond, kept = self._beyond_linear(terms, information)
            deviation = np.sqrt((self.weight * information) @ np.square(beyond))
            squares.append(np.square(residuals @ (beyond / deviation)))
            columns.append(of_columns[kept])
        single = np.hstack(squares)
        if not single.size:
            return Bend(1.0, 0.0, ())
        scores, _, products, *_ = (block.sum(axis=1) for block in squares)
        largest = single.max(axis=1)
        smooth = self._smooth(residuals, information)
        p_value = smallest_p_value(np.column_stack([largest, scores, products, smooth]))
        clear = tail_p_values(largest[:, None])[0, 0] < _CLEAR
        every = [each.tolist() for each in chain(*columns)]
        where = every[single[0].argmax()] if clear else ()
        return Bend(p_value, float(np.sqrt(largest[0])), tuple(where))

    def link_p_value(self) -> float:
        """Test the link: whether squares of the logit, on either side of 0, say more.

        T. Stukel, Journal of the American Statistical Association 83 (1988) 426–431, by the
        likelihood ratio.
        """
        squares, high = np.square(self.logit), self.logit > 0
        added = np.column_stack([squares * high, squares * ~high])
        spread = added.std(axis=0)
        added = added[:, spread > 0] / spread[spread > 0]
        other = self.fit(np.hstack([self.columns, added]), self.positive, self.weight)
        gain = 2 * (other.log_likelihood() - self.log_likelihood())
        return float(chi2.sf(gain, added.shape[1])) if gain > 0 else 1.0

    def log_likelihood(self) -> float:
        """Of the labels, without the ridge."""
        return float(-self.weight @ np.logaddexp(0.0, np.where(self.positive, -1, 1) * self.logit))

    def _probability_of_draws(self) -> Floats:
        """Probabilities whose logits spread as the true ones do, not as fitted ones.

        Fitted logits spread too far, by ``1 / √(1 − p / χ²)`` with χ² the likelihood ratio of all
        slopes: the square root of the shrinkage of J. van Houwelingen, S. le Cessie, Statistics
        in Medicine 9 (1990) 1303–1325.
        """
        base = float(np.average(self.positive, weights=self.weight))
        of_base = self.weight.sum() * (xlogy(base, base) + xlogy(1 - base, 1 - base))
        gain = 2 * (self.log_likelihood() - of_base)
        n_slopes = np.count_nonzero(np.ptp(self.columns, axis=0))
        kept = np.sqrt(1 - n_slopes / gain) if gain > n_slopes else 0.0
        logit = kept * (self.logit - self.logit.mean())
        farthest = np.abs(logit).max() + 40.0
        level = brentq(
            lambda level: self.weight @ (expit(logit + level) - self.positive), -farthest, farthest
        )
        return expit(logit + level)

    def _terms(self) -> Iterator[tuple[Floats, Integers]]:
        """Normal scores, steps, products of two and of three, each (n, m), with columns (m, q)."""
        varying = np.flatnonzero(np.ptp(self.columns, axis=0) > 0)
        # Where there are too many columns those that count most in the fit.
        varying = varying[np.argsort(-np.abs(self.slopes[varying]), kind="stable")]
        n = len(self.columns)
        stepped = varying[: _MOST_TERMS // (len(_CUTS) * n)]
        paired = varying[: int((2 * _MOST_TERMS / n) ** 0.5)]
        scores = ndtri((rankdata(self.columns, axis=0) - 0.5) / n)
        scores -= scores.mean(axis=0)
        yield scores[:, varying], np.column_stack([varying, varying])
        cuts = np.quantile(self.columns[:, stepped], _CUTS, axis=0)
        steps = (self.columns[:, stepped] > cuts[:, None]).astype(np.float64)
        yield np.hstack(list(steps)), np.tile(np.column_stack([stepped, stepped]), (len(cuts), 1))
        first, second = paired[np.stack(np.triu_indices(len(paired)))]
        yield scores[:, first] * scores[:, second], np.column_stack([first, second])
        n_most = max(12, _MOST_OF_THREE // n)
        every = combinations_with_replacement(varying[: int((6 * n_most) ** (1 / 3))], 3)
        sets = [each for each in every if len({*each}) > 1]
        if sets:
            yield scores[:, sets].prod(axis=2), np.array(sets)
            slope, other = np.array([*permutations(varying[: int((n_most / 3) ** 0.5)], 2)]).T
            for cut in (0.25, 0.5, 0.75):
                above = self.columns[:, other] > np.quantile(self.columns[:, other], cut, axis=0)
                yield scores[:, slope] * above, np.column_stack([slope, other])

    def _smooth(self, residuals: Floats, information: Floats) -> Floats:
        n, n_columns = self.columns.shape
        centers = self.columns[np.linspace(0, n - 1, min(n, _CENTERS)).astype(np.intp)]
        hills = np.exp(cdist(self.columns, centers, "sqeuclidean") * (-_NARROW / n_columns))
        beyond, _ = self._beyond_linear(hills, information)
        return np.square(residuals @ beyond).sum(axis=1)

    def _beyond_linear(self, terms: Floats, information: Floats) -> tuple[Floats, Integers]:
        """What a linear logit cannot say of terms, and which of them have anything left."""
        root = np.sqrt(information)[:, None]
        design = np.column_stack([np.ones(len(self.columns)), self.columns])
        explained = np.linalg.lstsq(root * design, root * terms, rcond=None)[0]
        beyond = terms - design @ explained
        before, after = (information @ np.square(each) for each in (terms, beyond))
        kept = np.flatnonzero(after > _LEFT * before)
        return beyond[:, kept], kept
