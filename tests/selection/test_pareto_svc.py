"""ParetoSVC as an estimator: choosing a rule, predicting, and input of every kind."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bootprob import DataError
from bootprob.selection import ParetoSVC


def table(rng, n=40, p=3, classes=2):
    """Columns that say more and more."""
    codes = np.arange(n) % classes
    X = rng.normal(size=(n, p))
    X[:, 1:] += np.outer(codes, np.linspace(1, 2, p - 1))
    return X, codes


@pytest.fixture
def fitted(rng):
    X, codes = table(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y = np.where(codes == 1, "yes", "no")
    return ParetoSVC(costs={"a": 1.0, "b": 1.0, "c": 3.0}).fit(frame, y), frame, y


def test_choosing_a_rule(fitted):
    model, frame, y = fitted
    costs = model.front_.costs
    assert model.point_ == len(costs) - 1
    for number, point in enumerate(model.front_.points):
        assert model.select(number).rule_ is point
        assert model.select(number - len(costs)).rule_ is point
        assert model.select(budget=point.cost + 1e-9).rule_ is point
        names = list(model.get_feature_names_out())
        assert names == [frame.columns[j] for j in point.features]
        if names:
            np.testing.assert_array_equal(model.transform(frame), frame[names])
        assert model.score(frame, y) == model.accuracies(frame, y)[number]
        assert model.score(frame, y) == point.training_accuracy
    model.select("max accuracy")
    best = model.front_.cv_accuracies
    assert best[model.point_] == best.max()
    assert (best[: model.point_] < best.max()).all()
    assert model.select("max accuracy", budget=0.0).point_ == 0
    fresh = clone(model).set_params(point=0).fit(frame, y)
    assert fresh.rule_.features == ()
    np.testing.assert_array_equal(fresh.front_.margins, model.front_.margins)


@pytest.mark.parametrize(
    ("point", "budget", "message"),
    [
        (99, None, "has . rules"),
        (-99, None, "has . rules"),
        (1, 0.0, "has 1 rules"),
        ("cheap", None, "'cheap'"),
        (1.5, None, "1.5"),
        (None, -1.0, "cheapest rule costs 0"),
    ],
)
def test_rules_that_there_are_not(fitted, point, budget, message):
    model, *_ = fitted
    before = model.point_
    with pytest.raises(DataError, match=message):
        model.select(point, budget=budget)
    assert model.point_ == before


def test_accuracy_needs_folds(fitted):
    _, frame, y = fitted
    with pytest.raises(DataError, match="folds"):
        ParetoSVC(cv=None, point="max accuracy", budget=0.5).fit(frame, y)
    lone = np.where(frame["a"] == frame["a"].max(), "yes", "no")
    assert np.isnan(ParetoSVC(budget=0.5).fit(frame, lone).front_.cv_accuracies).all()


def test_columns_that_are_not_needed_may_be_missing(fitted):
    model, frame, y = fitted
    point = next(point for point in model.front_.points if len(point.features) == 1)
    model.select(model.front_.points.index(point))
    needed = frame.columns[point.features[0]]
    bare = frame.copy()
    bare[frame.columns.drop(needed)] = np.nan
    np.testing.assert_array_equal(model.predict(bare), model.predict(frame))
    bare.loc[3, needed] = np.nan
    with pytest.raises(DataError, match=f"NaN in columns that the rule needs: {needed}"):
        model.predict(bare)
    frame.loc[0, "a"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(frame, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validated_accuracies_by_hand(rng, classes):
    X, codes = table(rng, 48, 3, classes)
    model = ParetoSVC(cv=4, costs=[1.0, 2.0, 3.5]).fit(X, codes)
    folds = list(StratifiedKFold(4).split(X, codes))
    point = model.front_.points[-1]
    columns = X[:, list(point.features)]
    right = 0
    for training, held_out in folds:
        # With free columns the front is the one rule of the largest margin.
        free = ParetoSVC(cv=None, costs=np.zeros(columns.shape[1]), nu=model.nu_)
        free.fit(columns[training], codes[training])
        assert len(free.front_.points) == 1
        right += (free.predict(columns[held_out]) == codes[held_out]).sum()
    assert point.cv_accuracy == right / 48
    assert model.front_.cv_accuracies[0] == pytest.approx(1 / classes)
    other = ParetoSVC(cv=KFold(3), budget=0.0).fit(X, codes)
    assert np.isfinite(other.front_.cv_accuracies).all()


def test_the_rule_without_columns_says_the_largest_class(rng):
    X, codes = table(rng, 30, 3, 3)
    codes[:12] = 2
    model = ParetoSVC(point=0).fit(X, codes)
    assert (model.predict(X) == 2).all()
    assert model.decision_function(X).shape == (30, 3)
    assert model.rule_.margin == model.rule_.cost == 0
    binary = ParetoSVC(point=0).fit(X, codes == 2)
    assert binary.predict(X).tolist() == [np.bincount(codes == 2).argmax()] * 30


def test_a_budget_is_the_front_cut_off(rng):
    X, codes = table(rng, 40, 4)
    costs = rng.uniform(0.5, 1, size=4)
    whole = ParetoSVC(costs=costs, cv=None).fit(X, codes).front_
    budget = 0.6 * costs.sum()
    cut = ParetoSVC(costs=costs, cv=None, budget=budget, method="two-phase").fit(X, codes).front_
    np.testing.assert_allclose(cut.margins, whole.margins[whole.costs <= budget], atol=2e-6)
    np.testing.assert_allclose(cut.costs, whole.costs[whole.costs <= budget])


def test_columns_of_every_kind(rng):
    """Constant, duplicated dearer, free, in other units, and more of them than rows."""
    X, codes = table(rng, 30, 3)
    odd = np.column_stack([np.full(30, 7.0), X, X[:, 2], np.zeros(30)])
    costs = np.array([1.0, 1.0, 1.0, 2.0, 3.0, 1.0])
    plain = ParetoSVC(2, costs=costs[1:4]).fit(X, codes).front_
    front = ParetoSVC(2, costs=costs).fit(odd * 1e6, codes).front_
    np.testing.assert_allclose(front.margins, plain.margins, atol=2e-6)
    np.testing.assert_allclose(front.costs, plain.costs)
    assert all(set(point.features) <= {1, 2, 3} for point in front.points)
    free = ParetoSVC(costs=[0.0, 1.0, 1.0]).fit(X, codes).front_
    assert free.costs[0] == 0
    assert free.points[0].features in {(), (0,)}
    wide = ParetoSVC(costs=np.ones(40), margin="hard", budget=2, cv=None)
    wide.fit(rng.normal(size=(8, 40)), np.arange(8) % 2)
    assert wide.front_.status == "optimal"
    assert wide.front_.costs.max() <= 2


def test_data_without_an_answer(rng):
    X, codes = table(rng)
    X[0], X[1] = X[2], X[2]  # rows of both classes in one place
    with pytest.raises(DataError, match="cannot be separated"):
        ParetoSVC(margin="hard").fit(X, codes)
    with pytest.warns(UserWarning, match="better than none"):
        model = ParetoSVC().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert [point.features for point in model.front_.points] == [()]
    with pytest.raises(ValueError, match="1 class"):
        ParetoSVC().fit(X, np.zeros(40))
    with pytest.raises(ValueError, match="minimum of 2"):
        ParetoSVC().fit(X[:1], codes[:1])
    with pytest.raises(ValueError, match="could not convert string"):
        ParetoSVC().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="infinity"):
        ParetoSVC().fit(np.where(X > 1, np.inf, X), codes)
    with pytest.raises(DataError, match="overflow"):
        ParetoSVC().fit(X * 1e200, codes)
    with pytest.raises(DataError, match=r"products up to degree 40"):
        ParetoSVC(40).fit(X, codes)
    with pytest.raises(DataError, match="positive number"):
        ParetoSVC(costs=[1.0, -1.0, 1.0]).fit(X, codes)


def test_a_fit_that_fails_leaves_the_model_alone(fitted):
    model, frame, y = fitted
    before = model.predict(frame)
    with pytest.raises(DataError, match="counted from 0"):
        model.set_params(point=99).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), before)


def test_pipelines(rng):
    X, codes = table(rng)
    selector = ParetoSVC(costs=[1.0, 1.0, 5.0], budget=2)
    model = make_pipeline(StandardScaler(), selector, LogisticRegression()).fit(X, codes)
    assert model[-1].n_features_in_ == model[1].get_support().sum()


def test_the_plot_shows_every_rule(fitted, tmp_path):
    model, *_ = fitted
    figure = model.plot_front()
    margin, accuracy = figure.axes
    assert [text.get_text() for text in margin.texts] == [
        str(number) for number in range(len(model.front_.points))
    ]
    np.testing.assert_array_equal(accuracy.lines[0].get_ydata(), model.front_.training_accuracies)
    figure.savefig(tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1000


@parametrize_with_checks([ParetoSVC(cv=None, budget=2)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_a_gap_that_scip_has_closed_is_no_time_limit():
    pytest.importorskip("pyscipopt")
    X = [[2, 1, 1, 1], [0, 0, 1, 2], [1, 1, 1, 0], [0, 2, 2, 0], [0, 1, 1, 2], [0, 2, 0, 1],
         [2, 2, 1, 1]]  # fmt: skip
    costs = {"costs": [0, 1.5, 0.1, 1.5], "shared_costs": [([3, 2], 0.7)]}
    model = ParetoSVC(2, margin="hard", solver="SCIP", cv=None, time_limit=100, **costs)
    assert model.fit(np.array(X, dtype=float), [0, 0, 0, 0, 0, 1, 1]).front_.status == "optimal"


def test_accuracies_are_of_the_labels_of_the_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=40) > 0).astype(int)
    # .1 + .2 is more than .3 in floating point, and no more than the budget.
    model = ParetoSVC(costs=[0.1, 0.2, 0.7], cv=None, budget=0.3).fit(X, y)
    assert model.front_.points[-1].features == (0, 1)
    assert model.select(budget=0.3).rule_.features == (0, 1)
    found = model.accuracies(X, y)
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(model.accuracies(X, y[:, None]), found)
    for wrong in (y + 5, y.astype(str), y[:5], [1]):
        with pytest.raises(DataError, match="class of each of the 40 rows; classes are 0, 1"):
            model.accuracies(X, wrong)
