"""What a fitted machine says of rows, and whether that is what was asked for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.exceptions import BootprobError
from bootprob.metrics.rates import RateFloor
from bootprob.runtime.arrays import Floats
from bootprob.runtime.row_blocks import row_blocks

__all__ = ["check_again", "reached", "scores"]


_ROUNDING = 1e-6  # of a margin, between a factor's coordinates and the scores that users see


def scores(fitted: Mapping[str, Any], rows: Floats) -> Floats:
    """Scores of standardised rows (m, p), shape (m,).

    Parameters
    ----------
    fitted : mapping
        "coef_", "dual_coef_", "intercept_", "kernel_function_" and "X_fit_" of a
        `ConstrainedSVC`.
    rows : ndarray, shape (m, p)
    """
    known = fitted["X_fit_"]
    [coef] = fitted["dual_coef_"] if fitted["coef_"] is None else fitted["coef_"]
    if known is None:
        return rows @ coef + fitted["intercept_"][0]
    found = np.empty(len(rows))
    for block in row_blocks(len(rows), len(known)):
        kernel = fitted["kernel_function_"].matrix(rows[block], known)
        found[block] = kernel @ coef + fitted["intercept_"][0]
    return found


def check_again(
    method: str,
    fitted: dict[str, Any],
    problem: ConstrainedProblem,
    rows: Floats,
    result: Solution,
) -> None:
    """See that the scores that users get meet the requirements."""
    if not problem.requirements:
        return
    short = problem.shortfall(result.kept)
    if short.any():  # only where centres hid it
        total = [problem.anchor_weight[r.members].sum() for r in problem.requirements]
        which = [
            f"{r.name} {(r.required - lack) / all_:.4g} instead of {r.required / all_:.4g}"
            for r, lack, all_ in zip(problem.requirements, short, total, strict=True)
            if lack > 0
        ]
        warnings.warn(
            f"The rates hold over the {fitted['n_centres_']} centres that stand for the rows, but "
            f"no machine was found with which they hold over the anchors themselves: "
            f"{', '.join(which)}. Raise max_rows, or ask for less.",
            UserWarning,
            stacklevel=5,
        )
        return
    margins = problem.anchor_y * scores(fitted, rows)
    enough = 0.0 if method == "slide" else 1 - _ROUNDING
    lacking = problem.shortfall(margins > enough)
    for requirement, lack in zip(problem.requirements, lacking, strict=True):
        if lack > 0:
            raise BootprobError(
                f"The solution of method={method!r} does not keep {requirement.name} when its "
                f"scores are computed again: {lack:g} of {requirement.required:g} are missing. "
                "Standardise the columns, lower C, or use another method or solver."
            )


def reached(
    method: str,
    floors: tuple[RateFloor, ...],
    positive: NDArray[np.bool_],
    weight: Floats,
    margins: Floats,
    anchors: NDArray[np.intp],
) -> dict[str, Any]:
    """Rates over the anchors, and the anchors given up."""
    rates = {}
    for name in ("tpr", "tnr", "accuracy"):
        members = RateFloor(name, 1.0).members(positive)
        if members.any():
            rates[name] = float(np.average(margins[members] > 0, weights=weight[members]))
    constrained = np.zeros(len(anchors), dtype=bool)
    for floor in floors:
        constrained |= floor.members(positive)
    wrong = margins <= 0 if method == "slide" else margins < 1 - _ROUNDING
    return {"rates_": rates, "given_up_": anchors[constrained & wrong]}
