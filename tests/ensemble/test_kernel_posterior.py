"""The kernel's posterior beside draws from its prior, and in intervals of RBF models."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit

from bootprob import BootstrapSVC
from bootprob.ensemble.uncertainty import kernel_posterior_fit
from bootprob.ensemble.uncertainty.kernel_posterior_fit import fit_kernel_posterior
from bootprob.intervals import of_mixture
from bootprob_gpu.kernels.rbf import Rbf

CPU = torch.device("cpu")


def rbf(gammas):
    """The kernel of a grid of γ."""
    return Rbf(torch.tensor(np.asarray(gammas, dtype=float)))


ANY = rbf([1.0])  # a posterior has its own γ


def smooth(rng, n):
    """Rows of two columns whose logits are smooth, with their labels."""
    rows = rng.normal(size=(n, 2))
    return rows, rng.uniform(size=n) < expit(2 * np.sin(rows[:, 0]) + rows[:, 1])


def test_moments_and_weights_are_those_of_draws_from_the_prior(rng):
    """Every pair of γ and σ by importance sampling: no approximation, no landmarks."""
    n, gammas = 7, np.array([0.3, 2.0])
    rows, new = rng.normal(size=(n, 2)), rng.normal(size=(3, 2))
    positive = np.array([True, False, True, True, False, True, False])
    weight = rng.uniform(0.5, 1.5, size=n)
    posterior, left_out = fit_kernel_posterior(rows, positive, weight, rbf(gammas), CPU)
    found, sign = posterior.moments(new, ANY, CPU), 2 * positive - 1
    assert found.shape == (3, len(posterior.gamma), 2)
    assert left_out.shape == (n, len(posterior.gamma), 2)
    every, evidence = np.vstack([rows, new]), []
    draws = rng.normal(size=(400_000, n + 3))
    for pair, (gamma, variance) in enumerate(
        zip(posterior.gamma, posterior.prior_variance, strict=True)
    ):
        gram = variance * np.exp(-gamma * cdist(every, every, "sqeuclidean")) + 100.0
        logits = draws @ np.linalg.cholesky(gram + 1e-9 * np.eye(n + 3)).T
        likelihood = np.exp(log_expit(sign * logits[:, :n]) @ weight)
        evidence.append(likelihood.mean())
        for column in range(3):
            mean, deviation = _moments(logits[:, n + column], likelihood)
            assert found[column, pair, 0] == pytest.approx(mean, abs=0.25 * deviation)
            assert found[column, pair, 1] == pytest.approx(deviation, rel=0.15)
    share = np.array(evidence) / np.sum(evidence)
    np.testing.assert_allclose(posterior.weight, share, rtol=0.1, atol=0.02)


def _moments(values, weight):
    mean = np.average(values, weights=weight)
    return mean, np.sqrt(np.average(np.square(values - mean), weights=weight))


def test_many_rows_in_blocks_are_few_rows_at_once(rng, monkeypatch):
    """What narrows γ and σ down, or is made again, changes nothing that can be seen."""
    rows, positive = smooth(rng, 700)
    known = rows, positive, np.ones(700), rbf([0.1, 0.5]), CPU
    plain, left_out = fit_kernel_posterior(*known)
    monkeypatch.setattr(kernel_posterior_fit, "_HELD", 0)
    streamed, again = fit_kernel_posterior(*known)
    np.testing.assert_allclose(streamed.coefficients, plain.coefficients, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(again, left_out, atol=1e-6)
    monkeypatch.setattr(kernel_posterior_fit, "EXAMINED_ROWS", (300, 500))
    narrowed, _ = fit_kernel_posterior(*known)
    new = rng.normal(size=(50, 2))
    wide, narrow = (
        of_mixture(each.moments(new, ANY, CPU), each.weight, 0.95) for each in (narrowed, plain)
    )
    assert np.abs(expit(wide) - expit(narrow)).mean() < 0.02


def test_far_from_all_rows_only_the_prior_is_left(rng):
    rows, positive = smooth(rng, 100)
    posterior, _ = fit_kernel_posterior(rows, positive, np.ones(100), rbf([1.0]), CPU)
    [far] = posterior.moments(np.full((1, 2), 1e3), ANY, CPU)
    assert (far[:, 1] >= np.sqrt(posterior.prior_variance)).all()
    assert posterior.moments(np.empty((0, 2)), ANY, CPU).shape == (
        0,
        len(posterior.gamma),
        2,
    )


@pytest.mark.parametrize("case", ["duplicated", "constant", "separable", "two rows a class"])
def test_ugly_rows(rng, case):
    rows, positive = smooth(rng, 4 if case == "two rows a class" else 60)
    positive[:2], positive[2:4] = True, False
    if case == "duplicated":
        rows, positive = np.repeat(rows[:6], 20, axis=0), rng.uniform(size=120) < 0.5
        positive[:2] = True, False
    elif case == "constant":
        rows = np.ones_like(rows)
    elif case == "separable":
        positive = rows[:, 0] > 0
    kernel = rbf([0.0, 1e-6, 1.0, 1e6])
    posterior, left_out = fit_kernel_posterior(rows, positive, np.ones(len(rows)), kernel, CPU)
    assert np.isfinite(left_out).all()
    assert (left_out[..., 1] > 0).all()
    bounds = of_mixture(posterior.moments(rows, ANY, CPU), posterior.weight, 0.95)
    assert np.isfinite(bounds).all()
    assert (bounds[:, 0] < bounds[:, 1]).all()


def test_quantiles_of_mixtures(rng):
    parts = np.stack([rng.normal(size=(20, 3)), rng.uniform(0.1, 3, size=(20, 3))], axis=-1)
    weight = np.array([0.2, 0.5, 0.3])
    for level in (0.5, 0.95):
        found = of_mixture(parts, weight, level)
        for part, pair in zip(parts, found, strict=True):
            below = [weight @ stats.norm.cdf(bound, part[:, 0], part[:, 1]) for bound in pair]
            np.testing.assert_allclose(below, [(1 - level) / 2, (1 + level) / 2], atol=1e-9)
    [[lower, upper]] = of_mixture(np.array([[[1.0, 2.0]]]), np.ones(1), 0.95)
    np.testing.assert_allclose([lower, upper], stats.norm.interval(0.95, 1.0, 2.0))


OPTIONS = {"kernel": "rbf", "C": [0.1, 1.0], "n_bootstraps": 20, "random_state": 0}


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": [0.1, 1.0]},
        {"standardize": None},
        {"standardize": "bootstrap"},
        {"feature_map": "nystroem", "n_components": 60},
        {"calibration": "isotonic"},
    ],
    ids=str,
)
def test_rbf_intervals_are_those_of_the_posterior_and_hold_the_probability(rng, options):
    rows, positive = smooth(rng, 80)
    scale = np.array([1e-3, 1e4])
    if "standardize" in options and options["standardize"] is None:
        scale = np.ones(2)
    X, new = rows * scale + 7, rng.normal(size=(40, 2)) * scale + 7
    model = BootstrapSVC(**OPTIONS | options).fit(X, positive)
    probability = model.predict_proba(new)[:, 1]
    lower, upper = model.proba_interval(new, 0.9)[:, 1].T
    assert (lower < probability).all()
    assert (probability < upper).all()
    posterior, _ = fit_kernel_posterior(
        (X - model.center_) / (model.scale_ if options.get("standardize", 1) else 1),
        positive,
        np.ones(80),
        rbf(np.unique(model.gamma_)),
        CPU,
    )
    seen = (new - model.center_) / (model.scale_ if options.get("standardize", 1) else 1)
    bounds = of_mixture(posterior.moments(seen, ANY, CPU), posterior.weight, 0.9)
    below, above = expit(bounds).T
    np.testing.assert_allclose(lower, np.minimum(below, probability), atol=1e-6)
    np.testing.assert_allclose(upper, np.maximum(above, probability), atol=1e-6)
    out_of_bag = model.oob_proba_interval(0.9)[:, 1]
    known = np.isfinite(out_of_bag[:, 0])
    assert known.any()
    assert (out_of_bag[known, 0] < out_of_bag[known, 1]).all()


def test_control_leaves_the_posterior_alone(rng):
    rows, positive = smooth(rng, 120)
    new = rng.normal(size=(30, 2))
    plain = BootstrapSVC(**OPTIONS, gamma=0.5).fit(rows, positive)
    model = BootstrapSVC(**OPTIONS, gamma=0.5, control="threshold", rates={"tpr": 0.9})
    model.fit(rows, positive)
    assert abs(model.score_threshold_) > 0.01
    np.testing.assert_allclose(model.proba_interval(new), plain.proba_interval(new), atol=1e-9)
    np.testing.assert_allclose(model.oob_proba_interval(), plain.oob_proba_interval(), atol=1e-9)


def test_rows_without_weight_teach_nothing(rng):
    rows, positive = smooth(rng, 90)
    weight = np.where(np.arange(90) < 60, 1.0, 0.0)
    model = BootstrapSVC(**OPTIONS, gamma=0.5).fit(rows, positive, sample_weight=weight)
    less = BootstrapSVC(**OPTIONS, gamma=0.5).fit(rows[:60], positive[:60])
    for name, array in less.kernel_posterior_.items():
        np.testing.assert_allclose(model.kernel_posterior_[name], array, atol=1e-9)
    assert model.oob_kernel_logits_.shape == (90, len(less.kernel_posterior_["gamma"]), 2)


def test_linear_models_and_votes_have_no_posterior(rng):
    rows, positive = smooth(rng, 60)
    linear = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=10, random_state=0).fit(
        rows, positive
    )
    votes = BootstrapSVC(**OPTIONS, calibration=None).fit(rows, positive)
    for model in (linear, votes):
        assert model.kernel_posterior_ == {}
        assert model.oob_kernel_logits_ is None
