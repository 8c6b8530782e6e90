"""The same outputs for all units: against brute force and the thesis's counterexamples."""

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from bootprob.dea.panel import Panel
from bootprob.dea.selection import programs as selection_programs
from bootprob.dea.selection.joint import select_outputs, selection_curve
from bootprob.dea.selection.rules import InfeasibleSelectionError, SelectionRules
from bootprob.dea.selection.subsets import SubsetEfficiencies
from bootprob.exceptions import DataError

THIRD = 1 / 3
# Tables 5.1 and 5.2.
TOY_1 = [
    [0.6, THIRD, THIRD, THIRD],
    [0.7, THIRD, THIRD, THIRD],
    [0.8, 1, 0, 0],
    [0.9, 0, 1, 0],
    [1, 0, 0, 1],
]
TOY_2 = [[0.85, 0.2, 0.8], [0.95, 0.4, 0.6], [0.9, 0.6, 0.4], [1, 0.8, 0.2]]
OBJECTIVES = [
    ("mean", {}),
    ("weighted", {"weights": "random"}),
    ("quadratic", {}),
    ("minimum", {}),
    ("percentile", {"percentile": 25}),
]


def linear_programs(inputs, outputs):
    """(1.1) to (1.5) of the thesis, as they stand there."""
    n = inputs.shape[1]
    scores = []
    for x, y in zip(inputs, outputs, strict=True):
        found = linprog(
            np.r_[np.zeros(n), -y],
            A_ub=np.hstack([-inputs, outputs]), b_ub=np.zeros(len(inputs)),
            A_eq=np.r_[x, np.zeros(len(y))][None], b_eq=[1],
        )  # fmt: skip
        assert found.status == 0
        scores.append(-found.fun)
    return np.array(scores)


def random_panel(rng, units=12, outputs=6, inputs=1, zeros=0.0):
    size = np.exp(rng.normal(size=(units, 1)))
    X = size * rng.uniform(0.5, 2, (units, inputs))
    Y = size * rng.uniform(0.2, 2, (units, outputs))
    Y[rng.random(Y.shape) < zeros] = 0
    X[:, 1:][rng.random(X[:, 1:].shape) < zeros] = 0
    Y[:, 0] = np.maximum(Y[:, 0], 0.1)
    return Panel.of(X, Y)


def value(name, scores, options):
    if name == "mean":
        return scores.mean()
    if name == "weighted":
        return (options["weights"] * scores).mean()
    if name == "quadratic":
        return np.square(1 - scores).mean()
    rank = 1
    if name == "percentile":
        rank = max(1, int(np.floor(len(scores) * options["percentile"] / 100)))
    return np.sort(scores)[rank - 1]


def brute_force(panel, size, name, options, allowed=lambda chosen: True):
    evaluator = SubsetEfficiencies(panel)
    values = {
        chosen: value(name, evaluator.quick(chosen), options)
        for chosen in itertools.combinations(range(panel.n_outputs), size)
        if allowed(chosen)
    }
    best = min if name == "quadratic" else max
    return best(values.values())


@pytest.mark.parametrize("inputs", [1, 2, 3])
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_efficiencies_are_those_of_linear_programs(rng, inputs, zeros):
    panel = random_panel(rng, 20, 7, inputs, zeros)
    evaluator = SubsetEfficiencies(panel)
    for size in (1, 2, 4, 7):
        chosen = rng.choice(7, size, replace=False)
        truth = linear_programs(panel.inputs, panel.outputs[:, chosen])
        np.testing.assert_allclose(evaluator.of(chosen), truth, atol=1e-7)
        np.testing.assert_allclose(evaluator.quick(chosen), truth, atol=1e-7)


def test_weights_attain_the_efficiencies_and_are_feasible(rng):
    panel = random_panel(rng, 30, 6, 1, 0.3)
    evaluator = SubsetEfficiencies(panel)
    found = evaluator.weights([0, 2, 3])
    r = evaluator.outputs[[0, 2, 3]].T
    assert (found.outputs >= 0).all()
    assert (found.outputs @ r.T).max() <= 1 + 1e-9
    np.testing.assert_allclose((found.outputs * r).sum(axis=1), found.efficiencies)


def test_duplicated_units_empty_outputs_one_unit_and_scales(rng):
    panel = random_panel(rng, 10, 4)
    twice = Panel.of(np.vstack([panel.inputs] * 2), np.vstack([panel.outputs] * 2))
    one = SubsetEfficiencies(panel).of([0, 1, 3])
    np.testing.assert_allclose(SubsetEfficiencies(twice).of([0, 1, 3]), np.r_[one, one])
    scaled = Panel.of(panel.inputs * 1e-6, panel.outputs * [1e6, 1, 1e-6, 1])
    np.testing.assert_allclose(SubsetEfficiencies(scaled).of([0, 1, 3]), one)
    empty = Panel.of(panel.inputs, panel.outputs * [1, 0, 1, 1])
    np.testing.assert_allclose(
        SubsetEfficiencies(empty).of([0, 1, 3]), SubsetEfficiencies(panel).of([0, 3])
    )
    assert SubsetEfficiencies(empty).of([1]).tolist() == [0] * 10
    assert SubsetEfficiencies(Panel.of([2], [[3, 4]])).of([1]).tolist() == [1]
    assert select_outputs(Panel.of([2], [[3, 4]]), 1).status == "optimal"


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_data_over_many_orders_of_magnitude(rng, inputs):
    for _ in range(3):
        panel = Panel.of(np.exp(rng.normal(0, 3, (8, inputs))), np.exp(rng.normal(0, 3, (8, 3))))
        evaluator = SubsetEfficiencies(panel)
        np.testing.assert_allclose(evaluator.quick(range(3)), evaluator.of(range(3)), atol=1e-4)


def test_many_outputs(rng):
    panel = random_panel(rng, 60, 40)
    scores = SubsetEfficiencies(panel).quick(range(40))
    np.testing.assert_allclose(scores, linear_programs(panel.inputs, panel.outputs), atol=1e-7)


@pytest.mark.parametrize("method", ["exact", "program"])
def test_counterexample_5_1_marginal_contributions_can_grow(method):
    panel = Panel.of(np.ones(5), TOY_1)
    found = [select_outputs(panel, p, method=method) for p in (1, 2, 3)]
    assert [round(one.objective, 4) for one in found] == [0.8, 0.8667, 1.0]
    assert found[0].features == (0,)
    assert found[2].outputs == ("output 2", "output 3", "output 4")
    assert {one.status for one in found} == {"optimal"}
    curve = selection_curve(panel, 4)
    np.testing.assert_allclose(curve.marginal[1:], [1 / 15, 2 / 15, 0], atol=1e-9)
    assert np.isnan(curve.marginal[0])


def test_counterexample_5_2_nested_is_not_optimal():
    panel = Panel.of(np.ones(4), TOY_2)
    assert select_outputs(panel, 1).features == (0,)
    best = select_outputs(panel, 2)
    assert best.features == (1, 2)
    assert best.objective == pytest.approx(1.0)
    nested = select_outputs(panel, 2, method="nested")
    assert 0 in nested.features
    assert nested.status == "heuristic"
    assert nested.objective < 0.99 < nested.bound
    evaluator = SubsetEfficiencies(panel)
    np.testing.assert_allclose(evaluator.of([0, 1]), [0.85, 0.95, 0.9, 1], atol=1e-9)
    np.testing.assert_allclose(evaluator.of([0, 2]), [1, 1, 0.927, 1], atol=5e-4)


def test_what_the_scan_cannot_settle_is_solved_by_linear_programs(rng, monkeypatch):
    """A scan that settles nothing."""

    def unsettled(*arguments):
        candidates, starts, doubts = arguments[3], arguments[4], arguments[-1]
        pairs = [(candidates[b], later) for b in starts for later in candidates[b + 1 :]]
        doubts[: len(pairs)] = np.reshape(pairs, (-1, 2))
        return -np.inf, -1, -1, 0, len(pairs)

    panel = random_panel(rng, 9, 6, 2)
    monkeypatch.setattr("bootprob.dea.selection.scan_compiled.scan_last_two", unsettled)
    found = select_outputs(panel, 3)
    assert found.objective == pytest.approx(brute_force(panel, 3, "mean", {}), abs=1e-7)
    assert found.status == "optimal"


def test_units_that_the_weights_leave_next_to_nothing_are_settled(rng):
    """Rounding of vanishing amounts is no violation."""
    unsettled = 0
    for _ in range(40):
        evaluator = SubsetEfficiencies(random_panel(rng, 12, 8, 2, zeros=0.1))
        for pair in itertools.combinations(range(8), 2):
            found = np.empty(12)
            evaluator._settle(pair, found, np.empty((0, 0), dtype=np.int64))
            unsettled += np.isnan(found).any()
    assert not unsettled


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize(("name", "options"), OBJECTIVES, ids=[name for name, _ in OBJECTIVES])
def test_exact_is_the_best_of_all_subsets(rng, name, options, inputs):
    panel = random_panel(rng, 12, 8, inputs, zeros=0.1)
    if "weights" in options:
        options = {"weights": rng.uniform(0, 3, 12)}
    for size in (1, 2, 3, 4, 5):
        found = select_outputs(panel, size, objective=name, **options)
        truth = brute_force(panel, size, name, options)
        assert found.objective == pytest.approx(truth, abs=1e-7)
        assert found.status == "optimal"
        assert found.bound == found.objective
        assert found.gap == 0
        assert len(found.features) == size
        assert value(name, found.efficiencies, options) == pytest.approx(found.objective)
        assert found.path[-1].features == found.features


@pytest.mark.parametrize(("name", "options"), OBJECTIVES, ids=[name for name, _ in OBJECTIVES])
def test_bounds_hold_without_a_proof(rng, name, options):
    panel = random_panel(rng, 15, 9, zeros=0.1)
    if "weights" in options:
        options = {"weights": dict(zip(panel.units, rng.uniform(0, 3, 15), strict=True))}
    found = select_outputs(panel, 4, objective=name, method="exchange", **options)
    if "weights" in options:
        options = {"weights": np.array(list(options["weights"].values()))}
    truth = brute_force(panel, 4, name, options)
    sign = -1 if name == "quadratic" else 1
    assert sign * found.objective - 1e-9 <= sign * truth <= sign * found.bound + 1e-9


def test_every_bound_of_a_node_holds(rng):
    import math

    from bootprob.dea.selection.bounds import PairBounds, efficiency_ceiling
    from bootprob.dea.selection.objectives import EfficiencyObjective

    panel = random_panel(rng, 10, 8, zeros=0.2)
    evaluator = SubsetEfficiencies(panel)
    bounds, ceiling = PairBounds(evaluator, math.inf), efficiency_ceiling(evaluator)
    for name, options in OBJECTIVES:
        options = {"weights": rng.uniform(0, 3, 10)} if "weights" in options else options
        goal = EfficiencyObjective.of(name, panel.units, **options)
        for chosen, candidates in [((), range(8)), ((2,), [1, 4, 5, 7]), ((0, 6), [1, 3, 7])]:
            for size in range(max(2, len(chosen) + 1), len(chosen) + len(candidates) + 1):
                bound = bounds.of_node(goal, chosen, np.array(candidates), size, ceiling)
                more = itertools.combinations(candidates, size - len(chosen))
                best = max(goal.merit(evaluator.of((*chosen, *others))) for others in more)
                assert best <= bound + 1e-9


def test_side_constraints(rng):
    panel = random_panel(rng, 12, 8)
    costs = rng.uniform(1, 4, 8)
    clusters = {"a": [0, 1, 2], "b": ["output 4", "output 5"], "c": [5, 6, 7]}
    limit = float(np.sort(costs)[:3].sum() * 1.3)
    together = np.corrcoef(panel.outputs.T)
    threshold = float(np.quantile(together[np.triu_indices(8, 1)], 0.8))

    def allowed(chosen):
        inside = list(chosen)
        return (
            costs[inside].sum() <= limit
            and sum(j < 3 for j in inside) <= 1
            and sum(j in (3, 4) for j in inside) >= 1
            and all(together[i, j] <= threshold for i, j in itertools.combinations(inside, 2))
        )

    options = {
        "costs": costs, "budget": limit, "clusters": clusters,
        "cluster_max": {"a": 1}, "cluster_min": {"b": 1}, "max_correlation": threshold,
    }  # fmt: skip
    rules = SelectionRules.of(panel, **options)
    for chosen in itertools.combinations(range(8), 3):
        assert rules.allows(chosen) == allowed(chosen)
    if not any(map(allowed, itertools.combinations(range(8), 3))):
        with pytest.raises(InfeasibleSelectionError):
            select_outputs(panel, 3, **options)
        return
    truth = brute_force(panel, 3, "mean", {}, allowed)
    for method in ("exact", "program"):
        found = select_outputs(panel, 3, method=method, **options)
        assert found.objective == pytest.approx(truth, abs=1e-6)
        assert found.status == "optimal"
        assert allowed(found.features)
    for method in ("nested", "exchange"):
        found = select_outputs(panel, 3, method=method, **options)
        assert allowed(found.features)
        assert found.objective <= truth + 1e-9


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize(("name", "options"), OBJECTIVES, ids=[name for name, _ in OBJECTIVES])
def test_programs_agree_with_the_enumeration(rng, name, options, inputs):
    panel = random_panel(rng, 8, 6, inputs, zeros=0.1)
    if "weights" in options:
        options = {"weights": rng.uniform(0, 3, 8)}
    program = select_outputs(panel, 3, objective=name, method="program", **options)
    exact = select_outputs(panel, 3, objective=name, **options)
    assert program.objective == pytest.approx(exact.objective, abs=1e-6)
    assert program.status == "optimal"
    assert program.bound == pytest.approx(exact.objective, abs=1e-4)


def test_without_cvxpy_the_program_is_not_called_exact(rng, monkeypatch):
    monkeypatch.setattr("bootprob.optimization.solvers.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r'needs CVXPY .* pip install "bootprob\[mip\]"') as caught:
        select_outputs(random_panel(rng, 8, 6), 3, method="program")
    assert "exact" not in str(caught.value)


def test_program_starts_from_what_is_known_and_keeps_its_bound_when_stopped(rng):
    panel = random_panel(rng, 40, 30)
    found = select_outputs(panel, 6, method="program", time_limit=1.0)
    known = select_outputs(panel, 6, method="exchange")
    assert found.objective >= known.objective - 1e-9
    assert found.bound >= found.objective


@pytest.mark.parametrize("solver", ["HIGHS", "SCIP"])
@pytest.mark.parametrize("started", [True, False])
def test_solvers_take_the_start(rng, monkeypatch, solver, started):
    """Without any time they have what they were started from, or nothing."""
    given, left = [], []

    def without_time(problem, z, name, seconds):
        given.append(z.value.copy())
        for variable in problem.variables() if not started else ():
            variable.value = None
        found = solve_started(problem, z, name, 1e-3)
        left.append(z.value)
        return found

    solve_started = selection_programs.solve_started
    monkeypatch.setattr(selection_programs, "solve_started", without_time)
    panel = random_panel(rng, 40, 30, 2)
    found = select_outputs(panel, 5, method="program", solver=solver)
    if started:
        np.testing.assert_array_equal(left[0], given[0])
    else:
        assert left == [None]
    assert found.features == tuple(np.flatnonzero(given[0]))
    assert found.status == "time limit"


def test_a_curve_grows_and_time_limits_are_kept(rng):
    panel = random_panel(rng, 60, 40)
    curve = selection_curve(panel, 6, time_limit=0.8)
    assert curve.sizes == (1, 2, 3, 4, 5, 6)
    assert (np.diff(curve.values) >= -1e-9).all()
    assert (curve.values >= np.array(curve.nested) - 1e-9).all()
    for one in curve.selections:
        assert one.bound >= one.objective
        assert (one.status == "optimal") == (one.gap == 0)
    assert curve.selections[0].status == "optimal"
    frame = curve.to_frame()
    assert frame.index.tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(frame["mean"], curve.values)
    stopped = select_outputs(panel, 6, time_limit=0.05)
    assert stopped.status in ("time limit", "optimal")
    assert stopped.seconds < 5


def test_start_is_used(rng):
    panel = random_panel(rng, 12, 6)
    best = select_outputs(panel, 3)
    again = select_outputs(panel, 3, method="nested", start=best.outputs)
    assert again.features == best.features
    with pytest.raises(DataError, match="3 different outputs"):
        select_outputs(panel, 3, start=[0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "from 1 to 6"),
        ({"size": 7}, "from 1 to 6"),
        ({"size": "two"}, "from 1 to 6"),
        ({"objective": "median"}, "give one of"),
        ({"method": "best"}, "give one of"),
        ({"weights": [1] * 12}, "only 'weighted' uses that"),
        ({"objective": "weighted"}, "'weighted' needs weights"),
        ({"objective": "percentile"}, "'percentile' needs percentile"),
        ({"panel": [[1, 2]]}, "panel is list; give a Panel"),
        ({"objective": "weighted", "weights": [1, 2]}, "one for each of the 12"),
        ({"objective": "weighted", "weights": [-1] * 12}, "none negative"),
        ({"objective": "weighted", "weights": {"nobody": 1}}, "no unit"),
        ({"objective": "percentile", "percentile": 0}, "above 0"),
        ({"objective": "percentile", "percentile": "half"}, "above 0"),
        ({"costs": [1] * 6}, "without a budget"),
        ({"budget": -1}, "positive"),
        ({"budget": 3, "costs": [np.nan] * 6}, "give 0 or a positive"),
        ({"budget": 3, "costs": ["dear"] * 6}, "no numbers"),
        ({"budget": 3, "costs": 4}, "a number for each output"),
        ({"budget": 3, "costs": pd.Series({"output 1": 1, "output 9": 1})}, "no 'output 9'"),
        ({"cluster_max": 1}, "need clusters"),
        ({"clusters": [0, 1], "cluster_max": 1}, "a label for each"),
        ({"clusters": 3, "cluster_max": 1}, "a label for each"),
        ({"clusters": pd.Series({"output 1": "a"}), "cluster_max": 1}, "a label for each"),
        ({"clusters": {"a": [0], "b": [0]}, "cluster_max": 1}, "more than one cluster"),
        ({"clusters": {"a": [0]}, "cluster_max": {"b": 1}}, "no cluster 'b'"),
        ({"objective": "percentile"}, r"needs percentile \(--percentile\)"),
        ({"clusters": {"a": [0]}, "cluster_max": -1}, "give 0, 1, 2"),
        ({"max_correlation": 2}, "from -1 to 1"),
        ({"time_limit": 0}, "positive number"),
        ({"solver": "HIGHS"}, "only"),
        ({"method": "program", "solver": "CPLEX"}, "CPLEX"),
        ({"method": "program", "solver": "HIGHS", "objective": "quadratic"}, "SCIP"),
    ],
)
def test_bad_options(rng, options, message):
    panel = random_panel(rng, 12, 6)
    with pytest.raises(DataError, match=message):
        select_outputs(**{"panel": panel, "size": 2, **options})


def test_series_count_by_their_names_whatever_their_order(rng):
    panel = random_panel(rng, 12, 6)
    units, outputs = list(panel.units), list(panel.output_names)
    weights = pd.Series(rng.uniform(0, 3, 12), units)
    costs = pd.Series(rng.permutation([1.0, 1, 1, 9, 9, 9]), outputs)
    labels = pd.Series(list("aabbcc"), outputs)
    options = {"objective": "weighted", "budget": 12, "cluster_max": 1}
    truth = select_outputs(
        panel, 3, weights=weights.to_numpy(), costs=costs.to_numpy(), clusters=list(labels),
        **options,
    )  # fmt: skip
    shuffled = [one.sample(frac=1, random_state=3) for one in (weights, costs, labels)]
    assert shuffled[1].index.tolist() != outputs
    found = select_outputs(
        panel, 3, weights=shuffled[0], costs=shuffled[1], clusters=shuffled[2], **options
    )
    assert found.features == truth.features
    assert found.objective == pytest.approx(truth.objective)
    numbered = select_outputs(panel, 2, objective="weighted", weights=pd.Series(list(weights)))
    in_order = select_outputs(panel, 2, objective="weighted", weights=list(weights))
    assert numbered.objective == in_order.objective
    twice = pd.Series([1.0, 2.0], ["1", "1"])
    with pytest.raises(DataError, match="'1' more than once"):
        select_outputs(panel, 2, objective="weighted", weights=twice)


def test_no_efficiency_exceeds_one(rng):
    panel = random_panel(rng, 40, 12)
    evaluator = SubsetEfficiencies(panel)
    for _ in range(30):
        assert evaluator.of(rng.choice(12, 5, replace=False)).max() <= 1.0


def test_rules_that_nothing_keeps(rng):
    panel = random_panel(rng, 12, 6)
    for options in (
        {"budget": 2},
        {"max_correlation": -1},
        {"clusters": list("aabbcc"), "cluster_min": 2},
    ):
        with pytest.raises(InfeasibleSelectionError, match="No 3 of the 6 outputs"):
            select_outputs(panel, 3, **options)


def test_no_time_limit_counts_what_is_loaded_once():
    """numba and torch take seconds to load, of which a limit of one had nothing left."""
    script = """
import sys, time
import numpy as np
from bootprob.dea import Panel, select_for_unit, select_outputs, selection_curve

clock, loaded = time.perf_counter, []
def told():
    loaded.append("bootprob.dea.efficiencies.simplex_compiled" in sys.modules)
    return clock()

time.perf_counter = told
panel = Panel.of(np.ones(4), np.random.default_rng(0).uniform(1, 2, (4, 3)))
ask, more = {"select_outputs": (select_outputs, (2,)), "select_for_unit": (select_for_unit, (0, 2)),
             "selection_curve": (selection_curve, ([1, 2],))}[sys.argv[1]]
ask(panel, *more)
print(all(loaded), len(loaded) > 0)
"""
    for asked in ("select_outputs", "select_for_unit", "selection_curve"):
        command = [sys.executable, "-c", script, asked]
        said = subprocess.run(command, capture_output=True, check=True, text=True)
        assert said.stdout.split() == ["True", "True"], asked


def test_clusters_may_be_numbers(rng):
    panel = Panel.of(np.ones((5, 1)), rng.uniform(1, 2, (5, 4)))
    for clusters in ([0, 0, 1, 1], {0: [0, 1], 1: [2, 3]}):
        found = select_outputs(panel, 2, clusters=clusters, cluster_max={0: 1, 1: 1})
        assert sorted(j // 2 for j in found.features) == [0, 1]
