"""Directions in which rows lie, whichever there are more of, rows or columns."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["principal_directions"]


def principal_directions(rows: Tensor, rank: float) -> tuple[Tensor, Tensor]:
    """Of rows (m, p) the squares of singular values, ascending, and their directions (p, r).

    Parameters
    ----------
    rows : Tensor, shape (m, p)
    rank : float
        No more than this, relative to the largest square, is left out.
    """
    if len(rows) < rows.shape[1]:
        values, vectors = torch.linalg.eigh(rows @ rows.T)
        kept = (values > rank * values[-1]).nonzero().flatten()
        return values[kept], rows.T @ (vectors[:, kept] / values[kept].sqrt())
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    kept = (values > rank * values[-1]).nonzero().flatten()
    return values[kept], vectors[:, kept]
