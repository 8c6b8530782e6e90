"""What figures show is what the model says; axes are given and taken."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapSVC, DataError
from bootprob.displays import (
    ContributionsDisplay,
    ControlDisplay,
    ImportanceDisplay,
    IntervalDisplay,
    PartialDependenceDisplay,
    ReliabilityDisplay,
    StabilityDisplay,
)
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.explanation import PermutationImportance, contributions, permutation_importance
from bootprob.metrics.reliability import reliability_curve
from bootprob.tables.model import TableModel
from mixed_tables import credit_table


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] + rng.logistic(size=120) > 0, "ill", "well")


@pytest.fixture(scope="module")
def model(table):
    return BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(*table)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_reliability_out_of_bag_of_new_rows_and_of_any_probabilities(model, table, ax):
    X, y = table
    found = ReliabilityDisplay.from_estimator(model, ax=ax)
    assert found.ax_ is ax
    assert found.figure_ is ax.figure
    assert found.curve.n_rows == 120
    lower, upper = found.curve.at(found.curve.probability)
    corners = ax.collections[0].get_paths()[0].vertices
    assert set(found.curve.probability) == set(corners[:, 0])
    assert set(corners[:, 1]) == {*lower[:-1], *upper[1:]}
    np.testing.assert_array_equal(
        ax.lines[1].get_data(), (found.curve.stated, found.curve.observed)
    )
    assert ax.get_legend().get_texts()[0].get_text() == "BootstrapSVC"
    new = ReliabilityDisplay.from_estimator(model, X[:50], y[:50], n_bins=4, ax=ax, name="new")
    p = model.predict_proba(X[:50])[:, 1]
    expected = reliability_curve(y[:50] == "well", p, n_bins=4)
    np.testing.assert_array_equal(new.curve.observed, expected.observed)
    any_model = ReliabilityDisplay.from_predictions(y[:50] == "well", p, n_bins=4, color="red")
    [bars] = any_model.ax_.containers
    assert bars[0].get_color() == "red"
    np.testing.assert_array_equal(bars[0].get_xdata(), expected.probability)
    assert any_model.ax_.get_legend() is None
    with pytest.raises(DataError, match="Give both X and y"):
        ReliabilityDisplay.from_estimator(model, X)


def test_intervals_in_the_order_of_the_probabilities(model, table, ax):
    X, y = table
    found = IntervalDisplay.from_estimator(model, X[:20], y[:20], level=0.9, ax=ax)
    interval = model.proba_interval(X[:20], 0.9)[:, 1]
    np.testing.assert_allclose(found.interval, interval)
    drawn = [tuple(ends) for lines in ax.collections for ends in lines.get_segments()]
    assert len(drawn) == 20
    order = np.argsort(model.predict_proba(X[:20])[:, 1])
    lowest = min(drawn, key=lambda ends: ends[0][1])
    assert [lowest[0][0], lowest[1][0]] == pytest.approx(interval[order[0]].tolist())
    plain = IntervalDisplay.from_predictions([0.2, 0.1], [[0.1, 0.3], [0, 0.4]], ax=ax)
    assert plain.positive is None
    with pytest.raises(DataError, match=r"Shapes \(m,\), \(m, 2\)"):
        IntervalDisplay.from_predictions([0.2, 0.1], [0.1, 0.3])
    with pytest.raises(DataError, match=r"Shapes \(m,\), \(m, 2\)"):
        IntervalDisplay.from_predictions([0.2], [[0.1, 0.3]], [1, 0])


@pytest.mark.parametrize("control", ["threshold", None])
def test_rates_wanted_and_reached(table, control, ax):
    given = {} if control is None else {"control": control, "rates": {"tpr": 0.8}}
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=20, random_state=0, **given)
    found = ControlDisplay.from_estimator(model.fit(*table), ax=ax)
    if control is None:
        assert found.points == {}
        assert found.wanted == (None, None)
        return
    tpr, tnr = rates_under_control(model)
    assert found.wanted == (0.8, None)
    assert list(found.points) == ["without control", "under control"]
    assert found.points["under control"][0][0] == tpr.out_of_bag.value
    assert found.points["under control"][1][0] == tnr.out_of_bag.value
    any_model = ControlDisplay.from_predictions([0, 1, 1, 0], [0.1, 0.4, 0.8, 0.3], ax=ax)
    assert 1.0 in any_model.curve.sensitivity[any_model.curve.specificity == 1]
    with pytest.raises(DataError, match="Three times the shape"):
        ControlDisplay.from_predictions([0, 1], [0.1])


def test_contributions_largest_on_top(model, table, ax):
    X, _ = table
    found = ContributionsDisplay.from_estimator(model, X[:3], X[:8], n_columns=2, ax=ax)
    value = contributions(model, X[:1], X[:8]).contribution[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"x{k}" for k in np.argsort(-np.abs(value))[:2][::-1]]
    assert found.ax_.get_title(loc="left").startswith("probability ")
    other = ContributionsDisplay.from_estimator(model, X[:3], X[:8], label=model.classes_[0], ax=ax)
    np.testing.assert_allclose(other.found.contribution[0], -value)


def test_importance_largest_on_top(model, table, ax):
    X, y = table
    found = ImportanceDisplay.from_estimator(model, X, y, metric="auc", n_columns=2, ax=ax)
    expected = permutation_importance(model, X, y, metric="auc")
    order = np.argsort(expected.importances_mean)[1:]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{k}" for k in order]
    drawn = [ends[:, 0].tolist() for ends in ax.collections[0].get_segments()]
    assert drawn == expected.interval[order].tolist()
    assert found.ax_.get_xlabel() == "fall of the AUC"


def test_partial_dependence_of_numbers_and_levels(ax):
    loans = TableModel.fit(
        credit_table(80), "risk", "bad", kernel="rbf", C=1.0, n_bootstraps=20, random_state=0
    )
    of_number = PartialDependenceDisplay.from_estimator(loans, "amount", ax=ax)
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), of_number.found.probability)
    good = PartialDependenceDisplay.from_estimator(loans, "amount", label="good", ax=ax)
    np.testing.assert_allclose(good.found.log_odds, -of_number.found.log_odds)
    of_levels = PartialDependenceDisplay.from_estimator(loans, "purpose")
    labels = [label.get_text() for label in of_levels.ax_.get_xticklabels()]
    assert labels == loans.preprocessor.levels_["purpose"]
    assert of_levels.ax_ is not ax


def test_models_of_tables_and_other_classes(model, table, ax):
    X, _ = table
    rows = credit_table(80)
    loans = TableModel.fit(rows, "risk", "bad", kernel="linear", n_bootstraps=20, random_state=0)
    frame, risk = rows.drop(columns="risk"), rows["risk"]
    found = ReliabilityDisplay.from_estimator(loans, frame, risk, n_bins=3, ax=ax)
    share = found.curve.observed @ found.curve.weight
    assert share == pytest.approx((risk == "bad").mean())
    intervals = IntervalDisplay.from_estimator(loans, frame, risk, ax=ax)
    np.testing.assert_array_equal(intervals.positive, risk == "bad")
    stable = StabilityDisplay.from_estimator(loans, frame, risk, ax=ax).found
    np.testing.assert_allclose(stable.probability, intervals.probability, rtol=1e-12)
    assert 0 < stable.mean_absolute_error < 0.3
    assert ReliabilityDisplay.from_estimator(loans, ax=ax).curve.n_rows == 80
    assert ControlDisplay.from_estimator(loans, ax=ax).points == {}
    for display in (ReliabilityDisplay, IntervalDisplay):
        with pytest.raises(DataError, match="those of the model, which are ill, well"):
            display.from_estimator(model, X[:2], [0, 1])
    with pytest.raises(DataError, match="y_true must hold 1 for the positive class"):
        IntervalDisplay.from_predictions([0.2], [[0.1, 0.3]], ["no"])
    with pytest.raises(DataError, match="y_true must hold 1 for the positive class"):
        ControlDisplay.from_predictions([-1, 1], [0.2, 0.3])


def test_a_new_figure_is_made_without_an_axis(model):
    with mpl.rc_context({"backend": "agg"}):
        assert ReliabilityDisplay.from_estimator(model).figure_ is not None


def test_of_two_classes(table):
    X, y = table
    three = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    three.fit(X, np.where(X[:, 1] > 1, "odd", y))
    for display in (ReliabilityDisplay, ControlDisplay):
        with pytest.raises(DataError, match="3 classes"):
            display.from_estimator(three)
    with pytest.raises(DataError, match="3 classes"):
        IntervalDisplay.from_estimator(three, X)


@pytest.mark.parametrize(
    "kind", ["prediction", "error", "classification", "calibration", "net_benefit"]
)
def test_stability_draws_what_was_found(model, table, ax, kind):
    X, y = table
    shown = StabilityDisplay.from_estimator(model, X, y, kind=kind, ax=ax)
    found = model.stability(X, y)
    of_model = {
        "error": (found.probability, found.absolute_error),
        "classification": (found.probability, found.classification_instability),
        "calibration": (found.curve.probability, found.curve.observed),
        "net_benefit": (found.thresholds, found.net_benefit),
    }
    if kind == "prediction":
        [lines] = ax.collections
        ends = np.array([segment[:, 1] for segment in lines.get_segments()])
        np.testing.assert_array_equal(ends, found.interval)
    else:
        np.testing.assert_array_equal(ax.lines[-1].get_data(), of_model[kind])
    if kind in ("calibration", "net_benefit"):
        assert len(ax.lines) >= 20 + 2
    again = StabilityDisplay.from_predictions(
        y == "well", model.predict_proba(X)[:, 1], model.bootstrap_proba(X)[:, :, 1], kind=kind
    )
    np.testing.assert_array_equal(again.found.absolute_error, shown.found.absolute_error)


def test_no_such_stability(model, table):
    with pytest.raises(DataError, match="'calibration' or 'net_benefit'"):
        StabilityDisplay.from_estimator(model, *table, kind="slope")


def test_reliability_draws_where_probabilities_are_wrong_and_groups_of_weighted_rows(ax):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p**2
    found = ReliabilityDisplay.from_predictions(y, p, ax=ax)
    drawn = [tuple(line.get_xdata()) for line in ax.lines[2:]]
    assert drawn == list(found.curve.miscalibrated) != []
    for rows in ({"sample_weight": 1 + y}, {"groups": np.arange(2000) // 2}):
        assert len(ReliabilityDisplay.from_predictions(y, p, **rows).curve.n_rows) == 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": np.zeros(99)}, "groups has the shape"),
        ({"groups": ["a"] * 50 + [None] * 50}, "groups is missing"),
        ({"sample_weight": np.ones(99)}, "one length"),
    ],
)
def test_rows_of_a_reliability_diagram_are_checked(rng, options, words):
    p = rng.uniform(size=100)
    with pytest.raises(DataError, match=words):
        ReliabilityDisplay.from_predictions(rng.uniform(size=100) < p, p, **options)


def test_a_colour_of_numbers_fills_what_is_sure():
    found = PermutationImportance(
        list("abcd"),
        np.array([[0.4], [0.3], [0.2], [0.1]]),
        np.array([[0.3, 0.5], [0.2, 0.4], [-0.1, 0.3], [-0.2, 0.2]]),
        "log_loss", 0.5, 100, False, 0.95,
    )  # fmt: skip
    drawn = ImportanceDisplay(found).plot(Figure().subplots(), color=(0.1, 0.2, 0.9))
    sure, unsure = drawn.ax_.collections[-2:]
    assert sure.get_facecolor().tolist() == [[0.1, 0.2, 0.9, 1.0]]
    assert unsure.get_facecolor().tolist() == [[1.0, 1.0, 1.0, 1.0]]
    assert sorted(sure.get_offsets()[:, 0]) == [0.3, 0.4]


@pytest.mark.parametrize(
    ("p", "interval", "threshold", "told"),
    [
        ([np.nan, 0.7], [[0.1, 0.4], [0.5, 0.8]], 0.5, "y_prob"),
        ([2, 0.7], [[0.1, 0.4], [0.5, 0.8]], 0.5, "y_prob"),
        ([0.2, 0.7], [[0.4, 0.1], [0.5, 0.8]], 0.5, "lower bound and an upper"),
        ([0.2, 0.7], [[0.1, 0.4], [0.5, 0.8]], 5, "threshold is 5"),
        ([0.2, 0.7], [[0.1, 0.4], [0.5, 0.8]], "a", "threshold is 'a'"),
    ],
)
def test_what_is_no_probability_is_not_drawn(p, interval, threshold, told):
    with pytest.raises(DataError, match=told):
        IntervalDisplay.from_predictions(p, interval, threshold=threshold, ax=Figure().subplots())


@pytest.mark.parametrize(
    ("y", "p", "weight", "told"),
    [
        ([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], [1, -1, 1, 1], "at least 0"),
        ([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], [1, np.nan, 1, 1], "at least 0"),
        ([0, 0, 1, 1], [0.1, np.inf, 0.4, 0.9], None, "infinity"),
        ([1, 1, 1], [0.1, 0.2, 0.4], None, "both classes"),
        ([0, 1], [0.1, 0.2], [0, 0], "both classes"),
        ([], [], None, "both classes"),
    ],
)
def test_a_curve_of_rates_needs_rows_of_both_classes(y, p, weight, told):
    with pytest.raises(DataError, match=told):
        ControlDisplay.from_predictions(y, p, sample_weight=weight, ax=Figure().subplots())


def test_displays_are_of_models_of_this_package(model, table):
    X, y = table
    other = LogisticRegression().fit(X, y)
    with pytest.raises(DataError, match="LogisticRegression is no model of bootprob"):
        IntervalDisplay.from_estimator(other, X)
    with pytest.raises(DataError, match="y is None"):
        StabilityDisplay.from_estimator(model, X, None)
    found = contributions(model, X[:3], X)
    with pytest.raises(DataError, match="row is 7; there are 3"):
        ContributionsDisplay(found, row=7)
    with pytest.raises(DataError, match="n_columns is -1"):
        ContributionsDisplay(found, n_columns=-1)


def test_what_is_no_axes_or_no_number_is_refused():
    for ax in (Figure(), Figure().subplots(2)):
        with pytest.raises(DataError, match="give one Axes of a figure"):
            ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.8], ax=ax)
    with pytest.raises(DataError, match="y_prob must hold numbers"):
        ControlDisplay.from_predictions([0, 1], ["x", "y"])
