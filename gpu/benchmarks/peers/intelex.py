"""scikit-learn-intelex's SVC: oneDAL. Imported directly, so that scikit-learn stays unpatched."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearnex.svm import SVC

from gpu.benchmarks.svm import Answer, Machine

NAME = "scikit-learn-intelex SVC"
DISTRIBUTION = "scikit-learn-intelex"
NOTE = "oneDAL, KKT tolerance 1e-3."
SAME_PROBLEM = True
OWN_THREADS = True


def solves(kernel: str, rows: int, columns: int) -> bool:
    return True


def prepare(machine: Machine) -> None:
    return None


def solve(machine: Machine, prepared: None) -> Any:
    svc = SVC(C=machine.C, kernel=machine.kernel, gamma=machine.gamma or 1.0)
    return svc.fit(machine.rows, machine.labels, sample_weight=machine.weight)


def answer(machine: Machine, prepared: None, solved: Any) -> Answer:
    scores = np.ravel(solved.decision_function(machine.rows))
    through = scores[solved.support_] - np.ravel(solved.intercept_)[0]
    return Answer(scores, float(np.ravel(solved.dual_coef_) @ through))
