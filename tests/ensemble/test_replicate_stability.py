"""Stability of fitted models: every replicate alone, made of what the model stores."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from bootprob import BootstrapClassifier, BootstrapSVC, DataError
from bootprob.calibration.coupling import couple
from bootprob.metrics import stability


def table(rng, n=90):
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + rng.logistic(size=n) > 0, "well", "ill")


def by_hand(model, X):
    """Scores of one replicate after the other, from its coefficients and its sigmoid."""
    rows = (X - model.center_) / model.scale_
    found = []
    for b in range(model.n_replicates_):
        score = 0.0
        for r, weight in enumerate(model.weights_):
            of_model = rows @ model.bootstrap_coef_[b, r] + model.bootstrap_intercept_[b, r]
            score = score + weight * of_model
        score = score / model.score_scale_[b] + model.score_offset_[b] + model.score_threshold_
        slope, intercept = model.sigmoid_replicates_[b]
        found.append(slope * score + intercept)
    return np.array(found)


@pytest.mark.parametrize("calibration", ["sigmoid", "beta", "isotonic"])
def test_replicates_of_linear_machines(rng, calibration):
    X, y = table(rng)
    model = BootstrapSVC(
        kernel="linear", C=[0.1, 1.0], n_bootstraps=15, random_state=0, calibration=calibration
    ).fit(X, y)
    logits = by_hand(model, X)
    if calibration != "sigmoid":
        slope, intercept = model.sigmoid_
        plain = slope * (model.decision_function(X) + model.score_threshold_) + intercept
        reported = model.predict_proba(X)[:, 1].clip(1e-15, 1 - 1e-15)
        logits = logits + logit(reported) - plain
    found = model.bootstrap_proba(X)
    assert found.shape == (15, 90, 2)
    np.testing.assert_allclose(found[:, :, 1], expit(logits), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=0, atol=1e-12)


def test_stability_is_that_of_these_probabilities(rng):
    X, y = table(rng)
    model = BootstrapSVC(kernel="linear", n_bootstraps=15, random_state=0).fit(X, y)
    weight = rng.exponential(size=90)
    found = model.stability(X, y, weight, level=0.8, thresholds=[0.2, 0.4])
    replicates = model.bootstrap_proba(X)
    wanted = stability(
        y == "well", model.predict_proba(X)[:, 1], replicates[:, :, 1], weight,
        level=0.8, thresholds=[0.2, 0.4],
    )  # fmt: skip
    for name, value in vars(wanted).items():
        if not name.startswith("curve"):
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
    assert 0 < found.mean_absolute_error < 0.3
    other = model.stability(X, y, weight, positive="ill")
    assert other.mean_absolute_error == pytest.approx(found.mean_absolute_error)
    np.testing.assert_allclose(other.slope, found.slope, atol=1e-8)


def test_rates_move_the_threshold_and_not_the_probabilities(rng):
    X, y = table(rng, 200)
    plain = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0)
    model = BootstrapSVC(
        kernel="linear", n_bootstraps=20, random_state=0, control="threshold", rates={"tpr": 0.9}
    ).fit(X, y)
    assert model.decision_threshold_ != 0.5
    np.testing.assert_allclose(
        model.bootstrap_proba(X), plain.fit(X, y).bootstrap_proba(X), rtol=0, atol=1e-9
    )
    assert model.stability(X, y).threshold == model.decision_threshold_


def test_default_kernel_classifiers_and_data_frames(rng):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.tile(["u", "v", "w"], 30))
    auto = BootstrapSVC(n_bootstraps=20, random_state=0, effort="low").fit(frame, y)
    assert auto.bootstrap_proba(frame).shape == (20, 90, 2)
    other = BootstrapClassifier(LogisticRegression(), n_bootstraps=20, random_state=0).fit(X, y)
    for model, rows in ((auto, frame), (other, X)):
        found = model.stability(rows, y)
        assert 0 < found.mean_absolute_error < 0.4
        # the model is in the midst of its replicates
        between = (found.interval[:, 0] <= found.probability) & (
            found.probability <= found.interval[:, 1]
        )
        assert between.mean() > 0.9


def test_several_classes_are_coupled_replicate_by_replicate():
    X, y = load_iris(return_X_y=True)
    model = BootstrapSVC(kernel="linear", n_bootstraps=8, random_state=0).fit(X[::3], y[::3])
    found = model.bootstrap_proba(X)
    pairs = [each.bootstrap_proba(X)[:, :, 1] for each in model.pair_ensembles_]
    for b in range(8):
        np.testing.assert_allclose(
            found[b], couple(np.stack([each[b] for each in pairs], axis=1)), atol=1e-9
        )
    one = model.stability(X, y, positive=2)
    wanted = stability(y == 2, model.predict_proba(X)[:, 2], found[:, :, 2])
    np.testing.assert_array_equal(one.absolute_error, wanted.absolute_error)
    with pytest.raises(DataError, match="say which class is looked at, of 0, 1, 2"):
        model.stability(X, y)


def test_refusals(rng):
    X, y = table(rng)
    votes = BootstrapSVC.paper(n_bootstraps=10, random_state=0).fit(X, y)
    for ask in (votes.bootstrap_proba, lambda rows: votes.stability(rows, y)):
        with pytest.raises(DataError, match="calibration=None"):
            ask(X)
    model = BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(X, y)
    with pytest.raises(DataError, match="none of the classes, ill, well"):
        model.stability(X, y, positive="dead")
    with pytest.raises(DataError, match="other classes"):
        model.stability(X, np.where(y == "ill", "dead", y))
    with pytest.raises(DataError, match="90 rows"):
        model.stability(X, y[:5])
    with pytest.raises(DataError, match="both"):
        model.stability(X[y == "ill"], y[y == "ill"])
