"""Outputs and inputs for one unit: against all subsets, a linear program for each."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from bootprob.dea.panel import Panel
from bootprob.dea.selection.rules import InfeasibleSelectionError
from bootprob.dea.selection.single import select_for_unit
from bootprob.exceptions import DataError

UNITS, OUTPUTS, INPUTS = 9, 6, 3


def random_panel(rng, inputs=INPUTS, zeros=0.0):
    size = np.exp(rng.normal(size=(UNITS, 1)))
    X = size * rng.uniform(0.5, 2, (UNITS, inputs))
    Y = size * rng.uniform(0.2, 2, (UNITS, OUTPUTS))
    Y[rng.random(Y.shape) < zeros] = 0
    X[:, 1:][rng.random(X[:, 1:].shape) < zeros] = 0
    Y[:, 0] = np.maximum(Y[:, 0], 0.1)
    return Panel.of(X, Y)


def efficiency(panel, unit, used, chosen, bounds=None):
    """(1.1) to (1.5), with (5.9) for the outputs; None if that is infeasible."""
    x, y = panel.inputs[:, used], panel.outputs[:, chosen]
    n = x.shape[1]
    found = linprog(
        np.r_[np.zeros(n), -y[unit]],
        A_ub=np.hstack([-x, y]), b_ub=np.zeros(len(x)),
        A_eq=np.r_[x[unit], np.zeros(len(chosen))][None], b_eq=[1],
        bounds=[(0, None)] * n + [(bounds or {}).get(o, (0, None)) for o in chosen],
    )  # fmt: skip
    return -found.fun if found.status == 0 else None


def brute_force(panel, unit, size, n_inputs, bounds=None, allowed=lambda chosen: True):
    values = [
        efficiency(panel, unit, list(used), list(chosen), bounds)
        for used in itertools.combinations(range(panel.n_inputs), n_inputs)
        for chosen in itertools.combinations(range(OUTPUTS), size)
        if allowed(chosen)
    ]
    values = [one for one in values if one is not None]
    return max(values) if values else None


def check(panel, unit, found, truth, bounds=None):
    assert found.objective == pytest.approx(truth, abs=1e-5)
    assert found.status == "optimal"
    assert found.bound == found.objective
    used, chosen = list(found.input_positions), list(found.features)
    assert efficiency(panel, unit, used, chosen, bounds) == pytest.approx(found.objective, abs=1e-7)
    x, y = panel.inputs[:, used], panel.outputs[:, chosen]
    alpha, beta = found.input_weights, found.output_weights
    assert (alpha >= -1e-9).all()
    assert (beta >= -1e-9).all()
    assert alpha @ x[unit] == pytest.approx(1)
    assert beta @ y[unit] == pytest.approx(found.objective, abs=1e-6)
    assert (y @ beta <= x @ alpha * (1 + 1e-6) + 1e-7).all()


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("solver", ["HIGHS", "SCIP"])
def test_outputs_and_inputs(rng, zeros, solver):
    panel = random_panel(rng, zeros=zeros)
    for size, n_inputs in [(1, 1), (2, 2), (3, 3)]:
        unit = int(rng.integers(UNITS))
        truth = brute_force(panel, unit, size, n_inputs)
        found = select_for_unit(panel, unit, size, n_inputs=n_inputs, solver=solver)
        check(panel, unit, found, truth)
        assert len(found.outputs) == size
        assert len(found.inputs) == n_inputs


def test_one_input_all_sizes(rng):
    panel = random_panel(rng, inputs=1)
    before = 0.0
    for size in range(1, OUTPUTS + 1):
        found = select_for_unit(panel, panel.units[3], size)
        check(panel, 3, found, brute_force(panel, 3, size, 1))
        assert found.objective >= before - 1e-9
        before = found.objective


@pytest.mark.parametrize("inputs", [1, 3])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_weight_bounds(rng, inputs, zeros):
    panel = random_panel(rng, inputs, zeros)
    infeasible = 0
    for unit in range(4):
        own = 1 / np.maximum(panel.outputs[unit], 0.1)  # a weight that alone makes it efficient
        lower, upper = rng.uniform(0, 0.4, OUTPUTS) * own, rng.uniform(0.4, 1, OUTPUTS) * own
        bounds = {o: (lower[o], upper[o]) for o in (0, 2, 3, 5)}
        given = {f"output {o + 1}": pair for o, pair in bounds.items()}
        truth = brute_force(panel, unit, 3, inputs, bounds)
        if truth is None:
            infeasible += 1
            with pytest.raises(InfeasibleSelectionError, match="Widen the bounds"):
                select_for_unit(panel, unit, 3, weight_bounds=given)
            continue
        found = select_for_unit(panel, unit, 3, weight_bounds=given)
        check(panel, unit, found, truth, bounds)
        for o, weight in zip(found.features, found.output_weights, strict=True):
            if o in bounds:
                assert bounds[o][0] * (1 - 1e-6) <= weight <= bounds[o][1] * (1 + 1e-6)
    assert infeasible < 4


def test_weight_bounds_that_nothing_keeps(rng):
    panel = random_panel(rng, inputs=1)
    bounds = dict.fromkeys(range(OUTPUTS), (1000000.0, 10000000.0))
    with pytest.raises(InfeasibleSelectionError, match="Widen the bounds"):
        select_for_unit(panel, 0, 2, weight_bounds=bounds)


def test_lower_bounds_do_not_force_an_output(rng):
    """(5.7') bounds the weights of chosen outputs; the others have weight 0."""
    panel = random_panel(rng, inputs=1)
    found = select_for_unit(panel, 0, 1, weight_bounds={2: (1e6, 1e7)})
    assert 2 not in found.features
    check(panel, 0, found, max(efficiency(panel, 0, [0], [o]) for o in (0, 1, 3, 4, 5)))


def test_costs_clusters_and_correlation(rng):
    panel = random_panel(rng, inputs=2)
    costs = rng.uniform(1, 3, OUTPUTS)
    budget = float(np.sort(costs)[:3].sum() * 1.15)
    together = np.corrcoef(panel.outputs.T)
    threshold = float(np.quantile(together[np.triu_indices(OUTPUTS, 1)], 0.7))
    labels = ["a", "a", "a", "b", "b", "c"]

    def allowed(chosen):
        counts = {label: sum(labels[o] == label for o in chosen) for label in "abc"}
        return (
            costs[list(chosen)].sum() <= budget
            and counts["a"] <= 1
            and counts["b"] >= 1
            and all(together[i, j] <= threshold for i, j in itertools.combinations(chosen, 2))
        )

    rules = {
        "costs": dict(zip(panel.output_names, costs, strict=True)), "budget": budget,
        "clusters": labels, "cluster_max": {"a": 1}, "cluster_min": {"b": 1},
        "max_correlation": threshold,
    }  # fmt: skip
    for size in (2, 3):
        for unit in (0, 4):
            truth = brute_force(panel, unit, size, 1, allowed=allowed)
            if truth is None:
                with pytest.raises(InfeasibleSelectionError):
                    select_for_unit(panel, unit, size, n_inputs=1, **rules)
                continue
            found = select_for_unit(panel, unit, size, n_inputs=1, **rules)
            check(panel, unit, found, truth)
            assert allowed(found.features)


def test_scales_of_the_data_do_not_matter(rng):
    panel = random_panel(rng)
    scaled = Panel.of(panel.inputs * [1e6, 1, 1e-6], panel.outputs * np.logspace(-6, 6, OUTPUTS))
    one = select_for_unit(panel, 2, 2, n_inputs=2)
    other = select_for_unit(scaled, 2, 2, n_inputs=2)
    assert one.objective == pytest.approx(other.objective, abs=1e-6)


def test_an_input_that_nobody_uses_says_nothing(rng):
    panel = random_panel(rng, inputs=2)
    more = Panel.of(np.c_[panel.inputs, np.zeros(UNITS)], panel.outputs)
    one = select_for_unit(panel, 1, 2)
    other = select_for_unit(more, 1, 2)
    assert one.objective == pytest.approx(other.objective, abs=1e-9)
    assert other.input_weights[2] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "nobody"}, "no 'nobody'"),
        ({"unit": 99}, "no 99"),
        ({"size": 7}, "from 1 to 6"),
        ({"n_inputs": 0}, "from 1 to 3"),
        ({"n_inputs": 4}, "from 1 to 3"),
        ({"weight_bounds": {"no": (0, 1)}}, "no 'no'"),
        ({"weight_bounds": {0: 3}}, "two numbers"),
        ({"weight_bounds": {0: (2, 1)}}, "not less"),
        ({"weight_bounds": {0: (-1, 1)}}, "from 0 up"),
        ({"weight_bounds": {0: (np.nan, 1)}}, "from 0 up"),
        ({"weight_bounds": {0: (0, np.nan)}}, "not less"),
        ({"solver": "GUROBI"}, "give 'HIGHS', 'SCIP'"),
        ({"solver": 3}, "solver is 3"),
        ({"time_limit": "long"}, "positive number"),
    ],
)
def test_bad_options(rng, options, message):
    panel = random_panel(rng)
    with pytest.raises(DataError, match=message):
        select_for_unit(panel, **{"unit": 0, "size": 2, **options})


def test_a_unit_without_inputs_is_refused():
    panel = Panel(np.array([[1.0], [0.0]]), np.ones((2, 2)), ("a", "b"), ("x",), ("y", "z"))
    with pytest.raises(DataError, match="inputs of unit 'b' are zero"):
        select_for_unit(panel, 0, 1)
