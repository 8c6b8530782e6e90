"""scikit-learn's SVC on a Gram matrix that is there already."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from gpu.benchmarks.svm import Answer, Machine

NAME = "scikit-learn SVC, Gram given"
DISTRIBUTION = "scikit-learn"
NOTE = "The same on a precomputed Gram matrix, whose making is not timed."
SAME_PROBLEM = True
OWN_THREADS = False

_MOST_ROWS = 5_000  # libsvm's copy of the matrix and ours: 400 MB a process


def solves(kernel: str, rows: int, columns: int) -> bool:
    return rows <= _MOST_ROWS


def prepare(machine: Machine) -> np.ndarray:
    return machine.gram()


def solve(machine: Machine, prepared: np.ndarray) -> Any:
    svc = SVC(C=machine.C, kernel="precomputed")
    return svc.fit(prepared, machine.labels, sample_weight=machine.weight)


def answer(machine: Machine, prepared: np.ndarray, solved: Any) -> Answer:
    dual_coef = np.zeros(len(prepared))
    dual_coef[solved.support_] = np.ravel(solved.dual_coef_)
    return Answer.of_dual(prepared, dual_coef, solved.intercept_[0])
