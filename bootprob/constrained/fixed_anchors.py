"""The convex problem that remains when it is given which anchors are to be right.

With z fixed, (CSVM0) is a quadratic problem in which the anchors kept are rows without slack. The
engine trains it as a support vector machine with a bound of its own for every row and model: the
cost on training rows, an exact penalty on anchors kept, 0 on anchors given up. A choice of anchors
is then one "replicate", and many of them go in one call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bootprob.constrained.problem import ConstrainedProblem
from bootprob.runtime.arrays import Bools, Floats
from bootprob_gpu import FittedBatch, Problem, Status, fit

__all__ = ["FixedAnchors", "Hyperplanes"]


_ONE_CLASS = 2.0  # times the other class's cost, which no multiplier can exceed
_BOTH_CLASSES = 10.0  # times all costs at first, where no such bound is known
_RAISE = 100.0
_RAISES = 3
_SEPARATED = 1e-6  # margin from which it makes sense to scale up
_REACHED = 1 - 1e-6  # margin of all anchors kept from which the penalty was large enough
# An interior point takes p² · n operations a step, SMO n; on the factor of a kernel (p = n),
# SMO is 20 to 40 times faster, on 61 columns and 659 rows the interior point 6 times.
_SMO_FROM = 3  # rows per column up to which SMO goes first
_SMO_STEPS = 50  # per row, before the interior point is asked instead
_BLOCK_NUMBERS = 2**24  # bounds of a call at a time: 128 MiB


@dataclass(frozen=True)
class Hyperplanes:
    """One hyperplane for each choice of anchors.

    Attributes
    ----------
    coef : ndarray, shape (B, p)
    intercept : ndarray, shape (B,)
    objective : ndarray, shape (B,)
        As `ConstrainedProblem.objective`; infinite where the anchors asked for are not all right.
    lower_bound : ndarray, shape (B,)
        No hyperplane that keeps these anchors has a lower objective.
    margins : ndarray, shape (B, n_anchors)
        ``y f(x)`` of all anchors.
    """

    coef: Floats
    intercept: Floats
    objective: Floats
    lower_bound: Floats
    margins: Floats

    def best(self) -> int:
        """Index of the lowest objective."""
        return int(self.objective.argmin())

    def take(self, index: NDArray[np.intp]) -> Hyperplanes:
        """Some of them."""
        return Hyperplanes(**{name: values[index] for name, values in vars(self).items()})

    def put(self, index: NDArray[np.intp], values: Hyperplanes) -> None:
        """Replace some of them, in place."""
        for name, those in vars(values).items():
            getattr(self, name)[index] = those


class FixedAnchors:
    """Hyperplanes of least objective that keep given anchors.

    Where all anchors kept are of one class, ``Σ y a = 0`` bounds each of their multipliers by
    the total cost of the other class, so that a penalty of twice that is exact. Where both
    classes are kept there is no such bound: the penalty grows until the anchors are right or it
    has been raised three times by 100.

    The engine's solution keeps the anchors up to its tolerance. It is made to keep them
    exactly: by a shift of the intercept (one class), or by scaling up (both). The objective is
    that of the hyperplane after this.

    If a problem's ``anchors`` are the very array ``X``, (3.7), the rows are trained on once.
    """

    def __init__(self, problem: ConstrainedProblem) -> None:
        self.problem = problem
        self.n_solved = 0
        n = len(problem.X)
        if problem.anchors is problem.X:
            self._usable = np.arange(n)
            self._row_of = np.arange(n)
            self._rows, self._y = problem.X, problem.y
        else:
            usable = np.zeros(len(problem.anchors), dtype=bool)
            for requirement in problem.requirements:
                usable |= requirement.members
            self._usable = np.flatnonzero(usable)
            self._row_of = n + np.arange(len(self._usable))
            self._rows = np.concatenate([problem.X, problem.anchors[usable]])
            self._y = np.concatenate([problem.y, problem.anchor_y[usable]])
        positive = problem.y > 0
        self._class_cost = problem.cost[positive].sum(), problem.cost[~positive].sum()
        spread = np.square(self._rows - self._rows.mean(axis=0)).sum(axis=1).mean()
        # Multipliers of anchors that only just can be kept together follow the rows, not the costs.
        self.penalty = _BOTH_CLASSES * max(sum(self._class_cost), 1 / max(spread, 1e-12))

    def train(self, upper: Floats, tol: float = 1e-7) -> Hyperplanes:
        """Ordinary support vector machines on training rows and anchors together.

        `upper` (B, n + n_anchors) is the cost of each training row, then of each anchor;
        `tol` a relative duality gap. Objectives are on the training rows alone, whatever
        the anchors' margins.
        """
        B, n = len(upper), len(self.problem.X)
        bounds = np.zeros((B, len(self._rows)))
        bounds[:, :n] = upper[:, :n]
        bounds[:, self._row_of] += upper[:, n:][:, self._usable]
        step = max(1, _BLOCK_NUMBERS // bounds.shape[1])
        parts = [self._fit(bounds[start : start + step], tol) for start in range(0, B, step)]
        coef, intercept, dual = (np.concatenate(each) for each in zip(*parts, strict=True))
        self.n_solved += B
        return self._hyperplanes(coef, intercept, dual)

    def solve(self, kept: Bools, *, tol: float = 1e-7) -> Hyperplanes:
        """Least objective for each choice (B, n_anchors), to a relative gap with penalties."""
        anchor_positive = self.problem.anchor_y > 0
        of_positives = (kept & anchor_positive).any(axis=1)
        of_negatives = (kept & ~anchor_positive).any(axis=1)
        both = np.logical_and(of_positives, of_negatives)
        one_class = np.where(of_positives, self._class_cost[1], self._class_cost[0]) * _ONE_CLASS
        found, short = self._keep(kept, np.where(both, self.penalty, one_class), both, tol)
        penalty, open_ = self.penalty, np.flatnonzero(both & short)
        for _ in range(_RAISES):
            if len(open_) == 0:
                break
            penalty *= _RAISE
            again, short = self._keep(kept[open_], np.full(len(open_), penalty), both[open_], tol)
            better = again.objective <= found.objective[open_]
            for name in ("coef", "intercept", "objective", "margins"):
                getattr(found, name)[open_[better]] = getattr(again, name)[better]
            found.lower_bound[open_] = np.maximum(found.lower_bound[open_], again.lower_bound)
            open_ = open_[short]
        return found

    def _keep(
        self, kept: Bools, penalty: Floats, both: Bools, tol: float
    ) -> tuple[Hyperplanes, Bools]:
        """Train with these penalties, shape (B,), and make the anchors right if that can be.

        Also returns where the penalty was too small to make them right.
        """
        costs = np.broadcast_to(self.problem.cost, (len(kept), len(self.problem.cost)))
        raw = self.train(
            np.concatenate([costs, np.where(kept, penalty[:, None], 0.0)], axis=1), tol
        )
        worst = np.where(kept, raw.margins, np.inf).min(axis=1, initial=np.inf)
        side = np.where((kept & (self.problem.anchor_y > 0)).any(axis=1), 1.0, -1.0)
        shift = np.where(both, 0.0, side * np.maximum(1 - worst, 0.0))
        scalable = both & (worst > _SEPARATED)
        factor = np.maximum(1 / np.where(scalable, worst, 1.0), 1.0)
        found = self._hyperplanes(
            raw.coef * factor[:, None], (raw.intercept + shift) * factor, raw.lower_bound
        )
        found.objective[both & ~scalable] = np.inf
        return found, np.less(worst, _REACHED)

    def _fit(self, bounds: Floats, tol: float) -> tuple[Floats, Floats, Floats]:
        n, p = self._rows.shape
        counts = np.ones(bounds.shape, dtype=np.int8)
        problem = Problem(self._rows, self._y, counts, C=[1.0], upper=bounds[:, None])
        if _SMO_FROM * p < n:
            return _solved(fit(problem, solver="interior-point-compiled", tol=tol))
        batch = fit(problem, solver="smo-compiled", tol=tol, max_iter=_SMO_STEPS * n)
        coef, intercept, dual = _solved(batch)
        open_ = np.flatnonzero(batch.status[:, 0].numpy() != Status.CONVERGED)
        if len(open_):  # slow on such bounds: the interior point does not mind them
            again = Problem(self._rows, self._y, counts[open_], C=[1.0], upper=bounds[open_, None])
            solved = _solved(fit(again, solver="interior-point-compiled", tol=tol))
            coef[open_], intercept[open_], dual[open_] = solved
        return coef, intercept, dual

    def _hyperplanes(self, coef: Floats, intercept: Floats, dual: Floats) -> Hyperplanes:
        problem = self.problem
        slack = problem.y * (coef @ problem.X.T + intercept[:, None])
        np.subtract(1, slack, out=slack)
        np.maximum(slack, 0, out=slack)
        return Hyperplanes(
            coef=coef,
            intercept=intercept,
            objective=0.5 * np.square(coef).sum(axis=1) + slack @ problem.cost,
            lower_bound=dual.copy(),
            margins=problem.anchor_y * (coef @ problem.anchors.T + intercept[:, None]),
        )


def _solved(batch: FittedBatch) -> tuple[Floats, Floats, Floats]:
    """Coefficients (B, p), intercepts and dual objectives (B,)."""
    coef = batch.coef
    if coef is None:
        assert batch.dual_coef is not None
        coef = batch.primal_coef(batch.dual_coef, slice(None))
    return coef[:, 0].numpy(), batch.intercept[:, 0].numpy(), batch.dual[:, 0].numpy()
