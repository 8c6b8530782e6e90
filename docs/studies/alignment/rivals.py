"""Ways to choose θ columns that the alignment study compares."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from sklearn.feature_selection import RFE
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from bootprob.runtime.arrays import Bools, Floats
from bootprob.selection import KernelAlignmentSelector

__all__ = ["CHOOSE"]


_ERRORS = 0.8  # ν of the linear program, as a share of the largest for which it is bounded
_SECONDS = 20.0  # after which the best found counts


def _milo_l(X: Floats, positive: Bools, largest: int) -> Bools:
    """The largest margin of a linear machine, in the 1-norm, whose w has at most θ columns."""
    y = np.where(positive, 1.0, -1.0)
    errors = _ERRORS * 2 * min(positive.mean(), 1 - positive.mean())
    chosen = cp.Variable(X.shape[1], boolean=True)
    w, b, margin = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(nonneg=True)
    slack = cp.Variable(len(X), nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.sum(slack) / (errors * len(X)) - margin),
        [
            cp.multiply(y, X @ w + b) >= margin - slack,
            cp.abs(w) <= chosen,
            cp.sum(chosen) <= largest,
        ],
    )
    problem.solve(solver=cp.HIGHS, time_limit=_SECONDS)
    if problem.solver_stats.extra_stats.primal_solution_status != 2:
        raise RuntimeError(f"HiGHS found nothing in {_SECONDS:g} s")
    return np.asarray(chosen.value > 0.5)


def _rfe_k(X: Floats, positive: Bools, largest: int) -> Bools:
    """Recursive feature elimination: the column without which ‖w‖² falls least goes (Guyon)."""

    def importance(machine: Any) -> Floats:
        rows, dual = machine.support_vectors_, machine.dual_coef_[0]
        gamma = 1 / rows.shape[1]  # "scale" of standardised columns
        whole = dual @ rbf_kernel(rows, gamma=gamma) @ dual
        without = [
            dual @ rbf_kernel(np.delete(rows, j, axis=1), gamma=gamma) @ dual
            for j in range(rows.shape[1])
        ]
        falls = whole - np.array(without)
        ranked: Floats = falls - falls.min()  # RFE takes the squares of what it is given
        return ranked

    machine = SVC(C=1.0, gamma="scale")
    rfe = RFE(machine, n_features_to_select=largest, importance_getter=importance)
    return np.asarray(rfe.fit(X, positive).support_)


def _ours(X: Floats, positive: Bools, largest: int) -> Bools:
    return KernelAlignmentSelector(largest, time_limit=_SECONDS).fit(X, positive).support_


CHOOSE = {"MILO-L": _milo_l, "RFE-K": _rfe_k, "KernelAlignmentSelector": _ours}
