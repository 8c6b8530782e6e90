"""Links with other tails than the logit's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["OUTER", "STEEPEST", "bent", "bent_moments"]

OUTER = 1.959963984540054  # standard deviations of a normal 95 % interval
STEEPEST = 3.0  # logarithm of a link's slope, from where on it is straight


def bent(logit: Tensor, tails: Sequence[float]) -> Tensor:
    """Stukel's link: a logit whose tails α₁ (above 0) and α₂ (below) are heavier or lighter.

    ``h(η) = (e^{αη} − 1) / α`` where α > 0, ``−log(1 − αη) / α`` where α < 0, odd but for the two
    α (T. Stukel, J. Am. Stat. Assoc. 83 (1988) 426–431).
    """
    above, below = tails
    if not above and not below:
        return logit
    if above == below:
        return logit.sign() * _tail(logit.abs(), above)
    return torch.where(logit > 0, _tail(logit.abs(), above), -_tail(logit.abs(), below))


def _tail(size: Tensor, alpha: float) -> Tensor:
    if alpha == 0:
        return size
    if alpha > 0:
        near = (alpha * size).clamp_max(STEEPEST)
        return (near.expm1() + (alpha * size - near) * near.exp()) / alpha
    return (-alpha * size).log1p() / -alpha


def bent_moments(mean: Tensor, deviation: Tensor, tails: Sequence[float]) -> Tensor:
    """Normal with the 95 % interval of `bent` of normal logits (...); mean, deviation (..., 2)."""
    if not any(tails):
        return torch.stack([mean, deviation], dim=-1)
    ends = torch.stack([mean - OUTER * deviation, mean + OUTER * deviation])
    lower, upper = bent(ends, tails)
    return torch.stack([(lower + upper) / 2, (upper - lower) / (2 * OUTER)], dim=-1)
