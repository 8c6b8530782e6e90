"""Working sets of two for batched SMO: problems at work, and a pair of variables moved in each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["State", "advance", "labels_of", "times_gram"]

_MIN_CURVATURE = 1e-12
_NUMBERS_AT_ONCE = 2**24  # of Gram matrices that are copied for a product


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
