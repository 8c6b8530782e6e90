"""rehline, given the iterations that its tolerance takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from rehline import plqERM_Ridge

from gpu.benchmarks.svm import Answer, Machine

NAME = "rehline"
DISTRIBUTION = "rehline"
NOTE = (
    "Coordinate descent, tolerance 1e-4, as many iterations as that takes. Penalises the "
    "intercept, which spares it the equality constraint of the dual: an easier problem."
)
SAME_PROBLEM = False
OWN_THREADS = False
ITERATIONS = 100_000_000


def solves(kernel: str, rows: int, columns: int) -> bool:
    return kernel == "linear"


def prepare(machine: Machine) -> np.ndarray:
    return np.column_stack([machine.rows, np.ones(len(machine.rows))])


def solve(machine: Machine, prepared: np.ndarray, iterations: int = ITERATIONS) -> Any:
    svm = plqERM_Ridge(loss={"name": "svm"}, C=machine.C, max_iter=iterations)
    return svm.fit(prepared, machine.labels, sample_weight=machine.weight)


def answer(machine: Machine, prepared: np.ndarray, solved: Any) -> Answer:
    coef = solved.coef_[:-1]
    return Answer(prepared @ solved.coef_, float(coef @ coef), bool(solved.converged_))
