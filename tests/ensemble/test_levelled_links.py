"""Links that level off: found where labels are wrong or missed, and only there."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from bootprob import BootstrapSVC, load, save
from bootprob.ensemble.uncertainty.composite_model import Setting
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.composite_search import again
from bootprob.ensemble.uncertainty.levelled_links import asked_for
from bootprob.ensemble.uncertainty.link_tails import LOGIT, Links, bent_moments, levels_off
from bootprob.intervals.mixtures import logit_of_mixture, of_mixture
from bootprob.preparation.views import view_kernels
from stages import stage_of

CPU = torch.device("cpu")
LEVELS = (0.0, 0.0, 0.25, 0.25)


def drawn(n, short, over, seed=0):
    """Rows, labels of which some are wrong, and a function of the true logit."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2))
    right = 1 - short - over
    positive = rng.uniform(size=n) < over + right * expit(3 * rows[:, 0] - 2 * rows[:, 1])
    return rows, positive


@pytest.mark.parametrize(("short", "over"), [(0.1, 0.1), (0.28, 0.0), (0.0, 0.07)])
def test_labels_ask_for_the_levels_that_they_have(short, over):
    rows, positive = drawn(6000, short, over)
    scores = 1.5 * rows[:, 0] - rows[:, 1] + 0.4  # with another slope and intercept
    gain, (above, below, *found) = asked_for(scores, positive, np.ones(len(rows)))
    assert above == below == 0
    assert gain > 50
    np.testing.assert_allclose(found, [short, over], atol=0.045)


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_a_logit_ask_for_nothing(seed):
    rows, positive = drawn(2000, 0, 0, seed)
    gain, _ = asked_for(3 * rows[:, 0] - 2 * rows[:, 1], positive, np.ones(len(rows)))
    assert gain < 3
    assert asked_for(np.zeros(6), np.arange(6) > 2, np.ones(6))[0] == pytest.approx(0, abs=1e-6)


def test_weights_are_repeated_labels():
    rows, positive = drawn(300, 0.1, 0.1)
    scores, count = rows[:, 0], np.arange(300) % 3 + 1
    once = asked_for(scores, positive, count.astype(float))
    repeated = asked_for(np.repeat(scores, count), np.repeat(positive, count), np.ones(count.sum()))
    assert once[0] == pytest.approx(repeated[0], abs=1e-3)


def posterior_of(rows, positive):
    n = len(rows)
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    return posterior, lambda new: posterior.moments(new, kernels, CPU)


def test_the_posterior_levels_off_where_labels_do():
    rows, positive = drawn(900, 0.15, 0.15, seed=1)
    posterior, moments = posterior_of(rows, positive)
    assert posterior.weight[posterior.levels.any(axis=1)].sum() > 0.5
    far = np.array([[5.0, -5.0], [-5.0, 5.0]])  # where a logit without levels is beyond ten
    lower, upper = of_mixture(moments(far), posterior.weight, 0.95).T
    assert (lower < logit([0.85, 0.15])).all()
    assert (upper > logit([0.85, 0.15])).all()
    reached = expit(logit_of_mixture(moments(far), posterior.weight))
    np.testing.assert_allclose(reached, [0.85, 0.15], atol=0.07)


def test_levels_count_where_another_link_is_the_best():
    rows, positive = drawn(700, 0.25, 0, seed=2)
    posterior, _ = posterior_of(rows, positive)
    assert not posterior.levels[0].any()
    assert posterior.weight[posterior.levels.any(axis=1)].sum() > 0.3


def test_plateaus_of_a_box_are_of_a_curve_that_jumps():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 3))
    positive = rng.uniform(size=1000) < np.where((rows[:, :2] > 0).all(axis=1), 0.82, 0.18)
    posterior, _ = posterior_of(rows, positive)
    assert posterior.levels is None


def test_the_posterior_of_a_logit_does_not():
    posterior, _ = posterior_of(*drawn(900, 0, 0, seed=1))
    assert posterior.levels is None


def test_more_rows_may_leave_none_of_the_links_that_level_off():
    """Fewer rows asked for one beside a curve; what remains has a straight part to look beside."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2))
    positive = rng.uniform(size=400) < expit(6 * rows[:, 0] ** 2 - 4)
    stage = stage_of(rows, positive, 50)
    kernel = (stage.model.curved[0],)
    of_links = [Setting(kernel, (0.4, 0.4), (2.0,), tails) for tails in (LEVELS, LOGIT)]
    found, _ = again(stage, [SimpleNamespace(setting=each) for each in of_links], [kernel])
    assert not any(levels_off(each.setting.tails) for each in found)
    assert stage.best(straight=True).setting.tails == LOGIT


def test_a_model_of_flipped_labels_from_a_file(tmp_path):
    rows, positive = drawn(900, 0.15, 0.15, seed=1)
    model = BootstrapSVC(n_bootstraps=4, effort="low", random_state=0).fit(rows, positive)
    assert model.kernel_posterior_["levels"].any()
    save(model, tmp_path / "model")
    again, new = load(tmp_path / "model"), rows[:20] * 3
    np.testing.assert_array_equal(again.proba_interval(new), model.proba_interval(new))
    model.kernel_posterior_["levels"] = np.full_like(model.kernel_posterior_["levels"], 0.5)
    with pytest.raises(ValueError, match="leaves no probabilities"):
        save(model, tmp_path / "model")


def test_links_together_are_those_of_each(rng):
    every = [
        LOGIT,
        *((a, b, 0.0, 0.0) for a in (-0.6, 0.0, 0.3) for b in (-0.3, 0.0, 0.6)),
        (0.0, 0.0, 0.1, 0.0),
        (0.25, -0.3, 0.06, 0.16),
    ]
    mean = torch.from_numpy(rng.normal(0, 8, (200, len(every))))
    mean[0], deviation = 0, torch.from_numpy(rng.gamma(1, 2, mean.shape))
    expected = [bent_moments(mean[:, k], deviation[:, k], tails) for k, tails in enumerate(every)]
    together = Links(every, mean.device).moments(mean, deviation)
    torch.testing.assert_close(together, torch.stack(expected, dim=1), rtol=1e-12, atol=1e-12)
    plain = Links([LOGIT] * 2, mean.device).moments(mean[:, :2], deviation[:, :2])
    assert torch.equal(plain, torch.stack([mean[:, :2], deviation[:, :2]], dim=2))
