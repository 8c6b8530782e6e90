"""Ensembles around classifiers of others: what they learn, and what they say of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from bootprob import (
    BootstrapClassifier,
    BootstrapSVC,
    DataError,
    FewRowsWarning,
    UnattainableRateError,
)
from bootprob.calibration import Sigmoid
from bootprob.ensemble import classifier_fitting, machines_beside
from bootprob.ensemble.bases import training
from bootprob.ensemble.bases.class_scores import class_scores, of_pair
from bootprob.ensemble.bases.monte_carlo import monte_carlo_error
from bootprob.ensemble.fitted import two_classes_of
from bootprob.ensemble.scoring.rows import checked_rows
from bootprob.ensemble.training import schedule
from bootprob.ensemble.training.train import train_shards
from bootprob.intervals import jackknife_variance
from configurations import parametrize_with_configurations

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{FewRowsWarning.__module__}.{FewRowsWarning.__name__}"
)
BAYES = GaussianNB()
QUICK = {"n_bootstraps": 6, "calibration": None, "interval": "wald"}  # without a posterior


@pytest.fixture(scope="module")
def table():
    """90 rows whose second column does not matter."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 2))
    y = np.where(rng.random(90) < expit(1.5 * X[:, 0] + 0.5), "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def model(table):
    grid = {"var_smoothing": [1e-9, 1.0]}
    return BootstrapClassifier(BAYES, grid, n_bootstraps=24, random_state=0).fit(*table)


def test_scores_are_decision_functions_or_log_odds(table):
    X, y = table
    logistic, bayes = LogisticRegression().fit(X, y), GaussianNB().fit(X, y)
    np.testing.assert_array_equal(
        class_scores(logistic, X, 2, 0.01)[:, 0], logistic.decision_function(X)
    )
    p = bayes.predict_proba(X)[:, 1].clip(0.01, 0.99)
    np.testing.assert_allclose(class_scores(bayes, X, 2, 0.01)[:, 0], logit(p))
    X, y = load_iris(return_X_y=True)
    bayes = GaussianNB().fit(X, y)
    scores = class_scores(bayes, X, 3, 1e-4)
    p = bayes.predict_proba(X).clip(1e-4, 1)
    np.testing.assert_allclose(of_pair(scores, 0, 2), np.log(p[:, 2] / p[:, 0]))


def test_replicates_are_what_anyone_would_fit(model, table):
    X, y = table
    counts = model.bootstrap_counts()
    assert len(model.estimators_) == len(counts) == 24
    sums, times = np.zeros((90, 2)), (counts == 0).sum(axis=0)[:, None]
    for count, fitted in zip(counts, model.estimators_, strict=True):
        seen = count > 0
        for r, smoothing in enumerate([1e-9, 1.0]):
            by_hand = GaussianNB(var_smoothing=smoothing)
            by_hand.fit(X[seen], y[seen], sample_weight=count[seen])
            np.testing.assert_array_equal(fitted[r].theta_, by_hand.theta_)
            p = by_hand.predict_proba(X[~seen])[:, 1].clip(1 / 92, 91 / 92)
            sums[~seen, r] += logit(p)
    slope, intercept = model.candidate_units_.T
    np.testing.assert_allclose(model.oob_model_scores_, slope * sums / times + intercept)
    for r, (slope, intercept) in enumerate(model.candidate_units_):
        sigmoid = Sigmoid.fit((sums / times)[:, r], y == "yes", np.ones(90))
        assert (sigmoid.slope, sigmoid.intercept) == pytest.approx((slope, intercept))


def test_probabilities_follow_from_the_scores(model, table):
    X, _ = table
    raw = np.concatenate(list(model.bootstrap_scores(X)))
    assert raw.shape == (90, 2, 24)
    votes = ((raw > 0).mean(axis=2) * model.weights_).sum(axis=1)
    np.testing.assert_allclose(model.vote_proba(X)[:, 1], votes)
    of_replicates = np.einsum("mrb,r->mb", raw, model.weights_)
    scores = (of_replicates / model.score_scale_ + model.score_offset_).mean(axis=1)
    if model.posterior_share_ is None:
        np.testing.assert_allclose(model.decision_function(X), scores)
    slope, intercept = model.sigmoid_
    found = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(found, expit(slope * model.decision_function(X) + intercept))
    said = np.where(model.decision_function(X) > 0, "yes", "no")
    np.testing.assert_array_equal(model.predict(X), said)
    lower, upper = model.proba_interval(X)[:, 1].T
    assert ((lower < found) & (found < upper)).all()
    every = model.summarize(X)
    np.testing.assert_allclose(every["probability"], found)
    np.testing.assert_allclose(every["probability_interval"], np.stack([lower, upper], axis=1))


def test_a_posterior_has_a_share_where_it_earns_one(table):
    X, y = table
    useless = DecisionTreeClassifier(max_depth=1, max_features=1, random_state=0)
    model = BootstrapClassifier(useless, n_bootstraps=10, random_state=0).fit(X[:, [1]], y)
    assert model.posterior_share_ is None or 0 < model.posterior_share_ < 1
    alone = BootstrapClassifier(BAYES, n_bootstraps=10, calibration=None, interval="wald")
    assert alone.fit(X, y).posterior_share_ is None
    np.testing.assert_array_equal(alone.predict_proba(X), alone.vote_proba(X))


def test_rows_count_as_often_as_they_were_drawn(table):
    """By weights, or given as often where weights are not taken."""

    class Unweighted(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    X, y = table
    of_weights, of_rows = (
        BootstrapClassifier(each, random_state=1, **QUICK).fit(X, y)
        for each in (LogisticRegression(tol=1e-10), Unweighted(tol=1e-10))
    )
    for one, other in zip(of_weights.estimators_, of_rows.estimators_, strict=True):
        np.testing.assert_allclose(one[0].coef_, other[0].coef_, rtol=1e-5)
    neighbours = BootstrapClassifier(KNeighborsClassifier(5), **QUICK)
    with pytest.raises(DataError, match="KNeighborsClassifier takes no sample_weight"):
        neighbours.fit(X, y, sample_weight=np.arange(90) + 1.0)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_pipeline_whose_steps_ask_for_weights_has_them(table, n_jobs):
    X, y = table
    weight = np.arange(90) + 1.0
    with config_context(enable_metadata_routing=True):
        asking = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True),
            LogisticRegression(tol=1e-10).set_fit_request(sample_weight=True),
        )
        model = BootstrapClassifier(asking, random_state=1, n_jobs=n_jobs, **QUICK)
        model.fit(X, y, sample_weight=weight)
        mute = make_pipeline(StandardScaler(), LogisticRegression())
        with pytest.raises(DataError, match="Pipeline takes no sample_weight"):
            BootstrapClassifier(mute, **QUICK).fit(X, y, sample_weight=weight)
    count = model.bootstrap_counts()[0]
    rows = count > 0
    alone = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10))
    mass = (count * weight)[rows]
    alone.fit(
        X[rows], y[rows], standardscaler__sample_weight=mass, logisticregression__sample_weight=mass
    )
    np.testing.assert_allclose(
        model.estimators_[0][0].predict_proba(X), alone.predict_proba(X), rtol=1e-6
    )


def test_no_more_samples_are_drawn_than_are_needed(table):
    X, y = table
    sizes = {
        tolerance: BootstrapClassifier(
            LogisticRegression(C=0.01), n_bootstraps=60, tolerance=tolerance, random_state=0
        )
        .fit(X, y)
        .n_replicates_
        for tolerance in (0, 0.5)
    }
    assert sizes == {0: 60, 0.5: 50}
    hurried = BootstrapClassifier(LogisticRegression(), time_budget=1e-9, random_state=0)
    with pytest.warns(UserWarning, match="2 bootstrap samples of LogisticRegression took") as told:
        hurried.fit(X, y)
    assert {each.filename for each in told if "took" in str(each.message)} == {__file__}
    assert hurried.n_replicates_ == 2


def test_the_monte_carlo_error_is_that_of_probabilities(rng):
    n, B = 40, 30
    counts = rng.poisson(1, size=(B, n)).astype(np.uint8)
    outside = counts.T == 0
    codes = rng.permutation(np.arange(n) % 2)
    scores = (2.0 * codes[:, None] + rng.normal(size=(n, B))) * outside
    squares = []
    means = np.array([scores[i, outside[i]].mean() for i in range(n)])
    sigmoid = Sigmoid.fit(means, codes == 1, np.ones(n))
    for i in range(n):
        p = sigmoid.predict(means[i : i + 1])[0]
        deviation = scores[i, outside[i]].std(ddof=1)
        squares.append((sigmoid.slope * p * (1 - p) * deviation) ** 2 / B)
    found = monte_carlo_error(scores[:, None, :, None], counts, codes, np.ones(n))
    assert found == pytest.approx(np.sqrt(np.mean(squares)))


def test_several_classes_share_their_classifiers():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = BootstrapClassifier(BAYES, n_bootstraps=8, random_state=0).fit(X, names)
    assert all(pair.estimators_ is model.estimators_ for pair in model.pair_ensembles_)
    probability, interval = model.predict_proba(X[::30]), model.proba_interval(X[::30])
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert ((interval[..., 0] <= probability) & (probability <= interval[..., 1])).all()
    assert (model.predict(X) == names).mean() > 0.9
    fitted = model.estimators_[0][0].predict_proba(X[70:80]).clip(1 / 152, 1)
    last = two_classes_of(model.pair_ensembles_[2], "scores")
    [raw] = last.scores.of_models(checked_rows(model, X[70:80]))
    np.testing.assert_allclose(raw[:, 0, 0], np.log(fitted[:, 2] / fitted[:, 1]))


def test_a_pipeline_is_given_the_data_frame(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["age", "size"])
    frame["house"] = np.where(X[:, 0] > 0, "own", "rent")
    encode = make_column_transformer((OneHotEncoder(), ["house"]), (StandardScaler(), ["age"]))
    pipeline = make_pipeline(encode, LogisticRegression())
    model = BootstrapClassifier(pipeline, n_bootstraps=6, random_state=0).fit(frame, y)
    assert model.estimators_[0][0][-1].coef_.shape == (1, 3)
    assert list(model.preprocessor_.get_feature_names_out())[:2] == ["age", "size"]
    np.testing.assert_allclose(model.predict_proba(frame)[:7], model.predict_proba(frame[:7]))
    with pytest.raises(DataError, match="give a data frame with the same columns"):
        model.predict_proba(X)


def test_gaps_are_left_to_the_classifier(table):
    X, y = table[0].copy(), table[1]
    X[::7, 1] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=5)
    model = BootstrapClassifier(boosting, n_bootstraps=4, random_state=0).fit(X, y)
    assert np.isfinite(model.proba_interval(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        BootstrapClassifier(LogisticRegression(), n_bootstraps=4).fit(X, y)


def test_groups_stay_together_and_rates_hold(table):
    X, y = table
    groups = np.arange(90) // 3
    model = BootstrapClassifier(
        BAYES, n_bootstraps=20, random_state=0, control="threshold", rates={"tpr": 0.9}
    ).fit(X, y, groups=groups)
    counts = model.bootstrap_counts()
    assert (counts[:, ::3] == counts[:, 1::3]).all()
    positive = y == "yes"
    told = model.oob_proba_[:, 1] > model.decision_threshold_
    assert told[positive].mean() >= 0.9
    with pytest.raises(UnattainableRateError):
        clone(model).set_params(rates={"tpr": 0.999, "tnr": 0.999}).fit(X, y)


def test_later_rows_are_measured(table):
    X, y = np.tile(table[0], (3, 1)), np.tile(table[1], 3)
    X = X + np.random.default_rng(0).normal(scale=0.1, size=X.shape)
    model = BootstrapClassifier(BAYES, random_state=0, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, time=np.arange(len(y)))
    assert model.later_rows_["n_rows"] == 27
    assert "log_loss" in model.later_rows_["metrics"]


def test_sets_and_metrics_come_out_of_bag(model, table):
    sets = model.prediction_sets(table[0], level=0.8)
    right = sets[np.arange(90), (table[1] == "yes").astype(int)]
    assert right.mean() >= 0.8
    assert 0 < model.metric_intervals()["log_loss"].value < 1


def test_the_seed_decides(table):
    tree = DecisionTreeClassifier(max_features=1, max_depth=2)
    one, same, other = (
        BootstrapClassifier(tree, random_state=seed, **QUICK).fit(*table).oob_model_scores_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    workers = BootstrapClassifier(tree, random_state=0, n_jobs=2, **QUICK).fit(*table)
    np.testing.assert_array_equal(one, workers.oob_model_scores_)


def test_several_classifiers_share_samples_and_the_better_gets_the_weight(table):
    X, y = table
    blind = make_pipeline(make_column_transformer(("passthrough", [1])), GaussianNB())
    both = BootstrapClassifier([blind, BAYES], random_state=0, **QUICK).fit(X, y)
    assert both.weights_[1] > 0.9
    alone = BootstrapClassifier(BAYES, random_state=0, **QUICK).fit(X, y)
    slope, intercept = both.candidate_units_[1]
    left_out = alone.oob_counts_ > 0
    expected = np.where(left_out, slope * alone.oob_model_scores_[:, 0] + intercept, 0)
    np.testing.assert_allclose(both.oob_model_scores_[:, 1], expected)
    for wrong in ({"estimator": []}, {"param_grid": {"var_smoothing": [1.0]}}):
        with pytest.raises(DataError, match="give one classifier with a param_grid, or a list"):
            clone(both).set_params(**wrong).fit(X, y)


def test_machines_stand_beside_classifiers_on_the_same_samples(table, tmp_path):
    X, y = table
    svc = BootstrapSVC(kernel="rbf", C=[0.1, 1.0])
    model = BootstrapClassifier([svc, BAYES], n_bootstraps=24, random_state=0).fit(X, y)
    [machines], counts = model.machines_, model.bootstrap_counts()
    np.testing.assert_array_equal(machines.bootstrap_counts(), counts)
    assert [type(each) for each in model.candidates_] == [GaussianNB, BootstrapSVC]
    outside = counts.T == 0
    raw = np.concatenate(list(machines.bootstrap_scores(X))).transpose(0, 2, 1) @ machines.weights_
    mean = (raw * outside).sum(axis=1) / outside.sum(axis=1)
    slope, intercept = model.candidate_units_[1]
    np.testing.assert_allclose(model.oob_model_scores_[:, 1], slope * mean + intercept)
    [scores] = model.bootstrap_scores(X[:5])
    np.testing.assert_allclose(scores[:, 1], slope * raw[:5] + intercept, rtol=1e-6)
    with pytest.raises(DataError, match="needs no BootstrapClassifier around it"):
        BootstrapClassifier([svc]).fit(X, y)
    for wrong, said in (
        ({"kernel": "precomputed"}, "takes values of the kernel"),
        ({"control": "threshold", "rates": {"tpr": 0.9}}, "give control to the BootstrapClass"),
        ({"gamma": -1.0}, "gamma"),
    ):
        broken = clone(svc).set_params(**wrong)
        with pytest.raises(ValueError, match=said):
            BootstrapClassifier([broken, Untrainable()]).fit(X, y)
    kept = clone(svc).set_params(checkpoint=str(tmp_path / "kept"))
    with pytest.raises(DataError, match="leave the checkpoint of the BootstrapSVC out"):
        BootstrapClassifier([kept, Untrainable()], time_budget=9.0).fit(X, y)
    assert not list(tmp_path.iterdir())


class Untrainable(GaussianNB):
    """Says so if work is begun before everything is known."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("work was begun")


def test_machines_of_several_classes_stand_beside_classifiers():
    """Of each pair of classes the score is that of its machines, out of bag and of new rows."""
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    svc = BootstrapSVC(kernel="rbf", C=[0.1, 1.0])
    model = BootstrapClassifier([svc, BAYES], n_bootstraps=24, random_state=0).fit(X, y)
    [machines], counts = model.machines_, model.bootstrap_counts()
    np.testing.assert_array_equal(machines.bootstrap_counts(), counts)
    for whole, own, (i, j) in zip(
        model.pair_ensembles_, machines.pair_ensembles_, [(0, 1), (0, 2), (1, 2)], strict=True
    ):
        rows = np.isin(y, (i, j))
        outside = counts.T[rows] == 0
        scores = np.concatenate(list(own.bootstrap_scores(X))).transpose(0, 2, 1) @ own.weights_
        mean = (scores[rows] * outside).sum(axis=1) / outside.sum(axis=1)
        slope, intercept = whole.candidate_units_[1]
        np.testing.assert_allclose(whole.oob_model_scores_[:, 1], slope * mean + intercept)
        [asked] = whole.bootstrap_scores(X[:5])
        np.testing.assert_allclose(asked[:, 1], slope * scores[:5] + intercept, rtol=1e-6)
        classifier = np.log(model.estimators_[3][0].predict_proba(X[:5]).clip(1 / 152))
        slope, intercept = whole.candidate_units_[0]
        expected = slope * (classifier[:, j] - classifier[:, i]) + intercept
        np.testing.assert_allclose(asked[:, 0, 3], expected, rtol=1e-6)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert (probability.argmax(axis=1) == y).mean() > 0.75


@pytest.mark.filterwarnings("ignore::bootprob.LackOfFitWarning")
def test_machines_of_many_rows_are_of_the_classifiers_samples():
    """By itself `BootstrapSVC` has fewer samples of so many rows; beside others it has theirs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_100, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=3_100) > 0
    svc = BootstrapSVC(effort="low")  # 20 samples
    model = BootstrapClassifier([svc, BAYES], n_bootstraps=24, random_state=0).fit(X, y)
    [machines] = model.machines_
    assert machines.n_replicates_ == 24
    assert machines.n_drawn_ == 3_100
    assert machines.feature_map_ is not None  # not kernels of so many rows
    np.testing.assert_array_equal(machines.bootstrap_counts(), model.bootstrap_counts())
    assert (model.predict(X) == y).mean() > 0.8


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


CLOCK = Clock()


class SlowBayes(GaussianNB):
    """A second for each fit."""

    def fit(self, X, y, sample_weight=None):
        CLOCK.now += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(("several", "slow"), [(False, 0.5), (True, 0.5), (False, 20.0)])
def test_a_budget_bounds_the_machines_too(several, slow, table, monkeypatch):
    X, y = table
    if several:
        y = np.where(X[:, 1] > 0.5, "other", y)
    pairs = 3 if several else 1

    def trained(work, shards, *args):
        for shard, found in zip(shards, train_shards(work, shards, *args), strict=True):
            CLOCK.now += slow * shard.size
            yield found

    for module in (classifier_fitting, machines_beside, training):
        monkeypatch.setattr(module, "perf_counter", CLOCK)
    for module in (machines_beside, schedule):
        monkeypatch.setattr(module, "train_shards", trained)
    svc = BootstrapSVC(kernel="rbf", C=[1.0])
    model = BootstrapClassifier(
        [svc, SlowBayes()],
        **QUICK | {"n_bootstraps": 200},
        tolerance=0,
        time_budget=90.0,
        random_state=0,
    )
    CLOCK.now = 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9] bootstrap samples", UserWarning)
        model.fit(X, y)
    of_sample = 1 + slow * pairs
    assert 90 - of_sample < CLOCK.now <= 90 + of_sample
    [machines], counts = model.machines_, model.bootstrap_counts()
    np.testing.assert_array_equal(machines.bootstrap_counts(), counts)
    assert model.n_replicates_ == len(counts) == machines.n_bootstraps
    with pytest.warns(UserWarning, match="2 bootstrap samples of BootstrapSVC and SlowBayes took"):
        model.set_params(time_budget=1e-9).fit(X, y)
    assert model.n_replicates_ == model.machines_[0].n_replicates_ == 2


def test_a_forest_beside_machines_is_fitted_to_their_samples(table):
    X, y = table
    forest = RandomForestClassifier(n_estimators=3)
    svc = BootstrapSVC(kernel="rbf", C=[1.0])
    model = BootstrapClassifier([svc, forest], **QUICK, random_state=0).fit(X, y)
    assert [type(each) for [each] in model.estimators_] == 6 * [RandomForestClassifier]
    np.testing.assert_array_equal(model.machines_[0].bootstrap_counts(), model.bootstrap_counts())


def test_a_fitted_classifier_is_calibrated_and_the_interval_is_its_calibrators(table):
    X, y = table
    fitted = LogisticRegression().fit(X[:40], y[:40])
    frozen = FrozenEstimator(fitted)
    model = BootstrapClassifier(frozen, random_state=0).fit(X[40:], y[40:])
    scores = fitted.decision_function(X)
    sigmoid = Sigmoid.fit(scores[40:], y[40:] == "yes", np.ones(50))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], sigmoid.predict(scores))
    design = np.column_stack([scores, np.ones(90)])
    variance = np.einsum("ij,jk,ik->i", design, np.linalg.inv(sigmoid.information), design)
    z = 1.959963984540054
    around = sigmoid.logit(scores)[:, None] + z * np.sqrt(variance)[:, None] * [-1, 1]
    found = model.proba_interval(X, method="jackknife")[:, 1]
    np.testing.assert_allclose(found, expit(around), rtol=1e-6)
    again = BootstrapClassifier(frozen, random_state=0, n_bootstraps=40).fit(X[40:], y[40:])
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(DataError, match="has to keep the labels"):
        BootstrapClassifier(frozen).fit(X[40:], y[40:] == "yes")
    weight = np.where(np.arange(50) < 20, 3.0, 1.0)
    weighed = BootstrapClassifier(frozen, random_state=0).fit(X[40:], y[40:], weight)
    sigmoid = Sigmoid.fit(scores[40:], y[40:] == "yes", weight * (weight.sum() / (weight @ weight)))
    np.testing.assert_allclose(weighed.predict_proba(X)[:, 1], sigmoid.predict(scores))


@pytest.mark.parametrize("several", [False, True])
def test_trees_of_a_forest_are_the_replicates(several):
    """Their out-of-bag shares are the forest's own."""
    X, y = load_iris(return_X_y=True)
    X, y = (X, y) if several else (X[50:, :2], y[50:])
    forest = RandomForestClassifier(40, min_samples_leaf=3)
    model = BootstrapClassifier(forest, random_state=0, **QUICK).fit(X, y)
    of_pair = model.pair_ensembles_[2] if several else model
    trees = [tree for [tree] in model.estimators_]
    assert len(trees) == 40
    assert model.n_replicates_ == 40
    counts = model.bootstrap_counts()
    shares = np.stack([tree.predict_proba(X.astype(np.float32)) for tree in trees])
    told = (counts == 0)[..., None]
    out_of_bag = (shares * told).sum(axis=0) / told.sum(axis=0)
    second, first = out_of_bag[:, -1], out_of_bag[:, -2]
    expected = second - first if several else second - 0.5
    own = np.isin(y, (1, 2))
    np.testing.assert_allclose(of_pair.oob_model_scores_[:, 0], expected[own])
    votes = shares[:, :5].argmax(axis=2) if several else shares[:, :5, 1] > 0.5
    if several:
        assert model.predict(X[:5]).tolist() == [0] * 5
        assert (votes == 0).all()
    else:
        np.testing.assert_allclose(model.vote_proba(X[:5])[:, 1], votes.mean(axis=0))
    grouped = BootstrapClassifier(forest, random_state=0, **QUICK)
    grouped.fit(X, y, groups=np.arange(len(y)) // 2)
    assert isinstance(grouped.estimators_[0][0], RandomForestClassifier)


def test_a_forests_jackknife_is_wagers(table):
    """The variance of S. Wager, T. Hastie, B. Efron (2014), with their correction, by its sums."""
    X, y = table
    forest = RandomForestClassifier(60, min_samples_leaf=3)
    model = BootstrapClassifier(forest, random_state=0).fit(X, y)
    counts = model.bootstrap_counts().astype(float)
    shares = np.stack(
        [t.predict_proba(X[:4].astype(np.float32))[:, 1] for [t] in model.estimators_]
    )
    aligned = (shares - 0.5) / model.score_scale_[:, None] + model.score_offset_[:, None]
    centred = aligned - aligned.mean(axis=0)
    covariance = (counts - counts.mean(axis=0)).T @ centred / 60
    noise = np.square(counts - counts.mean(axis=0)).sum() / 60**2 * np.square(centred).mean(axis=0)
    expected = np.maximum(np.square(covariance).sum(axis=0) - noise, 0)
    scores = two_classes_of(model, "scores").scores
    [own] = scores.of_machines(checked_rows(model, X[:4]))
    np.testing.assert_allclose(jackknife_variance(own, model.counts_gram_), expected)


class Relabelled(ClassifierMixin, BaseEstimator):
    """Forgets what the labels were called."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class Scoreless(ClassifierMixin, BaseEstimator):
    """Says classes alone."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


class Unsure(Relabelled):
    """Knows the labels, and has no idea."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (Relabelled(), "a classifier has to keep the labels"),
        (Scoreless(), "no predict_proba; give a classifier that has one of them"),
        (Unsure(), "Unsure says .* which is no score"),
    ],
)
def test_what_cannot_be_used_is_refused(classifier, message, table):
    with pytest.raises(DataError, match=message):
        BootstrapClassifier(classifier, n_bootstraps=4).fit(*table)
    with pytest.raises(ValueError, match="estimator"):
        BootstrapClassifier("forest").fit(*table)


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        ([], None, "estimator is an empty list"),
        ([BAYES], {"var_smoothing": [1.0]}, "estimator is a list, and param_grid is given"),
        ([BAYES, "forest"], None, "estimator has 'forest' among its classifiers"),
        ([BAYES, GaussianNB], None, "among its classifiers; give each"),
        (GaussianNB, None, "estimator is <class .*>; give each of them, not its class"),
        (BAYES, [], "param_grid has no settings"),
        (FrozenEstimator(BAYES), {"estimator": [BAYES]}, "fitted already .* param_grid is given"),
        (RandomForestClassifier(1), None, "n_estimators=1, and its trees are the bootstrap"),
    ],
)
def test_what_gives_no_samples_of_a_classifier_is_refused(estimator, grid, message, table):
    with pytest.raises(DataError, match=message):
        BootstrapClassifier(estimator, grid, n_bootstraps=4).fit(*table)


class OfBoth(LogisticRegression):
    """Has a score for each of two classes."""

    def decision_function(self, X):
        return super().decision_function(X)[:, None] * [-0.25, 0.75]


def test_scores_of_each_of_two_classes_are_told_apart(table):
    one, other = (
        BootstrapClassifier(each, n_bootstraps=6, random_state=0).fit(*table)
        for each in (LogisticRegression(), OfBoth())
    )
    np.testing.assert_allclose(
        one.decision_function(table[0]), other.decision_function(table[0]), atol=1e-12
    )


def test_rows_that_are_far_out_are_refused(model, table):
    rows = table[0][:3].copy()
    rows[1, 0] = -1e30
    for answer in (model.predict, model.predict_proba, model.proba_interval, model.summarize):
        with pytest.raises(DataError, match=r"Row 1, column 0 .* standard deviations from the"):
            answer(rows)


def test_rows_of_torch_are_answered_in_kind(model, table):
    rows = table[0][:4]
    found = model.predict_proba(torch.from_numpy(rows))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), model.predict_proba(rows))
    interval = model.proba_interval(torch.from_numpy(rows.astype(np.float32)))
    np.testing.assert_allclose(interval.numpy(), model.proba_interval(rows), atol=1e-5)


EXPECTED = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "a row of weight 2 and a row that occurs twice lead to different bootstrap samples",
)
EXPECTED["check_classifiers_train"] = "without calibration votes decide, and not the mean score"


@parametrize_with_configurations(
    [BootstrapClassifier(LogisticRegression(), **QUICK)],
    [],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class _Says(ClassifierMixin, BaseEstimator):
    """Of each row, or of three, what it was told to."""

    def __init__(self, answer=(0.5, 0.5), rows=None):
        self.answer, self.rows = answer, rows

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.answer, (self.rows or len(X), 1))


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        (_Says(rows=3), r"has the shape \(3, 2\) for"),
        (_Says(rows=1), r"has the shape \(1, 2\) for"),
        (_Says((1.5, -0.5)), "are no probabilities"),
        (_Says((0.9, 0.9)), "are no probabilities"),
    ],
)
def test_answers_that_are_no_probabilities(rng, classifier, words):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    with pytest.raises(DataError, match=words):
        BootstrapClassifier(classifier, n_bootstraps=6, random_state=0).fit(X, y)


class Reversed(ClassifierMixin, BaseEstimator):
    """Its scores fall where its classes rise."""

    def fit(self, X, y):
        self.inside_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inside_.classes_
        return self

    def decision_function(self, X):
        return -self.inside_.decision_function(X)


@pytest.mark.parametrize("classifier", [DummyClassifier(), Reversed()])
def test_the_posterior_has_its_share_beside_scores_that_tell_nothing(classifier):
    """Boosting that may not split a small table said one probability of all rows."""
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(38, 2)), rng.normal(size=(500, 2))
    y = (3 * X[:, 0] + rng.logistic(size=38) > 0).astype(int)
    model = BootstrapClassifier(classifier, n_bootstraps=10, random_state=0).fit(X, y)
    assert model.posterior_share_ > 0.9
    p, (lower, upper) = model.predict_proba(new)[:, 1], model.proba_interval(new)[:, 1].T
    true = expit(3 * new[:, 0])
    assert -(true * np.log(p) + (1 - true) * np.log1p(-p)).mean() < 0.45  # one half has .69
    assert ((lower < p) & (p < upper)).all()
    np.testing.assert_array_equal(model.predict(new) == 1, model.decision_function(new) > 0)


def test_gaps_of_new_rows_where_none_were_known_are_refused_in_true_words():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] + rng.logistic(size=150) > 0).astype(int)
    gapped = X.copy()
    gapped[-1, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3)
    model = BootstrapClassifier(boosting, n_bootstraps=8, random_state=0)
    with pytest.raises(DataError, match=r"gaps .* row 149, column 0"):
        clone(model).fit(X, y).predict_proba(gapped)
    # All but the last tenth have none: nothing is measured on it, and the table is learned from.
    later = clone(model).fit(gapped, y, time=np.arange(150)).later_rows_
    assert "gaps" in later["why_not"]


def test_dates_are_for_the_classifiers_alone():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table["day"] = pd.date_range("2020", periods=60)
    table["span"] = pd.to_timedelta(np.arange(60), "h")
    seen = make_column_transformer(("passthrough", ["a", "b"]))
    classifier = make_pipeline(seen, LogisticRegression())
    model = BootstrapClassifier(classifier, n_bootstraps=8, random_state=0)
    model.fit(table, (table["a"] > 0).astype(int))
    assert sorted(model.preprocessor_.dropped_) == ["day", "span"]
    assert model.predict_proba(table[:3]).shape == (3, 2)


def test_arrays_with_text_are_refused_in_words():
    text = np.array([["u", 1.0], ["v", 2.0]], dtype=object)[np.arange(40) % 2]
    model = BootstrapClassifier(
        make_pipeline(OneHotEncoder(), LogisticRegression()), n_bootstraps=8
    )
    for X in (text, text.astype(str)):
        with pytest.raises(DataError, match=r"array with text .* give a data frame"):
            model.fit(X, np.arange(40) // 2 % 2)


def test_a_checkpoint_without_a_name_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(DataError, match="None for none"):
        BootstrapClassifier(GaussianNB(), n_bootstraps=8, checkpoint="").fit(X, X[:, 0] > 0)


def test_parameters_of_classifiers_are_checked_by_them(rng):
    X = rng.normal(size=(60, 2))
    with pytest.raises(InvalidParameterError, match="'C' parameter of LogisticRegression"):
        BootstrapClassifier(LogisticRegression(C=-1.0), n_bootstraps=3).fit(X, X[:, 0] > 0)


def test_tensors_are_taken_as_by_machines():
    X = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    model = BootstrapClassifier(LogisticRegression(), n_bootstraps=3, random_state=0)
    assert model.fit(X.bfloat16(), X[:, 0] > 0).n_features_in_ == 2
    with pytest.raises(DataError, match=r"give X\.to_dense"):
        model.fit(X.to_sparse(), X[:, 0] > 0)
