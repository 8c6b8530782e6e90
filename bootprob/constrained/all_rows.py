"""From a machine of centres to one of all the rows that these stand for.

What was found on centres solves another problem. Here it becomes a machine whose objective, bound
and rates are those of the rows themselves. A linear machine is trained anew on all rows, with the
anchors kept that it says. So is a kernel machine, but as a sum over the centres, and with many rows
only in so many directions of these as there is time for, its own among them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from bootprob.constrained.heuristic import settle
from bootprob.constrained.problem import ConstrainedProblem, Solution
from bootprob.constrained.sliding import slide, solve_plain
from bootprob.runtime.arrays import Floats, Indices
from bootprob.runtime.row_blocks import row_blocks
from bootprob_gpu import Problem, fit
from bootprob_gpu.kernels.function import KernelFunction

__all__ = ["affordable_columns", "on_all_rows", "plain_bound"]


_ROUNDING = 1e-6  # of a margin
_WORK = 2e9  # rows × columns² of a machine, as an interior point meets them in each step


def affordable_columns(n: int) -> int:
    """In how many directions a kernel machine may be trained on n rows."""
    return int(np.sqrt(_WORK / n))


def on_all_rows(
    problem: ConstrainedProblem,
    coef: Floats,
    intercept: float,
    *,
    sliding: bool,
    bound: float | None,
    gap: float,
    floor: float,
    time_limit: float,
    verbose: bool,
) -> Solution:
    """The best machine of all rows that alternation finds from a machine of centres.

    Parameters
    ----------
    problem : ConstrainedProblem
        Of all rows.
    coef : ndarray, shape (p,)
        That machine, in these columns.
    sliding : bool
        Move the intercept only, by `slide`.
    bound : float or None
        Lower bound of the objective of every machine; None takes that of the problem.
    gap : float
        Gap at which a solution counts as optimal.
    floor : float
        ``y f(x)`` that every anchor has to reach to be a solution at all, ``1 − M₁`` of (2.7).
    time_limit : float
        Seconds after which no further round is begun.

    Returns
    -------
    Solution
        Status "condensed", or "optimal" where the bound proves it. Where no machine was found
        that meets the requirements it is the one given, and its `kept` are too few.

    Raises
    ------
    UnattainableRateError
        No intercept meets them, where only that is moved.
    """
    begun = time.perf_counter()
    margins = problem.margins(coef, intercept)
    objective = problem.objective(coef, intercept)
    kept = margins > 1e-9 if sliding else margins >= 1 - _ROUNDING
    found = given = Solution(coef, intercept, objective, 0.0, kept, "condensed", 0.0)
    if sliding:
        found = slide(problem, given)
    else:
        found = settle(problem, margins, intercept, time_limit=time_limit, verbose=verbose) or given
    if bound is None:
        bound = solve_plain(problem).lower_bound if found is given else found.lower_bound
    bound = min(bound, found.objective)
    lowest = problem.margins(found.coef, found.intercept).min(initial=np.inf)
    met = lowest >= floor - _ROUNDING * abs(floor) and not problem.shortfall(found.kept).any()
    proven = met and found.objective - bound <= gap * found.objective
    return replace(
        found,
        lower_bound=bound,
        status="optimal" if proven else "condensed",
        seconds=time.perf_counter() - begun,
    )


def plain_bound(
    problem: ConstrainedProblem,
    rows: Floats,
    own: Indices,
    centres: Floats,
    kernel: KernelFunction,
    deadline: float,
) -> float:
    """Lower bound of the objective of every machine of a kernel on all rows.

    Multipliers of the machine of centres without requirements, spread over the rows in proportion
    to their costs, are feasible in its dual over all rows, and so is any part t of them:
    ``t Σ a − ½ t² ‖Σ a y φ(x)‖²``.

    Parameters
    ----------
    problem : ConstrainedProblem
        Of all rows: their labels and costs.
    rows : ndarray, shape (n, p)
    own : ndarray of int, shape (n,)
        The centre of each row, of its own class.
    centres : ndarray, shape (k, p)
    deadline : float
        On the clock of `time.perf_counter`. The kernel of all rows with each other takes long
        where they are many; when time is up, the bound is 0.
    """
    cost = np.bincount(own, problem.cost, len(centres))
    label = np.empty(len(centres))
    label[own] = problem.y
    batch = fit(
        Problem(
            centres,
            label,
            np.ones((1, len(centres)), dtype=np.int8),
            C=[1.0],
            kernel=kernel,
            upper=cost[None, None],
        )
    )
    assert batch.dual_coef is not None
    share = np.clip(label * batch.dual_coef[0, 0].numpy() / cost, 0, 1)
    signed = share[own] * problem.cost * problem.y
    some = np.flatnonzero(signed)
    rows, signed = rows[some], signed[some]
    of_class = [np.abs(signed[signed > 0]).sum(), np.abs(signed[signed < 0]).sum()]
    if min(of_class) == 0:
        return 0.0
    signed *= min(of_class) / np.where(signed > 0, *of_class)  # Σ y a = 0 but for rounding
    square = 0.0
    for block in row_blocks(len(rows), len(rows)):
        if time.perf_counter() > deadline:
            return 0.0
        from_here = slice(block.start, None)
        values = kernel.matrix(rows[block], rows[from_here])
        inside = block.stop - block.start
        values[:, inside:] *= 2  # the matrix is symmetric
        square += float(signed[block] @ values @ signed[from_here])
    linear = float(np.abs(signed).sum())
    t = min(1.0, linear / square) if square > 0 else 1.0
    return max(0.0, (t * linear - t**2 * square / 2) * (1 - 1e-9))
