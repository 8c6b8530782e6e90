"""Which training rows are free support vectors, at their bound, or none, and the exact solution.

A solver stops at a duality gap; a derivative needs the sets themselves. Mostly the solution of the
linear system of the sets found confirms them by its signs. Where it does not, the active set
method of quadratic programming goes on from a feasible point near by (Nocedal, Wright, "Numerical
optimization", 2006, algorithm 16.3): towards the solution of the system until a variable meets its
bound, which then leaves the free set; and once the solution is reached, the row whose margin
contradicts its set most enters it. What comes out satisfies the Karush–Kuhn–Tucker conditions to
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from bootprob_gpu.derivatives.bordered_system import BorderedSystem
from bootprob_gpu.derivatives.kernel_products import KernelProducts

__all__ = ["ActiveSets", "SetStatus", "find_active_sets"]

_ROUNDS = 200
_NEGLIGIBLE = 1e-9  # of a box, or of a margin: a sign of this size is no sign
_TOLERATED = 1e-6  # violation of the KKT conditions up to which sets are called right


class SetStatus(IntEnum):
    """What is known of the sets of a model, and so of its derivatives."""

    REGULAR = 0
    SINGULAR = 1
    NO_FREE = 2
    UNCONFIRMED = 3
    SINGLE_CLASS = 4

    @property
    def advice(self) -> str:
        """What this status means and what to do about it, a full sentence or two."""
        return _ADVICE[self]


_ADVICE = {
    SetStatus.REGULAR: "The solution is exact and unique; its derivatives exist.",
    SetStatus.SINGULAR: (
        "Free support vectors depend on each other (duplicated rows, or more on the margin than "
        "the kernel has dimensions): the dual solution is the one of least norm. Scores and their "
        "derivatives do not depend on that choice, unless a row is about to change its set."
    ),
    SetStatus.NO_FREE: (
        "No support vector is free, so the intercept may lie anywhere in an interval: its middle "
        "is differentiated. Derivatives hold for changes that keep the weights of the two classes' "
        "support vectors in balance, such as one of C; for others the intercept jumps."
    ),
    SetStatus.UNCONFIRMED: (
        "The sets could not be made to agree with the KKT conditions, and the derivatives may be "
        "wrong: train to a smaller duality gap, or standardise the columns."
    ),
    SetStatus.SINGLE_CLASS: (
        "Only one class carries weight: the score is that class's sign, with derivative 0."
    ),
}


@dataclass(frozen=True)
class ActiveSets:
    """Solved models; G groups of M share their kernel matrix.

    Attributes
    ----------
    dual_coef : Tensor, shape (G, M, n)
        ``y_i a_i``, exactly 0 and ``y_i u_i`` outside the free set.
    intercept : Tensor, shape (G, M)
    free, at_bound : Tensor of bool, shape (G, M, n)
        ``0 < a < u`` and ``a = u > 0``.
    violation : Tensor, shape (G, M)
        Largest violation of the KKT conditions: of a margin, or of a box relative to its width.
    status : Tensor of int64, shape (G, M)
        Values of `SetStatus`.
    system : BorderedSystem
        Factors of the free set's linear system.
    """

    dual_coef: Tensor
    intercept: Tensor
    free: Tensor
    at_bound: Tensor
    violation: Tensor
    status: Tensor
    system: BorderedSystem


def find_active_sets(
    products: KernelProducts,
    y: Tensor,
    upper: Tensor,
    free: Tensor,
    at_bound: Tensor,
    start: Tensor | None = None,
) -> ActiveSets:
    """Correct the sets of models that are solved to some gap, and solve them exactly.

    Parameters
    ----------
    products : LinearProducts or RbfProducts
        Kernel among the training rows, G groups.
    y : Tensor, shape (n,) or (G, M, n)
        Labels, −1 or +1.
    upper : Tensor, shape (G, M, n)
        Box bounds.
    free, at_bound : Tensor of bool, shape (G, M, n)
        What the solver found.
    start : Tensor, shape (G, M, n), optional
        ``y a`` that the solver found; by default the solution of the sets, put into its box.
    """
    weighed = upper > 0
    dead = ~((weighed & (y > 0)).any(-1) & (weighed & (y < 0)).any(-1))
    free = free & weighed & ~dead[..., None]
    at_bound = at_bound & weighed & ~free & ~dead[..., None]
    best, system = _Solution.of(products, y, upper, free, at_bound, dead)
    groups = best.wrong.any(-1).any(-1).nonzero()[:, 0]
    if len(groups):
        part, box, label = products.take(groups), upper[groups], _labels_of(y, groups)
        s = _balanced(part, label, box, (best.dual_coef if start is None else start)[groups])
        sets = _descend(part, label, box, s, dead[groups])
        best = best.with_better(_Solution.of(part, label, box, *sets, dead[groups])[0], groups)
        system = BorderedSystem(products, best.free, best.pair, dead)
    status = torch.zeros_like(dead, dtype=torch.int64)
    status[system.singular] = SetStatus.SINGULAR
    status[~best.free.any(-1)] = SetStatus.NO_FREE
    status[best.violation > _TOLERATED] = SetStatus.UNCONFIRMED
    status[dead] = SetStatus.SINGLE_CLASS
    return ActiveSets(
        best.dual_coef, best.intercept, best.free, best.at_bound, best.violation, status, system
    )


def _labels_of(y: Tensor, groups: Tensor) -> Tensor:
    """Labels of some groups; (n,) of all are those of each."""
    return y if y.ndim == 1 else y[groups]


def _descend(
    products: KernelProducts, y: Tensor, upper: Tensor, s: Tensor, dead: Tensor
) -> tuple[Tensor, Tensor]:
    """Active set method from feasible points s (G, M, n); returns the free and the bound rows."""
    a = y * s
    near = _NEGLIGIBLE * upper
    at_bound = (a >= upper - near) & (upper > 0) & ~dead[..., None]
    free = (a > near) & ~at_bound & ~dead[..., None]
    left = torch.arange(len(s), device=s.device)
    for _ in range(_ROUNDS):
        box, label = upper[left], _labels_of(y, left)
        target, _ = _Solution.of(products, label, box, free[left], at_bound[left], dead[left])
        a = (label * s[left]).clamp_min(0)
        step = torch.where(target.free, label * target.dual_coef - a, 0.0)
        room = torch.where(step > 0, box - a, a) / step.abs().clamp_min(torch.finfo(a.dtype).tiny)
        room = torch.where(target.free & (step != 0), room, torch.inf)
        length = room.amin(-1, keepdim=True).clamp(0, 1)
        blocked = (room <= length) & (length < 1)
        filled = blocked & (step > 0)
        excess = torch.where(target.free, 0.0, target.excess)
        worst = excess.amax(-1, keepdim=True)
        entering = (excess == worst) & (worst > _NEGLIGIBLE) & (length >= 1)
        entering &= entering.cumsum(-1) == 1
        # Alone a row could not move, as Σ s = 0: without free rows two enter, as in SMO.
        alone = entering.any(-1) & ~target.free.any(-1)
        ends = torch.zeros_like(entering).scatter_(-1, target.pair, True)
        entering = torch.where(alone[..., None], ends, entering)
        free[left] = (target.free & ~blocked) | entering
        at_bound[left] = (target.at_bound & ~entering) | filled
        a = torch.where(target.free, a + length * step, torch.where(target.at_bound, box, 0.0))
        a = torch.where(blocked, torch.where(filled, box, 0.0), a)
        s[left] = label * a
        undone = (blocked | entering).any(-1).any(-1)
        if not undone.any():
            break
        if not undone.all():
            left, products = left[undone], products.take(undone)
    return free, at_bound


def _balanced(products: KernelProducts, y: Tensor, upper: Tensor, s: Tensor) -> Tensor:
    """A feasible point near s: a projected gradient step with the intercept that makes Σ s = 0.

    Rows that are clear of their margin stay at their bounds.
    """
    lower = torch.where(y > 0, 0.0, -upper)
    s = torch.minimum(torch.maximum(s, lower), lower + upper)
    gradient = y - products.times(s)
    low, high = gradient.amin(-1, keepdim=True) - 2, gradient.amax(-1, keepdim=True) + 2
    moved = s
    for _ in range(60):
        middle = 0.5 * (low + high)
        moved = torch.minimum(torch.maximum(s + upper * (gradient - middle), lower), lower + upper)
        heavy = moved.sum(-1, keepdim=True) > 0
        low, high = torch.where(heavy, middle, low), torch.where(heavy, high, middle)
    balanced = s.sum(-1, keepdim=True).abs() <= _NEGLIGIBLE * s.abs().sum(-1, keepdim=True)
    return torch.where(balanced, s, moved)


@dataclass(frozen=True)
class _Solution:
    """What follows from some sets, and which rows are in the wrong one."""

    dual_coef: Tensor
    intercept: Tensor
    free: Tensor
    at_bound: Tensor
    pair: Tensor
    excess: Tensor
    wrong: Tensor
    violation: Tensor

    @classmethod
    def of(
        cls,
        products: KernelProducts,
        y: Tensor,
        upper: Tensor,
        free: Tensor,
        at_bound: Tensor,
        dead: Tensor,
    ) -> tuple[_Solution, BorderedSystem]:
        fixed = torch.where(at_bound, y * upper, 0.0)
        remaining = y - products.times(fixed)
        pair = _ends(y, upper > 0, at_bound, remaining)
        system = BorderedSystem(products, free, pair, dead)
        s, intercept = system.solve(
            system.gather(remaining[:, :, None]), -fixed.sum(-1, keepdim=True)
        )
        dual_coef = fixed + system.scatter(s)[:, :, 0]
        sign = torch.where((upper * y).sum(-1) < 0, -1.0, 1.0)
        none = dead & ~(upper > 0).any(-1)
        intercept = torch.where(dead, torch.where(none, 0.0, sign), intercept[..., 0])
        slack = 1 - y * (products.times(dual_coef) + intercept[..., None])
        a = y * dual_coef
        outside = torch.maximum(-a, a - upper) / upper.clamp_min(torch.finfo(a.dtype).tiny)
        misplaced = torch.where(at_bound, -slack, slack)
        excess = torch.where(free, outside, misplaced)
        excess = torch.where((upper > 0) & ~dead[..., None], excess, 0.0).nan_to_num_(nan=torch.inf)
        wrong = excess > _NEGLIGIBLE
        # Without a free row, bounds that are out of balance need one.
        mass = fixed.abs().sum(-1)
        lacking = ~free.any(-1) & ~dead & (fixed.sum(-1).abs() > _NEGLIGIBLE * mass)
        wrong = wrong | torch.zeros_like(wrong).scatter_(
            -1, pair, lacking[..., None].expand(pair.shape)
        )
        unmet = torch.where(free, slack.abs(), 0.0)
        violation = torch.maximum(excess, unmet).amax(-1).clamp_min(0)
        violation = torch.where(lacking, torch.inf, torch.where(dead, 0.0, violation))
        solution = cls(dual_coef, intercept, free, at_bound, pair, excess, wrong, violation)
        return solution, system

    def with_better(self, other: _Solution, groups: Tensor) -> _Solution:
        """The same with models of some groups replaced where the other's violation is smaller."""
        better = other.violation < self.violation[groups]
        merged = []
        for name in self.__dataclass_fields__:
            mine, theirs = getattr(self, name).clone(), getattr(other, name)
            chosen = better.reshape(better.shape + (1,) * (theirs.ndim - 2))
            mine[groups] = torch.where(chosen, theirs, mine[groups])
            merged.append(mine)
        return _Solution(*merged)


def _ends(y: Tensor, weighed: Tensor, at_bound: Tensor, remaining: Tensor) -> Tensor:
    """Rows at the ends of the interval of the intercept, were there no free ones; (G, M, 2)."""
    from_below = weighed & (at_bound ^ (y > 0))
    from_above = weighed & ~(at_bound ^ (y > 0))
    lower = torch.where(from_below, remaining, -torch.inf).argmax(-1)
    upper = torch.where(from_above, remaining, torch.inf).argmin(-1)
    return torch.stack([lower, upper], dim=-1)
