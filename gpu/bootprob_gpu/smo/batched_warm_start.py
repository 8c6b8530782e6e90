"""From one box to the next in batched SMO: new bounds, and solutions stretched within them."""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob_gpu.smo.batched_objectives import Objectives
from bootprob_gpu.smo.batched_working_set import State

__all__ = ["bounds", "still_optimal", "stretch", "widen"]

_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate


def bounds(y: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Of the signed dual variables."""
    return torch.where(y > 0, 0.0, -upper), torch.where(y > 0, upper, 0.0)


def still_optimal(a: Tensor, before: Tensor, upper: Tensor) -> Tensor:
    """Whether an optimum within the bounds of before is one within those of now too.

    So it is where every variable keeps its bound, or was strictly below it and still fits.
    """
    return ((upper == before) | ((a < before) & (a <= upper))).all(1)


def stretch(y: Tensor, lo: Tensor, hi: Tensor, s: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Stretch `s` within the new box as far as the dual objective grows; ``Σ s = 0`` stays."""
    linear = (y * s).sum(1)
    quadratic = (s * (y - g)).sum(1)
    bound = torch.where(y > 0, hi, lo)
    room = torch.where(s != 0, bound / torch.where(s != 0, s, 1.0), torch.inf).amin(1)
    t = torch.where(quadratic > 0, linear / quadratic.clamp_min(1e-300), torch.inf)
    t = torch.where(linear > 0, torch.minimum(t, room), 1.0)[:, None]
    s = torch.minimum(torch.maximum(s * t, lo), hi)
    # What sat on its bound stays there: "almost" would cost iterations.
    on_bound = (s.abs() > bound.abs() * (1 - _SNAP)) & (s != 0)
    return torch.where(on_bound, bound, s), y + t * (g - y)


def widen(y: Tensor, state: State, found: Objectives, tol: float, wanted: Tensor) -> Tensor:
    """Stretch where all margins are then kept within the box and the gap is closed.

    Where no bound is touched, however large C, this spares the iterations that would bring the
    violated margins to 0: the loss is 0 at once, and so it is for every larger C.
    """
    t = found.stretch * (1 + _SPARE * tol)
    primal = 0.5 * t * t * found.norm
    dual = t * (found.dual + 0.5 * found.norm) - primal
    wanted = wanted & (t > 0) & (primal - dual <= tol * primal)
    if wanted.any():
        longer = t[:, None] * state.s
        wanted &= ((longer <= state.hi) & (longer >= state.lo)).all(1)
        state.s = torch.where(wanted[:, None], longer, state.s)
        state.g = torch.where(wanted[:, None], y + t[:, None] * (state.g - y), state.g)
    return wanted
