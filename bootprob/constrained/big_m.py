"""Bounds on how wrong an anchor can be in any solution as good as the best one known.

The constraint ``y_j f(x_j) ≥ 1 − M_j (1 − z_j)`` loses nothing if ``M_j`` is at least the largest
``1 − y_j f(x_j)`` among the solutions worth having, and is the stronger the smaller it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bootprob.constrained.problem import ConstrainedProblem
from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["AnchorBounds", "closed_form_bounds", "probed_bounds", "within"]


_LOOSER = 1e-3  # relative margin on the M that an interior-point solver found
_SURE = 1e-6  # the same on objectives of about 1
_MANY = 0.2  # share of the free anchors that a round has to fix to be worth repeating


@dataclass(frozen=True)
class AnchorBounds:
    """What is known of the anchors in every solution with an objective of 1 at most.

    Attributes
    ----------
    big_m : ndarray, shape (n_anchors,)
        At least ``1 − y f(x)``.
    right : ndarray of bool, shape (n_anchors,)
        ``z = 1`` loses nothing.
    wrong : ndarray of bool, shape (n_anchors,)
        ``z = 0`` in every such solution, or counts for nothing.
    floor : float
        ``1 − M₁`` of (2.7) where M₁ is given, which every anchor has to reach, else −inf.
    """

    big_m: Floats
    right: Bools
    wrong: Bools
    floor: float = -np.inf


def within(problem: ConstrainedProblem, known: AnchorBounds, big_m: float) -> AnchorBounds:
    """What is known where (2.7) holds besides, with one M₁ for every anchor of J.

    An anchor that no requirement counts is bounded by it too, its z being 0 as well as 1.
    """
    counted = np.any([r.members for r in problem.requirements], axis=0)
    return AnchorBounds(
        np.minimum(known.big_m, big_m),
        right=known.right & counted,
        wrong=known.wrong | ~counted,
        floor=1 - big_m,
    )


def closed_form_bounds(problem: ConstrainedProblem) -> AnchorBounds:
    """Two bounds by Cauchy–Schwarz, from ``½ ‖u‖² + Σ cost ξ ≤ 1``; the smaller of them.

    - Training rows of the anchor's class, their costs summing to S and their mean at a distance d
      of it, cannot all be far on the wrong side:
      ``1 − y f(x) ≤ (1 − ½ t²) / S + t d`` for ``t = ‖u‖ ≤ √2``.
    - Where the requirements let at most the weight v of the class be wrong, this anchor included,
      one of its nearest neighbours in the class with more weight than the rest of v is right:
      ``1 − y f(x) ≤ √2 d`` with the distance d of the farthest of these.
    """
    bound = np.full(len(problem.anchor_y), np.inf)
    for label in (-1.0, 1.0):
        here = problem.anchor_y == label
        rows, cost = problem.X[problem.y == label], problem.cost[problem.y == label]
        if cost.sum() > 0:
            away = np.linalg.norm(problem.anchors[here] - cost @ rows / cost.sum(), axis=1)
            length = np.minimum(np.sqrt(2), away * cost.sum())
            bound[here] = (1 - length**2 / 2) / cost.sum() + length * away
        bound[here] = np.minimum(bound[here], np.sqrt(2) * _to_a_right_one(problem, here))
    bound = bound * (1 + 1e-6) + 1e-6
    return AnchorBounds(bound, bound <= 0, np.zeros(len(bound), dtype=bool))


def _to_a_right_one(problem: ConstrainedProblem, here: Bools) -> Floats:
    """Distance from each anchor of a class within which, if it is wrong, another is right."""
    anchors, weight = problem.anchors[here], problem.anchor_weight[here]
    distance = np.linalg.norm(anchors[:, None] - anchors[None], axis=2)
    nearest = np.full(len(anchors), np.inf)
    for requirement in problem.requirements:
        spare = problem.anchor_weight[requirement.members].sum() - requirement.required
        counts = np.where(requirement.members[here], weight, 0.0)
        for j, order in enumerate(np.argsort(distance, axis=1)):
            order = order[order != j]
            enough = counts[j] + np.cumsum(counts[order]) > spare + 1e-9 * max(1.0, spare)
            if enough.any():
                nearest[j] = min(nearest[j], distance[j, order[np.argmax(enough)]])
    return nearest


def probed_bounds(
    problem: ConstrainedProblem,
    known: AnchorBounds,
    kept: Bools,
    deadline: float,
) -> AnchorBounds:
    """Sharpen the bounds by one or two convex problems an anchor, until the deadline.

    Both are over the relaxation, with z between 0 and 1:

    - an anchor that the best solution gives up is wrong in every solution as good, if the least
      objective with ``z_j = 1`` is above 1;
    - the greatest ``1 − y_j f(x_j)`` with ``z_j = 0`` and an objective of 1 at most is its M; if
      it is not positive, or nothing is feasible, ``z_j = 1`` loses nothing.

    What was found helps with the next. Rounds are repeated while they fix many anchors.

    Parameters
    ----------
    problem : ConstrainedProblem
        Reduced, so that the objective of the best solution known is 1.
    known : AnchorBounds
        Finite bounds.
    kept : ndarray of bool, shape (n_anchors,)
        The anchors that are right in the best solution known.
    deadline : float
        On the clock of `time.perf_counter`.
    """
    copies = {name: getattr(known, name).copy() for name in ("big_m", "right", "wrong")}
    known = replace(known, **copies)
    _keep_what_is_needed(problem, known)
    if (known.right | known.wrong).all():
        return known
    relaxation, many = _Relaxation(problem), True
    while many:
        free = ~known.right & ~known.wrong
        for j in np.argsort(known.big_m):
            if time.perf_counter() >= deadline:
                return known
            if known.right[j] or known.wrong[j]:
                continue
            if not kept[j] and relaxation.least_objective(known, j) > 1 + _SURE:
                known.wrong[j] = True
                _keep_what_is_needed(problem, known)
            else:
                known.big_m[j] = min(known.big_m[j], relaxation.most_wrong(known, j))
                known.right[j] = known.big_m[j] <= 0
        many = (known.right | known.wrong)[free].sum() > _MANY * free.sum()
    return known


def _keep_what_is_needed(problem: ConstrainedProblem, known: AnchorBounds) -> None:
    """Mark as right what no requirement could do without, now that others are wrong."""
    for requirement in problem.requirements:
        left = requirement.members & ~known.wrong
        spare = problem.anchor_weight[left].sum() - requirement.required
        known.right[left & (problem.anchor_weight > spare + 1e-9 * requirement.required)] = True


class _Relaxation:
    """The problem with z between 0 and 1, compiled once and solved for many anchors."""

    def __init__(self, problem: ConstrainedProblem) -> None:
        cp = load_cvxpy()

        self.problem, self.cp = problem, cp
        n_anchors, p = problem.anchors.shape
        coef, intercept, z = cp.Variable(p), cp.Variable(), cp.Variable(n_anchors)
        slack = cp.Variable(len(problem.y), nonneg=True)
        self.direction, self.label = cp.Parameter(p), cp.Parameter()
        self.big_m, self.low, self.high = (cp.Parameter(n_anchors, nonneg=True) for _ in range(3))
        signed = problem.anchor_y[:, None] * problem.anchors
        margins = signed @ coef + problem.anchor_y * intercept
        constraints = [
            cp.multiply(problem.y, problem.X @ coef + intercept) >= 1 - slack,
            margins >= 1 - cp.multiply(self.big_m, 1 - z),
            z >= self.low,
            z <= self.high,
        ]
        for r in problem.requirements:
            weight = np.where(r.members, problem.anchor_weight, 0.0)
            constraints.append(weight @ z >= r.required * (1 - 1e-9))
        objective = cp.sum_squares(coef) / 2 + problem.cost @ slack
        margin = self.direction @ coef + self.label * intercept
        self.cheapest = cp.Problem(cp.Minimize(objective), constraints)
        self.farthest = cp.Problem(cp.Minimize(margin), [*constraints, objective <= 1 + _SURE])

    def least_objective(self, known: AnchorBounds, j: np.intp) -> float:
        """With ``z_j = 1``; −inf where the solver is not sure."""
        self._fix(known, j, 1.0)
        return self._solve(self.cheapest)

    def most_wrong(self, known: AnchorBounds, j: np.intp) -> float:
        """The greatest ``1 − y_j f(x_j)`` with ``z_j = 0``, and a little; inf where not sure."""
        self._fix(known, j, 0.0)
        self.direction.value = self.problem.anchor_y[j] * self.problem.anchors[j]
        self.label.value = self.problem.anchor_y[j]
        least = self._solve(self.farthest)
        return 1 - least + _LOOSER * abs(1 - least) + _SURE if np.isfinite(least) else -least

    def _fix(self, known: AnchorBounds, j: np.intp, z: float) -> None:
        low, high = known.right.astype(float), (~known.wrong).astype(float)
        low[j] = high[j] = z
        self.low.value, self.high.value = low, high
        self.big_m.value = np.maximum(known.big_m, 0.0)

    def _solve(self, model: Any) -> float:
        with quiet_about_accuracy():
            try:
                model.solve(solver=self.cp.CLARABEL)
            except self.cp.SolverError:
                return -np.inf
        if model.status == self.cp.INFEASIBLE:
            return np.inf
        return float(model.value) if model.status == self.cp.OPTIMAL else -np.inf
