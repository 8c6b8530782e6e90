"""`CostSensitiveSelector` on ordinary and on ugly tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from bootprob import DataError
from bootprob.exceptions import UnattainableRateError
from bootprob.selection import CostSensitiveSelector
from bootprob.selection.cost_sensitive import search as search_module

RATES = {"tpr": 0.8, "tnr": 0.8}


def selector_of(rates=RATES, **options):
    return CostSensitiveSelector(rates, **{"classifier": None, "time_limit": 20.0, **options})


def table(rng, n=60, p=5):
    """Column 0 tells the classes apart but for noise; 1 and 2 do together."""
    positive = np.arange(n) % 2 == 0
    X = rng.normal(size=(n, p))
    X[:, 0] = np.where(positive, 1.0, -1.0) + 0.2 * rng.random(n)
    X[:, 1] *= 5
    X[:, 2] = X[:, 1] + X[:, 0]
    return X, positive


def test_rates_hold_by_the_hyperplane_kept(rng):
    X, y = table(rng, p=4)
    X += rng.normal(size=X.shape)
    selector = selector_of({"tpr": 0.7, "tnr": 0.6}, max_coefficient=50.0).fit(X, y)
    scores = ((X - selector.center_) / selector.scale_) @ selector.coef_ + selector.intercept_
    margins = np.where(y, scores, -scores)
    np.testing.assert_array_equal(selector.kept_, margins >= 1 - 1e-8)
    assert selector.rates_ == {
        "tpr": (margins[y] >= 1 - 1e-8).mean(),
        "tnr": (margins[~y] >= 1 - 1e-8).mean(),
    }
    assert selector.rates_["tpr"] >= 0.7
    assert selector.rates_["tnr"] >= 0.6
    assert set(np.flatnonzero(selector.coef_)) <= set(np.flatnonzero(selector.support_))
    assert np.abs(selector.coef_).max() <= 50 * (1 + 1e-6)


def test_costs_decide(rng):
    X, y = table(rng)
    assert selector_of().fit(X, y).result_.features == (0,)
    dear = selector_of(costs=[10, 1, 1, 1, 1]).fit(X, y)
    assert dear.result_.features == (1, 2)
    assert dear.cost_ == 2
    assert dear.result_.status == "optimal"
    shared = selector_of(costs=[10, 1, 1, 1, 1], shared_costs=[([1, 2], 9.0)]).fit(X, y)
    assert shared.result_.features == (0,)
    assert shared.result_.objective == shared.cost_ == 10


def test_columns_that_cost_nothing(rng):
    X, y = table(rng)
    free = selector_of(costs=[1, 0, 0, 0, 0]).fit(X, y)
    assert free.cost_ == free.result_.bound == 0
    assert free.result_.status == "optimal"
    assert free.result_.features == (1, 2)  # no more than needed
    assert selector_of(costs=np.zeros(5)).fit(X, y).result_.features == (0,)


def test_of_equal_columns_the_cheapest_and_never_a_constant_one(rng):
    X, y = table(rng, p=3)
    X = np.column_stack([np.full(60, 1e9), X[:, [0, 0, 0]], np.zeros(60)])
    selector = selector_of(costs=[0, 3, 1, 2, 0]).fit(X, y)
    assert selector.result_.features == (2,)
    assert selector.result_.status == "optimal"


def test_more_columns_than_rows(rng):
    X, y = rng.normal(size=(20, 150)), np.arange(20) < 9
    found = selector_of({"tpr": 1.0, "tnr": 1.0}).fit(X, y)
    assert found.rates_ == {"tpr": 1.0, "tnr": 1.0}
    assert found.support_.sum() <= 6
    assert 1 <= found.result_.bound <= found.result_.objective


def test_rates_that_cannot_be_kept(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    y = np.arange(20) % 2 == 0  # every row is there with both labels
    with pytest.raises(UnattainableRateError, match="No hyperplane on all columns") as caught:
        selector_of({"tpr": 0.9, "tnr": 0.9}).fit(X, y)
    assert caught.value.wanted == 0.9
    selector_of({"tpr": 0.5, "tnr": 0.5}).fit(X, y)
    with pytest.raises(UnattainableRateError, match="No hyperplane on all columns"):
        selector_of().fit(np.ones((20, 2)), y)


def test_every_row_has_to_be_right(rng):
    """A linear program finds what separates the classes by a hair, and proves that nothing does."""
    X = rng.normal(size=(40, 6))
    scores = X @ np.array([1.0, -2.0, 1.5, 0, 0, 0])
    y = scores > 0
    found = selector_of({"tpr": 1.0, "tnr": 1.0}).fit(X, y)
    assert found.rates_ == {"tpr": 1.0, "tnr": 1.0}
    assert found.cost_ <= 6
    X[1] = X[0]
    y[:2] = True, False
    with pytest.raises(UnattainableRateError, match="proven by a linear program"):
        selector_of({"tpr": 1.0, "tnr": 1.0}).fit(X, y)


def test_limits_that_exclude_every_hyperplane(rng):
    X, y = table(rng)
    with pytest.raises(UnattainableRateError, match="max_coefficient"):
        selector_of(max_coefficient=1e-3).fit(X, y)


def test_a_confidence_asks_for_more_rows(rng):
    X, y = table(rng)
    plain = selector_of().fit(X, y)
    sure = selector_of(confidence=0.95).fit(X, y)
    assert sure.rates_["tpr"] >= plain.rates_["tpr"] >= 0.8
    with pytest.raises(UnattainableRateError, match="cannot be promised"):
        selector_of({"tpr": 0.99, "tnr": 0.8}, confidence=0.95, bound="hoeffding").fit(X, y)


@pytest.mark.parametrize(
    ("rates", "options", "message"),
    [
        ({"tpr": 0.9}, {}, "constant classifier"),
        ({"tpr": 0.9, "accuracy": 0.9}, {}, "accuracy"),
        ({"tpr": 0.9, "tnr": 1.5}, {}, "up to 1"),
        ({"tpr": 0.9, "tnr": np.nan}, {}, "up to 1"),
        ({"tpr": 0.9, "tnr": "high"}, {}, "up to 1"),
        (RATES, {"costs": [1, 1]}, "one for each of 5 columns"),
        (RATES, {"costs": [1, 1, 1, 1, -1]}, "positive"),
        (RATES, {"costs": [1, 1, 1, 1, np.nan]}, "positive"),
        (RATES, {"costs": {"age": 1}}, "no column 'age'"),
        (RATES, {"method": "exact", "solver": "GUROBI"}, "GUROBI|gurobi"),
        (RATES, {"method": "exact", "solver": "best"}, "SCIP"),
        (RATES, {"big_m": 1.0}, "big_m"),
        (RATES, {"time_limit": 0}, "time_limit"),
    ],
)
def test_options_that_cannot_be_used(rng, rates, options, message):
    with pytest.raises(ValueError, match=message):
        selector_of(rates, **options).fit(*table(rng))


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "overflow"), ("text", "convert")],
)
def test_values_that_cannot_be_used(rng, value, message):
    X, y = table(rng)
    X = X.astype(object)
    X[3, 1] = value
    with pytest.raises(ValueError, match=message):
        selector_of().fit(X, y)


def test_one_class_one_row_three_classes(rng):
    X, y = table(rng)
    for rows, labels, message in (
        (X, np.ones(60), "1 class"),
        (X[:1], y[:1], "minimum of 2"),
        (X[:0], y[:0], "minimum of 2"),
        (X, np.arange(60) % 3, "binary"),
    ):
        with pytest.raises(ValueError, match=message):
            selector_of().fit(rows, labels)
    assert selector_of().fit(X[:2], y[:2]).result_.status == "optimal"


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_do_not_matter(rng, factor):
    X, y = table(rng)
    ours = selector_of(costs=[10, 1, 1, 1, 1]).fit(X, y)
    theirs = selector_of(costs=[10, 1, 1, 1, 1]).fit(X * factor + factor, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_out_of_time_the_rates_still_hold(rng):
    X = rng.normal(size=(60, 8))
    y = X @ rng.normal(size=8) + 0.3 * rng.normal(size=60) > 0
    y[:2] = True, False
    stopped = selector_of({"tpr": 0.85, "tnr": 0.85}, time_limit=1e-9).fit(X, y)
    assert min(stopped.rates_.values()) >= 0.85
    longer = selector_of({"tpr": 0.85, "tnr": 0.85}).fit(X, y)
    assert longer.result_.objective <= stopped.result_.objective
    assert stopped.result_.bound <= longer.result_.objective


def test_ctrl_c_leaves_an_earlier_fit_alone(rng, monkeypatch):
    X, y = table(rng)
    selector = selector_of().fit(X, y)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(search_module.RateSearch, "add_greedily", interrupted)
    selector.costs = [10, 1, 1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        selector.fit(X, y)
    assert selector.result_.features == (0,)
    assert selector.transform(X).shape == (60, 1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_machine_keeps_the_rows_kept(rng, kernel):
    X, y = table(rng)
    X[:, 0] += 0.6 * rng.normal(size=60)
    labels = np.where(y, "yes", "no")
    gamma = 1.0 if kernel == "rbf" else "scale"
    selector = selector_of(classifier=kernel, C=2.0, gamma=gamma, max_coefficient=20.0)
    selector.fit(X, labels)
    machine = selector.classifier_
    scores = machine.decision_function(selector.transform(X))
    margins = np.where(y, scores, -scores)
    assert (margins[selector.kept_] >= 1 - 1e-6).all()
    assert machine["machine"].result_.status == "optimal"
    right = machine.predict(selector.transform(X)) == labels
    assert right[y].mean() >= 0.8
    assert right[~y].mean() >= 0.8


def test_the_machine_is_scikit_learns_where_nothing_binds(rng):
    """Rows that the plain machine keeps anyway constrain nothing: (P2) is the plain problem."""
    X, y = table(rng)  # classes 1.8 apart in column 0
    selector = selector_of({"tpr": 1.0, "tnr": 1.0}, classifier="linear", C=100.0).fit(X, y)
    assert selector.result_.features == (0,)
    plain = SVC(kernel="linear", C=100.0, tol=1e-8).fit(selector.classifier_["scale"].transform(
        selector.transform(X)), y)  # fmt: skip
    np.testing.assert_allclose(selector.classifier_["machine"].coef_, plain.coef_, rtol=1e-3)


def test_names_pipelines_and_clones(rng):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=list("abcde"))
    selector = selector_of(costs={"a": 10.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0})
    assert selector.fit(frame, y).get_feature_names_out().tolist() == ["b", "c"]
    model = make_pipeline(clone(selector), SVC(kernel="linear")).fit(frame, y)
    assert model.score(frame, y) > 0.9
    legend = selector.result_.plot().get_legend_handles_labels()[1]
    assert legend == ["best found", "bound (optimal)"]


def test_the_order_of_columns_and_the_sign_do_not_matter(rng):
    X, y = table(rng)
    cost = selector_of(costs=[10, 1, 1, 1, 1]).fit(X, y).cost_
    assert selector_of(costs=[1, 1, 1, 1, 10]).fit(-X[:, ::-1], ~y).cost_ == cost


def test_errors_are_data_errors(rng):
    X, y = table(rng)
    with pytest.raises(DataError):
        selector_of({"tnr": 0.5}).fit(X, y)


# Random labels and few rows: rates that they can keep.
@parametrize_with_checks([CostSensitiveSelector({"tpr": 0.4, "tnr": 0.4}, time_limit=5.0)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
