"""The paper's programs, through solvers, agree with the search."""

import numpy as np
import pytest

from bootprob import DataError
from bootprob.selection import KernelAlignmentSelector
from bootprob.selection.alignment import AlignmentPairs
from bootprob.selection.alignment_models import (
    nonlinear_objective,
    solve_nonlinear,
    solve_reduced,
)

pytest.importorskip("cvxpy")


@pytest.fixture
def small(rng):
    X = rng.normal(size=(9, 4))
    y = rng.permutation(np.arange(9) < 4)
    selector = KernelAlignmentSelector(2).fit(X, y)
    return selector, AlignmentPairs.of_rows((X - X.mean(0)) / X.std(0), y)


@pytest.mark.parametrize("solver", ["HIGHS", "SCIP"])
@pytest.mark.parametrize("started", [False, True])
def test_rmilo_k_finds_what_the_search_finds(small, solver, started):
    selector, pairs = small
    start = selector.result_.features if started else ()
    found = solve_reduced(pairs, selector.gamma_, 2, solver=solver, start=start)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(selector.result_.objective, abs=1e-6)
    assert found.bound == pytest.approx(selector.result_.objective, abs=1e-5)
    assert len(found.features) <= 2


def test_inlo_k_finds_what_the_search_finds(small):
    selector, pairs = small
    found = solve_nonlinear(pairs, selector.gamma_, 2)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(selector.result_.objective, abs=1e-6)
    assert found.bound >= selector.result_.objective - 1e-9


def test_the_objective_of_inlo_k(small, rng):
    selector, pairs = small
    chosen, objective = nonlinear_objective(pairs, selector.gamma_)
    support = rng.random(4) < 0.5
    chosen.value = support.astype(float)
    assert float(objective.value) == pytest.approx(pairs.alignment(selector.gamma_, support))
    assert not objective.is_convex()
    assert not objective.is_concave()


@pytest.mark.parametrize("solver", ["HIGHS", "SCIP"])
def test_stopped_at_once_the_start_counts(rng, solver):
    X = rng.normal(size=(40, 6))
    y = rng.permutation(np.arange(40) < 20)
    selector = KernelAlignmentSelector(3).fit(X, y)
    pairs = AlignmentPairs.of_rows((X - X.mean(0)) / X.std(0), y)
    found = solve_reduced(pairs, selector.gamma_, 3, start=(0, 5), solver=solver, time_limit=1e-3)
    support = np.isin(np.arange(6), (0, 5))
    assert found.objective >= pairs.alignment(selector.gamma_, support) - 1e-12
    assert found.bound >= selector.result_.objective - 1e-9
    assert found.status == "time limit"


def test_an_unknown_solver(small):
    with pytest.raises(DataError, match="solver is 'CPLEX'"):
        solve_reduced(small[1], 1.0, 2, solver="CPLEX")
    with pytest.raises(DataError, match=r"RMILO-K takes 'SCIP' or 'HIGHS'|not installed"):
        solve_reduced(small[1], 1.0, 2, solver="GUROBI")
