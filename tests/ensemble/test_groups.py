"""Rows that belong together: drawn, left out and counted together."""

import warnings
from functools import partial

import joblib
import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from bootprob import BootstrapClassifier, BootstrapSVC
from bootprob.ensemble.conformal import conformal_p_values
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, approximate
from bootprob.ensemble.uncertainty.groups_left_out import without_groups
from bootprob.exceptions import (
    DataError,
    DoubtfulTableWarning,
    LaterRowsWarning,
)
from bootprob.intervals.jackknife import counts_gram
from bootprob.metrics import metric_intervals
from bootprob.metrics.lack_of_fit_reasons import few_rows
from bootprob.persistence.save_load import load, save
from bootprob.persistence.state import join_state, split_state
from bootprob.preparation.bootstrap import bootstrap_counts, draw_entropy
from linear_models import linear

QUICK = partial(BootstrapSVC, n_bootstraps=25, effort="low", random_state=0)


def subjects(n_groups=30, size=4, seed=0):
    """Rows of subjects whose label is the subject's."""
    rng = np.random.default_rng(seed)
    center = rng.normal(size=(n_groups, 3))
    X = np.repeat(center, size, axis=0) + 0.3 * rng.normal(size=(n_groups * size, 3))
    y = np.repeat(center[:, 0] + rng.logistic(size=n_groups) > 0, size)
    groups = np.repeat(rng.permutation(n_groups), size)
    order = rng.permutation(len(y))
    return X[order], y[order], groups[order]


@pytest.fixture(scope="module", params=["auto", "linear", "rbf"])
def fitted(request):
    X, y, groups = subjects()
    return QUICK(kernel=request.param).fit(X, y, groups=groups), X, y, groups


def test_groups_are_drawn_whole(fitted):
    model, _, y, groups = fitted
    counts = model.bootstrap_counts()
    for group in np.unique(groups):
        own = counts[:, groups == group]
        assert (own == own[:, :1]).all()
    first = np.unique(groups, return_index=True)[1]
    assert (counts[:, first].sum(axis=1) == 30).all()
    assert all(len(np.unique(y[drawn > 0])) == 2 for drawn in counts)


def test_names_of_groups_say_nothing():
    X, y, groups = subjects()
    names = [f"subject {k:03}" for k in groups]
    named, numbered = (QUICK(kernel="linear").fit(X, y, groups=each) for each in (names, groups))
    assert np.array_equal(named.predict_proba(X), numbered.predict_proba(X))


def test_groups_of_one_row_are_independent_rows():
    X, y, _ = subjects()
    alone = QUICK(kernel="linear").fit(X, y, groups=np.arange(len(y)))
    bare = QUICK(kernel="linear").fit(X, y)
    assert np.array_equal(alone.predict_proba(X), bare.predict_proba(X))
    assert alone.groups_ is None


def test_subjects_are_not_recognised_out_of_bag():
    X, y, groups = subjects(60, 5, seed=1)
    new, labels, _ = subjects(200, 1, seed=2)

    def losses(model):
        stated = model.predict_proba(new)[range(len(new)), labels.astype(int)]
        out_of_bag = model.oob_proba_[range(len(y)), y.astype(int)]
        return -np.log(out_of_bag).mean(), -np.log(stated).mean()

    (rosy, _), (honest, true) = (
        losses(QUICK(kernel="rbf").fit(X, y, groups=given)) for given in (None, groups)
    )
    assert abs(honest - true) < 0.1 < true - rosy


def test_intervals_are_those_of_fewer_rows():
    X, y, groups = subjects(60, 5, seed=1)
    of_groups = QUICK(kernel="linear").fit(X, y, groups=groups)
    bare = QUICK(kernel="linear").fit(X, y)
    for method in ("corrected", "normal", "jackknife"):
        widths = [np.ptp(m.proba_interval(X, method=method), axis=2) for m in (of_groups, bare)]
        assert widths[0].mean() > 1.3 * widths[1].mean()


def test_the_jackknife_counts_groups(fitted):
    model, X, _, groups = fitted
    first = np.isin(np.arange(len(X)), np.unique(groups, return_index=True)[1])
    expected = counts_gram(model.bootstrap_counts(), first)
    np.testing.assert_allclose(model.counts_gram_, expected, atol=1e-9)


def test_whole_groups_leave_the_posterior():
    """Against the posterior made of the factors of all other rows."""
    rng = np.random.default_rng(3)
    n, d = 40, 6
    columns = torch.from_numpy(rng.normal(size=(n, d)))
    label = torch.from_numpy((rng.random(n) < 0.5).astype(float))
    weight, noise = torch.ones(n, dtype=torch.float64), torch.from_numpy(rng.uniform(0, 0.4, n))
    precision = torch.from_numpy(rng.uniform(0.5, 2, d))
    groups = rng.integers(8, size=n)
    groups[:12] = 0  # of more rows than there are columns
    for given in (None, noise):
        blocks = [(slice(0, n), columns)]
        start = Sites.beginning(label, weight)
        found = approximate(blocks, label, weight, precision, start, noise=given)
        mean, variance = without_groups(blocks, found, given, groups)
        sites = found.sites.without(given)
        for group in range(8):
            own, others = groups == group, groups != group
            matrix = torch.diag(precision) + columns[others].T @ (
                columns[others] * sites.precision[others, None]
            )
            covariance = torch.linalg.inv(matrix)
            expected = columns[own] @ covariance @ (columns[others].T @ sites.shift[others])
            spread = (columns[own] @ covariance * columns[own]).sum(1)
            spread = spread if given is None else spread + given[own]
            assert torch.allclose(mean[own], expected, rtol=1e-8, atol=1e-8)
            assert torch.allclose(variance[own], spread, rtol=1e-8)


def test_without_its_group_a_row_alone_is_left_out_as_ever():
    rng = np.random.default_rng(4)
    columns = torch.from_numpy(rng.normal(size=(30, 4)))
    label = torch.from_numpy((rng.random(30) < 0.5).astype(float))
    weight, precision = torch.ones(30, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    blocks = [(slice(0, 30), columns)]
    found = approximate(blocks, label, weight, precision, Sites.beginning(label, weight))
    mean, variance = without_groups(blocks, found, None, np.arange(30))
    assert torch.allclose(mean, found.left_out_mean, atol=1e-8)
    assert torch.allclose(variance, found.left_out_variance, rtol=1e-8)


@pytest.mark.parametrize("class_conditional", [False, True])
def test_prediction_sets_compare_with_groups(fitted, class_conditional):
    model, _, y, groups = fitted
    new = subjects(3, 2, seed=9)[0]
    found = conformal_p_values(model, new, class_conditional=class_conditional)
    outside = model.bootstrap_counts().T == 0
    scores = np.concatenate(list(model.bootstrap_scores(new))).mean(axis=1)
    own = np.where(y, 1, -1) * model.oob_model_scores_.mean(axis=1)
    for k, score in enumerate(scores):
        for label in (0, 1):
            shares = []
            for group in np.unique(groups):
                rows = np.flatnonzero(groups == group)
                if class_conditional:
                    rows = rows[y[rows] == label]
                if len(rows):
                    fits = [
                        own[i] <= (1 if label else -1) * score[outside[i]].mean() + 1e-9
                        for i in rows
                    ]
                    shares.append(np.mean(fits))
            assert found[k, label] == pytest.approx((1 + sum(shares)) / (1 + len(shares)))


def test_a_rate_is_promised_for_so_many_groups():
    X, y, groups = subjects(60, 5, seed=1)
    asked = {"control": "threshold", "rates": {"tpr": 0.7}, "confidence": 0.9}
    shares = [
        QUICK(kernel="linear", **asked).fit(X, y, groups=given).controlled_rates_[0]
        for given in (groups, None)
    ]
    assert shares[0]["required_share"] > shares[1]["required_share"] + 0.02


def test_metrics_are_of_new_groups(fitted):
    model, _, y, groups = fitted
    p = model.oob_proba_[:, 1]
    known = np.isfinite(p)
    bare = metric_intervals(y[known], p[known])
    found = metric_intervals(y[known], p[known], groups=groups[known])
    for name in ("brier_score", "accuracy", "sensitivity", "specificity"):
        assert found[name].value == pytest.approx(bare[name].value)
        of_groups = found[name].upper - found[name].lower
        assert of_groups > 1.3 * (bare[name].upper - bare[name].lower)
    assert model.metric_intervals()["brier_score"].n_rows == known.sum()


def test_metrics_of_groups_of_one_row_are_those_of_rows():
    rng = np.random.default_rng(5)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    assert metric_intervals(y, p, groups=np.arange(80)) == metric_intervals(y, p)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_several_classes_and_files(kernel, tmp_path):
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) // 3
    model = QUICK(kernel=kernel, n_bootstraps=10).fit(X, y, groups=groups)
    counts = model.bootstrap_counts()
    assert (counts[:, ::3] == counts[:, 1::3]).all()
    pair = model.pair_ensembles_[1]
    assert np.array_equal(pair.bootstrap_counts(), counts[:, y != 1])
    save(model, tmp_path / "iris.model")
    again = load(tmp_path / "iris.model")
    assert np.array_equal(again.groups_, groups)
    assert np.array_equal(again.bootstrap_counts(), counts)
    assert np.array_equal(again.pair_ensembles_[1].bootstrap_counts(), pair.bootstrap_counts())
    assert np.array_equal(again.prediction_sets(X), model.prediction_sets(X))
    assert np.array_equal(again.proba_interval(X), model.proba_interval(X))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (np.full(120, 2**60), "groups_ does not number groups"),
        (np.arange(119), "has the shape"),
        (np.full(120, -1), "groups_"),
    ],
)
def test_files_whose_groups_cannot_be(fitted, groups, said):
    arrays, values = split_state(fitted[0])
    parameters = fitted[0].get_params()
    assert np.array_equal(join_state(parameters, arrays, values).groups_, fitted[0].groups_)
    with pytest.raises((TypeError, ValueError), match=said):
        join_state(parameters, arrays | {"groups_": groups}, values)


def test_jobs_and_checkpoints_draw_the_same_groups(tmp_path):
    X, y, groups = subjects()
    alone = QUICK(kernel="linear").fit(X, y, groups=groups)
    jobs = QUICK(kernel="linear", n_jobs=2, checkpoint=str(tmp_path / "kept"))
    with joblib.parallel_config(backend="threading"):
        jobs.fit(X, y, groups=groups)
    assert np.array_equal(jobs.predict_proba(X), alone.predict_proba(X))
    with pytest.raises(DataError, match="bootstrap samples"):
        jobs.fit(X, y)


def test_a_class_of_one_group_has_too_few():
    X, y, groups = subjects()
    few = np.where(groups == 0, "rare", np.where(y, "yes", "no"))
    with pytest.raises(DataError, match="All rows of class rare are in one group"):
        QUICK(kernel="linear").fit(X, few, groups=groups)


def test_order_within_groups_says_nothing_of_the_fit():
    """As where the first visit is never a relapse: the test of lack of fit drew the first rows."""
    X, y, groups = subjects(60, 5, seed=1)
    y = np.random.default_rng(2).random(len(y)) < 1 / (1 + np.exp(-X[:, 0]))
    found = []
    for order in (np.arange(len(y)), np.lexsort((y, groups))):
        model = QUICK(kernel="linear").fit(X[order], y[order], groups=groups[order])
        found.append(model.lack_of_fit_["p_value"])
    assert min(found) > 0.01


def test_a_calibration_is_chosen_on_groups_left_out():
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(6):
        own = rng.normal(size=(40, 2))
        groups = np.repeat(np.arange(40), 5)
        y = (own[:, 0] + rng.logistic(size=40) > 0)[groups]
        model = QUICK(kernel="linear", calibration="auto").fit(own[groups], y, groups=groups)
        chosen.append(model.calibration_)
    assert chosen.count("sigmoid") >= 4


@pytest.mark.usefixtures("one_link")
def test_few_groups_of_many_rows_end_in_a_word():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 1000)
    X = rng.normal(size=(4000, 2))
    model = QUICK(n_bootstraps=4).fit(X, groups >= 2, groups=groups)
    assert (np.abs(np.diff(model.bootstrap_counts()[:, ::1000], axis=0)).sum(axis=1) > 0).any()
    each = np.repeat(np.arange(10), 2)  # ten classes, each in a group of its own
    with pytest.raises(DataError, match="whole groups are drawn"):
        bootstrap_counts(each, np.ones(20), range(100), [1], groups=each)


def test_groups_are_checked_before_any_work():
    X, y, groups = subjects()
    with pytest.raises(DataError, match="give one group a row"):
        QUICK().fit(X, y, groups=groups[:-1])


def test_groups_are_routed():
    X, y, groups = subjects()
    with config_context(enable_metadata_routing=True):
        model = QUICK(kernel="linear", n_bootstraps=5).set_fit_request(groups=True)
        found = cross_validate(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
    assert all(each.groups_ is not None for each in found["estimator"])


def test_a_class_that_is_mistaken_in_all_groups_has_an_interval():
    """No resample differs: the exact interval, of as many rows as there are groups."""
    y, groups = np.tile([1, 0, 1], 20), np.repeat(np.arange(20), 3)
    found = metric_intervals(y, np.linspace(0.6, 0.9, 60), groups=groups)
    assert (found["specificity"].value, found["specificity"].method) == (0.0, "exact")
    assert found["specificity"].upper == pytest.approx(1 - 0.025 ** (1 / 20))
    assert found["sensitivity"].lower == pytest.approx(0.025 ** (1 / 20))


def test_clusters_of_near_duplicates_are_named_by_fit():
    rng = np.random.default_rng(3)
    subjects = rng.normal(size=(60, 4))
    X = np.repeat(subjects, 5, axis=0) + 0.1 * rng.normal(size=(300, 4))
    y = np.repeat(rng.random(60) < 0.5, 5)
    model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=5, random_state=0)
    with pytest.warns(DoubtfulTableWarning, match="clusters, nearly the same and of one class"):
        model.fit(X, y)
    assert any("Give the subject of each row as groups" in each for each in model.remarks_)
    groups = np.repeat(np.arange(60), 5)
    assert model.fit(X, y, groups=groups).remarks_ == []
    assert model.fit(X, rng.random(300) < 0.5).remarks_ == []


def test_rows_of_groups_count_for_what_they_tell(rng):
    """5,000 rows that hang together weakly in time are many; 50 labels, 100 rows each, are few."""
    X, drift, steps = rng.normal(size=(5000, 2)), np.zeros(5000), rng.normal(size=5000)
    for i in range(1, 5000):
        drift[i] = 0.9 * drift[i - 1] + 0.13 * steps[i]
    y = rng.random(5000) < expit(X[:, 0] + drift)
    quick = linear(C=[1.0], n_bootstraps=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaterRowsWarning)
        timed = clone(quick).fit(X, y, time=np.arange(5000))
    assert timed.groups_.max() + 1 < 400 < timed.lack_of_fit_["informative_rows"]
    assert few_rows(timed.lack_of_fit_) is None
    groups = np.repeat(np.arange(50), 100)
    shared = clone(quick).fit(X, groups % 2, groups=groups)
    assert few_rows(shared.lack_of_fit_) is not None


@pytest.mark.parametrize(
    ("groups", "time", "where"),
    [("site", None, "group"), ("label", None, "group"), (None, "label", "stretch of time")],
)
@pytest.mark.parametrize("kernel", ["linear", "auto"])
def test_a_class_that_would_never_be_left_out_is_refused(rng, kernel, groups, time, where):
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    told = {"label": y, "site": np.where(y == 1, 0, np.arange(60) % 10), None: None}
    model = QUICK(kernel=kernel)
    with pytest.raises(DataError, match=f"All rows of class [01] are in one {where}"):
        model.fit(X, y, groups=told[groups], time=told[time])
    around = BootstrapClassifier(GaussianNB(), n_bootstraps=5, random_state=0)
    with pytest.raises(DataError, match=f"are in one {where}"):
        around.fit(X, y, groups=told[groups], time=told[time])


def test_a_class_that_was_by_chance_never_left_out_is_refused():
    X, y = np.random.default_rng(0).normal(size=(9, 3)), np.array([0, 0, *[1] * 7])
    never = 0
    for seed in range(8):
        model = linear(C=[1.0], n_bootstraps=2, random_state=seed)
        counts, _ = bootstrap_counts(
            y, np.ones(9), range(2), draw_entropy(np.random.RandomState(seed))
        )
        if len(np.unique(y[(counts == 0).any(axis=0)])) == 2:
            model.fit(X, y)
            continue
        never += 1
        with pytest.raises(DataError, match="No row of one class was ever out of bag in 2"):
            model.fit(X, y)
    assert 0 < never < 8
