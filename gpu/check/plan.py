"""What is checked, in which order and for how long; what matters most comes first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUDGET", "PARTS", "ROOT", "Part"]

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 450.0
"""Seconds that the whole check may take."""


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Attributes
    ----------
    name : str
        Its key in the result.
    code : str
        ``"module:function"``; the function takes a `worker.Record`.
    seconds : float
        After so many it is stopped; what it has measured by then is kept.
    least : float
        With less time left it is not begun.
    """

    name: str
    code: str
    seconds: float
    least: float


PARTS = (
    Part("agreement", "agreement:run", 100, 30),
    Part("reruns", "reruns:run", 40, 10),
    Part("Triton against plain torch", "twins:run", 40, 10),
    Part("out of memory", "out_of_memory:run", 40, 10),
    Part("ceilings", "ceilings:run", 30, 10),
    Part("kernel tests", "contract:kernels", 80, 20),
    Part("linear training times", "training_times:linear", 60, 10),
    Part("RBF training times", "training_times:rbf", 60, 10),
    Part("scoring times", "scoring_times:run", 60, 15),
    Part("kernel shares", "kernel_shares:run", 40, 10),
    Part("contract suite", "contract:suite", 150, 30),
    Part("RBF training times without Triton", "training_times:rbf_twin", 45, 15),
)
