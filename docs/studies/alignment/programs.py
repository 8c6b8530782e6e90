"""The paper's own programs for the best alignment, solved by mixed-integer solvers.

They check `KernelAlignmentSelector` on small data; it is faster by orders of magnitude. Formula
numbers are those of R. Tamura, Y. Takano, R. Miyashiro, "Feature subset selection for kernel SVM
classification via mixed-integer optimization", 2022.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bootprob.exceptions import DataError
from bootprob.optimization.search_result import Found, SelectionResult
from bootprob.optimization.solvers import (
    choose_solver,
    load_cvxpy,
    quiet_about_accuracy,
)
from bootprob.optimization.started import started_highs, started_scip
from bootprob.selection.alignment.alignment import AlignmentPairs, NormalisedPairs

__all__ = [
    "nonlinear_objective",
    "solve_full",
    "solve_nonlinear",
    "solve_normalised",
    "solve_reduced",
]

_SLACK = 0.1  # of (53), for numerical stability
_TOLERANCE = 1e-6  # the solvers' own, on the objective


def solve_reduced(
    pairs: AlignmentPairs,
    gamma: float,
    largest: int,
    *,
    start: Sequence[int] = (),
    solver: str | None = None,
    time_limit: float = 60.0,
) -> SelectionResult:
    """RMILO-K, (42)–(49) with the big M of (53), through CVXPY.

    Parameters
    ----------
    pairs : AlignmentPairs
        Pairs with equal differences share their variables, which the paper's do not.
    gamma : float
    largest : int
        θ.
    start : sequence of int, default ()
        Columns to start from, such as those that were found without a solver.
    solver : {"SCIP", "HIGHS"}, optional
        Default: the first of them that is installed.
    time_limit : float, default 60.0
        Seconds.

    Returns
    -------
    SelectionResult
        The objective is (27) of the columns chosen, not the solver's word.

    Raises
    ------
    DataError
        The solver is not installed, or is none of those two.
    """
    name = _solver(solver, "RMILO-K")
    cp = load_cvxpy()
    began = time.perf_counter()
    factors = pairs.factors(gamma)
    chosen, terms, before, taken = _variables(cp, factors, 1.0)
    rising, falling = pairs.weight > 0, pairs.weight < 0
    big = np.minimum(1 - factors + _SLACK, 1)
    constraints = [cp.sum(chosen) <= largest, terms <= 1]
    if rising.any():
        step = terms - cp.multiply(factors, before)
        constraints += [
            (terms - before)[:, rising] <= 0,
            step[:, rising] <= cp.multiply(big, 1 - taken)[:, rising],
        ]
    if falling.any():
        constraints += [
            (terms - before)[:, falling] >= -cp.multiply(big, taken)[:, falling],
            (terms - cp.multiply(factors, before))[:, falling] >= 0,
        ]
    problem = cp.Problem(cp.Maximize(pairs.weight @ terms[-1]), constraints)
    _start(chosen, terms, factors, start)
    bound = _solve(cp, problem, name, time_limit, presolve=True) + pairs.constant
    return _result(pairs, gamma, largest, start, chosen.value, bound, began)


def solve_full(
    pairs: AlignmentPairs,
    gamma: float,
    largest: int,
    *,
    start: Sequence[int] = (),
    solver: str | None = None,
    time_limit: float = 60.0,
) -> SelectionResult:
    """MILO-K, (36)–(41) with M = 1, through CVXPY.

    Pairs i < h only, of which those with equal differences share their variables: e of the others
    is the same, or 1. The arguments are those of `solve_reduced`.

    Raises
    ------
    DataError
        The solver is not installed, or is neither "SCIP" nor "HIGHS".
    """
    name = _solver(solver, "MILO-K")
    cp = load_cvxpy()
    began = time.perf_counter()
    factors = pairs.factors(gamma)
    chosen, terms, constraints = _full_program(cp, factors, largest, 1.0, 1.0)
    _start(chosen, terms, factors, start)
    problem = cp.Problem(cp.Maximize(pairs.weight @ terms[-1]), constraints)
    bound = _solve(cp, problem, name, time_limit, presolve=False) + pairs.constant
    return _result(pairs, gamma, largest, start, chosen.value, bound, began)


def solve_normalised(
    pairs: NormalisedPairs,
    gamma: float,
    largest: int,
    *,
    start: Sequence[int] = (),
    solver: str | None = None,
    time_limit: float = 60.0,
) -> SelectionResult:
    """MILO-K, (36)–(41), of the normalised alignment (22), through CVXPY.

    (22) is linear in e over a norm of e. With all e multiplied by ``t = 1 / ‖K‖`` (Charnes and
    Cooper) it is linear, and the norm is at most 1; (38) becomes ``e_ih1 = t``, and M ``1 / √n``,
    which t does not exceed. No alignment is negative, so that the best has norm 1. The norm is kept
    by tangents, ``u · e ≤ 1``: that of each choice of columns that a solver comes back with, at
    which it is exact, until the best is found. SCIP's own cones were tried, and erred.

    The arguments are those of `solve_reduced`, with `NormalisedPairs`.

    Raises
    ------
    DataError
        The solver is not installed, or is neither "SCIP" nor "HIGHS".
    """
    name = _solver(solver, "MILO-K")
    cp = load_cvxpy()
    began = time.perf_counter()
    factors = pairs.factors(gamma)
    scale, root = cp.Variable(nonneg=True), np.sqrt(pairs.n)
    chosen, terms, constraints = _full_program(cp, factors, largest, scale, 1 / root)
    objective = cp.Maximize(scale + pairs.weight @ terms[-1])
    found = [np.isin(np.arange(len(factors)), list(start))]
    bound = np.inf
    while True:
        ends = factors[found[-1]].prod(axis=0)
        norm = np.sqrt(pairs.n + pairs.count @ np.square(ends))
        constraints.append((pairs.n * scale + (pairs.count * ends) @ terms[-1]) / norm <= 1)
        best = max(found, key=lambda support: pairs.alignment(gamma, support))
        steps = np.cumprod(np.where(best[:, None], factors, 1), axis=0)
        left = time_limit - (time.perf_counter() - began)
        if left <= 0 or bound <= pairs.alignment(gamma, best) + _TOLERANCE:
            break
        norm = np.sqrt(pairs.n + pairs.count @ np.square(steps[-1]))
        chosen.value, scale.value, terms.value = best.astype(float), 1 / norm, steps / norm
        problem = cp.Problem(objective, constraints)
        bound = min(bound, _solve(cp, problem, name, left, presolve=False))
        if chosen.value is None:
            break
        more = chosen.value > 0.5  # out of time, HiGHS's values may be anything
        if more.sum() > largest or any((more == one).all() for one in found):
            break
        found.append(more)
    return _result(pairs, gamma, largest, start, best.astype(float), bound, began)


def solve_nonlinear(
    pairs: AlignmentPairs,
    gamma: float,
    largest: int,
    *,
    start: Sequence[int] = (),
    time_limit: float = 60.0,
) -> SelectionResult:
    """INLO-K, (27)–(29), by SCIP's own branch and bound over the exponentials.

    Without CVXPY, whose rules (27) breaks: it is neither convex nor concave. The arguments are
    those of `solve_reduced`.

    Raises
    ------
    DataError
        SCIP is not installed.
    """
    choose_solver("SCIP")
    scip = import_module("pyscipopt")
    began = time.perf_counter()
    model = scip.Model()
    model.hideOutput()
    model.setParam("limits/time", time_limit)
    p, n_pairs = pairs.squares.shape
    chosen = [model.addVar(vtype="B") for _ in range(p)]
    model.addCons(scip.quicksum(chosen) <= largest)
    terms = [model.addVar(lb=0, ub=1) for _ in range(n_pairs)]
    for k, term in enumerate(terms):
        rates = gamma * pairs.squares[:, k]
        exponent = scip.quicksum(-float(r) * z for r, z in zip(rates, chosen, strict=True) if r > 0)
        value = scip.exp(exponent) if rates.any() else 1
        model.addCons(term <= value if pairs.weight[k] > 0 else term >= value)
    model.setObjective(
        scip.quicksum(float(w) * term for w, term in zip(pairs.weight, terms, strict=True)),
        "maximize",
    )
    first = model.createPartialSol()
    for j, column in enumerate(chosen):
        model.setSolVal(first, column, float(j in start))
    model.addSol(first)
    model.optimize()
    if model.getStatus() == "userinterrupt":
        raise KeyboardInterrupt
    found = [model.getVal(column) for column in chosen] if model.getNSols() else None
    values = None if found is None else np.array(found)
    bound = float(model.getDualbound()) + pairs.constant
    return _result(pairs, gamma, largest, start, values, bound, began)


def nonlinear_objective(pairs: AlignmentPairs, gamma: float) -> tuple[Any, Any]:
    """(27) as an expression of CVXPY, which follows the values of the columns that are chosen.

    Returns
    -------
    chosen : cvxpy.Variable, shape (p,)
    objective : cvxpy.Expression
        Neither convex nor concave: no solver of CVXPY's maximises it, it checks their solutions.
    """
    cp = load_cvxpy()
    chosen = cp.Variable(len(pairs.squares), boolean=True)
    exponents = -gamma * (pairs.squares.T @ chosen)
    return chosen, pairs.constant + pairs.weight @ cp.exp(exponents)


def _variables(cp: Any, factors: NDArray[np.float64], scale: Any) -> tuple[Any, Any, Any, Any]:
    """z; e_{ih,j+1}; e_{ih,j}, of which the first is `scale`; z for each pair."""
    p, n_pairs = factors.shape
    chosen = cp.Variable(p, boolean=True)
    terms = cp.Variable((p, n_pairs), nonneg=True)
    first = scale * np.ones((1, n_pairs))
    before = cp.vstack([first, terms[:-1]]) if p > 1 else first
    return chosen, terms, before, cp.reshape(chosen, (p, 1), order="C") @ np.ones((1, n_pairs))


def _start(chosen: Any, terms: Any, factors: NDArray[np.float64], columns: Sequence[int]) -> None:
    """Give the values that some columns have."""
    support = np.isin(np.arange(len(factors)), list(columns))
    chosen.value = support.astype(float)
    terms.value = np.cumprod(np.where(support[:, None], factors, 1), axis=0)


def _full_program(
    cp: Any, factors: NDArray[np.float64], largest: int, scale: Any, big: float
) -> tuple[Any, Any, list[Any]]:
    """Variables z and e, and (37)–(40), with `scale` in place of 1 in (38), and M."""
    chosen, terms, before, taken = _variables(cp, factors, scale)
    stays, falls = terms - before, terms - cp.multiply(factors, before)
    constraints = [
        cp.sum(chosen) <= largest,
        stays <= big * taken, stays >= -big * taken,
        falls <= big * (1 - taken), falls >= -big * (1 - taken),
    ]  # fmt: skip
    return chosen, terms, constraints


def _solver(solver: str | None, program: str) -> str:
    name = choose_solver(solver)
    if name not in ("SCIP", "HIGHS"):
        raise DataError(f"solver is {solver!r}; {program} takes 'SCIP' or 'HIGHS'.")
    return name


def _solve(cp: Any, problem: Any, name: str, time_limit: float, *, presolve: bool) -> float:
    """Solve, and return the solver's bound; infinite where it says nothing.

    Presolving by HiGHS 1.15 and by SCIP 10.0 cuts off the optimum of some MILO-K of a few rows and
    calls what is left optimal, but of no RMILO-K among 400.
    """
    with quiet_about_accuracy():
        if name == "HIGHS":
            problem.solve(
                solver=started_highs(), time_limit=time_limit, mip_rel_gap=0.0, mip_abs_gap=1e-7,
                presolve="choose" if presolve else "off",
            )  # fmt: skip
            return -float(problem.solver_stats.extra_stats.mip_dual_bound)
        solver = started_scip()
        limits = {"limits/time": time_limit} | ({} if presolve else {"presolving/maxrounds": 0})
        try:
            problem.solve(solver=solver, scip_params=limits)
        except cp.SolverError:
            if solver.model is None:
                raise
        if solver.model.getStatus() == "userinterrupt":
            raise KeyboardInterrupt
        return -float(solver.model.getDualbound())


def _result(
    pairs: AlignmentPairs | NormalisedPairs,
    gamma: float,
    largest: int,
    start: Sequence[int],
    values: NDArray[np.float64] | None,
    bound: float,
    began: float,
) -> SelectionResult:
    """Check a solver's columns, and take the start where they are none or worse."""
    seconds = time.perf_counter() - began

    def found(columns: Sequence[int]) -> Found:
        support = np.isin(np.arange(len(pairs.squares)), columns)
        return Found(seconds, pairs.alignment(gamma, support), tuple(sorted(columns)))

    candidates = [found(tuple(start))]
    if values is not None and np.isfinite(values).all():
        columns = np.flatnonzero(values > 0.5).tolist()
        if len(columns) <= largest:
            candidates.append(found(columns))
    best = max(candidates, key=lambda each: each.objective)
    bound = max(bound, best.objective)
    proven = bound - best.objective <= _TOLERANCE * max(1.0, abs(best.objective))
    status = "optimal" if proven else "time limit"
    return SelectionResult(best.features, best.objective, bound, status, seconds, (best,))
