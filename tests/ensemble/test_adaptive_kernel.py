"""``kernel="auto"``: what is chosen, and that everything around a model knows it."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone

from bootprob import BootstrapSVC, load, save
from bootprob.ensemble.fitted import ensemble_of
from bootprob.ensemble.sensitivity import probability_sensitivity
from bootprob.ensemble.state import state_of
from bootprob.ensemble.training import pilot
from bootprob.ensemble.uncertainty import kernel_posterior
from bootprob.ensemble.uncertainty.composite_posterior import Moments
from bootprob.exceptions import DataError
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.kernels.views import ViewKernels
from refitted import fitted_elsewhere_is_the_same


def _table(rng, n, p):
    X = rng.normal(size=(n, p))
    X[:, -1] = rng.integers(3, size=n)
    return X


@pytest.fixture(scope="module")
def interactions():
    """Two columns of which only the product counts, and one of noise."""
    rng = np.random.default_rng(20)
    X = _table(rng, 120, 3)
    y = (rng.uniform(size=120) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))).astype(int)
    return X, y


@pytest.fixture(scope="module")
def model(interactions):
    return BootstrapSVC(kernel="auto", n_bootstraps=12, random_state=0).fit(*interactions)


def test_a_product_is_given_to_curved_kernels(model):
    shares = model.kernel_weights_
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    curved = sum(share for name, share in shares.items() if not name.startswith("linear"))
    assert curved > 0.9
    assert len(model.C_) == len(model.gamma_) == len(model.weights_)


def test_a_straight_truth_leaves_weight_to_the_linear_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=300) > 0).astype(int)
    model = BootstrapSVC(kernel="auto", n_bootstraps=8, random_state=0).fit(X, y)
    assert any(name.startswith("linear") for name in model.kernel_weights_)
    new = rng.normal(size=(300, 3))
    truth = 1 / (1 + np.exp(-new @ [1.0, -1.0, 0.5]))
    straight = BootstrapSVC(kernel="linear", n_bootstraps=8, random_state=0).fit(X, y)
    ours, theirs = (
        np.sqrt(np.mean((each.predict_proba(new)[:, 1] - truth) ** 2)) for each in (model, straight)
    )
    assert ours < 1.5 * theirs


def test_scores_are_those_of_the_machines_on_the_views(interactions, model):
    X, _ = interactions
    state = state_of(model)
    kernel = state.kernel
    assert isinstance(kernel, ViewKernels)
    rows = (X[:7] - model.center_) / model.scale_
    each = []
    for g in range(kernel.n_values):
        values = kernel.take(slice(g, g + 1)).matrix(rows, model.X_fit_)
        models = np.arange(len(model.C_)).reshape(kernel.n_values, -1)[g]
        each.append(model.bootstrap_dual_coef_[:, models] @ values.T)
    raw = np.concatenate(each, axis=1) + model.bootstrap_intercept_[..., None]
    found = np.concatenate(list(model.bootstrap_scores(X[:7])))
    np.testing.assert_allclose(found, raw.transpose(2, 1, 0), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_few_rows_are_scored_by_one_core(interactions, model, monkeypatch, kernel):
    """Two waited for each other: beside other work a row took 100 ms where it takes 3."""
    (rows, y), asked = interactions, []
    if kernel != "auto":
        model = BootstrapSVC(kernel=kernel, n_bootstraps=20, random_state=0).fit(rows, y)

    def recorded(method):
        def known(*given):
            asked.append(torch.get_num_threads())
            return method(*given)

        return known

    monkeypatch.setattr(ViewKernels, "of_met", recorded(ViewKernels.of_met))
    monkeypatch.setattr(Moments, "_parts", recorded(Moments._parts))
    monkeypatch.setattr(Rbf, "of_sums", recorded(Rbf.of_sums))
    monkeypatch.setattr(kernel_posterior, "_moments", recorded(kernel_posterior._moments))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for method in (model.predict_proba, model.proba_interval):
            for m in (1, 5):
                method(rows[:m])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert len(asked) >= 6
    assert set(asked) == {1}


def test_out_of_bag_losses_do_not_flatter_the_choice():
    """Of columns that say nothing the base rate is all that is learned."""
    rng = np.random.default_rng(5)
    X, y = _table(rng, 200, 8), rng.uniform(size=200) < 0.5
    model = BootstrapSVC(kernel="auto", n_bootstraps=30, random_state=0).fit(X, y)
    p = model.oob_proba_[:, 1]
    loss = -np.where(y, np.log(p), np.log1p(-p)).mean()
    assert np.log(2) - loss < 0.02


def test_the_same_from_a_file_and_again(interactions, model, tmp_path):
    X, y = interactions
    save(model, tmp_path / "model.bootprob")
    loaded = load(tmp_path / "model.bootprob")
    again = clone(model).fit(X, y)
    for other in (loaded, again):
        assert other.kernel_weights_ == model.kernel_weights_
        np.testing.assert_array_equal(other.predict_proba(X[:9]), model.predict_proba(X[:9]))
        np.testing.assert_array_equal(other.proba_interval(X[:9]), model.proba_interval(X[:9]))


def test_the_same_by_workers_and_from_a_checkpoint(interactions, tmp_path):
    """What is done besides training is done here, wherever that is; of votes nothing is."""
    model = BootstrapSVC(n_bootstraps=12, calibration=None, interval="wilson", random_state=0)
    fitted_elsewhere_is_the_same(model.fit(*interactions), *interactions, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"control": "threshold", "rates": {"tpr": 0.9}},
        {"control": "constrained", "rates": {"tpr": 0.9}},
        {"weighting": "accuracy", "calibration": None},
        {"standardize": None},
        {"calibration": "auto", "class_weight": None},
        {"dtype": "float32"},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.usefixtures("one_link")
def test_with_other_parameters(interactions, options):
    X, y = interactions
    model = BootstrapSVC(kernel="auto", n_bootstraps=4, random_state=0, C=[0.1, 1.0], **options)
    model.fit(X * [1, 10, 0.1], y)
    p = model.predict_proba(X * [1, 10, 0.1])[:, 1]
    assert np.mean((p > 0.5) == y) > 0.65


@pytest.mark.usefixtures("one_link")
def test_of_several_classes(interactions):
    X, y = interactions
    three = y + (X[:, 0] > 0.8)
    model = BootstrapSVC(kernel="auto", n_bootstraps=4, C=[1.0], random_state=0).fit(X, three)
    assert sum(model.kernel_weights_.values()) == pytest.approx(1)
    assert np.mean(model.predict(X) == three) > 0.7
    lower, upper = np.moveaxis(model.proba_interval(X[:5]), -1, 0)
    assert ((lower < model.predict_proba(X[:5])) & (model.predict_proba(X[:5]) < upper)).all()


def test_the_posterior_has_a_share_in_every_score(interactions, model):
    X, _ = interactions
    state, scores = state_of(model), ensemble_of(model).scores
    added = scores.of_posterior(X[:6])
    logits = added / state.posterior_slope_
    raw = np.concatenate(list(model.bootstrap_scores(X[:6])))
    alone = np.einsum("mrb,r->mb", raw, model.weights_) / model.score_scale_ + model.score_offset_
    together = np.concatenate(list(scores.of_replicates(X[:6])))
    moments, weight = scores.kernel_logits(X[:6]), model.kernel_posterior_["weight"]
    np.testing.assert_allclose(together.mean(axis=1), alone.mean(axis=1) + added, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X[:6]), together.mean(axis=1), rtol=1e-9)
    second = np.square(moments).sum(axis=2) @ weight - np.square(moments[..., 0] @ weight)
    doubt = state.posterior_slope_ * np.sqrt(second)
    spread = (together - alone).std(axis=1, ddof=1)
    np.testing.assert_allclose(spread, doubt, rtol=1e-9)
    assert model.kernel_weights_["posterior"] == model.posterior_share_ > 0
    drawn = np.random.default_rng(0).normal(size=(200_000, 1)) * moments[:, None, :, 1]
    means = expit(moments[:, None, :, 0] + drawn).mean(axis=1) @ weight
    np.testing.assert_allclose(expit(logits), means, atol=0.005)


def test_rows_far_out_are_refused_and_not_nan(interactions, model):
    X, _ = interactions
    far = X[:2] * [1e20, 1, 1]
    assert np.isfinite(model.predict_proba(far)).all()
    with pytest.raises(DataError, match="standard deviations from the training"):
        model.proba_interval(X[:2] * [1e80, 1, 1])


def test_sensitivities_of_a_posterior_are_not_made_up(interactions, model):
    with pytest.raises(DataError, match="a part of its scores is a posterior's"):
        probability_sensitivity(model, interactions[0][:3])


@pytest.mark.parametrize(
    "ugly",
    [
        lambda X, y: (X[:, :1], y),
        lambda X, y: (np.column_stack([X[:, :2], np.full(len(X), 3.0), X[:, 0]]), y),
        lambda X, y: (np.round(X), y),
        lambda X, y: (X * [1e6, 1e-6, 1], y),
        lambda X, y: (X, X[:, 0] > 0),
        lambda X, y: (np.repeat(X[:30], 11, axis=1) ** 3, y[:30]),
        lambda X, y: (X[:30] > 0, y[:30]),
        lambda X, y: (X[[*np.flatnonzero(y)[:2], *np.flatnonzero(1 - y)]][:20], [1, 1] + [0] * 18),
    ],
    ids=["one", "collinear", "ties", "scales", "separable", "wide", "dummies", "two of a class"],
)
@pytest.mark.filterwarnings("ignore:.*copies:UserWarning")
@pytest.mark.usefixtures("one_link")
def test_ugly_tables(interactions, ugly):
    X, y = ugly(*interactions)
    model = BootstrapSVC(n_bootstraps=4, C=[1.0], effort="low", random_state=0).fit(X, y)
    new = np.vstack([X[:5], 50 * np.asarray(X[:5], dtype=float)])
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    lower, upper = model.proba_interval(new)[:, 1].T
    assert ((lower <= p[:, 1]) & (p[:, 1] <= upper)).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"gamma": 0.1}, "kernel='auto' chooses its own; leave gamma out"),
        ({"gamma": "grid"}, "kernel='auto' chooses its own; leave gamma out"),
        ({"feature_map": "nystroem"}, "give kernel='rbf' or leave feature_map out"),
    ],
)
def test_what_does_not_go_with_it_is_refused(interactions, options, told):
    with pytest.raises(DataError, match=told):
        BootstrapSVC(kernel="auto", n_bootstraps=2, **options).fit(*interactions)


@pytest.mark.usefixtures("one_link")
def test_what_is_prepared_for_rows_is_kept_until_an_attribute_is_replaced():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] > rng.normal(size=60)
    model = BootstrapSVC(n_bootstraps=4, C=[1.0], effort="low", random_state=0).fit(X, y)
    answered = ensemble_of(model)
    assert ensemble_of(model) is answered
    assert ensemble_of(copy(model)) is not answered
    before = model.predict_proba(X)
    model.sigmoid_ = (2 * model.sigmoid_[0], model.sigmoid_[1])
    assert ensemble_of(model) is not answered
    assert np.abs(model.predict_proba(X) - before).max() > 1e-3
    again = ensemble_of(model)
    model.set_params(calibration=None)
    assert ensemble_of(model) is not again
    np.testing.assert_array_equal(model.predict_proba(X), model.vote_proba(X))
    model.fit(X, ~y)
    assert ensemble_of(model).state.is_of(vars(model))


def test_the_pilot_shows_how_far_it_is(rng, capsys):
    X = rng.normal(size=(40, 2))
    y = np.arange(40) % 3
    model = BootstrapSVC(n_bootstraps=4, C=[1.0], calibration=None, interval="wilson", verbose=1)
    model.fit(X, y)
    shown = capsys.readouterr().err
    assert shown.count("Choosing kernels") == 1
    assert "60/60" in shown  # 20 kernels for each of three pairs


def test_effort_says_how_much_is_trained(interactions, model):
    X, y = interactions
    low = BootstrapSVC(n_bootstraps=12, random_state=0, effort="low").fit(X, y)
    high = clone(low).set_params(effort="high", calibration=None, interval="wilson").fit(X, y)
    number = [len(each.C_) for each in (low, model, high)]
    assert number[0] <= 4
    assert number == sorted(set(number))
    assert number[2] <= 24
    values = high.C_.reshape(state_of(high).kernel.n_values, 2)
    np.testing.assert_allclose(values[:, 1] / values[:, 0], 4.0)  # neighbours in the grid
    np.testing.assert_array_equal(  # the interval's model is the same
        low.kernel_posterior_["coefficients"], model.kernel_posterior_["coefficients"]
    )


@pytest.mark.usefixtures("one_link")
def test_each_kernel_has_the_values_of_c_that_suit_it(interactions, model):
    assert len(model.C_) == state_of(model).kernel.n_values
    assert len(np.unique(model.C_)) > 1  # not the same for a smooth and for a sharp curve
    options = {"n_bootstraps": 4, "random_state": 0, "C": [7.0, 0.3]}
    given = BootstrapSVC(effort="high", **options).fit(*interactions)
    assert given.C_.reshape(-1, 2).tolist() == [[0.3, 7.0]] * (len(given.C_) // 2)


def test_no_more_kernels_are_kept_than_carry_the_weight():
    weights = np.array([0.1, 0.5, 0.02, 0.2, 0.18])
    assert pilot._heaviest(weights, 3, 0.98).tolist() == [1, 3, 4]
    assert pilot._heaviest(weights, 5, 0.85).tolist() == [1, 3, 4]
    assert pilot._heaviest(weights, 5, 0.3).tolist() == [1]
    # No pair of classes has rows of both.
    np.testing.assert_array_equal(pilot._together(np.zeros((4, 2)), []), 0.25)


def test_of_values_of_c_that_are_alike_the_middle_ones_are_taken():
    weights = np.array([[1.0, 1, 1, 1, 1], [0, 0, 1, 3, 0]])
    found = pilot._likely_values(np.arange(5.0), weights, 3)
    np.testing.assert_array_equal(found, [[1, 2, 3], [2, 3, 4]])
    np.testing.assert_array_equal(
        pilot._likely_values(np.arange(2.0), weights[:, :2], 3)[0], [0, 1]
    )
