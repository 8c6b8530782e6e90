"""One weighted support vector machine, as a peer is given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bootprob.runtime.arrays import Floats

__all__ = ["Answer", "Kernel", "Machine"]

Kernel = Literal["linear", "rbf"]


@dataclass(frozen=True)
class Machine:
    """``½ ‖w‖² + C Σ_i weight_i · max(0, 1 − y_i f(x_i))`` over ``f(x) = wᵀ φ(x) + β``.

    Attributes
    ----------
    kernel : {"linear", "rbf"}
        ``x·z`` or ``exp(−γ ‖x − z‖²)``.
    rows : ndarray, shape (m, p)
        The distinct rows of a bootstrap sample, standardised inside it.
    labels : ndarray, shape (m,)
        −1 or +1.
    weight : ndarray, shape (m,)
        How often each row was drawn, ≥ 1.
    C : float
    gamma : float or None
        None for the linear kernel.
    """

    kernel: Kernel
    rows: Floats
    labels: Floats
    weight: Floats
    C: float
    gamma: float | None

    def gram(self) -> Floats:
        """Kernel between all rows, shape (m, m)."""
        products = self.rows @ self.rows.T
        if self.gamma is None:
            return products
        squares = np.diag(products)
        distances = squares[:, None] + squares - 2 * products
        return np.exp(-self.gamma * np.maximum(distances, 0))

    def objective(self, answer: Answer) -> float:
        """Primal objective of an answer; the intercept is not penalised."""
        hinge = np.maximum(0, 1 - self.labels * answer.scores)
        return 0.5 * answer.square_norm + self.C * float(self.weight @ hinge)


@dataclass(frozen=True)
class Answer:
    """What a peer found.

    Attributes
    ----------
    scores : ndarray, shape (m,)
        ``f(x_i)`` of the machine's rows.
    square_norm : float
        ``‖w‖²``, without the intercept.
    converged : bool
        Whether the peer says that it reached its tolerance.
    """

    scores: Floats
    square_norm: float
    converged: bool = True

    @classmethod
    def of_dual(cls, gram: Floats, dual_coef: Floats, intercept: float) -> Answer:
        """From ``y_i a_i`` of all rows, shape (m,)."""
        through = gram @ dual_coef
        return cls(through + intercept, float(dual_coef @ through))
