"""Steps of batched SMO: pairs of variables moved, objectives, and solutions in new boxes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = [
    "Objectives",
    "State",
    "advance",
    "bounds",
    "labels_of",
    "objectives",
    "still_optimal",
    "stretch",
    "times_gram",
    "widen",
]

_MIN_CURVATURE = 1e-12
_NUMBERS_AT_ONCE = 2**24  # of Gram matrices that are copied for a product
_SNAP = 1e-14  # relative distance at which a stretched variable counts as on its bound
_SPARE = 0.01  # share of the gap spent on margins that rounding does not violate


@dataclass
class State:
    """The problems still at work, of one C each; rows of every tensor are problems."""

    path: Tensor
    matrix: Tensor  # which Gram matrix
    rows: Tensor | None  # which of its rows; None: all
    diagonal: Tensor  # of that
    s: Tensor  # signed dual variables y a
    g: Tensor  # gradient y − K s
    lo: Tensor
    hi: Tensor
    best: Tensor  # largest dual objective so far
    idle: Tensor  # checks since then
    refuted: Tensor  # ends that the exact Gram matrix did not confirm

    def keep(self, kept: Tensor) -> None:
        """Drop the other problems."""
        for name, value in vars(self).items():
            if value is not None:
                setattr(self, name, value[kept])


def labels_of(y: Tensor, paths: Tensor) -> Tensor:
    """Labels (P, n) of some paths; (n,) of all are those of each."""
    return y if y.ndim == 1 else y[paths]


def advance(K: Tensor, state: State) -> None:
    """Move the pair (i, j) of every problem: i by violation, j by second-order gain."""
    s, g, lo, hi = state.s, state.g, state.lo, state.hi
    rows = torch.arange(len(s), device=s.device)
    g_max, i = torch.where(s < hi, g, -torch.inf).max(dim=1)
    K_i = _gram_rows(K, state, i)
    fall = torch.where(s > lo, g_max[:, None] - g, 0.0).clamp_min_(0.0)
    # An optimal problem has no variable to raise (g_max = −∞) or no fall: its step is 0.
    fall = torch.where(torch.isfinite(g_max)[:, None], fall, 0.0)
    K_ii = state.diagonal[rows, i]
    curvature = (K_ii[:, None] + state.diagonal - 2 * K_i).clamp_min_(_MIN_CURVATURE)
    j = (fall * fall / curvature).argmax(dim=1)
    K_j = _gram_rows(K, state, j)
    room_i, room_j = (hi - s)[rows, i], (s - lo)[rows, j]
    step = torch.minimum(fall[rows, j] / curvature[rows, j], torch.minimum(room_i, room_j))
    s[rows, i] = torch.where(step == room_i, hi[rows, i], s[rows, i] + step)
    s[rows, j] = torch.where(step == room_j, lo[rows, j], s[rows, j] - step)
    g.sub_(step[:, None] * (K_i - K_j))


def _gram_rows(K: Tensor, state: State, i: Tensor) -> Tensor:
    """Row i of the Gram matrix of each problem, shape (problems, n), in float64."""
    if state.rows is None:
        return K[state.matrix, i].to(state.s.dtype)
    places = state.rows.gather(1, i[:, None])
    return K[state.matrix[:, None], places, state.rows].to(state.s.dtype)


def times_gram(K: Tensor, matrix: Tensor, s: Tensor, rows: Tensor | None = None) -> Tensor:
    """``K s`` for each problem, shape (problems, n), in float64; see `State.rows`."""
    if rows is not None:
        everywhere = s.new_zeros(len(s), K.shape[1]).scatter_(1, rows, s)
        return times_gram(K, matrix, everywhere).gather(1, rows)
    if K.dtype == s.dtype and torch.equal(matrix, torch.arange(len(K), device=K.device)):
        return torch.bmm(K, s.unsqueeze(-1)).squeeze(-1)
    products = torch.empty_like(s)
    distinct = matrix.unique()
    if len(distinct) == len(matrix):  # one by one, the device would be waited for each time
        step = max(1, _NUMBERS_AT_ONCE // max(1, K.shape[1] * K.shape[2]))
        for start in range(0, len(s), step):
            some = slice(start, start + step)
            own = K[matrix[some]].to(s.dtype)
            products[some] = torch.bmm(own, s[some].unsqueeze(-1)).squeeze(-1)
        return products
    for k in distinct.tolist():
        rows = torch.nonzero(matrix == k).squeeze(1)
        products[rows] = s[rows] @ K[k].to(s.dtype)
    return products


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
