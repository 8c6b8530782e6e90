"""Logits that grow with a column: found where labels ask for it, and in all that follows."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import expit

from bootprob import BootstrapSVC, load, save
from bootprob.ensemble.uncertainty import expectation_propagation
from bootprob.ensemble.uncertainty.composite_model import Setting
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.composite_search import again, outline, search, some
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, attempt
from bootprob.ensemble.uncertainty.link_tails import LOGIT, bent
from bootprob.ensemble.uncertainty.steep_logits import vary_steepness
from bootprob.ensemble.uncertainty.steepness import EVEN, FARTHEST, RATES, THRESHOLDS, Steepness
from bootprob.intervals.mixtures import of_mixture
from bootprob.preparation.views import view_kernels
from stages import stage_of

CPU = torch.device("cpu")


def logit_of(rows, rate, *, jumps=False):
    """It grows with the second column."""
    growth = np.sign(rows[:, 1]) if jumps else rows[:, 1]
    return np.exp(rate * growth) * (1.5 * rows[:, 0] + 0.8 * rows[:, 1] + 0.3)


def drawn(n, rate, seed=0, **more):
    """Rows, and their labels."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    return rows, rng.uniform(size=n) < expit(logit_of(rows, rate, **more))


def fitted(n, rate, seed=0, **more):
    rows, positive = drawn(n, rate, seed, **more)
    kernels = view_kernels(rows, np.ones(n))
    posterior, left_out = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    return posterior, left_out, kernels, rows


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("tails", [LOGIT, (0.3, -0.8, 0.0, 0.0), (0.0, 0.0, 0.1, 0.05)])
def test_a_steeper_logit_is_one_of_larger_columns(monkeypatch, tails, noise):
    monkeypatch.setattr(expectation_propagation, "_TOLERANCE", 1e-9)
    rng, n = np.random.default_rng(0), 40
    columns = torch.from_numpy(np.column_stack([np.ones(n), rng.normal(size=(n, 2))]))
    label = torch.from_numpy((rng.uniform(size=n) < expit(columns.numpy() @ [0.3, 1.0, 1.0])) * 1.0)
    weight = torch.from_numpy(rng.uniform(0.5, 2, size=n))
    steepness = torch.from_numpy(np.exp(rng.normal(size=n)))
    varying = torch.from_numpy(rng.uniform(0.1, 1, size=n)) if noise else None
    every = slice(0, n)

    def found(columns, varying, steepness=None):
        start = Sites.beginning(label, weight)
        link = partial(bent, tails=tails)
        precision = torch.ones(3, dtype=torch.float64)
        known = [(every, columns)], label, weight, precision, start, link, varying
        return attempt(*known, steepness=steepness)

    one = found(columns, varying, steepness)
    larger = None if varying is None else steepness.square() * varying
    other = found(steepness.unsqueeze(1) * columns, larger)
    assert one.settled
    assert other.settled
    assert one.evidence == pytest.approx(other.evidence, abs=1e-6)
    torch.testing.assert_close(one.mean, other.mean, rtol=0, atol=1e-7)
    torch.testing.assert_close(one.covariance, other.covariance, rtol=1e-6, atol=1e-8)
    mean, variance = steepness * one.left_out_mean, steepness.square() * one.left_out_variance
    torch.testing.assert_close(mean, other.left_out_mean, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(variance, other.left_out_variance, rtol=1e-6, atol=1e-7)


def test_prior_probabilities_of_rates_add_up():
    rows, positive = drawn(60, 0.0)
    model = stage_of(rows, positive, 20).model
    setting = Setting((), (0.4, 0.4), (), LOGIT)
    every = [Steepness(*each) for each in product(range(3), RATES, range(1 + len(THRESHOLDS)))]
    found = [model.log_prior(replace(setting, steepness=each)) for each in (EVEN, *every)]
    whole = model.log_prior(setting) - np.log(1 - 0.2)
    assert np.logaddexp.reduce(found) == pytest.approx(whole)


def covered(posterior, kernels, rate, **more):
    """Of new rows, the share whose logit is in the interval."""
    new = np.random.default_rng(9).normal(size=(400, 3))
    truth = logit_of(new, rate, **more)
    bounds = of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95)
    return ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean()


@pytest.fixture(scope="module")
def of_steep_logits():
    return fitted(500, 0.7, seed=1)


def test_labels_whose_logit_grows_with_a_column_say_so(of_steep_logits):
    posterior, left_out, kernels, rows = of_steep_logits
    grows = (posterior.steep == 1) & (posterior.rates > 0.3)
    assert posterior.weight[grows].sum() > 0.9
    assert covered(posterior, kernels, 0.7) > 0.9
    # Rows themselves are hardly other ones than with their labels left out.
    moments = posterior.moments(rows, kernels, CPU)
    assert np.median(np.abs(moments - left_out)[..., 0] / left_out[..., 1]) < 0.3


def test_labels_whose_logit_jumps_in_steepness_say_so():
    posterior, _, kernels, _ = fitted(600, -0.7, seed=8, jumps=True)
    jumps = (posterior.steep == 1) & (posterior.rates < -0.3) & (posterior.shapes == 2)
    assert posterior.weight[jumps].sum() > 0.9
    assert covered(posterior, kernels, -0.7, jumps=True) > 0.9


def test_labels_of_a_logit_do_not():
    posterior, *_ = fitted(500, 0.0, seed=1)
    assert posterior.steep is None
    assert posterior.rates is None


def test_rows_together_and_beside_others_vary_as_each(of_steep_logits):
    posterior, _, kernels, rows = of_steep_logits
    moments = posterior.on(kernels, CPU)
    new, other = rows[:6], rows[6:12]
    alone = moments(new)
    np.testing.assert_allclose(moments.combined(new, np.eye(6)), alone, rtol=1e-8)
    found = moments.beside(new, other[None])
    np.testing.assert_allclose(found[0, ..., :2], alone, rtol=1e-12)
    np.testing.assert_allclose(found[0, ..., 2], alone[..., 1] ** 2, rtol=1e-6)
    apart = moments.combined(np.concatenate([new, other]), np.hstack([np.eye(6), -np.eye(6)]))
    variance = found[0, ..., 1] ** 2 + found[1, ..., 1] ** 2 - 2 * found[1, ..., 2]
    np.testing.assert_allclose(apart[..., 1] ** 2, variance, rtol=1e-6)


def test_logits_grow_no_more_beyond_far_scores():
    steepness = Steepness(0, 0.5)
    scores = torch.tensor([[FARTHEST], [2 * FARTHEST], [-1e9]], dtype=torch.float64)
    np.testing.assert_allclose(steepness.of(scores), np.exp([1.5, 1.5, -1.5]))
    for shape, threshold in enumerate(THRESHOLDS, start=1):
        beside = threshold + torch.tensor([[-1e-9], [1e-9]], dtype=torch.float64)
        found = steepness._replace(shape=shape).of(beside)
        np.testing.assert_allclose(found, np.exp([-0.5, 0.5]))
    assert (EVEN.of(scores) == 1).all()


def test_more_rows_tell_the_rate():
    """Fewer rows had a rate that is too small, and one where there is none."""
    for rate, before in ((0.6, 0.2), (0.0, 0.3)):
        stage = stage_of(*drawn(800, rate, seed=2), 60)
        setting = replace(stage.straight().setting, steepness=Steepness(1, before))
        vary_steepness(stage, [stage.add(setting, stage.straight().found.sites)])
        best = stage.best().setting.steepness
        assert best.column == 1 if rate else best == EVEN
        assert abs(best.rate - rate) < 0.25


@pytest.mark.parametrize("large", [False, True])
def test_it_is_found_with_few_rows_and_kept_with_more(large):
    rows, positive = drawn(1200, 0.8, seed=4)
    first, stage = stage_of(rows[:600], positive[:600], 60), stage_of(rows, positive, 60)
    found = outline(first) if large else search(first)
    more, _ = (some if large else again)(stage, *found)
    weight = np.exp([each.evidence - more[0].evidence for each in more])
    grows = [each.setting.steepness.rate > 0.3 for each in more]
    assert weight[grows].sum() > 0.9 * weight.sum()


def test_a_model_from_a_file(tmp_path):
    rows, positive = drawn(500, 0.7)
    model = BootstrapSVC(n_bootstraps=4, effort="low", random_state=0).fit(rows, positive)
    assert model.kernel_posterior_["rates"].any()
    save(model, tmp_path / "model")
    again, new = load(tmp_path / "model"), rows[:20] * 3
    np.testing.assert_array_equal(again.proba_interval(new), model.proba_interval(new))
    for name, wrong in (("steep", 3), ("rates", 1.1), ("rates", np.nan), ("shapes", 4)):
        kept = model.kernel_posterior_[name]
        model.kernel_posterior_[name] = np.full_like(kept, wrong)
        with pytest.raises(ValueError, match=f"kernel_posterior_.*{name}"):
            save(model, tmp_path / "model")
        model.kernel_posterior_[name] = kept
    del model.kernel_posterior_["steep"]
    with pytest.raises(ValueError, match="steep, rates and shapes"):
        save(model, tmp_path / "model")
