"""The exact solve against all choices of anchors, and what it does when it may not or cannot."""

import itertools
from copy import deepcopy
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from bootprob.constrained import exact, mixed_integer
from bootprob.constrained.exact import solve_exact
from bootprob.constrained.mixed_integer import Found, solve_by_scip
from bootprob.constrained.outer_approximation import solve_by_outer_approximation
from bootprob.constrained.problem import ConstrainedProblem, Requirement, Solution
from bootprob.constrained.reduction import reduce_problem
from bootprob.exceptions import BootprobError, DataError
from bootprob.optimization.solvers import choose_solver

SOLVERS = ["SCIP", "HIGHS"]
ASKED = {
    "tpr": {"tpr": 0.7},
    "tpr and tnr": {"tpr": 0.6, "tnr": 0.5},
    "accuracy": {"accuracy": 0.8},
    "all": {"tpr": 0.5, "tnr": 0.5, "accuracy": 0.7},
}


class KeptAnchors:
    """The quadratic problem for a given choice of anchors, by CVXPY and Clarabel."""

    def __init__(self, problem: ConstrainedProblem, big_m: float = 1e4) -> None:
        self.problem = problem
        self.w, self.b = cp.Variable(problem.X.shape[1]), cp.Variable()
        slack = cp.Variable(len(problem.y), nonneg=True)
        self.floor = cp.Parameter(len(problem.anchor_y))
        self.big_m = big_m
        self.model = cp.Problem(
            cp.Minimize(cp.sum_squares(self.w) / 2 + problem.cost @ slack),
            [
                cp.multiply(problem.y, problem.X @ self.w + self.b) >= 1 - slack,
                cp.multiply(problem.anchor_y, problem.anchors @ self.w + self.b) >= self.floor,
            ],
        )

    def __call__(self, kept: np.ndarray) -> float:
        self.floor.value = np.where(kept, 1.0, 1 - self.big_m)
        self.model.solve(solver=cp.CLARABEL)
        return self.model.value  # inf where infeasible

    def solution(self, kept: np.ndarray) -> Solution:
        assert np.isfinite(self(kept))
        w, b = self.w.value, float(self.b.value)
        least = self.problem.margins(w, b)[kept].min(initial=1.0)
        w, b = w / least, b / least
        kept = self.problem.margins(w, b) >= 1 - 1e-9
        return Solution(w, b, self.problem.objective(w, b), 0.0, kept, "heuristic", 0.0)


def small_problem(rng, asked: dict[str, float], weighted: bool = False, rows: int = 24):
    """Classes that overlap, and seven anchors for which the requirements can be met."""
    while True:
        problem = random_problem(rng, asked, weighted, rows)
        if len(asked) == 1 and "accuracy" not in asked:
            return problem  # one class alone can always be right
        kept_anchors = KeptAnchors(problem)
        if any(np.isfinite(kept_anchors(kept)) for kept in choices(problem)):
            return problem


def random_problem(rng, asked: dict[str, float], weighted: bool, rows: int):
    y = np.where(np.arange(rows) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(rows, 2)) + 0.4 * y[:, None]
    n = 7
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    anchor_y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    anchors = rng.normal(size=(n, 2)) + 0.3 * anchor_y[:, None]
    members = {"tpr": anchor_y > 0, "tnr": anchor_y < 0, "accuracy": np.ones(n, dtype=bool)}
    requirements = tuple(
        Requirement(name, members[name], share * weight[members[name]].sum())
        for name, share in asked.items()
    )
    cost = rng.uniform(0.2, 2.0, rows)
    return ConstrainedProblem(X, y, cost, anchors, anchor_y, weight, requirements)


def choices(problem: ConstrainedProblem) -> list[np.ndarray]:
    """All the sets of anchors that meet the requirements."""
    sets = itertools.product([False, True], repeat=len(problem.anchor_y))
    return [kept for kept in map(np.array, sets) if not problem.shortfall(kept).any()]


def enumerated(problem: ConstrainedProblem, big_m: float = 1e4) -> tuple[float, list[np.ndarray]]:
    """The optimum, and the choices that can be had, by trying all."""
    kept_anchors = KeptAnchors(problem, big_m)
    objectives = [(kept_anchors(kept), kept) for kept in choices(problem)]
    return min(v for v, _ in objectives), [kept for v, kept in objectives if np.isfinite(v)]


_known: dict[tuple[str, bool, float], tuple[ConstrainedProblem, float, list[np.ndarray]]] = {}


def known(rng, asked: str, weighted: bool = False, big_m: float = 1e4):
    """A small problem, its optimum and choices: the same for all tests, whose draws begin alike."""
    key = asked, weighted, big_m
    if key not in _known:
        if big_m == 1e4:
            problem = small_problem(deepcopy(rng), ASKED[asked], weighted)
        else:
            problem, _, _ = known(rng, asked, weighted)
        _known[key] = problem, *enumerated(problem, big_m)
    return _known[key]


def check(problem: ConstrainedProblem, solution: Solution) -> None:
    margins = problem.margins(solution.coef, solution.intercept)
    assert not problem.shortfall(margins >= 1 - 1e-9).any()
    np.testing.assert_array_equal(solution.kept, margins >= 1 - 1e-9)
    again = problem.objective(solution.coef, solution.intercept)
    assert solution.objective == pytest.approx(again, rel=1e-12)
    assert solution.lower_bound <= solution.objective


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("asked", ASKED)
def test_finds_the_optimum_of_all_choices(rng, monkeypatch, solver, weighted, asked):
    monkeypatch.setattr(exact, "_PROBING", 0.0)  # leave the work to the solver
    problem, best, possible = known(rng, asked, weighted)
    start = KeptAnchors(problem).solution(possible[rng.integers(len(possible))])
    found = solve_exact(problem, start, solver=solver)
    check(problem, found)
    assert found.status == "optimal"
    assert found.objective <= start.objective
    assert found.objective == pytest.approx(best, rel=2e-4)
    assert found.lower_bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("asked", ASKED)
def test_probing_loses_nothing(rng, asked):
    problem, best, possible = known(rng, asked)
    start = KeptAnchors(problem).solution(possible[-1])
    found = solve_exact(problem, start)
    check(problem, found)
    assert found.objective == pytest.approx(best, rel=2e-4)
    assert found.lower_bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("asked", ["tpr", "accuracy"])
def test_bounds_on_anchors_hold_for_all_choices(rng, asked):
    """Against the most that each anchor is wrong by in any choice, found by CVXPY."""
    problem = small_problem(rng, ASKED[asked])
    best, _ = enumerated(problem)
    reduced = reduce_problem(problem, 1.1 * best).problem  # the best known is not the optimum
    kept_anchors = KeptAnchors(reduced)
    direction, label = cp.Parameter(2), cp.Parameter()
    wrong_by = 1 - direction @ kept_anchors.w - label * kept_anchors.b
    cheap = kept_anchors.model.objective.args[0] <= 1
    farthest = cp.Problem(cp.Maximize(wrong_by), [*kept_anchors.model.constraints, cheap])
    objectives = [(kept, kept_anchors(kept)) for kept in choices(reduced)]
    closed = exact.closed_form_bounds(reduced)
    probed = exact.probed_bounds(reduced, closed, objectives[-1][0], np.inf)
    assert (probed.big_m <= closed.big_m).all()
    assert not (probed.right & probed.wrong).any()
    for j in range(len(reduced.anchor_y)):
        direction.value = reduced.anchor_y[j] * reduced.anchors[j]
        label.value = reduced.anchor_y[j]
        most = -np.inf
        for kept, objective in objectives:
            if kept[j] and objective <= 1 - 1e-5:
                assert not probed.wrong[j]
            if not kept[j] and objective <= 1 - 1e-5:
                kept_anchors.floor.value = np.where(kept, 1.0, 1 - kept_anchors.big_m)
                most = max(most, farthest.solve(solver=cp.CLARABEL))
        assert most <= closed.big_m[j]
        assert most <= max(probed.big_m[j], 0.0) + 1e-5
        assert most <= 1e-5 or not probed.right[j]


def test_anchors_that_are_the_training_rows(rng):
    """Problem (3.7)."""
    problem = small_problem(rng, {"tpr": 0.7}, rows=8)
    positive = problem.y > 0
    problem = replace(
        problem,
        anchors=problem.X,
        anchor_y=problem.y,
        anchor_weight=np.ones(8),
        requirements=(Requirement("tpr", positive, 3.0),),
    )
    best, possible = enumerated(problem)
    found = solve_exact(problem, KeptAnchors(problem).solution(possible[-1]))
    assert found.objective == pytest.approx(best, rel=2e-4)


def test_the_order_of_magnitude_does_not_matter(rng):
    problem = small_problem(rng, {"tpr": 0.7})
    start = KeptAnchors(problem).solution(np.ones(7, dtype=bool) & (problem.anchor_y > 0))
    found = solve_exact(problem, start)
    for size in (1e-5, 1e5):
        # w becomes w / size, so that the objective is divided by size² if the costs are.
        moved = replace(
            problem,
            X=size * (problem.X + 3),
            anchors=size * (problem.anchors + 3),
            cost=problem.cost / size**2,
        )
        coef = start.coef / size
        intercept = start.intercept - 3 * start.coef.sum()
        again = solve_exact(
            moved,
            replace(
                start,
                coef=coef,
                intercept=intercept,
                objective=moved.objective(coef, intercept),
            ),
        )
        assert again.objective * size**2 == pytest.approx(found.objective, rel=2e-4)
        assert again.status == "optimal"


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_columns_than_rows_and_rows_twice(rng, solver):
    problem = small_problem(rng, {"tpr": 0.7}, rows=10)
    wide = rng.normal(size=(2, 40))
    problem = replace(problem, X=problem.X @ wide, anchors=problem.anchors @ wide)
    best, possible = enumerated(problem)
    twice = replace(
        problem,
        X=np.vstack([problem.X] * 2),
        y=np.tile(problem.y, 2),
        cost=np.tile(problem.cost, 2) / 2,
        anchors=np.vstack([problem.anchors] * 2),
        anchor_y=np.tile(problem.anchor_y, 2),
        anchor_weight=np.tile(problem.anchor_weight, 2) / 2,
        requirements=tuple(replace(r, members=np.tile(r.members, 2)) for r in problem.requirements),
    )
    start = KeptAnchors(problem).solution(possible[-1])
    found = solve_exact(twice, replace(start, kept=np.tile(start.kept, 2)), solver=solver)
    check(twice, found)
    assert found.objective == pytest.approx(best, rel=2e-4)
    assert len(reduce_problem(twice, best).problem.X) == 10
    assert reduce_problem(twice, best).problem.X.shape[1] <= 14


def test_requirements_that_ask_for_nothing_leave_the_plain_machine(rng):
    problem = small_problem(rng, {"tpr": 0.7})
    problem = replace(problem, requirements=(replace(problem.requirements[0], required=0.0),))
    start = KeptAnchors(problem).solution(np.ones(7, dtype=bool) & (problem.anchor_y > 0))
    found = solve_exact(problem, start)
    assert found.objective == pytest.approx(KeptAnchors(problem)(np.zeros(7, dtype=bool)), rel=1e-4)


def test_rows_of_one_class(rng):
    problem = small_problem(rng, {"tnr": 1.0})
    problem = replace(problem, y=-np.ones(24))
    start = KeptAnchors(problem).solution(problem.anchor_y < 0)
    start = replace(start, coef=np.array([1e-3, 0.0]), intercept=-1.1)
    start = replace(start, objective=problem.objective(start.coef, start.intercept))
    found = solve_exact(problem, start)
    assert (found.objective, found.status) == (0.0, "optimal")
    # To have positives right, with no positive row to learn from, still bounds the problem.
    problem = replace(
        small_problem(rng, {"tpr": 0.5, "tnr": 0.6}), X=problem.X, y=problem.y, cost=problem.cost
    )
    best, possible = enumerated(problem)
    found = solve_exact(problem, KeptAnchors(problem).solution(possible[-1]))
    assert found.objective == pytest.approx(best, rel=2e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("asked", ["tpr", "tpr and tnr", "accuracy"])
@pytest.mark.parametrize("big_m", [0.3, 1.2, 1.6, 2.5, 100.0])
def test_with_a_given_m_the_answer_is_that_of_the_restricted_problem(rng, solver, big_m, asked):
    """(2.7) is about every anchor of J, those included that no rate counts."""
    problem, _, possible = known(rng, asked)
    start = KeptAnchors(problem).solution(possible[-1])
    _, restricted, _ = known(rng, asked, big_m=big_m)
    if np.isinf(restricted):
        with pytest.raises(DataError, match=f"big_m is {big_m:g}, and no machine keeps"):
            solve_exact(problem, start, solver=solver, big_m=big_m)
        return
    found = solve_exact(problem, start, solver=solver, big_m=big_m)
    check(problem, found)
    assert problem.margins(found.coef, found.intercept).min() >= 1 - big_m * (1 + 1e-6)
    assert found.status == "optimal"
    assert found.lower_bound <= restricted * (1 + 1e-6)
    assert found.objective == pytest.approx(restricted, rel=2e-4)


def test_nothing_within_m_in_no_time(rng):
    problem = small_problem(rng, {"tpr": 0.7})
    start = KeptAnchors(problem).solution(problem.anchor_y > 0)
    problem.anchors[1] = problem.anchors[0]  # of both classes: they cannot both have y f ≥ 0.1
    with pytest.raises(BootprobError, match="was found in time") as caught:
        solve_exact(problem, start, big_m=0.9, time_limit=0.0)
    assert not isinstance(caught.value, DataError)
    with pytest.raises(DataError, match=r"no machine keeps the rates with y f\(x\) ≥ 0\.1"):
        solve_exact(problem, start, big_m=0.9)


def _reduced(rng):
    """A reduced problem and a start that is better than what SCIP would try first."""
    problem = small_problem(rng, {"tpr": 0.7}, rows=60)
    _, possible = enumerated(problem)
    kept_anchors = KeptAnchors(problem)
    start = kept_anchors.solution(min(possible, key=kept_anchors))
    reduction = reduce_problem(problem, start.objective)
    known = exact.closed_form_bounds(reduction.problem)
    box = (np.full(2, -1.5), np.full(2, 1.5))
    return reduction.problem, known, reduction.inward(start.coef, start.intercept), box


def test_scip_is_started(rng, monkeypatch):
    problem, known, start, box = _reduced(rng)
    made = []
    original = mixed_integer.started_scip
    monkeypatch.setattr(mixed_integer, "started_scip", lambda: made.append(original()) or made[-1])
    options = {"deadline": 0.0, "gap": 1e-4, "parameters": {"limits/nodes": 1}}
    found = solve_by_scip(problem, known, start, box, **options)  # no time at all
    assert made[0].start_stored is True
    assert made[0].model.getNSols() == 1
    np.testing.assert_allclose(found.coef, start[0], atol=1e-9)
    assert problem.objective(found.coef, found.intercept) <= 1 + 1e-6

    monkeypatch.setattr(mixed_integer.Model, "start_at", lambda *_: None)
    unstarted = solve_by_scip(problem, known, start, box, **options)
    assert unstarted.coef is None
    assert made[1].start_stored is not True or made[1].model.getNSols() == 0


def test_highs_is_started(rng, capfd):
    problem, known, start, box = _reduced(rng)
    solve_by_outer_approximation(problem, known, start, box, deadline=np.inf, gap=0.5, verbose=True)
    assert "MIP start solution is feasible, objective value is" in capfd.readouterr().out


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("time_limit", [0.0, 0.05])
def test_no_time(rng, solver, time_limit):
    problem = small_problem(rng, {"tpr": 0.7}, rows=400)
    start = KeptAnchors(problem).solution(problem.anchor_y > 0)
    found = solve_exact(problem, start, solver=solver, time_limit=time_limit)
    check(problem, found)
    assert found.objective <= start.objective
    if time_limit == 0:
        assert found.status == "time_limit"
        assert found.lower_bound == start.lower_bound
        np.testing.assert_allclose(found.coef, start.coef, atol=1e-6)


@pytest.mark.parametrize("garbage", ["worse", "infeasible", "nothing", "nonsense"])
def test_what_a_solver_says_is_checked(rng, monkeypatch, garbage):
    problem = small_problem(rng, {"tpr": 0.7})
    start = KeptAnchors(problem).solution(problem.anchor_y > 0)
    coef = {"worse": 9 * start.coef, "infeasible": 0 * start.coef, "nonsense": np.full(2, np.nan)}
    intercept = None if garbage == "nothing" else 0.0

    def solver(reduced: ConstrainedProblem, *_: object, **__: object) -> Found:
        kept = np.zeros(len(reduced.anchor_y), dtype=bool)  # not enough of them
        return Found(coef.get(garbage), intercept, kept, -np.inf)

    monkeypatch.setitem(exact._SOLVERS, "SCIP", solver)
    monkeypatch.setattr(exact, "solve_relaxation", lambda *_: None)
    found = solve_exact(problem, start, solver="SCIP")
    check(problem, found)
    assert found.status == "time_limit"
    assert found.objective <= start.objective
    assert found.lower_bound == start.lower_bound


def test_a_start_that_does_not_meet_the_requirements(rng):
    problem = small_problem(rng, {"tpr": 0.7, "tnr": 0.2})
    start = KeptAnchors(problem).solution(problem.anchor_y < 0)
    start = replace(start, coef=0 * start.coef, intercept=-1.0)
    with pytest.raises(ValueError, match=r"does not keep tpr: of the weight 2.8"):
        solve_exact(problem, start)


@pytest.mark.parametrize(
    "bad", [{"big_m": -1}, {"time_limit": np.nan}, {"gap": "small"}, {"gap": 0.0}]
)
def test_options_out_of_range(rng, bad):
    problem = small_problem(rng, {"tpr": 0.7})
    start = KeptAnchors(problem).solution(problem.anchor_y > 0)
    with pytest.raises(DataError, match=f"{next(iter(bad))} is"):
        solve_exact(problem, start, **bad)


def test_solvers_that_are_missing(monkeypatch):
    there = {"cvxpy", "highspy", "pyscipopt"}
    monkeypatch.setattr(
        "bootprob.optimization.solvers.find_spec", lambda name: name in there or None
    )
    assert choose_solver() == "SCIP"
    assert choose_solver("highs") == "HIGHS"
    with pytest.raises(DataError, match="pip install gurobipy"):
        choose_solver("GUROBI")
    with pytest.raises(DataError, match="give 'SCIP', 'HIGHS', 'GUROBI' or None"):
        choose_solver("CPLEX")
    there.remove("pyscipopt")
    assert choose_solver() == "HIGHS"
    there.remove("highspy")
    with pytest.raises(DataError, match=r'pip install "bootprob\[mip\]"'):
        choose_solver()
    there.remove("cvxpy")
    with pytest.raises(DataError, match=r'pip install "bootprob\[mip\]"') as caught:
        choose_solver("GUROBI")
    assert str(caught.value).startswith("This method needs CVXPY")  # whichever it is


def test_the_wisconsin_instance_is_proven():
    """At 10.3608 in the thesis's convention, which counts everything twice."""
    X, benign = load_breast_cancer(return_X_y=True)
    y = np.where(benign == 0, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[order], y[order]
    rows, rest = slice(284), slice(284, None)
    positive = y[rest] > 0
    of_class = np.where(y[rows] > 0, (y[rows] > 0).sum(), (y[rows] < 0).sum())
    needed = int(np.ceil(0.975 * positive.sum()))
    problem = ConstrainedProblem(
        X=X[rows],
        y=y[rows],
        cost=32 / of_class / 2,
        anchors=X[rest],
        anchor_y=y[rest],
        anchor_weight=np.ones(len(y[rest])),
        requirements=(Requirement("tpr", positive, float(needed)),),
    )
    # The highest scores of the plain machine are kept, then those of the machine that keeps them.
    kept_anchors = KeptAnchors(problem)
    kept_anchors(np.zeros(len(positive), dtype=bool))
    for _ in range(3):
        scores = np.where(positive, problem.anchors @ kept_anchors.w.value, -np.inf)
        kept = np.zeros(len(positive), dtype=bool)
        kept[np.argsort(-scores)[:needed]] = True
        kept_anchors(kept)
    start = kept_anchors.solution(kept)
    found = solve_exact(problem, start, time_limit=60)
    check(problem, found)
    assert found.status == "optimal"
    assert 2 * found.objective == pytest.approx(10.3608, abs=2e-4)
    assert 2 * found.lower_bound >= 10.3608 * (1 - 2e-4)
