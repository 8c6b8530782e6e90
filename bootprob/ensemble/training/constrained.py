"""All machines of an ensemble under constraints on their rates, thesis (3.7) (Ctrl2).

Every machine minimises ``½ ‖w‖² + Σ u_i ξ_i`` subject to ``ξ_i = 0`` for rows of its bootstrap
sample that make up the required share of a class. Which rows these are makes it a mixed-integer
problem; for given rows it is a support vector machine whose bounds on those rows are large. So
rounds of the batched engine alternate with a choice: the rows with the highest margins are kept,
the machine is trained anew, and so on until the rows stay the same. The best of several starts
counts. A machine for which none ends in rows that can be kept, which happens with two rates only,
is then searched for by itself, as `ConstrainedSVC` does it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bootprob.constrained.heuristic import solve_heuristic
from bootprob.ensemble.training.replicate_machine import ReplicateMachine
from bootprob.exceptions import UnattainableRateError
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Floats
from bootprob_gpu import FittedBatch, Problem, iter_fit
from bootprob_gpu.certificate import relative_gap
from bootprob_gpu.hardware.memory import free_bytes, visible_block

__all__ = ["ConstrainedBlock", "iter_fit_constrained"]


_STARTS = (3.0, 10.0, 30.0)  # times the bounds of the classes whose rates are asked for
_ROUNDS = 8
_ARRAYS = 12  # of the size of the box bounds that a block needs at a time
_BETTER = 1e-6  # relative; less is the solver's tolerance
_MET = 1e-9  # of the required weight: rounding
_ROUNDING = 1e-6  # of a margin: the solver's tolerance
_NEARLY = 0.9  # least margin of the kept rows that scaling makes 1; below, they cannot be kept
_HARD = 1e3  # bounds that stand for infinity where both classes are constrained, times all bounds
_SEARCH_SECONDS = 60.0  # after which the search for one machine begins no further round


@dataclass(frozen=True)
class ConstrainedBlock:
    """Machines of consecutive replicates that meet their constraints.

    Attributes
    ----------
    models : FittedBatch
        With the training scores; the certificates are those of the machines with the rows kept.
    objective : Tensor, shape (b, R)
        ``½ ‖w‖² + Σ u ξ`` of the constrained problems.
    lower_bound : Tensor, shape (b, R)
        Dual objective of the machines without constraints: no solution is better.
    """

    models: FittedBatch
    objective: Tensor
    lower_bound: Tensor

    @property
    def gap(self) -> Tensor:
        """``(objective − lower_bound) / objective``, shape (b, R): at most that far off."""
        return relative_gap(self.objective, self.lower_bound)


def iter_fit_constrained(
    problem: Problem,
    weight: Floats,
    floors: Sequence[RateFloor],
    shares: dict[str, float],
    *,
    tol: float | None,
    device: torch.device,
    dtype: torch.dtype,
    memory_limit: int | None,
) -> Iterator[ConstrainedBlock]:
    """Train block by block of replicates, under constraints.

    Parameters
    ----------
    problem : Problem
        Without explicit box bounds.
    weight : ndarray, shape (n,)
        What a row counts in the rates, times its occurrences in the sample.
    floors : sequence of RateFloor
        On "tpr", "tnr" or both.
    shares : dict
        Share of the sample's weight that has to be right, for each rate; it is rounded to whole
        rows in each sample.
    tol, device, dtype, memory_limit
        As for `bootprob_gpu.fit`.

    Yields
    ------
    ConstrainedBlock

    Raises
    ------
    UnattainableRateError
        A machine cannot keep both rates, as far as was searched.
    """
    B, R, n = problem.n_replicates, problem.n_models, len(problem.y)
    available = free_bytes(torch.device("cpu"), memory_limit)
    size = max(1, min(visible_block(B, R), int(available // (8 * _ARRAYS * R * n))))
    options = {"tol": tol, "device": device, "dtype": dtype, "memory_limit": memory_limit}
    for start in range(0, B, size):
        block = _Block(problem, slice(start, min(start + size, B)), weight, floors, shares, options)
        yield block.solve()


class _Block:
    """Rounds for some replicates; what is best so far, for every machine."""

    def __init__(
        self,
        problem: Problem,
        replicates: slice,
        weight: Floats,
        floors: Sequence[RateFloor],
        shares: dict[str, float],
        options: dict[str, Any],
    ) -> None:
        self.problem, self.replicates, self.weight = problem, replicates, weight
        self.floors, self.shares, self.options = floors, shares, options
        device = options["device"]
        positive = problem.y > 0
        self.y = torch.from_numpy(problem.y).to(device)
        self.upper = torch.from_numpy(problem.upper_of(replicates)).to(device)
        mass = problem.counts[replicates] * weight
        self.mass = torch.from_numpy(mass).to(device)
        self.members = [torch.from_numpy(f.members(positive)).to(device) for f in floors]
        self.required = [
            shares[f.rate] * (self.mass * m).sum(1)
            for f, m in zip(floors, self.members, strict=True)
        ]
        constrained = torch.stack(self.members).any(0)
        self.pushed = [constrained] if len(floors) == 1 else [constrained, *self.members]
        if len(floors) == 1:
            # Σ y a = 0: no multiplier exceeds all bounds of the other class.
            self.hard = 2 * (self.upper * ~constrained).sum(-1, keepdim=True)
        else:
            self.hard = _HARD * self.upper.sum(-1, keepdim=True)

    def solve(self) -> ConstrainedBlock:
        """Several starts, each with rounds until the rows kept stay the same."""
        everything = torch.arange(len(self.upper), device=self.upper.device)
        self.best, self.best_scores = self._train(everything, self.upper)
        lower_bound = self.best.dual.clone()
        self.settled = self._meets(self.best_scores)  # without any constraint
        self.objective = torch.where(self.settled, self.best.primal, torch.inf)
        which = (~self.settled).any(1).nonzero().squeeze(1)
        if len(which):
            self._rounds(which, self.best_scores[which].clone())
            for rows, times in itertools.product(self.pushed, _STARTS):
                bounds = self.upper[which] * torch.where(rows, times, 1.0)
                _, scores = self._train(which, bounds)
                self._rounds(which, scores)
        for b, r in (~torch.isfinite(self.objective)).nonzero().tolist():
            self._search(b, r)
        self.best.replicates, self.best.train_scores = self.replicates, self.best_scores
        return ConstrainedBlock(self.best, self.objective, lower_bound)

    def _rounds(self, which: Tensor, scores: Tensor) -> None:
        """Keep the rows with the highest margins, train, and again; from these scores."""
        before = torch.zeros_like(scores, dtype=torch.bool)
        for _ in range(_ROUNDS):
            kept = self._choose(scores, which)
            moving = ((kept != before).any(-1) & ~self.settled[which]).any(1)
            if not moving.any():
                return
            which, kept, before = which[moving], kept[moving], kept[moving]
            upper = self.upper[which]
            # A row that is kept has no slack; its bound only has to be out of its reach.
            bounds = torch.where(kept, self.hard[which] + upper, upper)
            models, scores = self._train(which, bounds)
            self._take_better(which, models, scores, kept, bounds)

    def _train(self, which: Tensor, bounds: Tensor) -> tuple[FittedBatch, Tensor]:
        """Train the machines of some replicates within bounds; with their training scores."""
        taken = which.cpu().numpy() + self.replicates.start
        scale = self.problem.scale
        problem = Problem(
            self.problem.X,
            self.problem.y,
            self.problem.counts[taken],
            self.problem.C,
            kernel=self.problem.kernel_function,
            scale=scale if scale.ndim == 1 else scale[taken],
            upper=bounds.cpu().numpy(),
        )
        blocks = list(iter_fit(problem, **self.options))
        scores = [block.train_scores for block in blocks if block.train_scores is not None]
        return FittedBatch.concatenate(blocks), torch.cat(scores)

    def _choose(self, scores: Tensor, which: Tensor) -> Tensor:
        """Rows with the highest margins that make up what is required, shape (b, R, n)."""
        kept = torch.zeros_like(scores, dtype=torch.bool)
        for members, required in zip(self.members, self.required, strict=True):
            rows = members.nonzero().squeeze(1)
            order = (scores[..., rows] * self.y[rows]).argsort(dim=-1, descending=True, stable=True)
            mass = self.mass[which][:, rows].unsqueeze(1).expand(order.shape).gather(-1, order)
            needed = required[which][:, None, None] * (1 - _MET)
            # Up to and with the row that completes it; rows outside the sample have no mass.
            chosen = (mass.cumsum(-1) - mass < needed) & (mass > 0)
            kept[..., rows] = torch.zeros_like(chosen).scatter(-1, order, chosen)
        return kept

    def _take_better(
        self, which: Tensor, models: FittedBatch, scores: Tensor, kept: Tensor, bounds: Tensor
    ) -> None:
        """Repair what the solver's tolerance left, and remember what is better than before."""
        slack = (1 - self.y * scores).clamp_(min=0)
        half_norm = models.primal - (bounds * slack).sum(-1)
        margins = torch.where(kept, self.y * scores, torch.inf)
        lowest = margins.amin(-1)
        if len(self.floors) == 1:
            shift = (1 - lowest).clamp(min=0) * (1.0 if self.floors[0].rate == "tpr" else -1.0)
            factor = torch.ones_like(shift)
            feasible = torch.ones_like(shift, dtype=torch.bool)
        else:
            feasible = lowest >= _NEARLY
            factor = torch.where(feasible, 1 / lowest.clamp(_NEARLY, 1.0), 1.0)
            shift = torch.zeros_like(factor)
        scores = scores * factor.unsqueeze(-1) + shift.unsqueeze(-1)
        slack = (1 - self.y * scores).clamp_(min=0)
        objective = half_norm * factor**2 + (self.upper[which] * slack).sum(-1)
        objective = torch.where(feasible, objective, torch.inf)
        better = (objective < self.objective[which] * (1 - _BETTER)) & ~self.settled[which]
        at = tuple(better.nonzero().T)
        to = (which[at[0]], at[1])
        self.objective[to] = objective[at]
        self.best_scores[to] = scores[at]
        self.best.intercept[to] = (models.intercept * factor + shift)[at]
        for name in ("coef", "dual_coef"):
            values, found = getattr(self.best, name), getattr(models, name)
            if values is not None:
                values[to] = found[at] * factor[at].unsqueeze(-1)
        theirs = vars(models.certificate)
        for name, values in vars(self.best.certificate).items():
            values[to] = theirs[name][at]

    def _meets(self, scores: Tensor) -> Tensor:
        """Whether the rows with margin 1 make up what is required, shape (b, R)."""
        right = self.y * scores >= 1 - _ROUNDING
        met = [
            (right * (self.mass * members)[:, None]).sum(-1) >= required[:, None] * (1 - _MET)
            for members, required in zip(self.members, self.required, strict=True)
        ]
        return torch.stack(met).all(0)

    def _search(self, b: int, r: int) -> None:
        """Find one machine that keeps the rates, by more than the rounds do."""
        replicate = self.replicates.start + b
        machine = ReplicateMachine(self.problem, replicate, r, self.weight)
        try:
            found = solve_heuristic(
                machine.problem(self.floors, self.shares), time_limit=_SEARCH_SECONDS
            )
        except UnattainableRateError as error:
            raise self._unattainable(error) from None
        self.objective[b, r] = found.objective
        scores = machine.hand_out(found, self.best, (b, r))
        self.best_scores[b, r] = torch.from_numpy(scores)

    def _unattainable(self, error: UnattainableRateError) -> UnattainableRateError:
        """Say what was found for one of the rates while the other is kept."""
        wanted = " and ".join(f"{f.rate} ≥ {f.at_least:g}" for f in self.floors)
        found = f", but {error.rate} {error.attainable:.3g} was" if error.attainable else ""
        return UnattainableRateError(
            f"No machine was found that keeps {wanted} in one of the bootstrap samples (a search, "
            f"not a proof){found}, the other rate kept. Lower one of the rates, or take "
            "kernel='rbf', which tells all rows apart that differ.",
            rate=error.rate,
            wanted=self.shares[error.rate],
            attainable=error.attainable,
        )
