"""Yes, no, or ask a person: against brute force over probabilities, rows and rules."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from bootprob import BootstrapClassifier, BootstrapSVC, CostSensitiveClassifier, DataError
from bootprob.batch_scoring import ScoringOptions, score_batches
from bootprob.cli.__main__ import app
from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import cost_of_rules
from bootprob.persistence.save_load import save
from bootprob.report.scored.content import scored_content
from bootprob.tables.files import read_table
from bootprob.tables.mistake_costs import ASKING_COLUMNS, MistakeCosts
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


def random_costs(rng, m, by_row):
    """Right decisions may cost more than wrong ones of the other class, and asking anything."""
    tn, tp, wrong, missed, ask = rng.normal(size=(5, m))
    found = (tn + np.abs(wrong) + 1e-3, tp + np.abs(missed) + 1e-3, tn, tp, ask)
    return CostMatrix(*(each if by_row else each[0] for each in found[:4]),
                      ask=found[4] if by_row else float(found[4][0]))  # fmt: skip


@pytest.mark.parametrize("by_row", [False, True])
def test_the_cheapest_of_three_by_brute_force(rng, by_row):
    for _ in range(20):
        m = 60
        costs = random_costs(rng, m, by_row)
        ends = np.sort(rng.uniform(size=(m, 2)), axis=1)
        p = ends[:, 0] + rng.uniform(size=m) * np.ptp(ends, axis=1)
        found = costs.decide(p, ends, ["no", "yes"])
        cells = np.broadcast_to(costs.array, (m, 2, 2))
        options = np.empty((m, 3))
        for i in range(m):
            for d in (0, 1):
                options[i, d] = (1 - p[i]) * cells[i, 0, d] + p[i] * cells[i, 1, d]
            options[i, 2] = np.broadcast_to(costs.ask, m)[i]
        ranked = np.sort(options, axis=1)
        np.testing.assert_array_equal(found.ask, options.argmin(axis=1) == 2)
        np.testing.assert_array_equal(found.label == "yes", options[:, 1] < options[:, 0])
        np.testing.assert_allclose(found.cost, ranked[:, 0], atol=1e-12)
        np.testing.assert_allclose(found.other_cost, ranked[:, 1], atol=1e-12)
        asked = found.ask
        assert (np.ptp(found.cost_interval[asked], axis=1) == 0).all()
        assert (found.cost_interval[:, 0] <= found.cost + 1e-12).all()
        assert (found.cost <= found.cost_interval[:, 1] + 1e-12).all()
        # All probabilities of the interval lead to the same decision.
        along = [ends[:, 0] + s * np.ptp(ends, axis=1) for s in np.linspace(0, 1, 101)]
        taken = []
        for q in along:
            at = costs.decide(q)
            taken.append(np.where(at.ask, 2, at.label.astype(int)))
        np.testing.assert_array_equal(found.stable, np.ptp(np.stack(taken), axis=0) == 0)
        lowest, highest = np.broadcast_to(costs.asking_between, (m, 2)).T
        inside = (p > lowest) & (p < highest)
        clear = np.minimum(np.abs(p - lowest), np.abs(p - highest)) > 1e-9
        np.testing.assert_array_equal(asked[clear], inside[clear])


def test_known_cases_and_ties():
    costs = CostMatrix(1, 19, ask=0.5)
    np.testing.assert_allclose(costs.asking_between, [0.5 / 19, 0.5])
    assert CostMatrix(1, 19).asking_between is None
    found = costs.decide([0.5 / 19, 0.1, 0.5, 0.6])
    assert found.ask.tolist() == [False, True, False, False]  # as dear: answered
    assert found.label.tolist() == [False, True, True, True]
    never = CostMatrix(1, 1, ask=0.5)
    assert never.asking_between.tolist() == [0.5, 0.5]
    assert not never.decide(np.linspace(0, 1, 21)).ask.any()
    always = CostMatrix(1, 1, ask=-0.1)
    assert always.decide([0.0, 1.0]).ask.all()
    assert CostMatrix(1, 1).decide([0.2]).ask is None
    assert "ask" not in CostMatrix(1, 1).decide([0.2]).to_frame()
    # Of what is decided, only the answer that is dear everywhere leaves it to the other.
    np.testing.assert_allclose(CostMatrix(5, 9, 4, 4, ask=4.2).asking_between, [0.04, 0.8])


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(
    "costs",
    [
        {"tn": 3, "fn": 3, "fp": 6, "tp": 1, "ask": 3},  # as dear wherever "negative" is the better
        {"tn": 0.1 + 0.2, "fn": 0.3, "fp": 2, "tp": 0, "ask": 0.3},
        {"tn": 0, "fn": 0.1, "fp": 0.7, "tp": 0, "ask": 0.7 * 0.1 / 0.8},  # at the threshold
        {"tn": -2, "fn": 1, "fp": 1, "tp": -2, "ask": -0.5},
    ],
    ids=str,
)
def test_ties_but_for_rounding_are_answered(costs, by_row):
    p = np.append(np.linspace(0, 1, 1001), 0.7 / 0.8)
    given = (costs["fp"], costs["fn"], costs["tn"], costs["tp"])
    if by_row:
        given = tuple(np.full(len(p), each) for each in given)
    tied = CostMatrix(*given, ask=costs["ask"])
    within = np.column_stack([p / 2, (1 + p) / 2])
    found = tied.decide(p, within)
    assert not found.ask.any()
    lower, upper = (tied.decide(end).label for end in within.T)
    np.testing.assert_array_equal(found.stable, lower == upper)
    lowest, highest = np.moveaxis(tied.asking_between, -1, 0)
    assert np.all(lowest == tied.threshold)
    assert np.all(highest == tied.threshold)
    # What is less by more than rounding is still less.
    cheaper = CostMatrix(*given, ask=costs["ask"] - 1e-12 * abs(costs["ask"]))
    best = tied.expected(p).min(axis=1)
    np.testing.assert_array_equal(cheaper.decide(p).ask, cheaper.ask < best - 1e-14)
    assert cheaper.decide(p).ask.any()
    lowest, highest = np.moveaxis(cheaper.asking_between, -1, 0)
    assert np.all(lowest < highest)


@pytest.mark.parametrize("p", [0.7, 0.99, 0.22, 1e-9])
def test_rare_mistakes_are_tied_to_their_own_digits(p):
    # 1 − .99 has lost two digits of .01; those of 1e-9 are all there.
    assert not CostMatrix(1, 1, ask=min(round(1 - p, 12), p)).decide([p]).ask[0]
    assert CostMatrix(1, 1, ask=min(1 - p, p) * (1 - 1e-12)).decide([p]).ask[0]


def test_costs_of_asking_are_kept_compared_and_refused(rng):
    rows = CostMatrix(1, [2.0, 3.0, 4.0], ask=[0.1, 0.2, 0.3])
    assert rows.take(np.array([True, False, True])) == CostMatrix(1, [2.0, 4.0], ask=[0.1, 0.3])
    assert rows != CostMatrix(1, [2.0, 3.0, 4.0])
    assert CostMatrix(1, 1, ask=1) != CostMatrix(1, 1, ask=2)
    alone = CostMatrix(1, 1, ask=[0.1, 0.6])
    assert alone.n_rows == 2
    assert alone.threshold.tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match="equally many"):
        CostMatrix(1, [2.0, 3.0], ask=[1.0])
    with pytest.raises(DataError, match="ask is nan"):
        CostMatrix(1, 2, ask=np.nan)
    with pytest.raises(DataError, match="what that costs"):
        CostMatrix(1, 2).incurred([True], [False], [True])


@pytest.mark.parametrize("by_row", [False, True])
def test_costs_of_rules_with_somebody_to_ask(rng, by_row):
    n = 90
    p, y, w = rng.uniform(size=n), rng.integers(0, 2, n), rng.uniform(size=n)
    ask = rng.uniform(0.05, 0.6, n) if by_row else 0.3
    costs = CostMatrix(1, 2, ask=ask)
    rules = cost_of_rules(y, p, costs, w)
    price = np.broadcast_to(ask, n)
    asked = price < np.minimum(1 - p, 2 * p)
    answered = np.where(y == 1, 2.0 * (p <= 1 / 3), 1.0 * (p > 1 / 3))
    expected = {
        "least_cost": np.where(asked, price, answered),
        "ask_none": answered,
        "ask_all": price,
        "one_half": np.where(y == 1, 2.0 * (p <= 0.5), 1.0 * (p > 0.5)),
    }
    for name, cost in expected.items():
        rule = rules[name]
        assert rule.cost == pytest.approx(np.average(cost, weights=w))
        saved = np.average(cost - expected["least_cost"], weights=w)
        assert rule.saving == pytest.approx(saved, abs=1e-12)
        assert rule.lower <= rule.cost <= rule.upper
        assert rule.saving_lower <= rule.saving <= rule.saving_upper
    assert rules["least_cost"].n_asked == asked.sum()
    assert (rules["ask_none"].n_asked, rules["ask_all"].n_asked) == (0, n)
    wrong = rules["least_cost"]
    assert wrong.false_positives == ((y == 0) & (p > 1 / 3) & ~asked).sum()
    assert wrong.false_negatives == ((y == 1) & (p <= 1 / 3) & ~asked).sum()


@pytest.fixture(scope="module")
def cancer():
    X, benign = load_breast_cancer(return_X_y=True)
    return X[:, :6], np.where(benign == 1, "benign", "malignant")


def test_both_ensembles_decide(cancer):
    X, y = cancer
    costs = CostMatrix(1, 9, ask=0.3)
    logistic = LogisticRegression(C=0.1, max_iter=5000)
    for model in (
        BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=20, random_state=0),
        BootstrapClassifier(logistic, n_bootstraps=10, random_state=0),
    ):
        model.fit(X[:150], y[:150])
        found = model.decide(X[150:], costs, 0.9)
        p = model.predict_proba(X[150:])[:, 1]
        interval = model.proba_interval(X[150:], 0.9)[:, 1]
        expected = costs.decide(p, interval, model.classes_)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
        assert 0 < found.ask.mean() < 1
        frame = pd.DataFrame([[0, 1], [9, 0]], model.classes_, model.classes_)
        np.testing.assert_array_equal(model.decide(X[150:], frame).label, found.label)
        wrapped = CostSensitiveClassifier(FrozenEstimator(model), cost_matrix=costs)
        wrapped.fit(X[:150], y[:150])
        np.testing.assert_array_equal(wrapped.decide(X[150:]).ask, found.ask)
        assert wrapped.oob_costs()["ask_none"].saving >= 0


def test_what_cannot_decide_by_costs_is_refused(cancer):
    X, y = cancer
    made = {"kernel": "linear", "C": 1.0, "n_bootstraps": 10, "random_state": 0}
    three = BootstrapSVC(**made).fit(X[:120], np.resize([0, 1, 2], 120))
    rates = BootstrapSVC(control="threshold", rates={"tpr": 0.8}, **made).fit(X[:150], y[:150])
    votes = BootstrapSVC(calibration=None, interval="wilson", **made).fit(X[:150], y[:150])
    for model, words in ((three, "3 classes"), (rates, "rate holds"), (votes, "Vote shares")):
        with pytest.raises(DataError, match=words):
            model.decide(X[:5], CostMatrix(1, 2, ask=0.1))


QUICK = {"kernel": "linear", "C": 1.0, "n_bootstraps": 20, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(credit_table(120), "risk", "bad", **QUICK)


@pytest.fixture(scope="module")
def new():
    table = credit_table(90, seed=3).drop(columns="risk")
    return table.assign(loss=np.linspace(0.2, 9.0, 90), visit=np.linspace(0.5, 0.1, 90))


@pytest.mark.parametrize(
    "costs", [MistakeCosts(1, 5, 0.3), MistakeCosts(1, "loss", 0.3), MistakeCosts(2, 5, "visit")]
)
def test_tables_and_batches_say_the_same(model, new, costs):
    found = model.predict(new, costs=costs)
    given = [new[cost].to_numpy() if isinstance(cost, str) else cost
             for cost in (costs.false_positive, costs.false_negative, costs.ask)]  # fmt: skip
    matrix = CostMatrix(*given[:2], ask=given[2])
    interval = found[["probability_lower", "probability_upper"]].to_numpy()
    expected = matrix.decide(found["probability"], interval, ["good", "bad"]).to_frame()
    columns = list(ASKING_COLUMNS)
    pd.testing.assert_frame_equal(found[columns], expected[columns])
    assert 0 < found["ask"].mean() < 1
    rows = pa.RecordBatch.from_pandas(new, preserve_index=False)
    [scored] = score_batches(model, [rows], ScoringOptions(costs=costs))
    pd.testing.assert_frame_equal(scored.to_pandas()[columns], found[columns])


def test_command_line_and_report(model, new, tmp_path):
    save(model, tmp_path / "loans.model")
    new.to_csv(tmp_path / "new.csv", index=False)
    costs = ("--cost-fp", "1", "--cost-fn", "5", "--cost-ask", "0.3")

    def run(*given, code=0):
        result = CliRunner().invoke(app, [*map(str, given)])
        assert result.exit_code == code, result.output
        return " ".join(result.output.replace("│", " ").split())

    at = {name: tmp_path / name for name in ("loans.model", "new.csv", "out.csv", "out.html")}
    expected = model.predict(new, costs=MistakeCosts(1, 5, 0.3))
    for verb in ("predict", "score"):
        run(verb, at["loans.model"], at["new.csv"], "-o", at["out.csv"], *costs)
        written = read_table(at["out.csv"])
        assert written["ask"].astype(str).tolist() == expected["ask"].astype(str).tolist()
        found = scored_content(at["out.csv"], costs=CostMatrix(1, 5, ask=0.3))
        rules = {rule["name"]: rule for rule in found["cost"]["rules"]}
        assert found["decisions"]["n_asked"] == expected["ask"].sum()
        assert rules["least_cost"]["n_asked"] == rules["as_labelled"]["n_asked"]
        mean = expected["cost"].mean()
        assert rules["least_cost"]["cost"] == pytest.approx(mean, abs=1e-9)
        assert rules["as_labelled"]["cost"] == pytest.approx(mean, abs=1e-9)
        p = expected["probability"]
        answered = np.minimum(1 - p, 5 * p).mean()
        assert rules["ask_none"]["cost"] == pytest.approx(answered, abs=1e-9)
        assert rules["ask_all"]["cost"] == pytest.approx(0.3)
        assert rules["ask_all"]["lower"] == rules["ask_all"]["upper"]
    run("report", at["out.csv"], "-o", at["out.html"], *costs)
    page = at["out.html"].read_text("utf-8")
    assert "Asking a person costs" in page
    assert "has a person asked about" in page
    never = run(
        "predict", at["loans.model"], at["new.csv"], "-o", at["out.csv"], *costs[:4],
        "--cost-ask", "0.9",
    )  # fmt: skip
    assert "never pays" in never
    for verb in ("predict", "score"):
        alone = run(verb, at["loans.model"], at["new.csv"], "-o", at["out.csv"], *costs[4:], code=2)
        assert "--cost-ask needs" in alone
    assert "--cost-ask needs" in run("report", at["out.csv"], *costs[4:], code=2)


def test_a_column_of_truth_values_is_checked(model, new, tmp_path):
    model.predict(new, costs=MistakeCosts(1, 5, 0.3)).assign(ask="perhaps").to_csv(
        tmp_path / "spoiled.csv", index=False
    )
    with pytest.raises(DataError, match="'ask' holds 'perhaps'"):
        scored_content(tmp_path / "spoiled.csv")
