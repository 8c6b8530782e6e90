"""The cheapest columns that keep the rates: scans, search, and the mixed-integer program."""

from __future__ import annotations

import time

import numpy as np

from bootprob.exceptions import UnattainableRateError
from bootprob.optimization.search_result import SelectionResult
from bootprob.selection.cost_sensitive.mixed_integer import (
    choose_linear_solver,
    solve_mixed_integer,
)
from bootprob.selection.cost_sensitive.problem import LEAST_GAP, RateProblem, SeparatingHyperplane
from bootprob.selection.cost_sensitive.proofs import SmallSubsets
from bootprob.selection.cost_sensitive.search import RateSearch
from bootprob.selection.feature_costs import FeatureCosts

__all__ = ["select_by_rates"]

_PROVEN = 5e-6  # relative gap; the solvers keep their constraints to 1e-6


def select_by_rates(
    problem: RateProblem,
    costs: FeatureCosts,
    *,
    exact: bool = False,
    solver: str | None = None,
    time_limit: float = 300.0,
    verbose: bool = False,
) -> tuple[SeparatingHyperplane, SelectionResult]:
    """Solve (P1): least cost of the columns of a hyperplane that keeps the rates.

    1. Every column alone, exactly, by sorting.
    2. Columns are added greedily, the most rows gained for their cost, until the rates are kept;
       then dropped as far as they can be.
    3. Pairs that are cheaper than that, exactly, by all the angles of their plane.
    4. Columns are exchanged as long as something cheaper is found.
    5. With `exact`, (P1) as a mixed-integer program, started from there.

    Parameters
    ----------
    solver : {"SCIP", "HIGHS"}, optional
    time_limit : float
        Seconds for steps 1 to 4, and as many again for step 5. Step 1 is always finished, and so is
        the search for any hyperplane at all.

    Returns
    -------
    hyperplane : SeparatingHyperplane
        Of the columns chosen.
    result : SelectionResult
        Status "optimal" where the cost is proven to be least; "time limit"; or "heuristic": the
        search has ended, and the bound is below the cost.

    Raises
    ------
    UnattainableRateError
        No hyperplane on all columns was found that keeps the rates.
    DataError
        No solver is installed (`exact`).
    """
    if exact:
        choose_linear_solver(solver)
    started = time.perf_counter()
    search = RateSearch(problem, costs, started + time_limit)
    small = SmallSubsets(search)
    small.scan_columns()

    def proven() -> bool:
        return search.cost - small.bound <= _PROVEN * max(search.cost, 1e-12)

    if search.best is None and problem.needs_all:
        search.offer(_any_hyperplane(search))
    if search.best is None or not proven():
        free = np.flatnonzero([costs.total([j]) == 0 for j in range(len(costs.own))])
        search.add_greedily(free)
        if free.size:
            search.add_greedily()
        if search.best is None:
            search.offer(_any_hyperplane(search))
        if search.best is not None and len(search.best.features) == problem.X.shape[1]:
            search.bisect()
        search.drop()
        if not proven():
            small.scan_pairs(verbose=verbose)
        while not proven() and search.exchange():
            search.drop()
    assert search.best is not None
    stopped = search.out_of_time
    if exact and not proven():
        deadline = time.perf_counter() + time_limit
        found, small.bound = solve_mixed_integer(
            problem,
            costs,
            search.best,
            bound=small.bound,
            least_size=small.least_size,
            deadline=deadline,
            solver=solver,
            verbose=verbose,
        )
        search.offer(found)
        stopped = time.perf_counter() >= deadline
    search.drop()
    bound = min(small.bound, search.cost)
    unproven = "time limit" if stopped else "heuristic"
    result = SelectionResult(
        features=search.best.features,
        objective=search.cost,
        bound=search.cost if proven() else bound,
        status="optimal" if proven() else unproven,
        seconds=search.seconds,
        path=tuple(search.path),
        n_evaluated=search.n_evaluated,
    )
    return _widest(search), result


def _widest(search: RateSearch) -> SeparatingHyperplane:
    """The hyperplane of the columns chosen that holds the classes furthest apart."""
    assert search.best is not None
    features = search.best.features
    search.directions.offer(features, search.best.coef)
    found = search.directions.find(features, thorough=True)
    return search.problem.hyperplane(features, found.coef) or search.best


def _any_hyperplane(search: RateSearch) -> SeparatingHyperplane:
    """A hyperplane on all columns: by linear programs, where the machines have found none."""
    problem, features = search.problem, tuple(range(search.problem.X.shape[1]))
    scores = search.directions.find(features, thorough=True).scores
    everything = np.ones(len(scores), dtype=bool)
    found = problem.keeping(
        features, everything if problem.needs_all else search.directions.keepable(scores)
    )
    if found is not None:
        return found
    positives, negatives = scores[problem.positive], scores[~problem.positive]
    wanted = problem.needed_positive / len(positives), problem.needed_negative / len(negatives)
    top, bottom = problem.ends(scores)
    how = "proven by a linear program" if problem.needs_all else "a search, not a proof"
    asked = f"tpr ≥ {wanted[0]:.4g} and tnr ≥ {wanted[1]:.4g} of the rows"
    if top - bottom > LEAST_GAP:
        raise UnattainableRateError(
            f"No hyperplane on all columns was found with {asked}, big_m={problem.big_m:g} and "
            f"max_coefficient={problem.max_coefficient:g}. To go on, raise these or leave them "
            "out, or lower a rate.",
            rate="tpr",
            wanted=wanted[0],
            attainable=None,
        )
    right = float((positives > bottom).mean()), float((negatives < top).mean())
    raise UnattainableRateError(
        f"No hyperplane on all columns was found with {asked}; the best found has tpr "
        f"{right[0]:.4g} where tnr is kept, and tnr {right[1]:.4g} where tpr is ({how}). To go "
        "on, lower a rate, or add columns such as squares and products.",
        rate="tpr",
        wanted=wanted[0],
        attainable=right[0],
    )
