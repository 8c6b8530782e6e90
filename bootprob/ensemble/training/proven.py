"""Machines of an ensemble under constraints solved to a proven gap, one by one, thesis (3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from bootprob.constrained.exact import solve_exact
from bootprob.ensemble.training.constrained import ConstrainedBlock
from bootprob.ensemble.training.replicate_machine import ReplicateMachine
from bootprob.metrics.rates import RateFloor
from bootprob.optimization.solvers import choose_solver
from bootprob.runtime.arrays import Floats
from bootprob_gpu import Problem

__all__ = ["choose_solver", "prove"]


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
    for b, r in (block.gap > _PROVEN).nonzero().tolist():
        machine = ReplicateMachine(problem, models.replicates.start + b, r, weight)
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
        models.train_scores[b, r] = torch.from_numpy(machine.hand_out(found, models, (b, r)))
    return replace(block, objective=objective, lower_bound=bound)
