"""The paper's programs, through solvers, agree with the search."""

from itertools import combinations

import numpy as np
import pytest

from bootprob import DataError
from bootprob.selection import KernelAlignmentSelector
from bootprob.selection.alignment.alignment import AlignmentPairs, NormalisedPairs
from docs.studies.alignment.programs import (
    nonlinear_objective,
    solve_full,
    solve_nonlinear,
    solve_normalised,
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


def random_problem(seed):
    """A few rows: of two levels, with a constant column and equal rows, or rounded, or plain."""
    rng = np.random.default_rng((5, seed))
    n, p = int(rng.integers(4, 9)), int(rng.integers(2, 5))
    theta = int(rng.integers(1, p + 1))
    X = rng.normal(size=(n, p))
    if seed % 4 == 1:
        X = (X > 0).astype(float)
    if seed % 4 == 2:
        X[:, 0], X[1] = 3.0, X[0]
    if seed % 4 == 3:
        X = np.round(X)
    y = rng.permutation(np.arange(n) < max(1, int(rng.integers(1, n))))
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)
    return Z, y, float(rng.choice([0.1, 0.4, 2])), theta


def best_of_all(Z, y, gamma, theta, normalised):
    """(22) or (24) of every subset, from the kernel matrix."""
    labels = np.where(y, 1, -1) if normalised else np.where(y, 1 / y.sum(), -1 / (~y).sum())
    values = []
    for size in range(theta + 1):
        for subset in combinations(range(Z.shape[1]), size):
            distances = np.square(Z[:, None, list(subset)] - Z[None, :, list(subset)]).sum(axis=2)
            K = np.exp(-gamma * distances)
            values.append(labels @ K @ labels)
            if normalised:
                values[-1] /= len(y) * np.linalg.norm(K)
    return max(values)


# In 52 HiGHS's presolving cuts off the best columns of MILO-K, in 60 SCIP's those of (22).
PROBLEMS = [*(("HIGHS", seed) for seed in (0, 1, 2, 3, 52, 60)), ("SCIP", 1), ("SCIP", 2)]


@pytest.mark.parametrize(
    ("solver", "seed", "normalised"),
    [
        *((*each, normalised) for each in PROBLEMS for normalised in (False, True)),
        ("SCIP", 60, False),
        pytest.param("SCIP", 60, True, marks=pytest.mark.endurance),
    ],
)
def test_milo_k_finds_the_best_of_all_subsets(seed, solver, normalised):
    Z, y, gamma, theta = random_problem(seed)
    truth = best_of_all(Z, y, gamma, theta, normalised)
    if normalised:
        found = solve_normalised(NormalisedPairs.of_rows(Z, y), gamma, theta, solver=solver)
    else:
        found = solve_full(AlignmentPairs.of_rows(Z, y), gamma, theta, solver=solver)
    assert found.objective == pytest.approx(truth, abs=2e-6)
    assert found.status == "optimal"
    assert found.bound >= truth - 1e-9
    assert len(found.features) <= theta


@pytest.mark.parametrize("normalised", [False, True])
def test_milo_k_begins_with_the_start_and_keeps_it(rng, normalised):
    X = rng.normal(size=(30, 6))
    y = rng.permutation(np.arange(30) < 15)
    selector = KernelAlignmentSelector(3, normalised=normalised).fit(X, y)
    Z, best = (X - X.mean(0)) / X.std(0), selector.result_
    solve = solve_normalised if normalised else solve_full
    pairs = (NormalisedPairs if normalised else AlignmentPairs).of_rows(Z, y)
    found = solve(pairs, selector.gamma_, 3, start=best.features, time_limit=1e-3, solver="HIGHS")
    assert found.features == best.features
    assert found.objective == pytest.approx(best.objective)
    assert found.bound >= best.objective
    assert found.status == "time limit"


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
    with pytest.raises(DataError, match=r"MILO-K takes 'SCIP' or 'HIGHS'|not installed"):
        solve_full(small[1], 1.0, 2, solver="GUROBI")
