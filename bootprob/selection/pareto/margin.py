"""The largest margin of score functions, hard or soft, as a linear program.

E. Carrizosa, B. Martin-Barragan, D. Romero Morales, "Multi-group support vector machines with
measurement costs: a biobjective approach", 2005, section 4. Their section 6 on the soft margin has
no formula in the text at hand; here it is that of the ν-SVM, carried over to several classes and
polyhedral norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from bootprob.exceptions import BootprobError
from bootprob.runtime.arrays import Floats

__all__ = ["MarginProblem", "Rule", "functional_margins", "largest_nu", "smallest_nu"]

Norm = Literal["l1", "linf"]

_TIED = 1e-9  # of the range of margins


@dataclass(frozen=True)
class Rule:
    """Score functions f_c(x) = α_c · φ(x) + β_c and their margin.

    Attributes
    ----------
    coef : ndarray, shape (K, N), or (1, N) for two classes
        A; for two classes f₁ − f₀, which is all that matters.
    intercept : ndarray, shape (K,) or (1,)
    margin : float
        Hard or soft, with ‖A‖ ≤ 1.
    """

    coef: Floats
    intercept: Floats
    margin: float

    def scores(self, features: Floats) -> Floats:
        """Scores f of rows, shape (m, K); for two classes f₁ − f₀, shape (m, 1)."""
        return features @ self.coef.T + self.intercept


def largest_nu(codes: NDArray[np.intp]) -> float:
    """What ν has to stay below: ``min(1, 2 (1 − share of the largest class))``.

    With more, moving an intercept towards the largest class gains more margin on its rows than it
    loses on the others, without end.
    """
    return min(1.0, 2 * (1 - np.bincount(codes).max() / len(codes)))


def smallest_nu(features: Floats, codes: NDArray[np.intp]) -> float:
    """What ν has to exceed for a soft margin above 0: the least mean hinge loss there is.

    ``min Σ_u ξ_u / n`` subject to ``f_c(u)(x_u) − f_j(x_u) + ξ_u ≥ 1``, with A of any size; 0
    where the classes can be separated. Subsets of the columns have larger ones. Features are
    (n, N), codes (n,).
    """
    problem = MarginProblem(features, codes, "linf", 1.0)
    limits = problem.limits.copy()
    limits[: 2 * problem.n_coefficients, 1] = np.inf
    theta = len(limits) - len(codes) - 1
    limits[theta] = 1.0
    losses = -problem.gains
    losses[theta] = 0.0
    return float(losses @ _solve(losses, *problem.at_most, limits))


def functional_margins(scores: Floats, codes: NDArray[np.intp]) -> Floats:
    """(15), by how much the own score of each row exceeds the best other one, shape (n,)."""
    if scores.shape[1] == 1:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])
    rows = np.arange(len(codes))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes] - others.max(axis=1)


@dataclass(frozen=True)
class MarginProblem:
    """(20) with a hard margin, or with a soft one

    ``max θ − Σ_u ξ_u / (ν n)`` subject to ``f_c(u)(x_u) − f_j(x_u) + ξ_u ≥ θ`` for all j ≠ c(u),
    ``ξ ≥ 0``, ``‖A‖ ≤ 1``,

    which is the mean functional margin of the worst share ν of the rows.

    Attributes
    ----------
    features : ndarray, shape (n, N)
        φ of the rows.
    codes : ndarray of int, shape (n,)
        Their classes, 0 ... K − 1, each with some row.
    norm : {"l1", "linf"}
        ‖A‖: the sum, or the largest, of the absolute values of all K N coefficients.
    nu : float or None
        ν; None for the hard margin.
    """  # noqa: D400

    features: Floats
    codes: NDArray[np.intp]
    norm: Norm
    nu: float | None

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.codes.max()) + 1

    @property
    def n_blocks(self) -> int:
        """Rows of coefficients that are variables: K, or 1 for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients; each is two variables, its positive and its negative part."""
        return self.n_blocks * self.features.shape[1]

    @property
    def _reach(self) -> float:
        """Largest coefficient of f₁ − f₀: with L∞, f₁ and f₀ each bring 1."""
        return 2.0 if self.n_classes == 2 and self.norm == "linf" else 1.0

    @cached_property
    def gains(self) -> Floats:
        """Objective, to be maximised: of positive parts, negative parts, intercepts, θ, ξ."""
        slacks = np.zeros(0)
        if self.nu is not None:
            slacks = np.full(len(self.codes), -1 / (self.nu * len(self.codes)))
        return np.r_[np.zeros(2 * self.n_coefficients + self.n_classes - 1), 1.0, slacks]

    @cached_property
    def at_most(self) -> tuple[sparse.csr_array, Floats]:
        """Constraints: a matrix, and what it times the variables may be at most."""
        K, n = self.n_classes, len(self.codes)
        blocks = []
        for other in range(1, K):  # every row against its (c + other)th class, modulo K
            rivals = (self.codes + other) % K
            if K == 2:
                sign = np.where(self.codes == 1, 1.0, -1.0)
                coefficients = self._reach * sign[:, None] * self.features
                intercepts = sign[:, None]
            else:
                contrast = np.eye(K)[self.codes] - np.eye(K)[rivals]
                coefficients = (contrast[:, :, None] * self.features[:, None, :]).reshape(n, -1)
                intercepts = contrast[:, 1:]  # β of the first class is 0
            parts = [-coefficients, coefficients, -intercepts, np.ones((n, 1))]
            slacks = [-sparse.eye_array(n)] if self.nu is not None else []
            blocks.append(sparse.hstack([sparse.csr_array(np.hstack(parts)), *slacks]))
        right = np.zeros((K - 1) * n)
        if self.norm == "l1":
            total = np.zeros((1, len(self.gains)))
            total[0, : 2 * self.n_coefficients] = 1.0
            blocks.append(sparse.csr_array(total))
            right = np.r_[right, 1.0]
        return sparse.csr_array(sparse.vstack(blocks)), right

    @cached_property
    def limits(self) -> Floats:
        """Least and greatest value of each variable, shape (variables, 2)."""
        limits = np.tile([0.0, np.inf], (len(self.gains), 1))
        limits[: 2 * self.n_coefficients, 1] = 1.0
        limits[2 * self.n_coefficients :][: self.n_classes - 1, 0] = -np.inf
        return limits

    def margin(self, scores: Floats) -> float:
        """Margin of scores of all rows: the smallest, or the mean of the worst share ν."""
        each = np.sort(functional_margins(scores, self.codes))
        if self.nu is None:
            return float(each[0])
        weight = np.clip(self.nu * len(each) - np.arange(len(each)), 0.0, 1.0)
        return float(weight @ each / weight.sum())

    def contributions(self, rule: Rule) -> Floats:
        """What each feature adds to the margin of a rule, shape (N,); the rest are intercepts.

        For the hard margin, on average over the rows that have it.
        """
        scores = rule.scores(self.features)
        margins = functional_margins(scores, self.codes)
        share = (margins <= margins.min() + _TIED * np.ptp(margins)).mean()
        if self.nu is not None:
            share = self.nu
        weight = np.empty(len(margins))
        weight[np.argsort(margins)] = np.clip(share * len(margins) - np.arange(len(margins)), 0, 1)
        weight /= weight.sum()
        if len(rule.coef) == 1:
            contrast = np.where(self.codes == 1, 1.0, -1.0)[:, None] * rule.coef
        else:
            scores[np.arange(len(scores)), self.codes] = -np.inf
            contrast = rule.coef[self.codes] - rule.coef[scores.argmax(axis=1)]
        return np.asarray(np.einsum("u,un,un->n", weight, contrast, self.features))

    def best_rule(self, allowed: NDArray[np.bool_]) -> Rule:
        """Rule of the largest margin.

        Parameters
        ----------
        allowed : ndarray of bool, shape (N,)
            Which features it may use.

        Raises
        ------
        BootprobError
            The solver found no solution; there always is one.
        """
        used = np.tile(allowed, 2 * self.n_blocks)
        used = np.r_[used, np.ones(len(self.gains) - len(used), dtype=bool)]
        matrix, right = self.at_most
        values = np.zeros(len(self.gains))
        if allowed.any():
            values[used] = _solve(-self.gains[used], matrix[:, used], right, self.limits[used])
        return self.rule(values)

    def rule(self, values: Floats) -> Rule:
        """Rule of a solution's variables, with the margin that its scores have."""
        size = self.n_coefficients
        parts = values[: 2 * size].reshape(2, self.n_blocks, -1)
        coef = self._reach * (parts[0] - parts[1])
        intercept = values[2 * size :][: self.n_classes - 1]
        if self.n_classes > 2:
            intercept = np.r_[0.0, intercept]
        margin = self.margin(self.features @ coef.T + intercept)
        return Rule(coef, intercept, margin)


def _solve(losses: Floats, matrix: sparse.csr_array, right: Floats, limits: Floats) -> Floats:
    # scipy takes sparse matrices, its type hints do not.
    found = linprog(losses, matrix, right, bounds=limits, method="highs")  # type: ignore[call-overload]
    if found.status != 0:
        raise BootprobError(f"The linear program was not solved: {found.message}")
    return found.x
