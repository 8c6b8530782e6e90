"""scikit-learn's LinearSVC with the hinge: liblinear."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from gpu.benchmarks.svm import Answer, Machine

NAME = "scikit-learn LinearSVC, hinge"
DISTRIBUTION = "scikit-learn"
NOTE = (
    "liblinear, tolerance 1e-4, at most 1,000 iterations by default. Penalises the intercept, "
    "which spares it the equality constraint of the dual: an easier problem."
)
SAME_PROBLEM = False
OWN_THREADS = False


def solves(kernel: str, rows: int, columns: int) -> bool:
    return kernel == "linear"


def prepare(machine: Machine) -> None:
    return None


def solve(machine: Machine, prepared: None) -> Any:
    svc = LinearSVC(C=machine.C, loss="hinge", random_state=0)
    return svc.fit(machine.rows, machine.labels, sample_weight=machine.weight)


def answer(machine: Machine, prepared: None, solved: Any) -> Answer:
    coef = np.ravel(solved.coef_)
    scores = machine.rows @ coef + solved.intercept_[0]
    return Answer(scores, float(coef @ coef), solved.n_iter_ < solved.max_iter)
