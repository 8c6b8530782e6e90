"""One model of a bootstrap sample as a linear machine, for what is done machine by machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bootprob.constrained.kernel_factor import KernelFactor
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Floats
from bootprob_gpu import FittedBatch, Problem

__all__ = ["ReplicateMachine"]


class ReplicateMachine:
    """Problem (3.7) of one model on the rows that its bootstrap sample has drawn.

    Parameters
    ----------
    problem : Problem
        Of the ensemble.
    replicate, model : int
        Which of its B bootstrap samples and R models.
    weight : ndarray, shape (n,)
        What a row counts in the rates, times its occurrences in the sample.
    """

    def __init__(self, problem: Problem, replicate: int, model: int, weight: Floats) -> None:
        one = slice(replicate, replicate + 1)
        [upper], [self._scale] = problem.upper_of(one), problem.scale_of(one)
        seen = problem.X / self._scale
        self._drawn = np.flatnonzero(upper[model] > 0)
        self._y, self._cost = problem.y[self._drawn], upper[model, self._drawn]
        self._mass = (problem.counts[replicate] * weight)[self._drawn]
        which = model // problem.C.shape[-1]
        kernel = problem.kernel_function.take(slice(which, which + 1))
        self._factor = KernelFactor.of(kernel, seen[self._drawn], self._drawn)
        self._columns = self._factor.transform(seen)

    def problem(self, floors: Sequence[RateFloor], shares: dict[str, float]) -> ConstrainedProblem:
        """Anchors are the training rows: ``ξ ≤ M (1 − z)`` of (3.7) says the same."""
        columns, positive = self._columns[self._drawn], self._y > 0
        return ConstrainedProblem(
            X=columns,
            y=self._y,
            cost=self._cost,
            anchors=columns,
            anchor_y=self._y,
            anchor_weight=self._mass,
            requirements=tuple(
                Requirement(f.rate, members, shares[f.rate] * self._mass[members].sum())
                for f in floors
                for members in [f.members(positive)]
            ),
        )

    def start(
        self, problem: ConstrainedProblem, scores: Floats, objective: float, lower_bound: float
    ) -> Solution:
        """What is known, in these columns: the plane that gives the rows (n,) their scores."""
        design = np.column_stack([problem.X, np.ones(len(problem.X))])
        *coef, intercept = np.linalg.lstsq(design, scores[self._drawn], rcond=None)[0]
        return Solution(
            coef=np.array(coef),
            intercept=float(intercept),
            objective=objective,
            lower_bound=lower_bound,
            kept=problem.y * scores[self._drawn] >= 1 - 1e-6,
            status="heuristic",
            seconds=0.0,
        )

    def hand_out(self, found: Solution, models: FittedBatch, at: tuple[int, int]) -> Floats:
        """Make the model at (b, r) of a batch the one found; scores of all rows, shape (n,)."""
        if models.coef is not None:
            coef = self._factor.pull_back(found.coef) / self._scale
            models.coef[at] = torch.from_numpy(coef)
        else:
            assert models.dual_coef is not None
            dual = np.zeros(len(self._columns))  # Φᵀ s = w over the rows drawn
            dual[self._drawn] = np.linalg.lstsq(
                self._columns[self._drawn].T, found.coef, rcond=None
            )[0]
            models.dual_coef[at] = torch.from_numpy(dual)
        models.intercept[at] = found.intercept
        return self._columns @ found.coef + found.intercept
