"""scikit-learn's SVC: libsvm, both kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from gpu.benchmarks.svm import Answer, Machine

NAME = "scikit-learn SVC"
DISTRIBUTION = "scikit-learn"
NOTE = "libsvm, KKT tolerance 1e-3."
SAME_PROBLEM = True
OWN_THREADS = False


def solves(kernel: str, rows: int, columns: int) -> bool:
    return True


def prepare(machine: Machine) -> None:
    return None


def solve(machine: Machine, prepared: None) -> Any:
    svc = SVC(C=machine.C, kernel=machine.kernel, gamma=machine.gamma or 1.0)
    return svc.fit(machine.rows, machine.labels, sample_weight=machine.weight)


def answer(machine: Machine, prepared: None, solved: Any) -> Answer:
    scores = solved.decision_function(machine.rows)
    # ‖w‖² = Σ_i y_i a_i (f(x_i) − β), over the support vectors.
    through = scores[solved.support_] - solved.intercept_[0]
    return Answer(scores, float(np.ravel(solved.dual_coef_) @ through), solved.fit_status_ == 0)
