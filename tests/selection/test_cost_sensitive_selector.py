"""The cheapest columns that keep the rates, against all subsets and all ways to give up rows."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from bootprob.exceptions import DataError
from bootprob.selection.cost_sensitive.mixed_integer import solve_mixed_integer
from bootprob.selection.cost_sensitive.planes import PairScan, scan_columns
from bootprob.selection.cost_sensitive.problem import RateProblem
from bootprob.selection.cost_sensitive.proofs import cheapest_triple
from bootprob.selection.cost_sensitive.search import RateSearch
from bootprob.selection.cost_sensitive.selection import select_by_rates
from bootprob.selection.feature_costs import FeatureCosts


def problem_of(rng, n=(7, 7), p=4, lost=(1, 1), levels=None, shift=0.5, **limits):
    X = rng.normal(size=(sum(n), p))
    positive = np.arange(sum(n)) < n[0]
    X[positive] += shift * rng.random(p)
    if levels:
        X = np.clip(np.round(X), -levels, levels)
    scale = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)
    return RateProblem(X, positive, n[0] - lost[0], n[1] - lost[1], **limits)


def can_be_kept(problem, features):
    """By a linear program for every choice of rows to give up."""
    sign = np.where(problem.positive, 1.0, -1.0)
    rows = sign[:, None] * np.column_stack([problem.X[:, list(features)], np.ones(len(sign))])
    limit = min(problem.max_coefficient, 1e5)
    bounds = [(-limit, limit)] * len(features) + [(None, None)]
    positives, negatives = np.flatnonzero(problem.positive), np.flatnonzero(~problem.positive)
    given_up = product(
        combinations(positives, len(positives) - problem.needed_positive),
        combinations(negatives, len(negatives) - problem.needed_negative),
    )
    for pair in given_up:
        least = np.ones(len(sign))
        least[list(sum(pair, ()))] = 1 - min(problem.big_m, 1e9)
        if linprog(np.zeros(len(bounds)), A_ub=-rows, b_ub=-least, bounds=bounds).status == 0:
            return True
    return False


def least_cost(problem, costs):
    p = problem.X.shape[1]
    if not can_be_kept(problem, range(p)):
        return math.inf
    subsets = [s for k in range(1, p + 1) for s in combinations(range(p), k)]
    for subset in sorted(subsets, key=costs.total):
        if can_be_kept(problem, subset):
            return costs.total(subset)
    return math.inf


def gap_in_plane(problem, first, second):
    """The largest gap over all directions of the plane, at all critical angles and between."""
    points = problem.X[:, [first, second]]
    differences = np.array([a - b for a, b in combinations(points, 2)])
    angles = np.arctan2(differences[:, 1], differences[:, 0]) + math.pi / 2
    angles = np.sort(np.concatenate([angles, angles + math.pi]) % (2 * math.pi))
    angles = np.concatenate([angles, (angles + np.roll(angles, -1)) / 2, angles + 1e-3])
    directions = np.stack([np.cos(angles), np.sin(angles)])
    scores = np.sort((points @ directions)[problem.positive], axis=0)[::-1]
    others = np.sort((points @ directions)[~problem.positive], axis=0)
    return (scores[problem.needed_positive - 1] - others[problem.needed_negative - 1]).max()


def meets(problem, hyperplane):
    scores = problem.X[:, list(hyperplane.features)] @ hyperplane.coef + hyperplane.intercept
    margins = np.where(problem.positive, scores, -scores)
    assert (margins[hyperplane.kept] >= 1 - 1e-8).all()
    assert hyperplane.kept[problem.positive].sum() >= problem.needed_positive
    assert hyperplane.kept[~problem.positive].sum() >= problem.needed_negative
    assert np.abs(hyperplane.coef).max() <= problem.max_coefficient * (1 + 1e-6)
    assert 1 - margins.min() <= problem.big_m * (1 + 1e-6)


@pytest.mark.parametrize("levels", [None, 1, 2])
def test_scans_find_what_all_directions_find(rng, levels):
    decided = {True: 0, False: 0}
    for _ in range(40):
        n, lost = rng.integers(3, 12, 2), rng.integers(0, 3, 2)
        lost = np.minimum(lost, n - 1)
        problem = problem_of(rng, n, 4, lost, levels, shift=rng.choice([0.5, 3]))
        gap, sign = scan_columns(problem)
        scan = PairScan(problem)
        for j in range(4):
            column = problem.X[:, j]
            by_sorting = []
            for values in (column, -column):
                up = np.sort(values[problem.positive])[::-1][problem.needed_positive - 1]
                down = np.sort(values[~problem.positive])[problem.needed_negative - 1]
                by_sorting.append(up - down)
            assert gap[j] == pytest.approx(max(by_sorting))
            assert sign[j] == (1 if by_sorting[0] >= by_sorting[1] else -1)
        for pair in combinations(range(4), 2):
            truth = gap_in_plane(problem, *pair)
            if abs(truth) < 1e-6 and levels is None:
                continue
            direction = scan.direction(*pair)
            assert (direction is not None) == (truth > 1e-9), (truth, direction)
            decided[truth > 1e-9] += 1
            if direction is not None:
                assert problem.hyperplane(pair, direction) is not None
    assert min(decided.values()) > 20


def test_a_pair_of_many_rows_and_of_few_levels_agree(rng):
    """Rows counted at their place, or one by one."""
    for _ in range(10):
        problem = problem_of(rng, (40, 30), 2, (6, 5), 2, shift=3)
        merged = PairScan(problem).direction(0, 1)
        apart = PairScan(problem)
        apart._levels = {j: (np.arange(70.0), np.arange(70)) for j in range(2)}
        single = apart.direction(0, 1)
        assert (merged is None) == (single is None)


@pytest.mark.parametrize(
    ("limits", "levels"),
    [
        ({}, None),
        ({}, 1),
        ({"max_coefficient": 1.5}, None),
        ({"big_m": 3.0}, 1),
        ({"big_m": 4.0, "max_coefficient": 2.0}, None),
    ],
)
def test_cost_and_bound_enclose_the_best_of_all_subsets(rng, limits, levels):
    optimal = 0
    for _ in range(3):
        problem = problem_of(rng, (5, 5), 4, (1, 1), levels, shift=2.0, **limits)
        costs = FeatureCosts.of(rng.integers(0, 5, 4), [([0, 2], 1.5)], 4)
        truth = least_cost(problem, costs)
        if math.isinf(truth):
            continue
        hyperplane, result = select_by_rates(problem, costs)
        meets(problem, hyperplane)
        assert costs.total(hyperplane.features) == pytest.approx(result.objective)
        assert result.bound <= truth + 1e-9
        assert result.objective >= truth - 1e-9
        if result.status == "optimal":
            optimal += 1
            assert result.objective == pytest.approx(truth)
        objectives = [each.objective for each in result.path]
        assert objectives == sorted(objectives, reverse=True)
        assert objectives[-1] == result.objective
    assert optimal or limits or levels


@pytest.mark.parametrize("solver", ["SCIP", "HIGHS"])
def test_the_program_proves_the_best_of_all_subsets(rng, solver):
    limits = {"big_m": 12.0, "max_coefficient": 6.0}
    for p, groups in ((4, [([1, 3], 2.0)]), (4, [])):
        problem = problem_of(rng, (5, 6), p, (1, 1), shift=1.0, **limits)
        costs = FeatureCosts.of(rng.integers(1, 5, p), groups, p)
        truth = least_cost(problem, costs)
        if math.isinf(truth):
            continue
        _, result = select_by_rates(problem, costs, exact=True, solver=solver)
        assert result.status == "optimal"
        assert result.objective == result.bound == pytest.approx(truth)
        start = _all(problem)
        found, bound = solve_mixed_integer(
            problem,
            costs,
            start,
            bound=0.0,
            least_size=1,
            deadline=math.inf,
            solver=solver,
        )
        assert bound == pytest.approx(truth, abs=1e-4)
        if found is not None:
            meets(problem, found)
            assert costs.total(found.features) == pytest.approx(truth)


def _all(problem):
    """A hyperplane on all columns, by keeping each choice of rows."""
    for given_up in product(np.flatnonzero(problem.positive), np.flatnonzero(~problem.positive)):
        kept = np.ones(len(problem.X), dtype=bool)
        kept[list(given_up)] = False
        found = problem.keeping(tuple(range(problem.X.shape[1])), kept)
        if found is not None:
            return found
    return None


def test_without_both_limits_the_program_proves_nothing(rng):
    problem = problem_of(rng, (8, 8), 6, (1, 1), shift=1.0)
    costs = FeatureCosts.of(None, None, 6)
    start = _all(problem)
    if start is None:
        pytest.skip("these rows cannot be kept")
    _, bound = solve_mixed_integer(
        problem, costs, start, bound=1.0, least_size=1, deadline=math.inf
    )
    assert bound == 1.0


def test_the_cheapest_triple(rng):
    for groups in ([], [([0, 1, 2], 3.0), ([3, 4], 0.5)]):
        costs = FeatureCosts.of(rng.random(7), groups, 7)
        truth = min(costs.total(s) for s in combinations(range(7), 3))
        assert cheapest_triple(costs) == pytest.approx(truth)
    assert cheapest_triple(FeatureCosts.of(None, None, 2)) == math.inf
    many = FeatureCosts.of(rng.random(120), [(list(range(120)), 3.0)], 120)
    assert cheapest_triple(many) <= np.sort(many.own)[:3].sum() + 3.0


def test_bisecting_keeps_the_rates(rng):
    X = rng.normal(size=(60, 40))
    positive = X[:, :3].sum(axis=1) > 0
    X[:, :3] += 0.3 * positive[:, None]
    problem = RateProblem(X, positive, positive.sum() - 1, (~positive).sum() - 1)
    search = RateSearch(problem, FeatureCosts.of(None, None, 40), deadline=0.0)
    search.offer(search.directions.hyperplane(tuple(range(40))))
    search.bisect()
    assert search.cost <= 20
    meets(problem, search.best)


def test_costs_are_of_columns_that_there_are():
    costs = FeatureCosts.of([1.0, 2.0], None, 2)
    assert costs.total([0, 0]) == 1.0
    for features in ([2], [-1]):
        with pytest.raises(DataError, match="counted from 0"):
            costs.total(features)
