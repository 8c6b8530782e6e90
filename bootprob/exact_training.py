"""Machines of an ensemble under constraints solved to a proven gap, one by one, thesis (3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bootprob.constrained.exact import solve_exact
from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.optional_solvers import choose_solver
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution
from bootprob.constrained_training import ConstrainedBlock
from bootprob.rates import RateFloor
from bootprob_gpu import Problem

__all__ = ["choose_solver", "prove"]

Floats = NDArray[np.float64]

_PROVEN = 1e-4  # gap from which a machine is left as it is


def prove(
    block: ConstrainedBlock,
    problem: Problem,
    weight: Floats,
    floors: Sequence[RateFloor],
    shares: dict[str, float],
    *,
    time_limit: float,
) -> ConstrainedBlock:
    """Improve each machine of a block by mixed-integer optimisation, started from what it is.

    Parameters
    ----------
    block : ConstrainedBlock
        As the rounds of the batched engine left it, with training scores.
    problem, weight, floors, shares
        As for `iter_fit_constrained`.
    time_limit : float
        Seconds for each machine.

    Returns
    -------
    ConstrainedBlock
        Objectives no worse, bounds no lower.
    """
    models = block.models
    assert models.train_scores is not None
    objective, bound = block.objective.clone(), block.lower_bound.clone()
    gammas = problem.gamma_per_model
    for b, r in (block.gap > _PROVEN).nonzero().tolist():
        item = models.replicates.start + b
        [upper] = problem.upper_of(slice(item, item + 1))
        seen = problem.X / problem.scale_of(slice(item, item + 1))[0]
        machine = _Machine(
            seen,
            problem.y,
            upper[r],
            problem.counts[item] * weight,
            None if gammas is None else float(gammas[r]),
        )
        constrained = machine.problem(floors, shares)
        start = machine.start(
            constrained,
            models.train_scores[b, r].cpu().numpy(),
            float(block.objective[b, r]),
            float(block.lower_bound[b, r]),
        )
        found = solve_exact(constrained, start, time_limit=time_limit)
        bound[b, r] = found.lower_bound
        if found.objective >= start.objective:
            continue
        objective[b, r] = found.objective
        scores = machine.columns @ found.coef + found.intercept
        models.train_scores[b, r] = torch.from_numpy(scores)
        if models.coef is not None:
            scale = problem.scale_of(slice(item, item + 1))[0]
            models.coef[b, r] = torch.from_numpy(machine.factor.pull_back(found.coef) / scale)
        else:
            assert models.dual_coef is not None
            models.dual_coef[b, r] = torch.from_numpy(machine.dual_coef(found.coef))
        models.intercept[b, r] = found.intercept
    return replace(block, objective=objective, lower_bound=bound)


class _Machine:
    """One model of a replicate as a linear machine on the rows that it has drawn."""

    def __init__(
        self, seen: Floats, y: Floats, upper: Floats, mass: Floats, gamma: float | None
    ) -> None:
        self.drawn = np.flatnonzero(upper > 0)
        self.y, self.cost, self.mass = y[self.drawn], upper[self.drawn], mass[self.drawn]
        rows = seen[self.drawn]
        self.factor = KernelFactor.linear(rows) if gamma is None else KernelFactor.rbf(rows, gamma)
        self.columns = self.factor.transform(seen)

    def problem(self, floors: Sequence[RateFloor], shares: dict[str, float]) -> ConstrainedProblem:
        """Anchors are the training rows: ``ξ ≤ M (1 − z)`` of (3.7) says the same."""
        columns, positive = self.columns[self.drawn], self.y > 0
        return ConstrainedProblem(
            X=columns,
            y=self.y,
            cost=self.cost,
            anchors=columns,
            anchor_y=self.y,
            anchor_weight=self.mass,
            requirements=tuple(
                Requirement(f.rate, members, shares[f.rate] * self.mass[members].sum())
                for f in floors
                for members in [f.members(positive)]
            ),
        )

    def start(
        self, problem: ConstrainedProblem, scores: Floats, objective: float, lower_bound: float
    ) -> Solution:
        """What is known, in these columns: the plane that gives the rows their scores."""
        design = np.column_stack([problem.X, np.ones(len(problem.X))])
        *coef, intercept = np.linalg.lstsq(design, scores[self.drawn], rcond=None)[0]
        return Solution(
            coef=np.array(coef),
            intercept=float(intercept),
            objective=objective,
            lower_bound=lower_bound,
            kept=problem.y * scores[self.drawn] >= 1 - 1e-6,
            status="heuristic",
            seconds=0.0,
        )

    def dual_coef(self, coef: Floats) -> Floats:
        """Dual coefficients of all rows, shape (n,): ``Φᵀ s = w`` over the rows drawn."""
        found = np.zeros(len(self.columns))
        found[self.drawn] = np.linalg.lstsq(self.columns[self.drawn].T, coef, rcond=None)[0]
        return found
