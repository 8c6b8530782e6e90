"""Upper bounds of an objective over all larger subsets, from what single columns and pairs say.

With columns S chosen the objective of S ∪ T is a difference of sums of non-negative terms, each of
which is multiplied by a factor ≤ 1 for every column of T:

- the rising sum of S ∪ T is at most that of S and any part of T, so at most the mean of those;
- the falling sum goes down by no more than the sum of what each column of T takes off alone,
  because what a column takes off shrinks with every other one (``1 − Π e`` is submodular).

Both are sums over T for a given |T|, so the best T has the largest entries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bootprob.runtime.row_blocks import row_blocks

__all__ = ["bound_columns", "bound_pairs"]


def bound_columns(rising: Tensor, falling: Tensor, alone: float, more: int) -> Tensor:
    """Of subsets that hold a column and at least one other.

    Parameters
    ----------
    rising, falling : Tensor, shape (m,)
        Sums with S and each column.
    alone : float
        The falling sum of S.
    more : int
        Columns that may be added to S.

    Returns
    -------
    Tensor, shape (m,)
    """
    itself = torch.eye(len(rising), dtype=torch.bool, device=rising.device)
    gains = (alone - falling).expand(len(rising), -1)
    return _bound(rising, falling, rising.expand_as(gains), gains, itself, range(1, more))


def bound_pairs(
    falling: Tensor, rising_pairs: Tensor, falling_pairs: Tensor, more: int, *, columnwise: bool
) -> Tensor:
    """Of subsets that hold a pair of columns and at least one other.

    Parameters
    ----------
    falling : Tensor, shape (m,)
        Sums with S and each column.
    rising_pairs, falling_pairs : Tensor, shape (m, m)
        Sums with S and each pair.
    more : int
        Columns that may be added to S, three or more.
    columnwise : bool
        Only from bounds of the columns: quicker by a factor of m and not as tight.

    Returns
    -------
    Tensor, shape (m, m)
        −inf on the diagonal.
    """
    m = len(falling)
    itself = torch.eye(m, dtype=torch.bool, device=falling.device)
    gains = falling[:, None] - falling_pairs  # what j takes off after S and k, for row k
    if columnwise:
        most = rising_pairs.masked_fill(itself, -torch.inf).amax(dim=1)
        single = _bound(most, falling, rising_pairs, gains, itself, range(2, more))
        return torch.minimum(single[:, None], single).masked_fill(itself, -torch.inf)
    bounds = torch.empty_like(rising_pairs)
    for rows in row_blocks(m, m * m):
        bounds[rows] = _bound(
            rising_pairs[rows],
            falling_pairs[rows],
            torch.minimum(rising_pairs[rows, None, :], rising_pairs),
            torch.minimum(gains[rows, None, :], gains),
            itself[rows, None, :] | itself,
            range(1, more - 1),
        )
    return bounds.masked_fill(itself, -torch.inf)


def _bound(
    rising: Tensor, falling: Tensor, others: Tensor, gains: Tensor, barred: Tensor, sizes: range
) -> Tensor:
    """Over further columns, as many as one of `sizes` says.

    `rising` and `falling`, of shape (...), are the sums so far; `others`, of shape (..., m), is
    what the rising sum is at most with each further column, and `gains` what that takes off the
    falling sum at most. Those that are `barred` cannot be added.
    """
    others = torch.minimum(others, rising[..., None])
    best = torch.full_like(rising, -torch.inf)
    for size in sizes:
        if size > barred.shape[-1]:
            break
        each = (others / size + gains).masked_fill(barred, -torch.inf)
        summed = each.amax(dim=-1) if size == 1 else each.topk(size, dim=-1).values.sum(dim=-1)
        best = torch.maximum(best, torch.minimum(summed - falling, rising))
    return best
