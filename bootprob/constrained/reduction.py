"""A constrained problem made small and well scaled for a solver, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bootprob.constrained.condensation import merge_rows
from bootprob.constrained.problem import ConstrainedProblem, Requirement
from bootprob.runtime.arrays import Floats

__all__ = ["Reduction", "reduce_problem"]


@dataclass(frozen=True)
class Reduction:
    """The same problem in other coordinates: ``w = √unit · basis · u``, ``b = b' − w · centre``.

    Attributes
    ----------
    problem : ConstrainedProblem
        In u and b'. Its objective is the original one divided by ``unit``.
    centre : ndarray, shape (p,)
    basis : ndarray, shape (p, q), or None
        Orthonormal columns that span the rows where p exceeds their number; None: the identity.
    """

    problem: ConstrainedProblem
    unit: float
    centre: Floats
    basis: Floats | None

    def inward(self, coef: Floats, intercept: float) -> tuple[Floats, float]:
        """Original to reduced hyperplane; its part outside the span of the rows is dropped."""
        inner = coef if self.basis is None else coef @ self.basis
        return inner / np.sqrt(self.unit), float(intercept + coef @ self.centre)

    def outward(self, coef: Floats, intercept: float) -> tuple[Floats, float]:
        """Reduced to original hyperplane."""
        outer = np.sqrt(self.unit) * (coef if self.basis is None else self.basis @ coef)
        return outer, float(intercept - outer @ self.centre)


def reduce_problem(
    problem: ConstrainedProblem, unit: float, *, every_anchor: bool = False
) -> Reduction:
    """Centre, scale and merge, without changing what is optimal.

    Rows that occur twice are merged, their costs or weights added: identical anchors are right
    together. Anchors that no requirement counts, and requirements that ask for nothing, are left
    out. In more columns than rows, w is sought in the span of the rows, where the optimum lies.

    Parameters
    ----------
    unit : float
        The objective that becomes 1, positive: that of the best solution known. Then
        ``‖u‖² ≤ 2`` for every solution as good, whatever the units of rows and costs were.
    every_anchor : bool, default False
        Keep the anchors that no requirement counts, which (2.7) with a given M₁ bounds too. Their
        requirements have no members among them.
    """
    binding = tuple(r for r in problem.requirements if r.required > 0)
    members = np.array([r.members for r in binding], dtype=bool)
    members = members.reshape(len(binding), len(problem.anchor_y))
    members &= problem.anchor_weight > 0
    counted = members.any(axis=0) | every_anchor
    centre = problem.X.mean(axis=0)

    charged = problem.cost > 0
    X, y = problem.X[charged] - centre, problem.y[charged]
    first, _, cost = merge_rows(X, y, problem.cost[charged])
    X, y = X[first], y[first]
    rows = problem.anchors[counted] - centre
    labels = np.column_stack([problem.anchor_y, members.T])[counted]
    first, _, weight = merge_rows(rows, labels, problem.anchor_weight[counted])
    rows, labels = rows[first], labels[first]
    basis = None
    if X.shape[1] > len(X) + len(rows):
        basis, triangle = np.linalg.qr(np.vstack([X, rows]).T)
        X, rows = np.split(triangle.T, [len(X)])
    reduced = replace(
        problem,
        X=np.sqrt(unit) * X,
        y=y,
        cost=cost / unit,
        anchors=np.sqrt(unit) * rows,
        anchor_y=labels[:, 0],
        anchor_weight=weight,
        requirements=tuple(
            Requirement(r.name, labels[:, k + 1] > 0, r.required) for k, r in enumerate(binding)
        ),
    )
    return Reduction(reduced, unit, centre, basis)
