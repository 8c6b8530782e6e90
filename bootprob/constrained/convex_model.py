"""The constrained problem as a CVXPY model; convex where no anchor has a binary variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bootprob.constrained.big_m import AnchorBounds
from bootprob.constrained.problem import ConstrainedProblem
from bootprob.optimization.solvers import load_cvxpy, quiet_about_accuracy
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["Model", "build_model", "solve_kept", "solve_relaxation", "stretched"]


_SURE = 1e-6  # relative; interior-point values are good to about 1e-8


@dataclass(frozen=True)
class Model:
    """Variables and constraints of (CSVM0), thesis (2.5) to (2.9); the objective is added later.

    Attributes
    ----------
    coef, intercept, slack, right : cvxpy.Variable
        w, b, ξ, and the z of the anchors that are free.
    free : ndarray of bool, shape (n_anchors,)
    constraints : list of cvxpy.Constraint
    """

    coef: Any
    intercept: Any
    slack: Any
    right: Any
    free: Bools
    constraints: list[Any]

    def start_at(self, problem: ConstrainedProblem, coef: Floats, intercept: float) -> None:
        """Give the variables the values of a hyperplane."""
        kept = problem.margins(coef, intercept) >= 1 - 1e-9
        self.coef.value, self.intercept.value = coef, intercept
        self.slack.value = np.maximum(0.0, 1 - problem.y * (problem.X @ coef + intercept))
        if self.free.any():
            self.right.value = kept[self.free].astype(float)

    def chosen(self, known: AnchorBounds) -> Bools:
        """The anchors with z = 1 in the solution, shape (n_anchors,).

        Solvers allow z to be off by 1e-6, and so, times M, the margins.
        """
        kept = known.right.copy()
        if self.free.any():
            kept[self.free] = self.right.value > 0.5
        return kept


def build_model(problem: ConstrainedProblem, known: AnchorBounds, *, boolean: bool) -> Model:
    """The variables and constraints, with what is known of the anchors put in.

    Anchors known to be right have no slack; those known to be wrong have the floor only. With
    `boolean` z is 0 or 1, else anything between.
    """
    cp = load_cvxpy()

    free = ~known.right & ~known.wrong
    coef, intercept = cp.Variable(problem.X.shape[1]), cp.Variable()
    slack = cp.Variable(len(problem.y))
    constraints = [cp.multiply(problem.y, problem.X @ coef + intercept) >= 1 - slack, slack >= 0]
    signed = problem.anchor_y[:, None] * problem.anchors
    if known.right.any():
        label = problem.anchor_y[known.right]
        constraints.append(signed[known.right] @ coef + label * intercept >= 1)
    if known.wrong.any() and np.isfinite(known.floor):
        label = problem.anchor_y[known.wrong]
        constraints.append(signed[known.wrong] @ coef + label * intercept >= known.floor)
    right = None
    if free.any():
        right = cp.Variable(int(free.sum()), boolean=boolean)
        margins = signed[free] @ coef + problem.anchor_y[free] * intercept
        constraints.append(margins >= 1 - cp.multiply(known.big_m[free], 1 - right))
        if not boolean:
            constraints += [right >= 0, right <= 1]
        for requirement in problem.requirements:
            weight = np.where(requirement.members, problem.anchor_weight, 0.0)
            lacking = requirement.required * (1 - 1e-9) - weight[known.right].sum()
            if lacking > 0:
                constraints.append(weight[free] @ right >= lacking)
    return Model(coef, intercept, slack, right, free, constraints)


def solve_relaxation(
    problem: ConstrainedProblem, known: AnchorBounds
) -> tuple[float, Floats, float] | None:
    """Least objective for z between 0 and 1, a little below what the solver found, w and b.

    None where the interior-point solver (Clarabel) gave up or found nothing feasible.
    """
    cp = load_cvxpy()

    model = build_model(problem, known, boolean=False)
    objective = cp.sum_squares(model.coef) / 2 + problem.cost @ model.slack
    convex = cp.Problem(cp.Minimize(objective), model.constraints)
    with quiet_about_accuracy():
        try:
            convex.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return None
    if convex.status != cp.OPTIMAL:
        return None
    value = float(convex.value)
    return value - _SURE * max(value, 1.0), model.coef.value, float(model.intercept.value)


def solve_kept(
    problem: ConstrainedProblem, kept: Bools, floor: float = -np.inf
) -> tuple[Floats, float] | None:
    """The best hyperplane that keeps these anchors, scaled so that none is short by rounding.

    The other anchors reach the floor. None where there is none, or the solver came too far from
    one.
    """
    known = AnchorBounds(np.zeros(len(kept)), right=kept, wrong=~kept, floor=floor)
    found = solve_relaxation(problem, known)
    if found is None:
        return None
    return stretched(problem, found[1], found[2], kept)


def stretched(
    problem: ConstrainedProblem, coef: Floats, intercept: float, kept: Bools
) -> tuple[Floats, float] | None:
    """Scale w and b up, by 1e-3 at most, until these anchors have ``y f ≥ 1``; None if too far."""
    least = problem.margins(coef, intercept)[kept].min(initial=1.0)
    if least < 1 - 1e-3:
        return None
    return coef / least, intercept / least
