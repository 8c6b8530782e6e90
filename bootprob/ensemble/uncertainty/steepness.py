"""Logits that are steeper for some rows, as where a column says how much noise there is."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["EVEN", "FARTHEST", "RATES", "THRESHOLDS", "Steepness", "growth"]

FARTHEST = 3.0  # score beyond which logits grow no more
RATES = tuple(k / 10 for k in range(-10, 11) if k)
# Scores where logits may jump: the quartiles, and next to 0, which the median has but for rounding.
THRESHOLDS = (-0.67, 0.01, 0.67)


class Steepness(NamedTuple):
    """The logit is multiplied by ``exp(rate · what grows with the score of the column)``.

    A heteroskedastic logit, of errors whose logarithm of a scale is linear in the score (A. Harvey,
    Econometrica 44 (1976) 461–465), or is one on either side of a threshold.

    Attributes
    ----------
    column : int
    rate : float
    shape : int
        0 for the score itself; k for 1 above ``THRESHOLDS[k − 1]`` and −1 below.
    """

    column: int
    rate: float
    shape: int = 0

    def of(self, scores: Tensor) -> Tensor:
        """What logits of rows with these scores (n, p) are multiplied by, (n,)."""
        return (self.rate * growth(scores[:, self.column], self.shape)).exp()


EVEN = Steepness(0, 0.0)


def growth(scores: Tensor, shape: int) -> Tensor:
    """What logarithms of logits grow with, for a shape."""
    if not shape:
        return scores.clamp(-FARTHEST, FARTHEST)
    return torch.where(scores > THRESHOLDS[shape - 1], 1.0, -1.0).to(scores)
