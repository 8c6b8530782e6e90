"""Rows with labels and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bootprob.runtime.arrays import Floats

__all__ = ["EXAMINED_ROWS", "LabelledRows"]

EXAMINED_ROWS = (1000, 10_000)
"""Numbers of rows that unknown scales are narrowed down on, before all."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows (n, p) with labels 0 and 1 and weights (n,)."""

    rows: Tensor
    label: Tensor
    weight: Tensor

    @classmethod
    def of(
        cls, rows: Floats, positive: NDArray[np.bool_], weight: Floats, device: torch.device
    ) -> LabelledRows:
        """From arrays."""
        arrays = rows, positive.astype(np.float64), weight
        return cls(*(torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in arrays))

    @property
    def base(self) -> float:
        """Logit of the share of positive labels, with half a label more of each."""
        positive, every = float(self.weight @ self.label), float(self.weight.sum())
        return float(np.log((positive + 0.5) / (every - positive + 0.5)))

    def part(self, which: NDArray[np.intp]) -> LabelledRows:
        """Some of them."""
        index = torch.from_numpy(which).to(self.rows.device)
        return LabelledRows(self.rows[index], self.label[index], self.weight[index])
