"""Weights of the values of C."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from bootprob import BootstrapSVC, DataError
from bootprob.ensemble.weighting import accuracy_weights, log_loss_weights, pooled_weights
from bootprob.persistence.save_load import save
from linear_models import linear


def test_accuracy_weights_are_formula_3_3():
    weights = accuracy_weights(np.array([0.90, 0.85, 0.91, 0.70]), 0.05)
    # J = {0, 2}: 0.85 is below 0.91 − 0.05.
    total = 0.90**2 + 0.91**2
    np.testing.assert_allclose(weights, [0.90**2 / total, 0, 0.91**2 / total, 0])


def test_no_tolerance_keeps_the_best_alone():
    np.testing.assert_array_equal(accuracy_weights(np.array([0.6, 0.8, 0.8]), 0.0), [0, 0.5, 0.5])


def test_all_wrong_is_shared_evenly():
    np.testing.assert_allclose(accuracy_weights(np.zeros(4), 0.1), 0.25)


def test_log_loss_weights_follow_the_likelihood(rng):
    truth = rng.normal(size=300)
    positive = rng.uniform(size=300) < 1 / (1 + np.exp(-2 * truth))
    scores = truth[:, None] + rng.normal(size=(300, 3)) * [0.1, 0.3, 0.35]
    known = scores, positive, np.ones(300)
    weights = log_loss_weights(*known)
    losses = []
    for column in scores.T:
        model = LogisticRegression(C=np.inf).fit(column[:, None], positive)
        losses.append(log_loss(positive, model.predict_proba(column[:, None])[:, 1]))
    expected = np.exp(-300 * (np.array(losses) - min(losses)))
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=0.02)
    assert weights.sum() == pytest.approx(1)


def _members(rng, noise, n=200):
    """Scores that know the same of the labels, each with noise of its own."""
    truth = rng.normal(size=n)
    positive = rng.uniform(size=n) < 1 / (1 + np.exp(-2 * truth))
    return truth[:, None] + rng.normal(size=(n, len(noise))) * noise, positive


def test_pooled_weights_are_the_best_of_a_grid(rng):
    """Two models; Platt's targets are rows of both classes, and entropy is counted beside them."""
    scores, positive = _members(rng, [0.5, 0.8])
    scores[:, 1] *= 3
    weight = rng.uniform(0.5, 1.5, size=200)
    first, _ = pooled_weights(scores, positive, weight)
    of_class = [weight[positive].sum(), weight[~positive].sum()]
    targets = np.where(positive, (of_class[0] + 1) / (of_class[0] + 2), 1 / (of_class[1] + 2))
    both = np.r_[np.ones(200), np.zeros(200)], np.r_[weight * targets, weight * (1 - targets)]

    def value(share):
        mixed = np.tile(scores @ [share, 1 - share], 2)[:, None]
        model = LogisticRegression(C=np.inf, tol=1e-10).fit(mixed, both[0], both[1])
        entropy = share * np.log(2 * share) + (1 - share) * np.log(2 * (1 - share))
        probability = model.predict_proba(mixed)[:, 1]
        return log_loss(both[0], probability, sample_weight=both[1], normalize=False) + 2 * entropy

    grid = np.linspace(0.001, 0.999, 999)
    assert first == pytest.approx(min(grid, key=value), abs=2e-3)


def test_pooled_weights_are_even_where_nothing_tells_models_apart(rng):
    scores, positive = _members(rng, [0.5])
    for same in (np.repeat(scores, 5, axis=1), np.zeros((200, 5)), -np.repeat(scores, 5, axis=1)):
        np.testing.assert_allclose(pooled_weights(same, positive, np.ones(200)), 0.2, atol=1e-6)
    np.testing.assert_array_equal(pooled_weights(scores, positive, np.ones(200)), [1.0])


def test_pooled_weights_count_what_a_model_adds():
    """The third is as good as the first two are, which are the same."""
    rng = np.random.default_rng(4)
    scores, positive = _members(rng, [1.0, 1.0, 1.0], 400)
    scores[:, 1] = scores[:, 0]
    first, second, third = pooled_weights(scores, positive, np.ones(400))
    assert first == pytest.approx(second, abs=1e-6)
    assert third > 1.5 * first
    np.testing.assert_allclose(
        pooled_weights(1e6 * scores[:, ::-1], positive, np.ones(400)),
        [third, second, first],
        atol=1e-5,
    )


def test_pooled_weights_of_classes_that_scores_separate(rng):
    truth = rng.normal(size=60)
    scores = truth[:, None] + 1e-3 * rng.normal(size=(60, 12))
    weights = pooled_weights(scores, truth > 0, np.ones(60))
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0.01).all()


def test_weights_whose_products_vanish_are_none(rng, tmp_path):
    X = rng.normal(size=(40, 2))
    y, weight = X[:, 0] + rng.normal(size=40) > 0, np.ones(40)
    y[:4], weight[8:14] = [True, True, False, False], 10.0 ** -np.arange(97, 103)
    given = {"n_bootstraps": 5, "C": 1.0, "random_state": 0}
    found = linear(**given).fit(X, y, weight)
    save(found, tmp_path / "m.model")
    cut = np.where(weight < 1e-100, 0, weight)
    assert (cut == 0).sum() == 2
    assert np.array_equal(found.predict_proba(X), linear(**given).fit(X, y, cut).predict_proba(X))
    with pytest.raises(DataError, match="multiply all"):
        linear(**given).fit(X, y, np.full(40, 1e-90))


def _weighted():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 3))
    y = (1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=90) > 0).astype(int)
    return X, y, rng.normal(size=(20, 3))


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_rows_of_hardly_any_weight_are_as_good_as_absent(kernel):
    X, y, new = _weighted()
    intervals = []
    for least in (0, 1e-12):
        weight = np.r_[np.full(30, least), np.ones(60)]
        model = BootstrapSVC(kernel=kernel, n_bootstraps=40, random_state=0)
        intervals.append(model.fit(X, y, sample_weight=weight).proba_interval(new)[:, 1])
    without, with_hardly = np.ptp(intervals, axis=2).mean(axis=1)
    assert with_hardly == pytest.approx(without, rel=0.1)
    assert np.abs(np.subtract(*intervals)).mean() < 0.05


def test_kernels_are_not_chosen_by_rows_of_no_weight_to_speak_of():
    X, y, _ = _weighted()
    weight = np.ones(90)
    weight[0] = 1e15
    with pytest.raises(DataError, match=r"from 1e\+00 to 1e\+15, too far for a choice of kernels"):
        BootstrapSVC(n_bootstraps=5).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("kernel", ["auto", "linear", "rbf"])
def test_unequal_weights_tell_less(kernel):
    """As much as ``(Σ w)² / Σ w²`` rows, here a third of them."""
    X, y, new = _weighted()
    weight = np.random.default_rng(0).permutation(np.geomspace(0.05, 20, 90))
    model = BootstrapSVC(kernel=kernel, n_bootstraps=40, random_state=0)
    equal, unequal = (
        np.ptp(logit(model.fit(X, y, sample_weight=each).proba_interval(new)[:, 1]), axis=1)
        for each in (None, weight)
    )
    assert np.median(unequal) > 1.25 * np.median(equal)  # a far bound may round to 1


def test_the_default_knows_no_unit_of_weights():
    X, y, new = _weighted()
    weight = np.linspace(0.5, 2, 90)
    model = BootstrapSVC(n_bootstraps=12, random_state=0)
    expected = model.fit(X, y, sample_weight=weight).predict_proba(new)
    for unit in (1e-9, 1e9):
        found = model.fit(X, y, sample_weight=unit * weight).predict_proba(new)
        np.testing.assert_allclose(found, expected, atol=1e-3)
