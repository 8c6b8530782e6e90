"""How much time an adaptive ensemble may take, in words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EFFORTS", "Effort"]


@dataclass(frozen=True)
class Effort:
    """What is tried and kept of the kernels that a table may choose.

    Attributes
    ----------
    tried : int
        Bootstrap samples of the pilot, in which every kernel meets every C.
    kernels : int
        At most so many are trained on all bootstrap samples.
    weight : float
        Of the kernels in the pilot: fewer are trained where these carry it.
    values : int
        Of C, of each kernel.
    samples : int
        At most so many bootstrap samples of a large table.
    """

    tried: int
    kernels: int
    weight: float
    values: int
    samples: int


EFFORTS = {
    "low": Effort(tried=10, kernels=2, weight=0.9, values=2, samples=20),
    "normal": Effort(tried=20, kernels=6, weight=0.98, values=3, samples=50),
    "high": Effort(tried=50, kernels=12, weight=0.995, values=5, samples=200),
}
