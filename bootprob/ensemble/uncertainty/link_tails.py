"""Links with other tails than the logit's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

__all__ = [
    "LOGIT",
    "OUTER",
    "STEEPEST",
    "Links",
    "Tails",
    "bent",
    "bent_moments",
    "levels_off",
    "slope_at",
]

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
    return _levelling_off(logit, short, over) if short or over else logit


def slope_at(logit: float, tails: Tails) -> float:
    """Derivative of Stukel's h where it has this value; levels are not looked at."""
    above, below, *_ = tails
    alpha, size = (above, logit) if logit > 0 else (below, -logit)
    return float(1 + alpha * size if alpha > 0 else np.exp(alpha * size))


def _levelling_off(logit: Tensor, short: float, over: float) -> Tensor:
    right = 1 - short - over
    return _levelled(logit, right, over) - _levelled(-logit, right, short)


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
    return _between(*bent(_ends(mean, deviation), tails))


def _ends(mean: Tensor, deviation: Tensor) -> Tensor:
    reach = OUTER * deviation
    return torch.stack([mean - reach, mean + reach])


def _between(lower: Tensor, upper: Tensor) -> Tensor:
    return torch.stack([(lower + upper) / 2, (upper - lower) / (2 * OUTER)], dim=-1)


class Links:
    """Links of several parts, all at once: of few rows one by one would cost more than all else.

    Parameters
    ----------
    every : sequence of Tails, length g
        One for each part.
    device : torch.device
    """

    def __init__(self, every: Sequence[Tails], device: torch.device) -> None:
        self._bend = any(map(any, every))
        tails = torch.tensor([each[:2] for each in every], dtype=torch.float64, device=device)
        self._above, self._below = tails.T
        self._levels = [(part, each[2:]) for part, each in enumerate(every) if levels_off(each)]

    def moments(self, mean: Tensor, deviation: Tensor) -> Tensor:
        """`bent_moments` of each part, of mean and deviation (..., g); shape (..., g, 2)."""
        if not self._bend:
            return torch.stack([mean, deviation], dim=-1)
        ends = self._tailed(_ends(mean, deviation))
        for part, levels in self._levels:
            ends[..., part] = _levelling_off(ends[..., part], *levels)
        return _between(*ends)

    def _tailed(self, logit: Tensor) -> Tensor:
        alpha = torch.where(logit > 0, self._above, self._below)
        size = logit.abs()
        reach = alpha * size
        near = reach.clamp_max(STEEPEST)
        heavy = near.expm1() + (reach - near) * near.exp()
        light = (-reach.clamp_max(0)).log1p().neg_()
        tailed = torch.where(alpha > 0, heavy, light) / torch.where(alpha == 0, 1.0, alpha)
        return torch.where(alpha == 0, size, tailed).copysign(logit)
