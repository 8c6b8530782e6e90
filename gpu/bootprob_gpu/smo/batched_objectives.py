"""Primal and dual objectives in batched SMO, and the intercepts that go with them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bootprob_gpu.smo.batched_working_set import State

__all__ = ["Objectives", "objectives"]


@dataclass
class Objectives:
    """Of the problems at work, shape (problems,) each."""

    primal: Tensor
    dual: Tensor
    b: Tensor  # the best of some intercepts
    violation: Tensor
    norm: Tensor  # sᵀ K s
    stretch: Tensor  # stretched by this, the scores would keep all margins; 0 where they cannot


def objectives(y: Tensor, state: State) -> Objectives:
    """Primal objective with the best of some intercepts, and what else a certificate needs.

    The intercepts are the middle of the ends of g, the mean of g over the free variables, and
    where all margins are kept, the middle between the classes.
    """
    s, g, lo, hi = state.s, state.g, state.lo, state.hi
    norm = (s * (y - g)).sum(1)
    g_max = torch.where(s < hi, g, -torch.inf).amax(1)
    g_min = torch.where(s > lo, g, torch.inf).amin(1)
    middle = 0.5 * (g_max + g_min)
    middle = torch.where(torch.isinf(g_max), g_min, torch.where(torch.isinf(g_min), g_max, middle))
    free = (s > lo) & (s < hi)
    mean = (g * free).sum(1) / free.sum(1)
    mean = torch.where(free.any(1), mean, middle)
    top = torch.where(hi > 0, g, -torch.inf).amax(1)
    bottom = torch.where(lo < 0, g, torch.inf).amin(1)
    margin = 1 - 0.5 * (top - bottom)
    width = hi - lo
    b, loss = middle, torch.full_like(middle, torch.inf)
    for each in (middle, mean, 0.5 * (top + bottom)):
        other = (width * (y * (g - each[:, None])).clamp_min(0)).sum(1)
        b, loss = torch.where(other < loss, each, b), torch.minimum(other, loss)
    return Objectives(
        primal=0.5 * norm + loss,
        dual=(y * s).sum(1) - 0.5 * norm,
        b=b,
        violation=g_max - g_min,
        norm=norm,
        stretch=torch.where(margin > 0, 1 / margin, 0.0),
    )
