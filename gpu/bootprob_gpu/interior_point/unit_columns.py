"""Columns about 0 and of about unit scale, for well-conditioned normal matrices."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["unit_columns"]

_BLOCK_NUMBERS = 2**23  # entries of X that are worked on at once
_NEGLIGIBLE = 1e-100  # spread of a column that no coefficient could make matter


def unit_columns(X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Shift and divide columns, and append a column of ones.

    By medians, or a single outlier would squeeze all other rows into one point; most rows of a
    dummy are equal, so by its standard deviation. A linear machine with a free intercept loses
    nothing by it: the intercept absorbs the shift and the penalty the division.

    Parameters
    ----------
    X : Tensor of float64, shape (n, p)

    Returns
    -------
    X1 : Tensor, shape (n, p + 1)
        ``[(X − center) / spread, 1]``.
    center, spread : Tensor, shape (p,)
        The spread of constant columns is 1.
    """
    n, p = X.shape
    X1 = X.new_ones(n, p + 1)
    center, spread = X.new_empty(p), X.new_empty(p)
    step = max(1, _BLOCK_NUMBERS // n)
    for start in range(0, p, step):
        columns = slice(start, min(start + step, p))
        part = X[:, columns]
        center[columns] = _median(part)
        part = part - center[columns]
        width = _median(part.abs())
        width = torch.where(width > 0, width, part.square().mean(0).sqrt())
        constant = width <= torch.clamp(1e-14 * center[columns].abs(), min=_NEGLIGIBLE)
        spread[columns] = torch.where(constant, 1.0, width)
        X1[:, columns] = part / spread[columns]
    return X1, center, spread


def _median(part: Tensor) -> Tensor:
    """Medians of columns, the lower of two."""
    if part.device.type == "cpu":
        return part.median(0).values
    # On CUDA torch's median refuses to run under `torch.use_deterministic_algorithms`.
    return part.sort(dim=0).values[(len(part) - 1) // 2]
