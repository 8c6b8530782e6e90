"""Models after rows that came later: what is watched, and what recalibration changes."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from bootprob import BootstrapClassifier, BootstrapSVC, DataError, load, save
from bootprob.ensemble.controlled_rates import rates_under_control
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.explanation import contributions
from bootprob.tables.model import TableModel

SLOPES = np.array([1.0, -0.8, 0.0])
pytestmark = pytest.mark.filterwarnings("ignore:Few rows", "ignore:Intervals cover")


def drawn(n, shift=0.0, slope=1.0, column=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    p = expit(slope * (X @ SLOPES - 0.5) + shift + column * X[:, 2])
    return X, np.where(rng.random(n) < p, "yes", "no"), p


MODELS = {
    "auto": BootstrapSVC(n_bootstraps=12, random_state=0),
    "linear": BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0),
    "isotonic": BootstrapSVC(
        kernel="linear", n_bootstraps=30, calibration="isotonic", random_state=0
    ),
    "classifier": BootstrapClassifier(GaussianNB(), n_bootstraps=12, random_state=0),
    "tpr": BootstrapSVC(
        kernel="linear", n_bootstraps=30, control="threshold", rates={"tpr": 0.8}, random_state=0
    ),
}


@pytest.fixture(scope="module")
def models():
    X, y, _ = drawn(300)
    return {name: model.fit(X, y) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_all_that_a_model_says_follows(models, name):
    model, (X, y, _) = models[name], drawn(250, shift=1.2, seed=1)
    moved = model.recalibrated(X, y)
    coefficients = moved.recalibration_["coefficients"]
    asked = drawn(40, seed=2)[0]
    before, after = model.predict_proba(asked)[:, 1], moved.predict_proba(asked)[:, 1]
    inside = (before > 1e-9) & (before < 1 - 1e-9)
    assert np.allclose(
        logit(after[inside]), coefficients[0] + coefficients[1] * logit(before[inside])
    )
    interval = moved.proba_interval(asked)[:, 1]
    assert (interval[:, 0] <= after).all()
    assert (after <= interval[:, 1]).all()
    said = moved.summarize(asked)
    assert np.allclose(said["probability"], after, rtol=1e-12)
    assert np.allclose(said["probability_interval"], interval, rtol=1e-9)
    assert np.array_equal(said["label"], moved.predict(asked))
    threshold = 0.5
    if name == "tpr":
        threshold = expit(coefficients @ [1, logit(model.decision_threshold_)])
        assert np.array_equal(moved.predict(asked), model.predict(asked))
    assert moved.decision_threshold_ == pytest.approx(threshold)
    assert np.array_equal(moved.predict(asked) == "yes", after > moved.decision_threshold_)
    assert np.array_equal(moved.vote_proba(asked), model.vote_proba(asked))
    assert np.array_equal(moved.oob_proba_, model.oob_proba_, equal_nan=True)
    assert model.recalibration_ is None
    assert log_loss(y, moved.predict_proba(X)[:, 1]) < log_loss(y, model.predict_proba(X)[:, 1])


def test_another_base_rate_keeps_what_labels_taught(models):
    model = models["linear"]
    labelled = model.recalibrated(*drawn(400, slope=0.5, seed=20)[:2])
    intercept, slope = labelled.recalibration_["coefficients"]
    p, positive = model.oob_proba_[:, 1], model.y_ == 1
    known = np.isfinite(p)
    now = expit(intercept + slope * logit(p))
    of_each = now[known & positive].mean(), now[known & ~positive].mean()
    rate = brentq(lambda share: share - np.dot([share, 1 - share], of_each), 1e-9, 1 - 1e-9)
    moved = labelled.recalibrated(base_rate=0.9)
    shift = logit(0.9) - logit(rate)
    assert moved.recalibration_["coefficients"] == pytest.approx(
        labelled.recalibration_["coefficients"] + [shift, 0]
    )
    assert moved.recalibration_["coefficients"][1] == slope
    again = moved.recalibrated(base_rate=0.9)
    assert np.allclose(again.recalibration_["coefficients"], moved.recalibration_["coefficients"])
    unlabelled = labelled.recalibrated(drawn(300, slope=0.5, seed=21)[0])
    assert unlabelled.recalibration_["coefficients"][1] == slope
    before = labelled.recalibrated(*drawn(10, slope=0.5, seed=22)[:2])
    assert (
        before.recalibration_["covariance"][1, 1]
        < model.recalibrated(*drawn(10, slope=0.5, seed=22)[:2]).recalibration_["covariance"][1, 1]
    )


@pytest.mark.parametrize("name", ["auto", "linear", "classifier"])
@pytest.mark.parametrize("label", ["yes", "no"])
def test_a_base_rate_is_reached_from_few_labels_of_one_class(models, name, label):
    """What few labels leave open is not taken for the share of their classes."""
    X, y, _ = drawn(2000, seed=30)
    weight = np.where(y == "yes", 0.4 / (y == "yes").sum(), 0.6 / (y == "no").sum())
    moved = models[name].recalibrated(X[:5], [label] * 5)
    for before in (moved, moved.recalibrated(X)):
        again = before.recalibrated(base_rate=0.4)
        share = weight @ again.predict_proba(X)[:, 1]
        assert share == pytest.approx(0.4, abs=0.05)


def test_rates_that_change_with_the_base_rate_are_named():
    X, y, _ = drawn(400)
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=30, control="threshold", rates={"ppv": 0.7}, random_state=0
    ).fit(X, y)
    assert (
        "ppv were kept at the base rate" in model.recalibrated(base_rate=0.1).history_[-1]["refit"]
    )


def test_weighted_rows_are_not_compared_with_later_ones():
    X, y, _ = drawn(3000, shift=-2.0)
    rare, often = np.flatnonzero(y == "yes")[:150], np.flatnonzero(y == "no")[:150]
    rows = np.concatenate([rare, often])
    share = (y == "yes").mean()
    weight = np.where(y[rows] == "yes", share, 1 - share)
    model = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0)
    later = drawn(1500, shift=-2.0, seed=30)[0]
    assert model.fit(X[rows], y[rows], weight).watched(later).history_[-1]["alarms"] == []


def test_tables_of_few_levels_are_not_compared_with_scores_out_of_bag():
    """Single replicates differ about equal rows, and no later row lies between what they say."""
    alarms = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, new = (rng.integers(0, 2, size=(n, 2)).astype(float) for n in (300, 3000))
        y = rng.uniform(size=300) < expit(X[:, 0] - X[:, 1])
        model = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=20, random_state=seed).fit(X, y)
        watched = model.watched(new[:1000])
        assert len(watched.monitor_["pool"]) <= 1000
        alarms += "drift" in watched.history_[-1]["alarms"]
        shifted = np.column_stack([new[1000:, 0], rng.uniform(size=2000) < 0.9])
    assert alarms <= 1
    assert "drift" in watched.watched(shifted).history_[-1]["alarms"]


def test_histories_end(models):
    model = models["linear"].recalibrated(base_rate=0.4)
    X = drawn(1, seed=1)[0]
    model.history_ = [*model.history_, *({"what": "watched", "slope": None},) * 999]
    found = model.watched(X).history_
    assert len(found) == 1000
    assert found[0]["what"] == "recalibrated by a base rate"


def test_what_is_out_of_bag_stays_that_of_the_fit(models):
    model = models["tpr"]
    moved = model.recalibrated(base_rate=0.9)
    assert moved.decision_threshold_ != model.decision_threshold_
    for name, found in model.metric_intervals().items():
        assert moved.metric_intervals()[name] == found
    one, other = (rates_under_control(each) for each in (model, moved))
    assert one == other


def test_the_same_rows_are_left_undecided():
    X, y, _ = drawn(400)
    rates = {"tpr": 0.85, "tnr": 0.85, "decided": 0.3}
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=30, control="threshold", rates=rates, random_state=0
    ).fit(X, y)
    moved, asked = model.recalibrated(base_rate=0.8), drawn(200, seed=2)[0]
    assert 0 < model.undecided(asked).sum() < 200
    assert np.array_equal(moved.undecided(asked), model.undecided(asked))


@pytest.mark.parametrize("method", ["corrected", "normal", "percentile", "bca", "venn-abers"])
def test_every_interval_follows_a_base_rate(models, method):
    model, asked = models["linear"], drawn(20, seed=3)[0]
    moved = model.recalibrated(base_rate=0.7)
    shift = moved.recalibration_["coefficients"][0]
    before, after = (each.proba_interval(asked, method=method)[:, 1] for each in (model, moved))
    if method in ("corrected", "normal"):
        assert np.allclose(logit(after), logit(before) + shift)
    assert (after >= before).all()


def test_labels_that_fit_leave_the_model_as_it_is(models):
    X, y, _ = drawn(400, seed=4)
    model = models["linear"]
    moved = model.recalibrated(X, y)
    intercept, slope = moved.recalibration_["coefficients"]
    assert abs(intercept) < 0.4
    assert abs(slope - 1) < 0.3
    assert moved.history_[-1]["refit"] is None


def test_each_update_begins_with_the_last(models):
    model = models["linear"]
    first = model.recalibrated(*drawn(300, 1.0, seed=5)[:2])
    again = first.recalibrated(*drawn(20, 1.0, seed=6)[:2])
    fresh = model.recalibrated(*drawn(20, 1.0, seed=6)[:2])
    known = first.recalibration_["coefficients"]
    distance = [abs(each.recalibration_["coefficients"][0] - known[0]) for each in (again, fresh)]
    assert distance[0] < distance[1]
    assert [each["what"] for each in again.history_] == ["recalibrated by labels"] * 2
    assert again.history_[0] == first.history_[0]


def test_what_recalibration_cannot_mend_is_said(models):
    model = models["linear"]
    for rows, words in [
        (drawn(600, column=1.5, seed=7), "go with column 3"),
        (drawn(600, slope=0.2, seed=8), "tell the classes apart less"),
        (drawn(600, slope=-1.0, seed=8), "tell the classes apart less"),
    ]:
        assert words in model.recalibrated(*rows[:2]).history_[-1]["refit"]
    frame = pd.DataFrame(drawn(300)[0], columns=["age", "dose", "height"])
    named = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(frame, drawn(300)[1])
    X, y, _ = drawn(600, column=1.5, seed=7)
    entry = named.recalibrated(pd.DataFrame(X, columns=frame.columns), y).history_[-1]
    assert "go with 'height'" in entry["refit"]


def test_a_change_is_an_alarm_and_none_is_not(models):
    model = models["linear"]
    quiet = model.watched(*drawn(2000, seed=9)[:2])
    assert quiet.history_[-1]["alarms"] == []
    asked = drawn(10, seed=3)[0]
    assert np.array_equal(quiet.predict_proba(asked), model.predict_proba(asked))
    loud = quiet.watched(*drawn(2000, shift=2.0, seed=10)[:2])
    assert loud.history_[-1]["alarms"] == ["calibration"]
    elsewhere = quiet.watched(drawn(1000, seed=11)[0] + [2, 0, 0])
    assert elsewhere.history_[-1]["alarms"] == ["drift"]
    assert elsewhere.history_[-1]["n_labels"] == 0
    assert len(elsewhere.history_) == 2
    anew = loud.recalibrated(*drawn(500, shift=2.0, seed=10)[:2])
    again = anew.watched(*drawn(3000, shift=2.0, seed=12)[:2])
    assert again.history_[-1]["alarms"] == []


def test_files_keep_what_was_learnt(models, tmp_path):
    X, y, _ = drawn(200, shift=1.0, seed=13)
    for name in ("linear", "classifier"):
        moved = models[name].watched(X, y).recalibrated(X, y).watched(X[:50])
        save(moved, tmp_path / "model")
        same = load(tmp_path / "model")
        assert np.array_equal(same.predict_proba(X), moved.predict_proba(X))
        assert same.history_ == moved.history_
        one, other = (each.watched(X, y).history_[-1] for each in (same, moved))
        assert one["e_values"] == other["e_values"]


def test_a_new_fit_forgets(models):
    X, y, _ = drawn(300)
    moved = models["linear"].recalibrated(base_rate=0.9)
    again = moved.fit(X, y)
    assert again.recalibration_ is None
    assert again.monitor_ is None
    assert again.history_ is None


def test_tables_and_data_frames(tmp_path):
    X, y, _ = drawn(200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        d=np.where(X[:, 2] > 0, "up", "down"), y=y
    )
    model = TableModel.fit(frame, "y", "yes", kernel="linear", n_bootstraps=20, random_state=0)
    save(model.svc_with_class_names(), tmp_path / "named")  # whose names of columns stay behind
    assert load(tmp_path / "named").classes_.tolist() == ["no", "yes"]
    matrix, codes = model.preprocessor.encode(frame, model.encoder).X, (y == "yes").astype(int)
    moved = replace(model, svc=model.svc.recalibrated(matrix, codes))
    save(moved, tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict(frame), moved.predict(frame))
    svc = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    plain = svc.fit(frame.drop(columns="y"), y)
    moved_too = plain.recalibrated(frame.drop(columns="y"), y)
    assert moved_too.recalibration_["coefficients"].shape == (2,)


def test_contributions_add_up(models):
    X = drawn(300)[0]
    for name in ("auto", "linear"):
        moved = models[name].recalibrated(base_rate=0.8)
        found = contributions(moved, X[:3], X[:16])
        total = found.contribution.sum(axis=1) + found.base
        assert np.allclose(expit(total), moved.predict_proba(X[:3])[:, 1], atol=1e-6)


def test_what_is_of_the_fit_alone_is_refused(models, tmp_path):
    X = drawn(300)[0]
    moved = models["linear"].recalibrated(base_rate=0.8)
    with pytest.raises(DataError, match="Sensitivities are of the model as it was fitted"):
        probability_sensitivity(moved, X[:2])
    with pytest.raises(DataError, match=r"Prediction sets without class_conditional=True"):
        moved.prediction_sets(X[:2])
    assert moved.prediction_sets(X[:2], class_conditional=True).shape == (2, 2)
    other = models["linear"].recalibrated(*drawn(400, slope=0.4, seed=15)[:2])
    with pytest.raises(DataError, match=r"Prediction sets are of the model as it was fitted"):
        other.prediction_sets(X[:2], class_conditional=True)
    pytest.importorskip("onnx")
    from bootprob.onnx_export import export_onnx

    with pytest.raises(DataError, match="ONNX graphs are of the model as it was fitted"):
        export_onnx(moved, tmp_path / "model.onnx")


def test_bad_input_is_refused(models):
    model, (X, y, _) = models["linear"], drawn(20)
    for given, words in [
        ({}, "nothing to recalibrate by"),
        ({"base_rate": 0.0}, "between 0 and 1"),
        ({"base_rate": float("nan")}, "between 0 and 1"),
        ({"base_rate": 0.3, "X": X}, "give one of them"),
        ({"X": X, "y": np.where(y == "yes", "perhaps", "no")}, "'perhaps' is none of the model's"),
        ({"X": X, "y": y, "sample_weight": np.zeros(20)}, "not positive"),
        ({"X": X[:, :2], "y": y}, "expecting 3 features"),
        ({"X": X, "y": y[:-1]}, "inconsistent"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.recalibrated(**given)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.watched(X[:0], y[:0])
    with pytest.raises(DataError, match="sample_weight must hold numbers"):
        model.recalibrated(X, y, sample_weight=["a"] * len(X))
    iris = load_iris()
    several = BootstrapSVC(kernel="linear", n_bootstraps=5, random_state=0)
    several.fit(iris.data, iris.target)
    with pytest.raises(DataError, match="updates are of two"):
        several.watched(iris.data)
    votes = BootstrapSVC(kernel="linear", n_bootstraps=5, calibration=None, interval="wald")
    for given in ({"X": X, "y": y}, {"X": X}, {"base_rate": 0.1}):
        with pytest.raises(DataError, match="calibration=None"):
            votes.fit(X, y).recalibrated(**given)


def test_intervals_of_recalibrated_models_widen_with_the_level(models):
    X, y, _ = drawn(100, shift=-1.0, seed=3)
    model = models["linear"].recalibrated(X, y)
    levels = (1e-20, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999, 0.9999)
    for method in ("percentile", "basic", "bca", "corrected", "normal"):
        bounds = np.array([model.proba_interval(X, at, method)[:, 1] for at in levels])
        assert (np.diff(bounds[..., 0], axis=0) <= 1e-12).all(), method
        assert (np.diff(bounds[..., 1], axis=0) >= -1e-12).all(), method


def test_weights_have_no_unit_and_tell_less_if_unequal(models):
    X, y, _ = drawn(60, shift=1.0, seed=14)
    model, weight = models["linear"], np.arange(60) % 3 + 1.0
    one, other = (
        model.recalibrated(X, y, sample_weight=unit * weight).recalibration_ for unit in (1, 1e3)
    )
    assert np.allclose(one["coefficients"], other["coefficients"])
    of_equal = model.recalibrated(X, y, sample_weight=np.full(60, 7.0)).recalibration_
    assert np.allclose(
        of_equal["coefficients"], model.recalibrated(X, y).recalibration_["coefficients"]
    )
    assert one["covariance"][0, 0] > of_equal["covariance"][0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.recalibrated(X)
