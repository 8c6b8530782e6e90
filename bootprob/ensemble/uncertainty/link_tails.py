"""Links with other tails than the logit's."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

__all__ = ["LOGIT", "OUTER", "STEEPEST", "Tails", "bent", "bent_moments", "levels_off"]

OUTER = 1.959963984540054  # standard deviations of a normal 95 % interval
STEEPEST = 3.0  # logarithm of a link's slope, from where on it is straight
Tails = tuple[float, float, float, float]
"""Stukel's α₁ and α₂; how far below 1 and above 0 probabilities level off."""
LOGIT: Tails = (0.0, 0.0, 0.0, 0.0)


def levels_off(tails: Tails) -> bool:
    """Whether probabilities end before 0 or 1."""
    return any(tails[2:])


def bent(logit: Tensor, tails: Tails) -> Tensor:
    """A logit with heavier or lighter tails, or with tails that level off.

    Stukel's, with α₁ above 0 and α₂ below: ``h(η) = (e^{αη} − 1) / α`` where α > 0,
    ``−log(1 − αη) / α`` where α < 0, odd but for the two α (T. Stukel, J. Am. Stat. Assoc. 83
    (1988) 426–431). Of labels some of which are wrong, whatever the row, the logit of
    ``ε₂ + (1 − ε₁ − ε₂) expit η`` (J. Copas, J. R. Stat. Soc. B 50 (1988) 225–265).
    """
    above, below, short, over = tails
    if above or below:
        if above == below:
            logit = logit.sign() * _tail(logit.abs(), above)
        else:
            size = logit.abs()
            logit = torch.where(logit > 0, _tail(size, above), -_tail(size, below))
    if short or over:
        right = 1 - short - over
        logit = _levelled(logit, right, over) - _levelled(-logit, right, short)
    return logit


def _levelled(logit: Tensor, right: float, wrong: float) -> Tensor:
    """Logarithm of ``wrong + right · expit logit``."""
    if not wrong:
        return logsigmoid(logit) + float(np.log(right))
    return (right * logit.sigmoid() + wrong).log()


def _tail(size: Tensor, alpha: float) -> Tensor:
    if alpha == 0:
        return size
    if alpha > 0:
        near = (alpha * size).clamp_max(STEEPEST)
        return (near.expm1() + (alpha * size - near) * near.exp()) / alpha
    return (-alpha * size).log1p() / -alpha


def bent_moments(mean: Tensor, deviation: Tensor, tails: Tails) -> Tensor:
    """Normal with the 95 % interval of `bent` of normal logits (...); mean, deviation (..., 2)."""
    if not any(tails):
        return torch.stack([mean, deviation], dim=-1)
    ends = torch.stack([mean - OUTER * deviation, mean + OUTER * deviation])
    lower, upper = bent(ends, tails)
    return torch.stack([(lower + upper) / 2, (upper - lower) / (2 * OUTER)], dim=-1)
