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
    weight : float
        Of the kernels in the pilot: no more are kept than carry it.
    kernels, values : int
        At most so many are trained on all bootstrap samples, each with so many values of C.
    summed, values_of_sum : int
        Of a large table, whose kernels are summed.
    samples : int
        At most so many bootstrap samples of a large table.
    """

    tried: int
    weight: float
    kernels: int
    values: int
    summed: int
    values_of_sum: int
    samples: int


EFFORTS = {
    "low": Effort(10, 0.9, kernels=4, values=1, summed=2, values_of_sum=4, samples=20),
    "normal": Effort(20, 0.98, kernels=8, values=1, summed=6, values_of_sum=5, samples=50),
    "high": Effort(50, 0.995, kernels=12, values=2, summed=12, values_of_sum=7, samples=200),
}
