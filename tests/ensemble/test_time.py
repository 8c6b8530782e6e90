"""Rows in order of time: blocks are drawn whole, and later rows tell what out of bag does not."""

import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import TimeSeriesSplit, cross_validate

from bootprob import BootstrapSVC, DataError, LaterRowsWarning
from bootprob.ensemble.later_rows import remark_of_later
from bootprob.persistence.save_load import load, save
from bootprob.persistence.state import join_state, split_state
from bootprob.preparation.time_blocks import block_length, time_blocks

QUICK = partial(BootstrapSVC, kernel="linear", C=[0.1, 1.0], n_bootstraps=25, random_state=0)
ENTRIES = {
    "since", "until", "n_rows", "n_earlier", "n_blocks", "metrics", "out_of_bag", "p_value",
    "why_not",
}  # fmt: skip


def series(n=300, turn=0.0, seed=0):
    """Rows whose slopes turn at the last tenth, shuffled, with their days."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    slope = np.where(np.arange(n) < n - n // 10, 1.0, 1.0 - turn)
    y = rng.random(n) < 1 / (1 + np.exp(-2 * slope * X[:, 0]))
    order = rng.permutation(n)
    days = np.datetime64("2025-01-01") + np.arange(n)
    return X[order], np.where(y, "yes", "no")[order], days[order]


@pytest.fixture(scope="module")
def fitted():
    X, y, days = series()
    return QUICK().fit(X, y, time=days), X, y, days


def test_blocks_are_drawn_whole_and_left_out(fitted):
    model, _, y, days = fitted
    ranks = (days - days.min()).astype(int)
    expected = time_blocks(ranks, block_length(ranks, (y == "yes").astype(int)))
    blocks, counts = model.groups_, model.bootstrap_counts()
    n_blocks = blocks.max() + 1
    assert 20 <= n_blocks <= 300 / 300 ** (1 / 3)
    assert np.array_equal(np.unique(blocks, return_inverse=True)[1], blocks)
    for k in range(n_blocks):  # the same rows, whatever they are numbered
        own = blocks == k
        assert len(np.unique(expected[own])) == 1
        assert (expected == expected[own][0]).sum() == own.sum()
        assert np.ptp(ranks[own]) == own.sum() - 1  # neighbours, one a day
        assert (counts[:, own] == counts[:, own][:, :1]).all()


def test_time_is_the_groups_that_its_blocks_are(fitted):
    """The one machinery: what is said of rows is what it says of such groups."""
    model, X, y, _ = fitted
    grouped = QUICK().fit(X, y, groups=model.groups_)
    assert np.array_equal(grouped.proba_interval(X[:9]), model.proba_interval(X[:9]))
    assert np.array_equal(grouped.oob_proba_, model.oob_proba_, equal_nan=True)
    assert grouped.later_rows_ is None


def test_later_rows_are_asked_of_a_model_of_the_others(fitted):
    """Against the same done by hand."""
    model, X, y, days = fitted
    found = model.later_rows_
    since = np.sort(days)[270]
    later, classes = days >= since, np.array(["no", "yes"])
    assert (found["since"], found["until"]) == (str(since), str(days.max()))
    assert (found["n_rows"], found["n_earlier"], found["n_blocks"]) == (30, 270, 10)
    assert found.keys() == ENTRIES
    assert found["why_not"] is None
    groups = model.groups_[~later]
    by_hand = QUICK().fit(X[~later], y[~later], groups=groups)
    stated = by_hand.predict_proba(X[later])
    value, lower, upper = found["metrics"]["log_loss"]
    assert value == pytest.approx(log_loss(y[later], stated, labels=classes))
    assert lower < value < upper
    auc = roc_auc_score(y[later] == "yes", stated[:, 1])
    assert found["metrics"]["auc"][0] == pytest.approx(auc)
    sensitivity = (by_hand.predict(X[later]) == "yes")[y[later] == "yes"].mean()
    assert found["metrics"]["sensitivity"][0] == pytest.approx(sensitivity)
    claimed = by_hand.metric_intervals()
    for name, limits in found["out_of_bag"].items():
        expected = [claimed[name].value, claimed[name].lower, claimed[name].upper]
        assert limits == pytest.approx(expected)


def test_drift_is_told_by_later_rows_alone():
    X, y, days = series(400, turn=2.0, seed=1)
    with pytest.warns(
        LaterRowsWarning, match="Later rows are worse: on the 40 rows from 2025-12-27"
    ):
        model = QUICK().fit(X, y, time=days)
    later = model.later_rows_
    assert later["p_value"] < 1e-3
    assert model.metric_intervals()["log_loss"].value < 0.65  # rosy
    assert later["out_of_bag"]["log_loss"][2] < 0.65 < 1.0 < later["metrics"]["log_loss"][1]
    assert later["metrics"]["auc"][2] < 0.5 < later["out_of_bag"]["auc"][1]
    [remark] = model.remarks_
    assert remark == remark_of_later(later)
    # A model of the early rows by another hand is as wrong.
    late = days >= np.sort(days)[360]
    other = LogisticRegression().fit(X[~late], y[~late]).predict_proba(X[late])
    assert later["metrics"]["log_loss"][0] == pytest.approx(log_loss(y[late], other), rel=0.15)


def test_chance_is_no_drift():
    """A p-value that is hardly ever small, and not always large, where nothing changes."""
    found = []
    for seed in range(8):
        model = QUICK(C=1.0, n_bootstraps=10).fit(*series(150, seed=seed)[:2], time=np.arange(150))
        assert model.remarks_ == []
        found.append(model.later_rows_["p_value"])
    assert min(found) > 1e-3
    assert sum(p < 0.5 for p in found) >= 2


def test_several_classes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=240), [-0.5, 0.5])
    model = QUICK(n_bootstraps=10).fit(X, y, time=np.arange(240.0))
    later = model.later_rows_
    by_hand = QUICK(n_bootstraps=10).fit(X[:216], y[:216], groups=model.groups_[:216])
    stated = by_hand.predict_proba(X[216:])
    assert later["metrics"].keys() == {"accuracy", "log_loss", "brier_score"}
    assert later["metrics"]["log_loss"][0] == pytest.approx(log_loss(y[216:], stated))
    assert later["since"] == "216"
    assert all(pair.later_rows_ is None for pair in model.pair_ensembles_)
    save(model, tmp_path / "m.model")
    assert load(tmp_path / "m.model").later_rows_ == later


def test_data_frames_with_levels_that_come_later():
    X, y, days = series()
    late = days >= np.sort(days)[270]
    house = np.where(late & (X[:, 1] > 0), "boat", np.where(X[:, 2] > 0, "own", "rent"))
    frame = pd.DataFrame({"a": X[:, 0], "house": house})
    frame.loc[late, "b"] = 1.0  # not known before
    model = QUICK().fit(frame, y, time=pd.Series(days))
    earlier = QUICK().fit(frame[~late], y[~late], groups=model.groups_[~late])
    loss = log_loss(y[late], earlier.predict_proba(frame[late]))
    assert model.later_rows_["metrics"]["log_loss"][0] == pytest.approx(loss)


def test_sparse_and_precomputed_rows():
    X, y, days = series(200)
    dense, sparse = (QUICK().fit(each, y, time=days) for each in (X, csr_array(X)))
    assert sparse.later_rows_ == dense.later_rows_
    late = days >= np.sort(days)[180]
    K = rbf_kernel(X)
    model = QUICK(kernel="precomputed").fit(K, y, time=days)
    earlier = QUICK(kernel="precomputed").fit(
        K[np.ix_(~late, ~late)], y[~late], groups=model.groups_[~late]
    )
    loss = log_loss(y[late], earlier.predict_proba(K[np.ix_(late, ~late)]))
    assert model.later_rows_["metrics"]["log_loss"][0] == pytest.approx(loss)


def test_weights_count_and_rows_without_any_do_not():
    X, y, days = series()
    weight = np.where(days == days.max(), 0.0, 1.0)
    model = QUICK(class_weight={"no": 1.0, "yes": 3.0}).fit(X, y, weight, time=days)
    found = model.later_rows_
    late = (days >= np.datetime64(found["since"])) & (weight > 0)
    assert found["until"] == str(days.max() - 1)
    assert found["n_rows"] == late.sum() == 29
    train = days < np.datetime64(found["since"])
    by_hand = QUICK(class_weight={"no": 1.0, "yes": 3.0}).fit(
        X[train], y[train], groups=model.groups_[train]
    )
    stated = by_hand.predict_proba(X[late])
    weighed = log_loss(y[late], stated, sample_weight=np.where(y[late] == "yes", 3, 1))
    assert found["metrics"]["log_loss"][0] == pytest.approx(weighed)


def test_what_cannot_be_measured_is_said():
    X, y, days = series(300)
    order = np.argsort(days)
    alike = y.copy()
    alike[order[-30:]] = "no"
    model = QUICK().fit(X, alike, time=days)
    assert "of the last tenth are of one class" in model.later_rows_["why_not"]
    rare = y.copy().astype(object)
    rare[order[-20:-10]] = "new"
    model = QUICK(n_bootstraps=10).fit(X, rare.astype(str), time=days)
    assert model.later_rows_["why_not"] == "the rows before the last tenth lack a class"
    few = QUICK().fit(X[:60], y[:60], time=days[:60])
    assert "rows of the last tenth: 6" in few.later_rows_["why_not"]
    assert few.later_rows_["metrics"] == few.later_rows_["out_of_bag"] == {}
    # A confidence for which all rows are enough, and the earlier ones are not.
    asked = {"control": "threshold", "rates": {"tpr": 0.8}, "confidence": 1 - 0.8**38}
    positive = np.where(np.isin(np.arange(300), order[::5]), "yes", "no")
    told = X + 2.0 * (positive == "yes")[:, None]
    steered = QUICK(**asked).fit(told, positive, time=days)
    assert "no model of the rows before could be made" in steered.later_rows_["why_not"]
    assert split_state(steered)[1]["later_rows_"] == steered.later_rows_


def test_one_instant_of_later_rows_is_taken_for_independent():
    X, y, days = series(240)
    months = days.astype("datetime64[M]")  # the last has 28 rows
    later = QUICK().fit(X, y, time=months).later_rows_
    assert later["since"] == str(months.max()) + "-01"
    assert later["n_blocks"] is None
    assert later["metrics"]["log_loss"][1] < later["metrics"]["log_loss"][2]


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (lambda X, y, t: QUICK().fit(X, y, time=t[:-1]), "give one time a row"),
        (lambda X, y, t: QUICK().fit(X, y, time=np.full(len(t), t[0])), "the same for all rows"),
        (lambda X, y, t: QUICK().fit(X, y, time=["soon"] * len(t)), "no date in ISO form"),
        (lambda X, y, t: QUICK().fit(X, y, groups=t, time=t), "groups and time are both given"),
    ],
)
def test_times_are_checked_before_any_work(fit, said):
    with pytest.raises(DataError, match=said):
        fit(*series(100))


def test_time_is_routed():
    X, y, days = series(200)
    order = np.argsort(days)
    with config_context(enable_metadata_routing=True):
        model = QUICK(n_bootstraps=5).set_fit_request(time=True)
        found = cross_validate(
            model, X[order], y[order], cv=TimeSeriesSplit(2), params={"time": days[order]},
            return_estimator=True,
        )  # fmt: skip
    firsts = [np.sort(days)[n - 1] for n in (68, 134)]
    assert [each.later_rows_["until"] for each in found["estimator"]] == list(map(str, firsts))


def test_files_keep_what_is_said_of_later_rows(fitted, tmp_path):
    model, X, _, _ = fitted
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    assert again.later_rows_ == model.later_rows_
    assert np.array_equal(again.groups_, model.groups_)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"since": 3}, "lacks what is known of them, or has it of another type"),
        ({"n_rows": True}, "of another type"),
        ({"more": 1}, "other entries than are known"),
        ({"metrics": {}}, "metrics of later_rows_ are no metrics"),
        ({"out_of_bag": {"log_loss": [0.1, 0.2, 0.3]}}, "out_of_bag of later_rows_"),
        ({"p_value": 1.5}, "out of range"),
        ({"p_value": None}, "out of range"),
        ({"n_blocks": 0}, "out of range"),
        ({"n_rows": -1}, "out of range"),
        ({"why_not": "no reason"}, "metrics of later_rows_"),
    ],
)
def test_files_that_say_what_cannot_be(fitted, change, said):
    model = fitted[0]
    arrays, values = split_state(model)
    values = values | {"later_rows_": values["later_rows_"] | change}
    with pytest.raises((TypeError, ValueError), match=said):
        join_state(model.get_params(), arrays, values)


def test_limits_that_are_no_numbers_are_refused(fitted):
    arrays, values = split_state(fitted[0])
    for bad in ([1.0, 2.0], "0.5", [np.nan, 0.0, 1.0], [1, 2, 3], None):
        later = values["later_rows_"]
        damaged = later | {"metrics": later["metrics"] | {"auc": bad}}
        with pytest.raises(TypeError, match="no metrics with their limits"):
            join_state(fitted[0].get_params(), arrays, values | {"later_rows_": damaged})


def test_checkpoints_keep_both_fits(fitted, tmp_path):
    model, X, y, days = fitted
    for _ in range(2):  # the second reads all shards
        kept = QUICK(n_jobs=2, checkpoint=str(tmp_path / "kept"))
        with joblib.parallel_config(backend="threading"):
            kept.fit(X, y, time=days)
        assert kept.later_rows_ == model.later_rows_
    assert (tmp_path / "kept" / "later" / "checkpoint.json").exists()


def test_the_order_of_rows_in_the_table_says_nothing_of_drift():
    """Remarks on first and last rows go by time."""
    X, y, days = series()
    X[:, 2] += (days - days.min()).astype(float) / 30
    shuffled = np.random.default_rng(0).permutation(300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = QUICK(n_bootstraps=5).fit(X[shuffled], y[shuffled], time=days[shuffled])
    assert any("First and last rows differ in X[:, 2]" in each for each in model.remarks_)
    assert {str(each.message) for each in caught} == set(model.remarks_)
