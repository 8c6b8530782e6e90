"""The heuristic finds what an enumeration of all choices of anchors finds, and says when not."""

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from small_instances import best_by_enumeration, random_problem

from bootprob import UnattainableRateError
from bootprob.constrained.anchor_sets import (
    choose_anchors,
    indispensable,
    reached_at_thresholds,
    shifted_margins,
)
from bootprob.constrained.heuristic import solve_heuristic
from bootprob.constrained.problem import ConstrainedProblem, Requirement


def check_solution(problem, solution):
    margins = problem.margins(solution.coef, solution.intercept)
    assert np.array_equal(solution.kept, margins >= 1 - 1e-6)
    assert not problem.shortfall(solution.kept).any()
    assert solution.objective == problem.objective(solution.coef, solution.intercept)
    assert 0 <= solution.lower_bound <= solution.objective
    assert solution.status in ("optimal", "heuristic")


@pytest.mark.parametrize(
    ("rates", "weighted", "shared"),
    [
        ({"tpr": 0.75}, False, False),
        ({"tnr": 0.5}, True, False),
        ({"accuracy": 0.7}, False, False),
        ({"tpr": 0.6, "tnr": 0.6}, False, False),
        ({"tpr": 0.75}, False, True),
    ],
)
def test_close_to_the_best_of_all_choices(rng, rates, weighted, shared):
    worse = 0
    for _ in range(3):
        problem = random_problem(
            rng, n=10 if shared else 20, n_anchors=8, rates=rates, weighted=weighted, shared=shared
        )
        best = best_by_enumeration(problem)
        if np.isinf(best):
            with pytest.raises(UnattainableRateError):
                solve_heuristic(problem)
            continue
        solution = solve_heuristic(problem)
        check_solution(problem, solution)
        assert solution.lower_bound <= best * (1 + 1e-6)
        assert solution.objective >= best * (1 - 1e-6)
        assert solution.objective <= best * 1.25
        worse += solution.objective > best * (1 + 1e-4)
    assert worse <= 1


def wisconsin(p0=0.975, C=32.0):
    """The instance of MIQP studies: halves of the standardised, permuted table."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 0, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    half = len(y) // 2
    cost = np.where(y > 0, C / 2 / (y[:half] > 0).sum(), C / 2 / (y[:half] < 0).sum())[:half]
    positive = y[half:] > 0
    required = np.ceil(p0 * positive.sum() - 1e-9)
    return ConstrainedProblem(
        X[:half], y[:half], cost, X[half:], y[half:], np.ones(len(positive)),
        (Requirement("tpr", positive, required),),
    )  # fmt: skip


def test_wisconsin_reaches_the_proven_optimum():
    problem = wisconsin()
    started = time.perf_counter()
    solution = solve_heuristic(problem)
    check_solution(problem, solution)
    assert 2 * solution.objective == pytest.approx(10.3608, abs=5e-5)
    assert time.perf_counter() - started < 20  # 0.2 s on a quiet core


def test_all_anchors_wanted_is_proven(rng):
    problem = random_problem(rng, rates={"tpr": 1.0})
    solution = solve_heuristic(problem)
    check_solution(problem, solution)
    assert solution.status == "optimal"
    assert solution.gap <= 1e-6
    assert solution.objective == pytest.approx(best_by_enumeration(problem), rel=1e-5)


def test_impossible_rates_are_refused_with_what_can_be_had(rng):
    X = np.zeros((8, 2))
    y = np.tile([1.0, -1.0], 4)
    anchor_y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    positive = anchor_y > 0
    problem = ConstrainedProblem(
        X, y, np.ones(8), np.zeros((5, 2)), anchor_y, np.ones(5),
        (Requirement("tpr", positive, 2.0), Requirement("tnr", ~positive, 1.0)),
    )  # fmt: skip
    with pytest.raises(UnattainableRateError, match=r"tpr ≥ 0\.6667 and tnr ≥ 0\.5") as caught:
        solve_heuristic(problem)
    assert caught.value.rate == "tpr"
    assert caught.value.attainable == 0.0  # identical rows: the negative kept decides for all
    assert pickle.loads(pickle.dumps(caught.value)).wanted == pytest.approx(2 / 3)
    alone = (Requirement("accuracy", np.ones(5, dtype=bool), 4.0),)
    problem = ConstrainedProblem(X, y, np.ones(8), np.zeros((5, 2)), anchor_y, np.ones(5), alone)
    with pytest.raises(UnattainableRateError, match=r"accuracy 0\.6") as caught:
        solve_heuristic(problem)
    assert caught.value.attainable == pytest.approx(0.6)


def test_the_best_attainable_is_attainable(rng):
    """Ask for too much of both classes, then for what the error says."""
    problem = random_problem(rng, n=60, n_anchors=60, rates={"tpr": 0.9, "tnr": 0.97}, p=2)
    with pytest.raises(UnattainableRateError, match="with the others kept") as caught:
        solve_heuristic(problem)
    positives = problem.requirements[0].members.sum()
    problem = problem.requiring(0, caught.value.attainable * positives - 0.5)
    check_solution(problem, solve_heuristic(problem))


def test_constant_columns_do_not_disturb_the_search(rng):
    """With them the same rates are refused, as they add nothing."""
    problem = random_problem(rng, n=60, n_anchors=60, rates={"tpr": 0.9, "tnr": 0.97}, p=2)
    constant = np.full((60, 2), [3.0, 0.0])
    wider = replace(
        problem,
        X=np.column_stack([problem.X, constant]),
        anchors=np.column_stack([problem.anchors, constant]),
    )
    with pytest.raises(UnattainableRateError, match="with the others kept"):
        solve_heuristic(wider)


def test_choice_of_anchors_meets_requirements_without_waste(rng):
    for weighted in (False, True):
        problem = random_problem(
            rng, n_anchors=30, weighted=weighted, rates={"tpr": 0.5, "tnr": 0.7, "accuracy": 0.8}
        )
        margins = rng.normal(size=(5, 30))
        margins[:, 0], margins[:, 1] = np.inf, -np.inf
        for kept in choose_anchors(problem, margins):
            assert kept[0]
            assert not kept[1]
            assert not problem.shortfall(kept).any()
            for j in np.flatnonzero(kept)[1:]:
                assert problem.shortfall(kept & (np.arange(30) != j)).any()


def test_indispensable_anchors_are_those_that_all_others_cannot_replace(rng):
    problem = random_problem(rng, weighted=True, rates={"tpr": 0.8, "accuracy": 0.85})
    everyone = np.ones(len(problem.anchors), dtype=bool)
    for j, needed in enumerate(indispensable(problem)):
        without = everyone.copy()
        without[j] = False
        assert needed == problem.shortfall(without).any()


def test_thresholds_see_every_split_of_the_scores(rng):
    problem = random_problem(rng, n_anchors=9, weighted=True, rates={"tpr": 0.5, "accuracy": 0.9})
    scores = np.round(rng.normal(size=9), 1)
    between, reached = reached_at_thresholds(problem, scores)
    assert len(between) == len(np.unique(scores)) + 1
    np.testing.assert_allclose(between[:-1, 1], np.unique(scores))
    np.testing.assert_allclose(between[1:, 0], np.unique(scores))
    for k, threshold in enumerate(np.clip(between, -9, 9).mean(axis=1)):
        right = problem.anchor_y * (scores - threshold) > 0
        expected = [problem.anchor_weight[r.members & right].sum() for r in problem.requirements]
        assert reached[:, k] == pytest.approx(expected)
    moved = shifted_margins(problem, problem.anchor_y * (scores + 0.3), 0.3)
    wanted = np.array([r.required for r in problem.requirements])
    best = np.maximum(wanted[:, None] - reached, 0).sum(axis=0).min()
    assert problem.shortfall(moved > 0).sum() == pytest.approx(best)
