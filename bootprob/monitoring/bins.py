"""Logits in narrow bins, so that what has been seen of any number of rows fits a model file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.runtime.arrays import Floats

__all__ = ["CENTERS", "bins_of"]

_WIDTH, _MOST = 1 / 32, 12.0  # a probability moves by less than .004 within half a bin

CENTERS: Floats = np.arange(-_MOST, _MOST + _WIDTH / 2, _WIDTH)
"""Logits of the bins, rising."""


def bins_of(logits: Floats) -> NDArray[np.intp]:
    """Number of the nearest bin of each logit, same shape; a DataError where there is none."""
    if np.isnan(logits).any():
        raise DataError("logits must be numbers; leave rows without a probability (NaN) out.")
    return np.rint((np.clip(logits, -_MOST, _MOST) + _MOST) / _WIDTH).astype(np.intp)
