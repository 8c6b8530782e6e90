"""Costs against brute force: thresholds, decisions, expected costs and their intervals."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import beta, binomtest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bootprob import BootstrapSVC, DataError
from bootprob.costs.classifier import CostSensitiveClassifier
from bootprob.costs.matrix import CostMatrix
from bootprob.costs.rules import cost_of_rules
from bootprob.ensemble import cross_fitted_proba
from configurations import parametrize_with_configurations


def random_costs(rng, size=None):
    """Benefits among them; wrong decisions cost more than right ones."""
    tn, tp = rng.normal(size=size), rng.normal(size=size)
    return CostMatrix(
        true_negative=tn,
        true_positive=tp,
        false_positive=tn + rng.exponential(size=size) + 1e-3,
        false_negative=tp + rng.exponential(size=size) + 1e-3,
    )


def by_hand(costs, row, positive, decided):
    cells = costs.array if costs.n_rows is None else costs.array[row]
    return cells[int(positive), int(decided)]


@pytest.fixture(scope="module")
def cancer():
    X, benign = load_breast_cancer(return_X_y=True)
    return X[:, :8], np.where(benign == 1, "benign", "malignant")


@pytest.fixture(scope="module")
def svm(cancer):
    X, y = cancer
    return BootstrapSVC(kernel="linear", n_bootstraps=30, C=[0.1, 1.0], random_state=0).fit(
        X[:300], y[:300]
    )


# -- the matrix --------------------------------------------------------------------------------


def test_threshold_is_the_best_of_a_fine_grid(rng):
    p = rng.uniform(size=4000)
    for _ in range(5):
        costs = random_costs(rng)
        expected = costs.expected(p)
        grid = np.linspace(0, 1, 2001)
        mean = [np.where(p > t, expected[:, 1], expected[:, 0]).mean() for t in grid]
        at = np.where(p > costs.threshold, expected[:, 1], expected[:, 0]).mean()
        assert at <= min(mean) + 1e-12
        assert costs.threshold == pytest.approx(grid[np.argmin(mean)], abs=0.003)


def test_threshold_in_known_cases():
    assert CostMatrix(1, 1).threshold == 0.5
    assert CostMatrix(false_positive=1, false_negative=19).threshold == 0.05
    # Right decisions may bring a benefit: only the difference within a class counts.
    assert CostMatrix(1 - 7, 19 + 3, true_negative=-7, true_positive=3).threshold == 0.05
    rows = CostMatrix(1, [1, 3], true_negative=[0, 0.5])
    np.testing.assert_allclose(rows.threshold, [1 / 2, 0.5 / 3.5])


@pytest.mark.parametrize("unit", [1e-300, 1e-6, 1e6, 1e300])
def test_the_unit_of_cost_does_not_matter(unit):
    assert CostMatrix(3 * unit, 7 * unit).threshold == pytest.approx(0.3)


@pytest.mark.parametrize("size", [None, 50])
def test_decisions_are_the_cheaper_ones(rng, size):
    costs, p = random_costs(rng, size), rng.uniform(size=50)
    expected = np.array(
        [
            [(1 - p[i]) * by_hand(costs, i, 0, d) + p[i] * by_hand(costs, i, 1, d) for d in (0, 1)]
            for i in range(50)
        ]
    )
    np.testing.assert_allclose(costs.expected(p), expected, atol=1e-12)
    decisions = costs.decide(p, classes=["no", "yes"])
    assert (decisions.label == np.array(["no", "yes"])[expected.argmin(axis=1)]).all()
    np.testing.assert_allclose(decisions.cost, expected.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(decisions.other_cost, expected.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(decisions.label == "yes", p > decisions.threshold)
    assert decisions.cost_interval is decisions.stable is None
    positive, decided = rng.uniform(size=(2, 50)) < 0.5
    np.testing.assert_array_equal(
        costs.incurred(positive, decided),
        [by_hand(costs, i, positive[i], decided[i]) for i in range(50)],
    )


@pytest.mark.parametrize("size", [None, 60])
def test_cost_intervals_hold_the_costs_of_all_probabilities_between(rng, size):
    costs = random_costs(rng, size)
    bounds = np.sort(rng.uniform(size=(60, 2)), axis=1)
    p = bounds[:, 0] + rng.uniform(size=60) * np.diff(bounds)[:, 0]
    decisions = costs.decide(p, bounds)
    chosen = decisions.label.astype(int)
    paths = np.stack(
        [costs.expected(bounds[:, 0] + s * np.diff(bounds)[:, 0]) for s in np.linspace(0, 1, 201)]
    )
    for action, interval in (
        (chosen, decisions.cost_interval),
        (1 - chosen, decisions.other_cost_interval),
    ):
        costs_along = paths[:, np.arange(60), action]
        np.testing.assert_allclose(interval[:, 0], costs_along.min(axis=0), atol=1e-9)
        np.testing.assert_allclose(interval[:, 1], costs_along.max(axis=0), atol=1e-9)
    one_way = (paths[..., 1] < paths[..., 0] - 1e-12).all(axis=0)
    other_way = (paths[..., 1] > paths[..., 0] + 1e-12).all(axis=0)
    np.testing.assert_array_equal(decisions.stable, one_way | other_way)


def test_ties_go_to_the_negative_decision_and_are_stable_below():
    decisions = CostMatrix(1, 1).decide([0.5, 0.5, 0.6], [[0.4, 0.5], [0.5, 0.6], [0.5, 0.7]])
    assert decisions.label.tolist() == [False, False, True]
    assert decisions.stable.tolist() == [True, False, False]


def test_bounds_beyond_0_and_1_are_cut():
    decisions = CostMatrix(2, 10).decide([0.05], [[-0.1, 1.2]])
    assert decisions.cost_interval.tolist() == [[0, 10]]
    assert decisions.other_cost_interval.tolist() == [[0, 2]]


def test_arrays_and_back(rng):
    for size in (None, 7):
        costs = random_costs(rng, size)
        assert CostMatrix.from_array(costs.array) == costs
        assert pickle.loads(pickle.dumps(costs)) == costs
        assert costs != CostMatrix(1, 2)
    assert costs.take(np.array([3, 1])).array.tolist() == costs.array[[3, 1]].tolist()
    assert CostMatrix.from_array([[0, 1], [5, -2]]) == CostMatrix(1, 5, true_positive=-2)
    with pytest.raises(ValueError, match="read-only"):
        costs.false_positive[0] = 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), r'false_positive is 0 and true_negative is 0: "positive" would cost no more'),
        ((1, 0), r'false_negative is 0 and true_positive is 0: "negative" would cost no more'),
        ((1, 2, 3), "false_positive is 1 and true_negative is 3"),
        ((1, 2, 0, 2), "false_negative is 2 and true_positive is 2"),
        ((1, [5, 0, 3, 0]), r"false_negative is 0 .* in row 1 \(2 rows in all\)"),
        ((np.nan, 1), "false_positive is nan; costs must be finite"),
        (([1, np.inf], 1), r"false_positive is inf in row 1 \(1 row in all\)"),
        ((None, 1), "false_positive is nan"),
        (("dear", 1), "false_positive must be a number"),
        (([[1]], 1), r"false_positive has the shape \(1, 1\)"),
        (([1, 2], [1, 2, 3]), "equally many, got {'false_positive': 2, 'false_negative': 3}"),
        ((1e308, 1, -1e308), "too far apart"),
    ],
)
def test_costs_without_a_threshold_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        CostMatrix(*arguments)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([[1, 0], [0, 1]], "true classes go down"),
        ([0, 1], r"shape \(2,\)"),
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        ([["a", "b"], ["c", "d"]], "must hold numbers"),
    ],
)
def test_arrays_that_are_no_cost_matrix_are_refused(cost, message):
    with pytest.raises(DataError, match=message):
        CostMatrix.from_array(cost)


@pytest.mark.parametrize(
    ("p", "interval", "message"),
    [
        ([0.2, np.nan], None, "between 0 and 1; leave out"),
        ([1.2], None, "between 0 and 1"),
        ([[0.2, 0.8]], None, r"shape \(1, 2\)"),
        ([0.2], [0.1, 0.3], r"interval has the shape \(2,\)"),
        ([0.2], [[0.3, 0.1]], "above the upper"),
        ([0.2], [[np.nan, 0.1]], "or NaN"),
    ],
)
def test_unusable_probabilities_are_refused(p, interval, message):
    with pytest.raises(DataError, match=message):
        CostMatrix(1, 2).decide(p, interval)


def test_costs_of_other_rows_are_refused():
    costs = CostMatrix(1, [2, 3])
    with pytest.raises(DataError, match="costs of 2 rows, and 3 rows"):
        costs.decide([0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="costs of 2 rows, and 1 row"):
        costs.incurred([True], [False])
    with pytest.raises(DataError, match="costs of 2 rows, and 3 rows"):
        cost_of_rules([0, 1, 1], [0.1, 0.2, 0.3], costs)


# -- mean cost of rules ------------------------------------------------------------------------


@pytest.mark.parametrize("by_row", [False, True])
def test_mean_costs_by_brute_force(rng, by_row):
    n = 80
    p, y, w = rng.uniform(size=n), rng.integers(0, 2, n), rng.uniform(size=n)
    p[:5], w[5:9] = np.nan, 0
    costs = random_costs(rng, n if by_row else None)
    rules = cost_of_rules(y, p, costs, w)
    threshold = np.broadcast_to(costs.threshold, n)
    decide = {
        "least_cost": lambda i: p[i] > threshold[i],
        "one_half": lambda i: p[i] > 0.5,
        "all_positive": lambda i: True,
        "all_negative": lambda i: False,
    }
    kept, mean = range(9, n), {}
    for name, decided in decide.items():
        total = sum(w[i] * by_hand(costs, i, y[i], decided(i)) for i in kept)
        mean[name] = total / w[9:].sum()
        rule = rules[name]
        assert rule.cost == pytest.approx(mean[name])
        assert rule.saving == pytest.approx(mean[name] - mean["least_cost"])
        assert rule.false_positives == sum(bool(decided(i) and not y[i]) for i in kept)
        assert rule.false_negatives == sum(bool(y[i] and not decided(i)) for i in kept)
        assert (rule.n_rows, rule.n_left_out) == (n - 9, 5)
        assert rule.lower <= rule.cost <= rule.upper
        assert rule.saving_lower <= rule.saving <= rule.saving_upper
    own = rules["least_cost"]
    assert (own.saving, own.saving_lower, own.saving_upper) == (0, 0, 0)


@pytest.mark.parametrize("errors", [0, 1, 7, 60])
def test_with_two_outcomes_the_interval_is_clopper_and_pearsons(errors):
    # "Always positive" is wrong for each negative row; a right decision costs nothing.
    y = np.arange(60) >= errors
    rule = cost_of_rules(y, np.full(60, 0.7), CostMatrix(1, 1), level=0.9)["all_positive"]
    exact = binomtest(errors, 60).proportion_ci(0.9, method="exact")
    for bound, expected in ((rule.lower, exact.low), (rule.upper, exact.high)):
        # 1,000 draws: the quantile's tail is known to within about three times 0.007.
        law = beta(errors, 61 - errors) if bound == rule.lower else beta(errors + 1, 60 - errors)
        if expected in (0, 1):
            assert bound == pytest.approx(expected, abs=1e-12)
        else:
            assert law.cdf(bound) == pytest.approx(law.cdf(expected), abs=0.025)


def test_errors_that_were_not_seen_are_not_taken_for_impossible():
    y = np.repeat([0, 1], [90, 10])
    rules = cost_of_rules(y, y * 1.0, CostMatrix(1, 1000))
    assert rules["least_cost"].cost == rules["least_cost"].lower == 0
    assert rules["least_cost"].upper > 1000 / 100
    # The two thresholds decided alike; between them further rows could lie, of both classes.
    assert rules["one_half"].saving == 0
    assert rules["one_half"].saving_lower < 0 < rules["one_half"].saving_upper
    alike = cost_of_rules(y, y * 1.0, CostMatrix(3, 3))["one_half"]
    assert alike.saving_lower == alike.saving_upper == 0


def test_mean_cost_interval_covers(rng):
    # Few and dear errors: about two misses among 300 rows, where a percentile bootstrap fails.
    costs, hits, savings = CostMatrix(1, 60), [], []
    p = rng.beta(1, 9, size=200_000)
    expected = costs.expected(p)
    least = np.where(p > costs.threshold, expected[:, 1], expected[:, 0]).mean()
    for trial in range(100):
        q = rng.choice(p, 300)
        rules = cost_of_rules(rng.uniform(size=300) < q, q, costs, seed=trial)
        hits.append(rules["least_cost"].lower <= least <= rules["least_cost"].upper)
        saving = rules["all_positive"]
        truth = expected[:, 1].mean() - least
        savings.append(saving.saving_lower <= truth <= saving.saving_upper)
    # A coverage of 95 % shows as less than 0.87 of 100 about once in a thousand runs.
    assert np.mean(hits) > 0.86
    assert np.mean(savings) > 0.86


def test_weights_stand_for_shares_and_scale_out(rng):
    p, w = rng.uniform(size=100), rng.uniform(0.5, 2, size=100)
    y = rng.uniform(size=100) < p
    costs = CostMatrix(1, 4)
    small, large = (cost_of_rules(y, p, costs, w * unit) for unit in (1e-6, 1e6))
    assert small["one_half"].upper == pytest.approx(large["one_half"].upper)
    equal, none = cost_of_rules(y, p, costs, np.ones(100)), cost_of_rules(y, p, costs)
    assert equal == none


@pytest.mark.parametrize(
    ("y", "p", "level", "message"),
    [
        ([0, 2], [0.1, 0.2], 0.95, "0 for the negative class"),
        ([0, 1], [0.1, 1.2], 0.95, "between 0 and 1"),
        ([0, 1], [np.nan, np.nan], 0.95, "No row has both"),
        ([], [], 0.95, "No row has both"),
        ([0, 1], [0.1, 0.2], 95, "level is 95"),
    ],
)
def test_unusable_rows_are_refused(y, p, level, message):
    with pytest.raises(DataError, match=message):
        cost_of_rules(y, p, CostMatrix(1, 2), level=level)


# -- the classifier ----------------------------------------------------------------------------


@pytest.mark.filterwarnings(f"ignore::{SkipTestWarning.__module__}.{SkipTestWarning.__name__}")
@parametrize_with_configurations(
    [CostSensitiveClassifier(LogisticRegression())],
    [
        CostSensitiveClassifier(
            BootstrapSVC(kernel="linear", n_bootstraps=10, C=1.0, random_state=0)
        )
    ],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_decides_as_scikit_learns_fixed_threshold(cancer):
    X, y = cancer
    model = CostSensitiveClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), cost_matrix=[[0, 1], [9, 0]]
    )
    model.fit(X[:300], y[:300])
    assert model.threshold_ == 0.1
    fixed = FixedThresholdClassifier(
        FrozenEstimator(model.estimator_), threshold=0.1, pos_label="malignant"
    ).fit(X, y)
    assert (model.predict(X[300:]) == fixed.predict(X[300:])).all()
    assert set(model.predict(X[300:])) == {"benign", "malignant"}
    decisions = model.decide(X[300:])
    assert decisions.cost_interval is None
    assert list(decisions.to_frame()) == [
        "label", "probability", "threshold", "cost", "other_cost",
    ]  # fmt: skip


def test_equal_costs_decide_as_the_estimator_does(cancer, svm):
    X, y = cancer
    model = CostSensitiveClassifier(FrozenEstimator(svm)).fit(X[:300], y[:300])
    assert (model.predict(X) == svm.predict(X)).all()


def test_intervals_are_those_of_the_probability(cancer, svm):
    X, y = cancer
    costs = CostMatrix(false_positive=1, false_negative=9, true_positive=-1)
    model = CostSensitiveClassifier(FrozenEstimator(svm), cost_matrix=costs).fit(X, y)
    assert model.estimator_.estimator is svm
    decisions = model.decide(X[300:], level=0.9)
    p, bounds = svm.predict_proba(X[300:])[:, 1], svm.proba_interval(X[300:], 0.9)[:, 1]
    np.testing.assert_array_equal(decisions.probability_interval, bounds)
    np.testing.assert_array_equal(decisions.cost_interval, costs.decide(p, bounds).cost_interval)
    lower, upper = decisions.cost_interval.T
    assert ((lower <= decisions.cost) & (decisions.cost <= upper)).all()
    assert (decisions.label == model.predict(X[300:])).all()
    assert 0 < decisions.stable.mean() < 1
    frame = decisions.to_frame(index=range(300, len(X)))
    assert frame.loc[300, "other_cost_upper"] == decisions.other_cost_interval[0, 1]


def test_costs_of_rows(cancer, svm, rng):
    X, y = cancer
    model = CostSensitiveClassifier(FrozenEstimator(svm)).fit(X, y)
    amount = pd.Series(rng.uniform(1, 50, size=len(X) - 300), index=range(300, len(X)))
    costs = CostMatrix(false_positive=2, false_negative=amount)
    p = svm.predict_proba(X[300:])[:, 1]
    dear = p * amount.to_numpy() > (1 - p) * 2
    assert (dear != (p > 0.5)).mean() > 0
    for given in (costs, costs.array):
        predicted = model.predict(X[300:], cost_matrix=given)
        assert (predicted == np.where(dear, "malignant", "benign")).all()
    with pytest.raises(DataError, match="one each"):
        model.predict(X[:7], cost_matrix=costs)
    with pytest.raises(DataError, match=r"Give those to predict and decide"):
        clone(model).set_params(cost_matrix=costs).fit(X, y)


def test_out_of_bag_costs(cancer, rng):
    X, y = cancer
    X, y, w = X[:120], y[:120], rng.uniform(0.5, 2, size=120)
    svm = BootstrapSVC(kernel="linear", n_bootstraps=6, C=1.0, random_state=0)
    model = CostSensitiveClassifier(svm, cost_matrix=[[0, 1], [9, 0]]).fit(X, y, sample_weight=w)
    p = cross_fitted_proba(model.estimator_)
    assert np.isnan(p).any()  # rows that were never out of bag
    rules = model.oob_costs(level=0.9, seed=3)
    assert rules == model.estimator_.oob_costs(CostMatrix(1, 9), 0.9, seed=3)
    expected = cost_of_rules(y == "malignant", p, CostMatrix(1, 9), w, level=0.9, seed=3)
    assert rules == expected
    assert rules["least_cost"].n_left_out == np.isnan(p).sum()
    by_row = CostMatrix(1, rng.uniform(2, 9, size=120))
    assert model.oob_costs(cost_matrix=by_row)["least_cost"].cost < rules["all_positive"].cost * 2
    with pytest.raises(DataError, match="costs of 3 rows, and 120 rows"):
        model.oob_costs(cost_matrix=CostMatrix(1, [2, 3, 4]))


def test_of_rows_that_say_the_same_groups_count():
    """Ten rows a subject, all alike: as many subjects as rows of one subject each."""
    rng = np.random.default_rng(4)
    p, costs = rng.random(40), CostMatrix(1, 5)
    y = (rng.random(40) < p).astype(int)
    alone = cost_of_rules(y, p, costs, seed=1)
    repeated = [np.repeat(each, 10) for each in (y, p, np.arange(40))]
    together = cost_of_rules(*repeated[:2], costs, groups=repeated[2], seed=1)
    for name, rule in alone.items():
        for number in ("cost", "lower", "upper", "saving", "saving_lower", "saving_upper"):
            assert getattr(together[name], number) == pytest.approx(getattr(rule, number))
    blind = cost_of_rules(*repeated[:2], costs, seed=1)["least_cost"]
    own = alone["least_cost"]
    assert blind.upper - blind.lower < 0.5 * (own.upper - own.lower)


def test_out_of_bag_costs_are_of_whole_groups():
    rng = np.random.default_rng(7)
    subject = np.repeat(np.arange(15), 8)
    own = np.repeat(rng.normal(size=(15, 3)), 8, axis=0)
    y = np.repeat(rng.random(15) < 1 / (1 + np.exp(-1.5 * own[::8, 0])), 8)
    X = own + 0.1 * rng.normal(size=own.shape)
    svm = BootstrapSVC(kernel="linear", n_bootstraps=20, C=0.1, random_state=0)
    svm.fit(X, y, groups=subject)
    costs = CostMatrix(1, 5)
    found = svm.oob_costs(costs, seed=2)
    p = cross_fitted_proba(svm)
    assert found == cost_of_rules(y, p, costs, groups=subject, seed=2)
    blind = cost_of_rules(y, p, costs, seed=2)["one_half"]
    assert blind.upper - blind.lower < 0.8 * (found["one_half"].upper - found["one_half"].lower)


def test_no_out_of_bag_costs_without_out_of_bag_rows(cancer):
    X, y = cancer
    model = CostSensitiveClassifier(DummyClassifier(strategy="prior"))
    with pytest.raises(NotFittedError):
        model.oob_costs()
    with pytest.raises(DataError, match="DummyClassifier keeps no out-of-bag probabilities"):
        model.fit(X, y).oob_costs()


@pytest.mark.parametrize("order", [["malignant", "benign"], ["benign", "malignant"]])
def test_a_data_frame_says_which_cost_is_whose(cancer, svm, order):
    X, y = cancer
    table = pd.DataFrame(
        [[0, 9], [1, 0]], index=["malignant", "benign"], columns=["malignant", "benign"]
    ).loc[order, order[::-1]]
    model = CostSensitiveClassifier(FrozenEstimator(svm), cost_matrix=table).fit(X, y)
    assert model.threshold_ == 0.1
    with pytest.raises(DataError, match=r"index of cost_matrix is \[0, 1\]"):
        model.predict(X, cost_matrix=pd.DataFrame([[0, 1], [9, 0]]))


def test_pandas_pipelines_and_searches_keep_intervals_and_out_of_bag_rows(cancer, rng):
    X, y = cancer
    frame = pd.DataFrame(X, columns=list("abcdefgh")).mask(rng.uniform(size=X.shape) < 0.02)
    svm = BootstrapSVC(kernel="linear", n_bootstraps=10, C=1.0, random_state=0)
    pipeline = make_pipeline(SimpleImputer().set_output(transform="pandas"), svm)
    search = GridSearchCV(pipeline, {"bootstrapsvc__C": [0.1, 1.0]}, cv=2, scoring="neg_log_loss")
    for estimator in (pipeline, search):
        model = CostSensitiveClassifier(estimator, cost_matrix=[[0, 1], [4, 0]]).fit(frame, y)
        assert list(model.feature_names_in_) == list("abcdefgh")
        decisions = model.decide(frame)
        lower, upper = decisions.probability_interval.T
        assert ((lower <= decisions.probability) & (decisions.probability <= upper)).all()
        assert model.oob_costs()["least_cost"].n_rows > 500


def test_what_is_not_calibrated_is_refused_before_anything_is_trained(cancer):
    X, y = cancer
    for svm, message in (
        (BootstrapSVC.paper(), "Vote shares"),
        (BootstrapSVC(kernel="linear", interval="wald"), "interval='wald' is about vote shares"),
        (
            BootstrapSVC(kernel="linear", control="threshold", rates={"tpr": 0.9}),
            "control='threshold' decides so",
        ),
    ):
        with pytest.raises(DataError, match=message):
            CostSensitiveClassifier(make_pipeline(SimpleImputer(), svm)).fit(X, y)


@pytest.mark.parametrize(
    ("cost_matrix", "message"),
    [([[0, 1], [0, 0]], "false_negative is 0"), (3, "cost_matrix"), ([0, 1], "shape")],
)
def test_costs_are_checked_before_anything_is_trained(cancer, cost_matrix, message):
    class Untrainable(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError

    with pytest.raises(ValueError, match=message):
        CostSensitiveClassifier(Untrainable(), cost_matrix=cost_matrix).fit(*cancer)


def test_estimators_without_probabilities_and_other_targets_are_refused(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="predict_proba"):
        CostSensitiveClassifier(LinearSVC()).fit(X, y)
    for target in (np.arange(len(y)) % 3, np.zeros(len(y))):
        with pytest.raises(ValueError, match="class"):
            CostSensitiveClassifier(LogisticRegression()).fit(X, target)


def test_metadata_routing_hands_on_weights_and_costs_of_rows(rng):
    X, y = make_classification(120, 4, flip_y=0.2, random_state=0)
    weight, costs = rng.uniform(0.1, 3, size=120), random_costs(rng, 120)
    direct = CostSensitiveClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = CostSensitiveClassifier(inner).set_predict_request(cost_matrix=True)
        model.fit(X, y, sample_weight=weight)
        assert (model.predict_proba(X) == direct.predict_proba(X)).all()
        assert (model.predict_log_proba(X) == np.log(direct.predict_proba(X))).all()
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
        predicted = pipeline.predict(X, cost_matrix=costs)
    p = pipeline.predict_proba(X)[:, 1]
    assert (predicted == (p > costs.threshold)).all()
    assert (predicted != (p > 0.5)).any()


def test_any_calibrated_classifier_will_do(cancer):
    X, y = cancer
    calibrated = CalibratedClassifierCV(LinearSVC(random_state=0), cv=2)
    pipeline = make_pipeline(SimpleImputer(), calibrated)
    model = CostSensitiveClassifier(pipeline, cost_matrix=[[0, 1], [9, 0]]).fit(X, y)
    assert (model.predict(X) == "malignant").sum() > (
        pipeline.fit(X, y).predict(X) != "benign"
    ).sum()
    assert pickle.loads(pickle.dumps(model)).threshold_ == model.threshold_


def test_costs_of_rules_are_taken_as_arrays_and_text_is_refused():
    array = [[0, 1], [5, 0]]
    y, p = [0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9]
    assert cost_of_rules(y, p, array) == cost_of_rules(y, p, CostMatrix.from_array(array))
    costs = CostMatrix.from_array(array)
    with pytest.raises(DataError, match="probability must hold numbers"):
        costs.decide(["a"])
    with pytest.raises(DataError, match="interval must hold numbers"):
        costs.decide([0.5], [["a", "b"]])
    for classes in (None, ["a"], ["a", "b", "c"]):
        with pytest.raises(DataError, match=r"classes is .*; give two labels"):
            costs.decide([0.5], classes=classes)
    for seed in (-1, 1.5, "a", None):
        with pytest.raises(DataError, match=r"seed is .*; give a whole number"):
            cost_of_rules(y, p, array, seed=seed)


@pytest.mark.parametrize(
    ("positive", "decided", "asked", "message"),
    [
        (["no", "yes"], [0, 1], None, "positive must hold numbers"),
        ([-1, 1], [-1, -1], None, "positive must be true or false"),
        ([0, 1], [0, np.nan], None, "decided must be true or false"),
        ([0, 1, 1], [1], None, "decided has 1 row, and positive has 3"),
        ([0, 1], [0, 1], [True], "asked has 1 row, and positive has 2"),
        (1, 0, None, "positive must be true or false"),
    ],
)
def test_outcomes_that_are_no_answers_are_refused(positive, decided, asked, message):
    with pytest.raises(DataError, match=message):
        CostMatrix(1, 5, ask=0.5).incurred(positive, decided, asked)


@pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pipelines_and_searches_are_looked_into(cancer, depth, search):
    X, y = cancer

    def wrapped(svm, grid):
        found = GridSearchCV(svm, grid, cv=2) if search else svm
        for _ in range(depth - 1):
            found = make_pipeline(StandardScaler(), found)
        return CostSensitiveClassifier(make_pipeline(found), cost_matrix=[[0, 1], [5, 0]])

    svm = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    with pytest.raises(DataError, match="Vote shares"):
        wrapped(clone(svm).set_params(calibration=None), {"C": [1.0]}).fit(X, y)
    model = wrapped(svm, {"C": [1.0]}).fit(X, y)
    assert model.decide(X[:3]).probability_interval.shape == (3, 2)
    assert model.oob_costs()["least_cost"].n_rows > 500
    if search:
        with pytest.raises(DataError, match="Vote shares"):
            wrapped(svm, {"calibration": [None]}).fit(X, y)


def test_labelled_costs_and_missing_labels(cancer):
    X, y = cancer
    svm = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    costs = pd.DataFrame([[0, 5], [1, 0]], index=[True, False], columns=[True, False])
    malignant = (np.asarray(y) == "malignant").astype(int)
    model = CostSensitiveClassifier(svm, cost_matrix=costs).fit(X, malignant)
    assert model.threshold_ == pytest.approx(1 / 6)
    with pytest.raises(DataError, match="1 label in y is missing, the first in row 0"):
        CostSensitiveClassifier(svm).fit(X, [None, *y[1:]])
