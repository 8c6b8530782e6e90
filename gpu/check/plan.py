"""What is checked, in which order and for how long; what matters most comes first.

A command on a lent machine has some ten minutes, of which copying takes its share: two commands,
each of at most `BUDGET` seconds, and the sum of what their parts may take leaves the worker time to
start.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUDGET", "PARTS", "ROOT", "Part", "own_paths", "shown_path"]

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 480.0
"""Seconds that a command may take."""


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
    second : bool
        Whether it belongs to the second command.
    """

    name: str
    code: str
    seconds: float
    least: float
    second: bool = False


PARTS = (
    Part("compilation", "compilation:run", 80, 5),
    Part("each kernel against its twin", "each_kernel:run", 25, 5),
    Part("compute-sanitizer", "sanitizer:run", 60, 15),
    Part("agreement", "agreement:run", 70, 20),
    Part("reruns", "reruns:run", 25, 8),
    Part("kernel tests", "contract:kernels", 65, 15),
    Part("ceilings", "ceilings:run", 15, 5),
    Part("linear training times", "training_times:linear", 25, 8),
    Part("RBF training times", "training_times:rbf", 35, 10),
    Part("estimator times", "estimator_times:run", 30, 10),
    Part("scoring times", "scoring_times:run", 35, 12),
    Part("tuning", "tuning:run", 120, 30, second=True),
    Part("kernel shares", "kernel_shares:run", 30, 10, second=True),
    Part("Nsight Compute", "nsight_compute:run", 60, 15, second=True),
    Part("contract suite", "contract:suite", 120, 30, second=True),
    Part("out of memory", "out_of_memory:run", 30, 10, second=True),
    Part("Triton against plain torch", "twins:run", 30, 10, second=True),
    Part("times without Triton", "training_times:without_triton", 50, 15, second=True),
)


def shown_path(file: str, last: int = 3) -> str:
    """A file's path without what is this machine's own; of one elsewhere the last few parts."""
    path = Path(file)
    inside = path.is_relative_to(ROOT) and "site-packages" not in path.parts
    return path.relative_to(ROOT).as_posix() if inside else "/".join(path.parts[-last:])


def own_paths(text: str) -> str:
    """What a program says, with paths of this tree from its root on."""
    return text.replace(f"{ROOT}{os.sep}", "")
