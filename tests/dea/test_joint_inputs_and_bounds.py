"""Inputs chosen for all units, and bounds on weights: against all subsets, one program a unit."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from bootprob.dea.panel import Panel
from bootprob.dea.selection.bounded import BoundedEfficiencies
from bootprob.dea.selection.joint import select_outputs, selection_curve
from bootprob.dea.selection.objectives import EfficiencyObjective
from bootprob.dea.selection.rules import InfeasibleSelectionError, SelectionRules
from bootprob.dea.selection.search import OutputSearch
from bootprob.dea.selection.selector import OutputSelector
from bootprob.dea.selection.weight_bounds import WeightBounds
from bootprob.exceptions import BootprobError, DataError
from configurations import parametrize_covering

UNITS, OUTPUTS, N_PROBLEMS = 6, 5, 5
OBJECTIVES = ["mean", "weighted", "quadratic", "minimum", "percentile"]


def efficiency(panel, unit, used, chosen, lower, upper):
    """(1.1) to (1.5) with (5.7′), as they stand there; None if that is infeasible."""
    x, y = panel.inputs[:, used], panel.outputs[:, chosen]
    found = linprog(
        np.r_[np.zeros(len(used)), -y[unit]],
        A_ub=np.hstack([-x, y]), b_ub=np.zeros(len(x)),
        A_eq=np.r_[x[unit], np.zeros(len(chosen))][None], b_eq=[1],
        bounds=[(0, None)] * len(used) + [(lower[unit, o], upper[unit, o]) for o in chosen],
    )  # fmt: skip
    assert found.status in (0, 2)
    return -found.fun if found.status == 0 else None


def value(name, scores, options):
    if name == "weighted":
        return (options["weights"] * scores).mean()
    if name == "quadratic":
        return np.square(1 - scores).mean()
    if name == "mean":
        return scores.mean()
    rank = 1 if name == "minimum" else max(1, len(scores) * options["percentile"] // 100)
    return np.sort(scores)[rank - 1]


def efficiencies(panel, used, chosen, lower, upper):
    scores = [
        efficiency(panel, k, list(used), list(chosen), lower, upper) for k in range(panel.n_units)
    ]
    return None if None in scores else np.array(scores)


def of_all_subsets(panel, size, n_inputs, lower, upper):
    """Efficiencies with each choice of inputs and outputs that is feasible."""
    subsets = itertools.product(
        itertools.combinations(range(panel.n_inputs), n_inputs),
        itertools.combinations(range(panel.n_outputs), size),
    )
    scores = [efficiencies(panel, *subset, lower, upper) for subset in subsets]
    return [each for each in scores if each is not None]


def best(name, all_scores, options):
    values = [value(name, scores, options) for scores in all_scores]
    if not values:
        return None
    return min(values) if name == "quadratic" else max(values)


def brute_force(panel, size, n_inputs, name, options, lower, upper):
    return best(name, of_all_subsets(panel, size, n_inputs, lower, upper), options)


def ugly_panel(rng):
    """Units of all sizes; nothings, the same unit or output twice, an output that nobody makes."""
    n_inputs = int(rng.integers(1, 4))
    size = np.exp(rng.normal(0, rng.choice([0.3, 1, 3]), (UNITS, 1)))
    X = size * rng.uniform(0.5, 2, (UNITS, n_inputs))
    Y = size * rng.uniform(0.2, 2, (UNITS, OUTPUTS))
    if rng.random() < 0.5:
        Y[rng.random(Y.shape) < 0.3] = 0
        X[:, 1:][rng.random(X[:, 1:].shape) < 0.3] = 0
    if rng.random() < 0.2:
        Y[:, 2] = 0
    if rng.random() < 0.2:
        X[3], Y[3] = X[1], Y[1]
    if rng.random() < 0.2:
        Y[:, 1] = 2 * Y[:, 0]
    return Panel.of(X, Y), 1 / np.maximum(Y, 0.1 * size)


def random_bounds(rng, alone):
    """Bounds of some outputs, in parts of the weights that alone would make units efficient."""
    lower, upper = np.zeros((UNITS, OUTPUTS)), np.full((UNITS, OUTPUTS), np.inf)
    for o in rng.choice(OUTPUTS, int(rng.integers(1, OUTPUTS + 1)), replace=False):
        if rng.random() < 0.6:
            lower[:, o] = rng.uniform(0, 0.3) * rng.uniform(size=UNITS) * alone[:, o]
        if rng.random() < 0.7:
            upper[:, o] = lower[:, o] + rng.uniform(0, 0.6, UNITS) * alone[:, o]
    return lower, upper


@cache  # for all objectives and methods
def ugly_problem(number):
    """A panel, how many outputs and inputs to choose, bounds, efficiencies with all subsets."""
    rng = np.random.default_rng(number)
    panel, alone = ugly_panel(rng)
    lower, upper = random_bounds(rng, alone)
    size, n_inputs = int(rng.integers(1, 5)), int(rng.integers(1, panel.n_inputs + 1))
    scores = of_all_subsets(panel, size, n_inputs, lower, upper)
    return panel, size, n_inputs, lower, upper, scores


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("method", ["exact", "program"])
def test_the_best_of_all_inputs_and_outputs(name, method):
    rng = np.random.default_rng(OBJECTIVES.index(name))
    infeasible = 0
    for number in range(N_PROBLEMS if method == "exact" else 2):
        panel, size, n_inputs, lower, upper, scores = ugly_problem(number)
        options = {"weighted": {"weights": rng.permutation([0, 0.5, 1, 1, 2, 3])}}.get(name, {})
        options |= {"percentile": 50} if name == "percentile" else {}
        truth = best(name, scores, options)
        given = {
            "objective": name, "method": method, "n_inputs": n_inputs, **options,
            "weight_bounds": {o: (lower[:, o], upper[:, o]) for o in range(OUTPUTS)},
        }  # fmt: skip
        if truth is None:
            infeasible += 1
            with pytest.raises(InfeasibleSelectionError):
                select_outputs(panel, size, **given)
            continue
        found = select_outputs(panel, size, **given)
        assert found.status == "optimal"
        assert found.objective == pytest.approx(truth, abs=1e-6)
        assert len(found.features) == size
        assert len(found.inputs) == len(found.input_positions) == n_inputs
        scores = efficiencies(panel, found.input_positions, found.features, lower, upper)
        np.testing.assert_allclose(found.efficiencies, scores, atol=1e-7)
        sign = -1 if name == "quadratic" else 1
        assert sign * found.bound >= sign * truth - 1e-6
        objectives = [sign * each.objective for each in found.path]
        assert objectives == sorted(objectives)
    assert infeasible < N_PROBLEMS - 1


def test_fewer_inputs_without_bounds(rng):
    panel = Panel.of(rng.uniform(0.5, 2, (7, 3)), rng.uniform(0.2, 2, (7, 5)))
    free = np.zeros((7, 5)), np.full((7, 5), np.inf)
    before = 0.0
    for n_inputs in range(1, 4):
        truth = brute_force(panel, 2, n_inputs, "mean", {}, *free)
        found = select_outputs(panel, 2, n_inputs=n_inputs)
        assert found.objective == pytest.approx(truth, abs=1e-7)
        assert found.status == "optimal"
        assert found.objective >= before - 1e-9
        before = found.objective
    everything = select_outputs(panel, 2)
    assert everything.inputs == panel.input_names
    assert everything.objective == pytest.approx(before)


@cache
def problem_of_one_input(number):
    panel, alone = ugly_panel(np.random.default_rng(number))
    upper = 0.4 * alone
    return panel, upper, of_all_subsets(panel, 3, 1, np.zeros(upper.shape), upper)


@parametrize_covering(1, name=OBJECTIVES, number=[0, 1])
def test_without_time_or_proof_the_bound_holds(name, number):
    panel, upper, scores = problem_of_one_input(number)
    options = {"weights": np.arange(6.0)} if name == "weighted" else {}
    options |= {"percentile": 30} if name == "percentile" else {}
    truth = best(name, scores, options)
    sign = -1 if name == "quadratic" else 1
    for more in ({"method": "exchange"}, {"time_limit": 1e-9}):
        found = select_outputs(
            panel, 3, objective=name, n_inputs=1, **options, **more,
            weight_bounds={o: (0, upper[:, o]) for o in range(OUTPUTS)},
        )  # fmt: skip
        assert sign * found.objective - 1e-7 <= sign * truth <= sign * found.bound + 1e-7


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_program_for_each_unit_is_solved_only_in_time(rng, size):
    panel, alone = ugly_panel(rng)
    evaluator = BoundedEfficiencies(panel, WeightBounds(np.zeros(alone.shape), 0.4 * alone))
    search = OutputSearch(
        evaluator, EfficiencyObjective.of("mean", panel.units), SelectionRules.of(panel), size,
        deadline=-np.inf,
    )  # fmt: skip
    search.offer(range(size))
    before = evaluator._kept.cache_info().misses
    assert search.exchange() is False
    assert search.best_addition(tuple(range(size - 1))) is None
    assert search.exhaust() is False
    assert search.merit <= search.bound
    assert evaluator._kept.cache_info().misses - before <= 1


def test_pairs_bound_what_holds_them(rng):
    """Also where bounds below make more outputs less efficient."""
    panel, alone = ugly_panel(rng)
    evaluator = BoundedEfficiencies(panel, WeightBounds(*random_bounds(rng, alone)))
    pairs = np.empty((OUTPUTS, OUTPUTS, UNITS))
    for first in range(OUTPUTS):
        assert evaluator.fill_pairs(first, pairs, np.inf)
    ceiling = evaluator.most()
    for size in (3, 4, 5):
        for chosen in itertools.combinations(range(OUTPUTS), size):
            scores = evaluator.of(chosen)
            both = sum(pairs[pair] for pair in itertools.combinations(chosen, 2)) / (size - 1)
            if scores.min() >= 0:
                assert (scores <= both + 1e-6).all()
            assert (scores <= ceiling + 1e-6).all()


def test_a_curve_with_inputs_and_bounds(rng):
    panel = Panel.of(rng.uniform(0.5, 2, (6, 3)), rng.uniform(0.2, 2, (6, 4)))
    upper = np.full((6, 4), np.inf)
    upper[:, [0, 3]] = rng.uniform(0.1, 0.4, (6, 2))
    bounds = {o: (0, upper[:, o]) for o in (0, 3)}
    curve = selection_curve(panel, 3, n_inputs=2, weight_bounds=bounds)
    for one, nested in zip(curve.selections, curve.nested, strict=True):
        size = len(one.features)
        truth = brute_force(panel, size, 2, "mean", {}, np.zeros((6, 4)), upper)
        assert one.objective == pytest.approx(truth, abs=1e-7)
        assert one.status == "optimal"
        assert nested <= truth + 1e-9
    assert curve.to_frame()["inputs"].str.count(",").tolist() == [1] * 3


def test_minima_of_clusters_do_not_bound_larger_selections(monkeypatch):
    """The one output that a selection of one has to hold is useless: no bound for two."""
    whole = OutputSearch.exhaust

    def only_one(search, *arguments, **options):
        return search.size == 1 and whole(search, *arguments, **options)

    monkeypatch.setattr(OutputSearch, "exhaust", only_one)
    panel = Panel.of(np.ones(3), [[0, 1, 2, 1], [0, 2, 1, 1], [1e-9, 1, 1, 2]])
    curve = selection_curve(panel, 2, clusters={"useless": [0]}, cluster_min=1)
    one, two = curve.selections
    assert one.features == (0,)
    assert one.status == "optimal"
    assert two.status == "time limit"
    assert two.bound > two.objective > 2 * one.bound


def test_bounds_of_units_by_name_and_one_number_for_all(rng):
    panel = Panel.of(rng.uniform(0.5, 2, 6), rng.uniform(0.2, 2, (6, 4)), units=list("abcdef"))
    ends = rng.uniform(0.1, 0.4, 6)
    series = pd.Series(ends, list("abcdef")).sample(frac=1, random_state=1)
    found = [
        select_outputs(panel, 2, weight_bounds={"output 1": (0, end), 1: (0, 0.3)}).objective
        for end in (ends, series, series.to_dict(), ends.tolist())
    ]
    assert found == [found[0]] * 4
    bounds = WeightBounds.of(panel, {2: (0.1, series)})
    np.testing.assert_array_equal(bounds.upper[:, 2], ends)
    np.testing.assert_array_equal(bounds.lower[:, 2], 0.1)
    assert bounds.bounded.tolist() == [False, False, True, False]


def test_as_a_transformer():
    rng = np.random.default_rng(0)  # an output of no weight costs nothing where others tie
    outputs, inputs = rng.uniform(0.2, 2, (8, 4)), rng.uniform(0.5, 2, (8, 2))
    selector = OutputSelector(2, n_inputs=1, weight_bounds={0: (0, 0)}).fit(outputs, inputs)
    assert not selector.support_[0]
    assert len(selector.result_.inputs) == 1


def test_what_cannot_be_had(rng):
    panel = Panel.of(np.eye(3), rng.uniform(0.2, 2, (3, 4)))
    with pytest.raises(InfeasibleSelectionError, match="some unit uses none of them"):
        select_outputs(panel, 2, n_inputs=2)
    one = Panel.of(np.ones(3), panel.outputs)
    heavy = dict.fromkeys(range(4), (1e6, 1e7))
    for method in ("exact", "program"):
        with pytest.raises(InfeasibleSelectionError, match="for every unit, weights within"):
            select_outputs(one, 2, weight_bounds=heavy, method=method)
    with pytest.raises(BootprobError, match="were found") as error:
        select_outputs(one, 2, weight_bounds=heavy, method="exchange")
    assert not isinstance(error.value, InfeasibleSelectionError)
    with pytest.raises(InfeasibleSelectionError, match="Widen the bounds"):
        selection_curve(one, 2, weight_bounds=heavy)
    # Bounds below that two outputs can keep together and three cannot.
    some = {o: (0.4 / one.outputs[:, o].max(), np.inf) for o in range(4)}
    assert select_outputs(one, 2, weight_bounds=some).status == "optimal"
    with pytest.raises(InfeasibleSelectionError):
        select_outputs(
            Panel.of(np.ones(3), np.ones((3, 4))), 3,
            weight_bounds=dict.fromkeys(range(4), (0.4, np.inf)),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inputs": 0}, "number of inputs to choose is 0; give one from 1 to 2"),
        ({"n_inputs": 3}, "from 1 to 2"),
        ({"weight_bounds": 3}, "give a dict"),
        ({"weight_bounds": {"output 9": (0, 1)}}, "no 'output 9'"),
        ({"weight_bounds": {0: 3}}, "give two numbers"),
        ({"weight_bounds": {0: (2, 1)}}, "one that is not less"),
        ({"weight_bounds": {0: (-1, 1)}}, "from 0 up"),
        ({"weight_bounds": {0: (np.nan, 1)}}, "from 0 up"),
        ({"weight_bounds": {0: (0, np.nan)}}, "not less"),
        ({"weight_bounds": {0: ("low", 1)}}, "give two numbers"),
        ({"weight_bounds": {0: ([0, 0], 1)}}, "one for each of the 5 units"),
        ({"weight_bounds": {0: ({"1": 0.0}, 1)}}, "name every unit once"),
    ],
)
def test_bad_options(rng, options, message):
    panel = Panel.of(rng.uniform(0.5, 2, (5, 2)), rng.uniform(0.2, 2, (5, 3)))
    with pytest.raises(DataError, match=message):
        select_outputs(panel, 2, **options)


def test_too_many_ways_to_choose_inputs(rng):
    panel = Panel.of(rng.uniform(0.5, 2, (4, 20)), rng.uniform(0.2, 2, (4, 3)))
    with pytest.raises(DataError, match="There are 184,756 ways to choose 10 of 20 inputs"):
        select_outputs(panel, 1, n_inputs=10)
