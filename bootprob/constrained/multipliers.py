"""Which of the anchors kept hold a hyperplane back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from bootprob.constrained.problem import ConstrainedProblem
from bootprob.runtime.arrays import Floats

__all__ = ["heaviest_anchors"]


_ON_MARGIN = 1e-5


def heaviest_anchors(
    problem: ConstrainedProblem, coef: Floats, intercept: float, kept: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Find the at most p + 1 anchors kept that have positive multipliers, heaviest first.

    The hyperplane is that of least objective that keeps these anchors (n_anchors,).
    ``w = Σ y a x`` and ``Σ y a = 0``, with ``a = cost`` for training rows inside the margin and 0
    for those outside: what is left is a least-squares problem in the rows on the margin.
    """
    margins = problem.y * (problem.X @ coef + intercept)
    inside, on = margins < 1 - _ON_MARGIN, np.abs(margins - 1) <= _ON_MARGIN
    anchors = np.flatnonzero(kept & (problem.margins(coef, intercept) <= 1 + _ON_MARGIN))
    if len(anchors) == 0:
        return anchors
    push = (problem.y * problem.cost * inside) @ np.column_stack([problem.X, np.ones(len(inside))])
    columns = np.concatenate(
        [
            np.column_stack([problem.anchors[anchors], np.ones(len(anchors))])
            * problem.anchor_y[anchors, None],
            np.column_stack([problem.X[on], np.ones(on.sum())]) * problem.y[on, None],
        ]
    )
    multipliers, _ = nnls(columns.T, np.append(coef, 0.0) - push)
    multipliers = multipliers[: len(anchors)]
    order = np.argsort(-multipliers)
    return anchors[order[multipliers[order] > 0]]
