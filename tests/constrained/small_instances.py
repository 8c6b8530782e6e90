"""Small constrained problems, and truths about them from CVXPY and from enumeration."""

from itertools import product

import cvxpy as cp
import numpy as np

from bootprob.constrained.problem import ConstrainedProblem, Requirement


def random_problem(rng, n=20, n_anchors=8, p=2, *, rates=None, shared=False, weighted=False, C=1.0):
    """Two overlapping clouds; `rates` to the share of the members that has to be right."""

    def rows(count):
        y = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
        return rng.normal(size=(count, p)) + 0.5 * y[:, None], y

    X, y = rows(n)
    anchors, anchor_y = (X, y) if shared else rows(n_anchors)
    weight = rng.uniform(0.5, 2, len(anchors)) if weighted else np.ones(len(anchors))
    members = {"tpr": anchor_y > 0, "tnr": anchor_y < 0, "accuracy": np.ones(len(anchors), bool)}
    requirements = []
    for name, share in ({"tpr": 0.75} if rates is None else rates).items():
        inside = members[name]
        required = share * weight[inside].sum()
        requirements.append(
            Requirement(name, inside, required if weighted else np.ceil(required - 1e-9))
        )
    cost = C * rng.uniform(0.5, 2, n)
    return ConstrainedProblem(X, y, cost, anchors, anchor_y, weight, tuple(requirements))


def by_cvxpy(problem, kept):
    """Objective with these anchors kept; infinite if they cannot be."""
    w, b = cp.Variable(problem.X.shape[1]), cp.Variable()
    slack = cp.pos(1 - cp.multiply(problem.y, problem.X @ w + b))
    constraints = []
    if kept.any():
        right = cp.multiply(problem.anchor_y[kept], problem.anchors[kept] @ w + b)
        constraints = [right >= 1]
    model = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + problem.cost @ slack), constraints)
    model.solve(solver=cp.CLARABEL)
    return model.value if model.status in ("optimal", "optimal_inaccurate") else np.inf


def best_by_enumeration(problem):
    """Least objective over all choices of anchors; a choice with a superfluous one is left out."""
    free = np.flatnonzero(np.any([r.members for r in problem.requirements], axis=0))
    best = np.inf
    for bits in product((False, True), repeat=len(free)):
        kept = np.zeros(len(problem.anchors), dtype=bool)
        kept[free] = bits
        if problem.shortfall(kept).any():
            continue
        if any(not problem.shortfall(kept & (np.arange(len(kept)) != j)).any()
               for j in np.flatnonzero(kept)):  # fmt: skip
            continue
        best = min(best, by_cvxpy(problem, kept))
    return best
