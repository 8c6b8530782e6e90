"""Efficiencies against the reference scores, against programs written out here, against rules."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import bootprob.dea.efficiencies.envelopment as module
from bootprob.dea import Panel, PanelError, efficiency
from bootprob.dea.efficiencies.certificate import certify
from bootprob.dea.efficiencies.solvers import HotHighs, Linprog, Raw
from bootprob.exceptions import DataError

RETURNS = ("constant", "variable", "non-increasing", "non-decreasing")
ORIENTATIONS = ("input", "output")


def multiplier_score(X, Y, unit, returns, orientation, without_itself=False):
    """The multiplier side of one unit by SciPy; None if it is unbounded."""
    (K, N), M = X.shape, Y.shape[1]
    free = {
        "constant": (0, 0), "variable": (None, None),
        "non-increasing": (None, 0), "non-decreasing": (0, None),
    }[returns]  # fmt: skip
    rows = np.hstack((-X, Y, np.ones((K, 1))))
    others = np.arange(K) != unit if without_itself else np.ones(K, dtype=bool)
    inward = orientation == "input"
    objective = np.concatenate((np.zeros(N) if inward else X[unit], np.zeros(M), [-1.0]))
    if inward:
        objective[N : N + M] = -Y[unit]
    fixed = np.concatenate(
        (X[unit] if inward else np.zeros(N), np.zeros(M) if inward else Y[unit], [0.0])
    )
    found = linprog(
        objective, A_ub=rows[others], b_ub=np.zeros(others.sum()), A_eq=fixed[None], b_eq=[1.0],
        bounds=[(0, None)] * (N + M) + [free], method="highs",
    )  # fmt: skip
    if found.status in (3, 4):
        return None
    assert found.status == 0
    return -found.fun if inward else found.fun


def most_slack(X, Y, unit, score, returns, orientation):
    """Sum of all slacks in parts of their columns' largest, with a variable for each."""
    (K, N), M = X.shape, Y.shape[1]
    top = np.hstack((X.max(axis=0), Y.max(axis=0)))
    shrunk, grown = (score, 1.0) if orientation == "input" else (1.0, score)
    rows = np.hstack((np.vstack((X.T, -Y.T)) / top[:, None], np.eye(N + M)))
    right = np.concatenate((shrunk * X[unit], -grown * Y[unit])) / top
    total = np.concatenate((np.ones(K), np.zeros(N + M)))[None]
    below = {"non-increasing": total, "non-decreasing": -total}.get(returns)
    if returns == "variable":
        rows, right = np.vstack((rows, total)), np.append(right, 1.0)
    found = linprog(
        np.concatenate((np.zeros(K), -np.ones(N + M))), A_eq=rows, b_eq=right,
        A_ub=below, b_ub=None if below is None else [below[0, 0]], method="highs",
    )  # fmt: skip
    assert found.status == 0
    return -found.fun


def ugly_panel(rng, K=14):
    """Zeros, amounts of different sizes, a unit twice."""
    X = rng.lognormal(size=(K, rng.integers(1, 4)))
    Y = rng.lognormal(size=(K, rng.integers(1, 4)))
    for table in (X, Y):
        table[rng.random(table.shape) < 0.15] = 0
        table[table.sum(axis=1) == 0] = 1
    X[1], Y[1] = X[0], Y[0]
    return X, Y


def folder():
    where = Path(os.environ.get("BOOTPROB_DATASETS", "nowhere")) / "dea"
    if not where.is_dir():
        pytest.skip("the data of dea are not at hand; set BOOTPROB_DATASETS")
    return where


def read(name):
    """Panel of a data set, numbered units, and the groups of those that have them."""
    columns = {
        "charnes1981": ([f"x{i}" for i in range(1, 6)], [f"y{i}" for i in range(1, 4)]),
        "PFT1981": (
            ["Education", "Occupation", "Parental", "Counseling", "Teachers"],
            ["Reading", "Math", "Coopersmith"],
        ),
        "Fortune500": (["Assets", "Equity", "Employees"], ["Revenue", "Profit"]),
        "Tone2001": (["Input1", "Input2"], ["Output1", "Output2"]),
        "hospitals12": (["doctors", "nurses"], ["outpatients", "inpatients"]),
        "milkProd": (["energy", "vet", "cows"], ["milk"]),
    }[name]
    packed = name in ("charnes1981", "milkProd")
    path = folder() / f"{name}.csv{'.gz' if packed else ''}"
    table = pd.read_csv(path, sep=";" if packed else ",")
    panel = Panel.of(*(table[names] for names in columns))
    assert panel.input_names == tuple(columns[0])
    group = next((table[key] for key in ("pft", "Program") if key in table), None)
    return panel, group


def reference(name, model):
    scores = pd.read_csv(folder() / "reference_scores.csv")
    return scores[(scores.dataset == name) & (scores.model == model)].score.to_numpy()


@pytest.mark.parametrize(
    "name", ["charnes1981", "PFT1981", "Fortune500", "Tone2001", "hospitals12", "milkProd"]
)
def test_reference_scores(name):
    panel, group = read(name)
    for model, returns, orientation in (
        ("CCR input-oriented (constant returns)", "constant", "input"),
        ("BCC input-oriented (variable returns)", "variable", "input"),
        ("BCC output-oriented (variable returns)", "variable", "output"),
    ):
        result = efficiency(panel, returns=returns, orientation=orientation)
        assert np.abs(result.scores - reference(name, model)).max() < 1e-6
        assert result.certificate.worst.max() < 1e-8
        assert set(result.status) == {"optimal"}
    if group is not None:
        scores = np.empty(panel.n_units)
        for value in group.unique():
            rows = np.flatnonzero(group == value)
            scores[rows] = efficiency(panel.take(units=rows)).scores
        wanted = reference(name, "CCR input-oriented within PFT / NFT group")
        assert np.abs(scores - wanted).max() < 1e-6


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("super_efficiency", [False, True])
def test_multiplier_programs_give_the_same(rng, returns, orientation, super_efficiency):
    X, Y = ugly_panel(rng)
    result = efficiency(
        X, Y, returns=returns, orientation=orientation, super_efficiency=super_efficiency
    )
    for unit, score in enumerate(result.scores):
        wanted = multiplier_score(X, Y, unit, returns, orientation, super_efficiency)
        if wanted is None or abs(wanted) > 1e9:
            assert result.status[unit] == "infeasible"
            assert np.isnan(score)
            assert result.efficient[unit]
            assert not result.peers[str(unit + 1)]
        else:
            assert result.status[unit] == "optimal"
            assert score == pytest.approx(wanted, rel=1e-6, abs=1e-7)
    solved = np.array(result.status) == "optimal"
    assert result.certificate.worst[solved].max(initial=0) < 1e-6
    if not super_efficiency:
        assert solved.all()


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_slacks_are_the_most_and_targets_efficient(rng, returns, orientation):
    X, Y = ugly_panel(rng)
    X, Y = X[:, X.max(axis=0) > 0], Y[:, Y.max(axis=0) > 0]
    result = efficiency(X, Y, returns=returns, orientation=orientation)
    slack = (result.input_slacks / X.max(axis=0)).sum(axis=1)
    slack += (result.output_slacks / Y.max(axis=0)).sum(axis=1)
    room = 1e-8 if orientation == "input" else -1e-8
    for unit, score in enumerate(result.scores):
        wanted = most_slack(X, Y, unit, score * (1 + room), returns, orientation)
        assert slack[unit] == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(result.lambdas @ X, result.input_targets, atol=1e-12)
    shrunk, grown = (result.scores, 1) if orientation == "input" else (1, result.scores)
    np.testing.assert_allclose(
        (shrunk * X.T).T - result.input_slacks, result.input_targets, rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(
        (grown * Y.T).T + result.output_slacks, result.output_targets, rtol=1e-6, atol=1e-7
    )
    # Beside the units, the targets are fully efficient units.
    targets = [np.where(t < 1e-9, 0, t) for t in (result.input_targets, result.output_targets)]
    both = efficiency(
        np.vstack((X, targets[0])), np.vstack((Y, targets[1])),
        returns=returns, orientation=orientation,
    )  # fmt: skip
    assert np.abs(both.scores[len(X) :] - 1).max() < 1e-5
    assert (both.input_slacks[len(X) :] / X.max(axis=0)).max() < 1e-5
    assert np.abs(both.scores[: len(X)] - result.scores).max() < 1e-5 * result.scores.max()


def test_weights_prove_the_scores(rng):
    X, Y = rng.uniform(1, 2, (20, 2)), rng.uniform(1, 2, (20, 3))
    result = efficiency(X, Y)
    alpha, beta = result.input_weights, result.output_weights
    np.testing.assert_allclose((alpha * X).sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose((beta * Y).sum(axis=1), result.scores, atol=1e-9)
    assert (beta @ Y.T - alpha @ X.T).max() < 1e-9
    assert min(alpha.min(), beta.min()) >= 0
    assert not result.intercepts.any()


def test_relations_between_models(rng):
    X, Y = ugly_panel(rng, 25)
    scores = {
        (returns, orientation): efficiency(X, Y, returns=returns, orientation=orientation).scores
        for returns in RETURNS
        for orientation in ORIENTATIONS
    }
    np.testing.assert_allclose(
        scores["constant", "input"] * scores["constant", "output"], 1, rtol=1e-7
    )
    for orientation, sign in (("input", 1), ("output", -1)):
        constant, variable, less, more = (sign * scores[r, orientation] for r in RETURNS)
        assert (np.minimum(less, more) >= constant - 1e-8).all()
        assert (np.maximum(less, more) <= variable + 1e-8).all()
        np.testing.assert_allclose(np.minimum(less, more), constant, rtol=1e-7)


@pytest.mark.parametrize("returns", RETURNS)
def test_units_of_measurement_do_not_matter(rng, returns):
    X, Y = ugly_panel(rng)
    N, M = X.shape[1], Y.shape[1]
    factor = 10.0 ** rng.choice([-6, 0, 6], N + M)
    for orientation in ORIENTATIONS:
        plain = efficiency(X, Y, returns=returns, orientation=orientation)
        other = efficiency(X * factor[:N], Y * factor[N:], returns=returns, orientation=orientation)
        np.testing.assert_allclose(other.scores, plain.scores, rtol=1e-7)
        np.testing.assert_allclose(other.input_slacks / factor[:N], plain.input_slacks, atol=1e-6)


def test_sizes_of_units_do_not_matter_at_constant_returns(rng):
    X, Y = ugly_panel(rng)
    size = 10.0 ** rng.uniform(-5, 5, (len(X), 1))
    small_and_large = efficiency(X * size, Y * size)
    np.testing.assert_allclose(small_and_large.scores, efficiency(X, Y).scores, rtol=1e-6)
    assert small_and_large.certificate.worst.max() < 1e-6


def test_super_efficiency_with_one_input_and_output():
    x, y = np.array([2.0, 3.0, 4.0, 8.0]), np.array([2.0, 6.0, 5.0, 20.0])
    ratio = y / x
    result = efficiency(x, y, super_efficiency=True)
    best = [np.delete(ratio, unit).max() for unit in range(4)]
    np.testing.assert_allclose(result.scores, ratio / best)
    assert result.efficient.tolist() == [False, False, False, True]
    assert not np.diag(result.lambdas).any()
    variable = efficiency(x, y, returns="variable", super_efficiency=True)
    assert variable.status == ("optimal", "optimal", "optimal", "infeasible")
    assert np.isnan(variable.scores[3])
    assert variable.scores[0] == pytest.approx(1.5)
    assert np.isnan(variable.to_frame().loc["4", "weight of input 1"])


@pytest.mark.parametrize("returns", RETURNS)
def test_one_unit(returns):
    result = efficiency([3], [[1, 0]], returns=returns)
    assert result.scores.tolist() == [1]
    assert result.peers == {"1": {"1": 1.0}}
    alone = efficiency([3], [[1, 0]], returns=returns, super_efficiency=True)
    assert alone.status == ("infeasible",)


def test_units_that_are_the_same_have_the_same_score(rng):
    X, Y = rng.uniform(1, 2, (6, 2)), rng.uniform(1, 2, (6, 2))
    result = efficiency(np.tile(X, (3, 1)), np.tile(Y, (3, 1)), returns="variable")
    np.testing.assert_allclose(result.scores.reshape(3, 6), np.tile(efficiency(
        X, Y, returns="variable").scores, (3, 1)), atol=1e-9)  # fmt: skip


def test_columns_of_zeros_change_nothing(rng):
    X, Y = rng.uniform(1, 2, (8, 2)), rng.uniform(1, 2, (8, 2))
    result = efficiency(np.hstack((X, np.zeros((8, 1)))), np.hstack((np.zeros((8, 1)), Y)))
    np.testing.assert_allclose(result.scores, efficiency(X, Y).scores, atol=1e-9)
    assert result.fully_efficient.any()


def test_a_unit_that_produces_none_of_what_is_taken():
    panel = Panel.of([1, 1], [[1, 0], [0, 1]]).take(outputs=[0])
    assert efficiency(panel).scores.tolist() == [1, 0]
    with pytest.raises(PanelError, match="All outputs of unit '2' are zero"):
        efficiency(panel, orientation="output")


def test_slack_beside_a_score_of_one():
    """Unit 3 has a score of 1 and uses one of input 2 too much."""
    result = efficiency([[1, 4], [4, 1], [1, 5]], [1, 1, 1])
    np.testing.assert_allclose(result.scores, 1)
    assert result.efficient.tolist() == [True, True, True]
    assert result.fully_efficient.tolist() == [True, True, False]
    np.testing.assert_allclose(result.input_slacks[2], [0, 1], atol=1e-9)
    assert result.peers["3"] == {"1": pytest.approx(1)}
    without = efficiency([[1, 4], [4, 1], [1, 5]], [1, 1, 1], slacks=False)
    assert np.isnan(without.input_slacks).all()
    np.testing.assert_allclose(without.scores, 1)


def test_frames_keep_the_names():
    table = pd.DataFrame({"a": [2, 4, 5], "b": [2, 2, 5]}, index=["x", "y", "z"])
    result = efficiency(table[["a"]], table["b"], returns="variable")
    frame = result.to_frame()
    assert frame.index.tolist() == ["x", "y", "z"]
    assert frame.loc["y", "peers"] == "x"
    assert frame.loc["y", "target of a"] == pytest.approx(2)
    assert frame.loc["y", "score"] == pytest.approx(0.5)
    assert {"slack of b", "weight of a", "intercept", "gap", "status"} <= set(frame)
    assert result.lambdas_frame().loc["y", "x"] == pytest.approx(1)
    again = efficiency(result.panel, returns="variable")
    pd.testing.assert_frame_equal(again.to_frame(), frame)


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("super_efficiency", [False, True])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_certificate_finds_what_is_wrong(rng, returns, super_efficiency, orientation):
    X, Y = rng.uniform(1, 2, (9, 2)), rng.uniform(1, 2, (9, 2))
    result = efficiency(
        X, Y, returns=returns, orientation=orientation, super_efficiency=super_efficiency
    )
    unit = int(np.flatnonzero(np.array(result.status) == "optimal")[0])
    parts = {
        name: getattr(result, name)
        for name in ("scores", "lambdas", "input_weights", "output_weights", "intercepts")
    }

    def worst(**changed):
        options = (result.panel, returns, orientation, super_efficiency)
        return certify(*options, *(parts | changed).values()).worst[unit]

    assert worst() < 1e-8
    assert worst(scores=result.scores * 1.001) > 5e-4
    assert worst(lambdas=result.lambdas * (0.999 if orientation == "input" else 1.001)) > 5e-4
    assert worst(lambdas=-result.lambdas) > 0.1
    assert worst(input_weights=result.input_weights - 0.01) > 5e-3
    assert worst(output_weights=result.output_weights + 0.01) > 5e-3
    assert worst(intercepts=result.intercepts + 0.001) > 5e-4
    if super_efficiency:
        assert worst(lambdas=result.lambdas + np.eye(9)) > 0.5


class Crooked:
    """Solves rightly, then reports something else."""

    def __init__(self, change):
        self.change, self.right = change, Linprog()

    def solve(self, program):
        return self.change(program, self.right.solve(program))


def test_what_a_solver_says_is_checked(monkeypatch):
    def shift(program, raw):
        return Raw("optimal", raw.values + 1e-4, raw.row_duals)

    monkeypatch.setattr(module, "make_solver", lambda: Crooked(shift))
    with pytest.warns(ConvergenceWarning, match="2 of 3 units are not solved to 1e-06, '2' first"):
        result = efficiency([1, 2, 3], [1, 1, 1])
    assert result.status == ("optimal", "inaccurate", "inaccurate")  # no solver is asked of '1'


def test_no_solution_is_no_score(monkeypatch):
    monkeypatch.setattr(
        module, "make_solver", lambda: Crooked(lambda program, raw: Raw.none("not solved", program))
    )
    with pytest.warns(ConvergenceWarning, match="not solved"):
        result = efficiency([1, 2, 3], [1, 1, 1])
    assert result.status == ("optimal", "not solved", "not solved")
    assert np.isnan(result.scores[1:]).all()
    assert not result.efficient[1:].any()


def test_without_highspy(rng, monkeypatch):
    X, Y = ugly_panel(rng)
    hot = efficiency(X, Y, returns="variable", super_efficiency=True)
    monkeypatch.setattr("bootprob.dea.efficiencies.solvers.find_spec", lambda name: None)
    assert isinstance(module.make_solver(), Linprog)
    cold = efficiency(X, Y, returns="variable", super_efficiency=True)
    assert cold.status == hot.status
    np.testing.assert_allclose(cold.scores, hot.scores, rtol=1e-7, atol=1e-8)


def test_highs_is_started_from_the_last_basis(rng):
    pytest.importorskip("highspy")
    solver = HotHighs()
    panel = Panel.of(rng.uniform(1, 2, (60, 3)), rng.uniform(1, 2, (60, 3)))
    steps = []
    for cold in (False, True):
        steps.append(0)
        for x, y in zip(panel.inputs, panel.outputs, strict=True):
            if cold:
                solver._basis = None
            solver.solve(
                module.unit_program(panel.inputs, panel.outputs, x, y, "constant", "input")
            )
            steps[-1] += solver._highs.getInfo().simplex_iteration_count
    assert steps[0] < steps[1]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [1, 2]), {"returns": "decreasing"}, "returns is 'decreasing'; give 'constant'"),
        (([1, 2], [1, 2]), {"orientation": "both"}, "orientation is 'both'; give 'input'"),
        (([1, 2],), {}, "outputs is missing"),
        ((Panel.of([1], [1]), [1]), {}, "leave `outputs` out"),
        (([1, 1e-13], [1, 2]), {}, "'input 1' of unit '2' is 1e-13, the largest 1"),
        (([1, np.nan], [1, 2]), {}, "'input 1' of unit '2' is missing"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(DataError, match=message):
        efficiency(*arguments, **options)


def test_importing_is_light():
    heavy = {"highspy", "cvxpy", "pandas", "matplotlib", "scipy.optimize", "sklearn", "torch"}
    code = (
        "import sys; from bootprob.dea import Panel, efficiency; "
        f"assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("super_efficiency", [False, True])
@pytest.mark.parametrize("slacks", [False, True])
def test_a_unit_that_produces_nothing_has_a_proven_score_of_zero(rng, slacks, super_efficiency):
    """Its weights still keep to α'x = 1; a panel gets such units by `take`."""
    X, Y = rng.uniform(1, 2, (5, 2)), rng.uniform(1, 2, (5, 3))
    Y[2, :2] = 0
    panel = Panel.of(X, Y).take(outputs=[0, 1])
    result = efficiency(panel, slacks=slacks, super_efficiency=super_efficiency)
    assert set(result.status) == {"optimal"}
    assert result.scores[2] == 0
    assert not np.signbit(result.scores[2])
    assert result.input_weights[2] @ X[2] == pytest.approx(1)
    assert (np.delete(result.scores, 2) > 0).all()
