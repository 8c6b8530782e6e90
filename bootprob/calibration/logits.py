"""Logits of probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from bootprob.runtime.arrays import Floats

__all__ = ["CLOSEST", "logits_of"]

CLOSEST = 1e-15
"""Of a probability to 0 and 1, where its logit is taken."""


def logits_of(probability: Floats) -> Floats:
    """Logits of probabilities, which 0 and 1 have too; same shape."""
    found: Floats = logit(np.clip(probability, CLOSEST, 1 - CLOSEST))
    return found
