"""A linear support vector machine under constraints on the rates that it reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bootprob.runtime.arrays import Floats

__all__ = ["ConstrainedProblem", "Requirement", "Solution"]


@dataclass(frozen=True)
class Requirement:
    """``Σ weight_j z_j ≥ required`` over some of the anchors, thesis (2.9).

    Attributes
    ----------
    name : str
        The rate: "tpr", "tnr" or "accuracy".
    members : ndarray of bool, shape (n_anchors,)
        The anchors that the rate is a share of.
    required : float
        Their weight that has to be right.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.constrained import Requirement
    >>> anchor_y = np.array([1, 1, 1, -1])
    >>> found = Requirement("tpr", members=anchor_y == 1, required=2.0)  # two of three positives
    >>> int(found.members.sum())
    3
    """

    name: str
    members: NDArray[np.bool_]
    required: float


@dataclass(frozen=True)
class ConstrainedProblem:
    """Thesis (CSVM0), (2.5) to (2.9), in scikit-learn's convention of C.

    ::

        minimise  ½ ‖w‖² + Σ_i cost_i max(0, 1 − y_i (w·x_i + b))
        subject to  anchor_y_j (w·anchor_j + b) ≥ 1  wherever z_j = 1,   z_j ∈ {0, 1},
                    Σ_j anchor_weight_j z_j ≥ required  for every requirement (over its members)

    The thesis minimises ``‖w‖² + Σ cost_i ξ_i``: twice this objective, with costs twice these.
    Problem (3.7) is the case in which the anchors are the training rows: its ``ξ_i ≤ M (1 − z_i)``
    says the same. For another kernel the columns are those of a factor Φ with ``K = Φ Φᵀ``.

    Attributes
    ----------
    X : ndarray, shape (n, p)
        Training rows, the set I.
    y : ndarray, shape (n,)
        Their labels, −1.0 or +1.0.
    cost : ndarray, shape (n,)
        Positive costs of their slack: C₊ or C₋ times row weight.
    anchors : ndarray, shape (n_anchors, p)
        The set J.
    anchor_y : ndarray, shape (n_anchors,)
        Their labels, −1.0 or +1.0.
    anchor_weight : ndarray, shape (n_anchors,)
        What an anchor counts in the rates.
    requirements : tuple of Requirement
        Rates that have to be reached.

    Examples
    --------
    >>> import numpy as np
    >>> from bootprob.constrained import ConstrainedProblem, Requirement
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
    >>> two_of_three = Requirement("tpr", y > 0, required=2.0)
    >>> problem = ConstrainedProblem(X, y, np.ones(4), X, y, np.ones(4), (two_of_three,))
    >>> problem.objective(np.array([1.0]), intercept=-2.5)
    5.0
    >>> problem.shortfall(problem.margins(np.array([1.0]), -2.5) >= 1)  # both positives are missing
    array([2.])
    """

    X: Floats
    y: Floats
    cost: Floats
    anchors: Floats
    anchor_y: Floats
    anchor_weight: Floats
    requirements: tuple[Requirement, ...]

    def requiring(self, k: int, required: float) -> Self:
        """Return the same problem with another weight required of requirement k.

        Parameters
        ----------
        k : int
            Position of the requirement.
        required : float
            The new weight.

        Returns
        -------
        ConstrainedProblem

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.constrained import ConstrainedProblem, Requirement
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
        >>> two_of_three = Requirement("tpr", y > 0, required=2.0)
        >>> problem = ConstrainedProblem(X, y, np.ones(4), X, y, np.ones(4), (two_of_three,))
        >>> problem.requiring(0, 1.0).requirements[0].required, problem.requirements[0].required
        (1.0, 2.0)
        """
        changed = replace(self.requirements[k], required=required)
        others = self.requirements
        return replace(self, requirements=(*others[:k], changed, *others[k + 1 :]))

    def objective(self, coef: Floats, intercept: float) -> float:
        """``½ ‖w‖² + Σ cost ξ`` of a hyperplane.

        Parameters
        ----------
        coef : ndarray, shape (p,)
            w of the hyperplane.
        intercept : float
            Of the hyperplane.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.constrained import ConstrainedProblem, Requirement
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
        >>> two_of_three = Requirement("tpr", y > 0, required=2.0)
        >>> problem = ConstrainedProblem(X, y, np.ones(4), X, y, np.ones(4), (two_of_three,))
        >>> problem.objective(np.array([2.0]), intercept=-3.0)  # ½ · 2² and the slack of one row
        4.0
        """
        slack = np.maximum(0.0, 1 - self.y * (self.X @ coef + intercept))
        return float(0.5 * coef @ coef + self.cost @ slack)

    def margins(self, coef: Floats, intercept: float) -> Floats:
        """``y_j f(x_j)`` of the anchors, shape (n_anchors,).

        Parameters
        ----------
        coef : ndarray, shape (p,)
            w of the hyperplane.
        intercept : float
            Of the hyperplane.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.constrained import ConstrainedProblem, Requirement
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
        >>> two_of_three = Requirement("tpr", y > 0, required=2.0)
        >>> problem = ConstrainedProblem(X, y, np.ones(4), X, y, np.ones(4), (two_of_three,))
        >>> problem.margins(np.array([2.0]), intercept=-3.0)  # right from 1 on
        array([ 3., -1.,  1.,  3.])
        """
        return self.anchor_y * (self.anchors @ coef + intercept)

    def shortfall(self, right: NDArray[np.bool_]) -> Floats:
        """Weight that each requirement lacks if these anchors are right; 0 where it is met.

        Parameters
        ----------
        right : ndarray of bool, shape (n_anchors,)
            Which anchors are on their side.

        Examples
        --------
        >>> import numpy as np
        >>> from bootprob.constrained import ConstrainedProblem, Requirement
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
        >>> two_of_three = Requirement("tpr", y > 0, required=2.0)
        >>> problem = ConstrainedProblem(X, y, np.ones(4), X, y, np.ones(4), (two_of_three,))
        >>> problem.shortfall(np.array([True, True, True, False]))
        array([0.])
        """
        reached = [self.anchor_weight[r.members & right].sum() for r in self.requirements]
        required = np.array([r.required for r in self.requirements])
        lacking = required - np.array(reached)
        return np.where(lacking > 1e-9 * np.maximum(required, 1.0), lacking, 0.0)


@dataclass(frozen=True)
class Solution:
    """A hyperplane that meets the requirements, and how good it is known to be.

    All of it is said of the problem that was stated: of all rows, also where centres stood for them
    while anchors were chosen; with ``M₁`` of (2.7), if given, unless the status is "condensed".

    Attributes
    ----------
    coef : ndarray, shape (p,)
        w.
    intercept : float
        b.
    objective : float
        As `ConstrainedProblem.objective` gives it, from the raw solution.
    lower_bound : float
        No solution has a lower objective.
    kept : ndarray of bool, shape (n_anchors,)
        Anchors with ``y f(x) ≥ 1``, up to rounding; the requirements hold over these.
    status : {"optimal", "time_limit", "heuristic", "condensed"}
        Proven within the tolerated gap; stopped by the clock; not meant to be proven; or found by
        way of centres, which no solver's proof outlasts (the bound holds all the same).
    seconds : float
        That it took.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bootprob.constrained import ConstrainedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:, :2], y[50:]  # two species that overlap
    >>> found = ConstrainedSVC(rates={"tpr": 0.9}, anchors="all").fit(X, y).result_
    >>> found.status, found.kept.shape
    ('heuristic', (100,))
    >>> 0 <= found.gap < 1  # the objective is at most so far from the least there is
    True
    """

    coef: Floats
    intercept: float
    objective: float
    lower_bound: float
    kept: NDArray[np.bool_]
    status: str
    seconds: float

    @property
    def gap(self) -> float:
        """``(objective − lower_bound) / objective``; 0 for an objective of 0."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0
