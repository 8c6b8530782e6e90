"""Each calibration inside the estimator: what it predicts, how it is stored, what it refuses."""

import numpy as np
import pytest
from scipy.special import expit

from bootprob import BootstrapSVC, DataError
from bootprob.calibration import CALIBRATORS, VennAbers, choose_calibration, vote_logits
from bootprob.ensemble.uncertainty.probability_intervals import OF_PROBABILITIES
from bootprob.persistence.save_load import load, save
from linear_models import linear

QUICK = {"C": [0.1, 1.0], "n_bootstraps": 30, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    return X, rng.uniform(size=120) < expit(2 * X[:, 0] - X[:, 1] - 0.5)


@pytest.fixture(scope="module", params=CALIBRATORS)
def model(request, data):
    weight = np.random.default_rng(6).integers(0, 3, size=120).astype(float)
    return linear(calibration=request.param, **QUICK).fit(*data, sample_weight=weight)


def _evidence(model):
    """Out-of-bag means, logits of votes, labels and weights of the rows that teach."""
    taught = (model.sample_weight_ > 0) & (model.oob_counts_ > 0)
    votes = vote_logits(model.oob_vote_proba_[:, 1], model.oob_counts_.mean())
    weight = model.sample_weight_
    weight = weight * (weight.sum() / np.square(weight).sum())
    return (
        model.oob_decision_function_[taught],
        model.y_[taught] == 1,
        weight[taught],
        votes[taught],
    )


def test_probabilities_are_those_of_the_calibrator(model, data):
    X = data[0]
    assert model.calibration_ == model.calibration
    calibrator = CALIBRATORS[model.calibration].fit(*_evidence(model))
    votes = vote_logits(model.vote_proba(X)[:, 1], model.oob_counts_.mean())
    expected = calibrator.predict(model.decision_function(X), votes)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=2e-6)
    oob_votes = vote_logits(model.oob_vote_proba_[:, 1], model.oob_counts_.mean())
    out_of_bag = calibrator.predict(model.oob_decision_function_, oob_votes)
    np.testing.assert_allclose(model.oob_proba_[:, 1], out_of_bag, atol=2e-6)


def test_a_stored_model_says_the_same(model, data, tmp_path):
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    X = data[0]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for method in OF_PROBABILITIES:
        np.testing.assert_array_equal(
            again.proba_interval(X, method=method), model.proba_interval(X, method=method)
        )
    np.testing.assert_array_equal(again.oob_proba_interval(), model.oob_proba_interval())


def test_intervals_hold_the_probability_whatever_made_it(model, data):
    p = model.predict_proba(data[0])[:, 1]
    for method in set(OF_PROBABILITIES) - {"venn-abers"}:
        lower, upper = model.proba_interval(data[0], method=method)[:, 1].T
        inside = (lower <= p + 1e-12) & (p <= upper + 1e-12)
        # Percentiles of replicates hold the mean of all but the most skewed.
        assert inside.mean() > (0.97 if method in ("percentile", "basic", "bca") else 0.999), method


def test_venn_abers_interval_is_the_pair_whatever_the_calibration(model, data):
    scores, positive, weight, _ = _evidence(model)
    pair = VennAbers.fit(scores, positive, weight).bounds(model.decision_function(data[0]))
    bounds = model.proba_interval(data[0], method="venn-abers")[:, 1]
    np.testing.assert_allclose(bounds, pair, atol=1e-9)


def test_auto_is_the_calibration_that_it_names(data):
    chosen = linear(calibration="auto", **QUICK).fit(*data)
    scores, positive, weight, votes = _evidence(chosen)
    assert chosen.calibration_ == choose_calibration(scores, votes, positive, weight)
    same = linear(calibration=chosen.calibration_, **QUICK).fit(*data)
    np.testing.assert_array_equal(chosen.predict_proba(data[0]), same.predict_proba(data[0]))


@pytest.mark.parametrize("kind", sorted({*CALIBRATORS, "auto"}))
def test_rates_are_controlled_with_the_sigmoid_alone(data, kind):
    svc = linear(calibration=kind, control="threshold", rates={"tpr": 0.9}, **QUICK)
    if kind not in ("sigmoid", "auto"):
        with pytest.raises(DataError, match=f"calibration is '{kind}', in which several scores"):
            svc.fit(*data)
        return
    svc.fit(*data)
    assert svc.calibration_ == "sigmoid"
    X, threshold = data[0], svc.decision_threshold_
    np.testing.assert_array_equal(svc.predict(X), svc.predict_proba(X)[:, 1] > threshold)
    free = linear(**QUICK).fit(*data)
    np.testing.assert_allclose(svc.predict_proba(X), free.predict_proba(X))


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_rows_that_were_never_out_of_bag_have_no_probability(data, kind):
    X, y = data
    svc = BootstrapSVC(kernel="linear", C=[1.0], n_bootstraps=2, calibration=kind, random_state=0)
    svc.fit(X[:40], y[:40])
    never = svc.oob_counts_ == 0
    assert 0 < never.sum() < 40
    assert np.isnan(svc.oob_proba_[never]).all()
    assert np.isfinite(svc.oob_proba_[~never]).all()
    assert np.isfinite(svc.predict_proba(X)).all()
    for method in ("corrected", "normal", "jackknife", "venn-abers"):
        assert np.isnan(svc.oob_proba_interval(method=method)[never]).all(), method
