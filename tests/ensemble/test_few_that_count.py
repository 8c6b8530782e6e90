"""Straight columns few of which count: the prior's factors, and posteriors beside brute force."""

import numpy as np
import pytest
import torch
from scipy.special import expit, log_expit
from scipy.stats import norm

from bootprob.ensemble.uncertainty import composite_model, composite_posterior_fit, few_that_count
from bootprob.ensemble.uncertainty.composite_model import INCLUSIONS
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, attempt
from bootprob.ensemble.uncertainty.spike_and_slab import SPIKE, SpikeAndSlab
from bootprob.intervals import of_mixture
from bootprob.preparation.views import view_kernels

CPU = torch.device("cpu")


def prior(beta, deviation, inclusion):
    slab, spike = norm.pdf(beta, scale=deviation), norm.pdf(beta, scale=deviation * SPIKE)
    return inclusion * slab + (1 - inclusion) * spike


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("inclusion", INCLUSIONS)
@pytest.mark.parametrize("left_mean", [0.0, 0.3, 2.0])
def test_factors_give_a_coefficient_the_moments_that_its_prior_gives(inclusion, left_mean):
    deviation, left_variance = 0.8, 0.09
    precision, shift = 0.7, 0.2  # of the present factor
    variance = 1 / (1 / left_variance + precision)
    mean = variance * (left_mean / left_variance + shift)
    few = SpikeAndSlab(slice(0, 1), tensor(deviation**2), inclusion)
    new_precision, new_shift, log_factor = map(
        float, few.match(tensor(mean), tensor(variance), tensor(precision), tensor(shift))
    )
    beta = np.linspace(-8, 8, 400_001)
    left, step = norm.pdf(beta, left_mean, left_variance**0.5), beta[1] - beta[0]
    tilted = left * prior(beta, deviation, inclusion)
    mass = tilted.sum() * step
    true_mean = (beta * tilted).sum() / tilted.sum()
    true_variance = (np.square(beta - true_mean) * tilted).sum() / tilted.sum()
    matched = 1 / (1 / left_variance + new_precision)
    assert matched * (left_mean / left_variance + new_shift) == pytest.approx(true_mean, abs=1e-6)
    if true_variance < left_variance:  # else no factor that is a density has it
        assert matched == pytest.approx(true_variance, rel=1e-6)
    else:
        assert new_precision == pytest.approx(0.01 / deviation**2)
    present = np.exp(shift * beta - precision * np.square(beta) / 2)
    assert log_factor == pytest.approx(np.log(mass / ((left * present).sum() * step)), abs=1e-6)


def approximated(columns, label, deviation, inclusion=None):
    n, d = columns.shape
    ones = torch.ones(n, dtype=torch.float64)
    variance = torch.full((d,), deviation**2, dtype=torch.float64)
    few = None if inclusion is None else SpikeAndSlab(slice(0, d), variance, inclusion)
    start = Sites.beginning(torch.from_numpy(label), ones)
    blocks = [(slice(0, n), torch.from_numpy(columns))]
    return attempt(blocks, torch.from_numpy(label), ones, 1 / variance, start, few=few)


@pytest.mark.parametrize("seed", range(4))
def test_posterior_and_evidence_are_those_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(40, 2))
    label = (rng.uniform(size=40) < expit(1.2 * columns[:, 0])).astype(float)
    found = approximated(columns, label, 0.8, 0.2)
    assert found.settled
    axis = np.linspace(-5, 5, 401)
    beta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    likelihood = np.exp(log_expit((2 * label - 1) * (beta @ columns.T)).sum(axis=1))
    mass = likelihood * prior(beta, 0.8, 0.2).prod(axis=1)
    evidence = np.log(mass.sum() * (axis[1] - axis[0]) ** 2)
    mean = np.average(beta, axis=0, weights=mass)
    assert found.evidence == pytest.approx(evidence, abs=0.05)
    np.testing.assert_allclose(found.mean.numpy(), mean, atol=0.06)


def test_where_all_count_it_is_the_normal_prior():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(60, 5))
    label = (rng.uniform(size=60) < expit(columns[:, 0])).astype(float)
    plain, found = approximated(columns, label, 0.4), approximated(columns, label, 0.4, 1 - 1e-12)
    assert found.evidence == pytest.approx(plain.evidence, abs=1e-3)
    np.testing.assert_allclose(found.mean.numpy(), plain.mean.numpy(), atol=1e-3)
    np.testing.assert_allclose(found.covariance.numpy(), plain.covariance.numpy(), atol=1e-3)


def ugly(name, rng):
    """Columns and a logit."""
    few = rng.normal(size=(300, 6))
    if name == "each column four times":
        return np.repeat(few, 4, axis=1), 2 * few[:, 0] - few[:, 1]
    if name == "one of eight levels":
        levels = (rng.integers(0, 8, size=(300, 4))[..., None] == np.arange(8)).reshape(300, 32)
        columns = levels / levels.std(axis=0)
        return columns - columns.mean(axis=0), 2 * columns[:, 0] - 2 * columns[:, 9]
    if name == "heavy tails":
        columns = rng.standard_t(1.2, size=(300, 20))
        return columns / columns.std(axis=0), 3 * columns[:, 0] / columns[:, 0].std()
    columns = rng.normal(size=(60, 200 if name == "more columns than rows" else 40))
    return columns, (3 if name == "more columns than rows" else 50) * columns[:, 0]


@pytest.mark.parametrize("inclusion", INCLUSIONS)
@pytest.mark.parametrize(
    "name",
    [
        "each column four times",
        "one of eight levels",
        "heavy tails",
        "more columns than rows",
        "separable",
    ],
)
def test_factors_settle(name, inclusion):
    rng = np.random.default_rng(0)
    columns, logit = ugly(name, rng)
    label = (rng.uniform(size=len(logit)) < expit(logit)).astype(float)
    found = approximated(columns, label, 0.8, inclusion)
    assert found.settled
    assert np.isfinite(found.evidence)
    assert (found.covariance.diagonal() > 0).all()


def fitted(p, monkeypatch, logit, n=300):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, p))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    positive = rng.uniform(size=n) < expit(logit(rows))
    kernels, new = view_kernels(rows, np.ones(n)), rng.normal(size=(500, p))
    settings = []
    mixture = composite_posterior_fit._mixture

    def noted(posteriors, *others):
        settings.extend(each.setting for each in posteriors)
        return mixture(posteriors, *others)

    monkeypatch.setattr(composite_posterior_fit, "_mixture", noted)
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    monkeypatch.undo()
    moments = posterior.moments(new, kernels, CPU)
    bounds = expit(of_mixture(moments, posterior.weight, 0.95))
    truth = expit(logit(new))
    covered = ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean()
    return settings, np.diff(bounds).mean(), covered


def three_of_many(rows):
    return 1.5 * rows[:, 0] - 1.2 * rows[:, 1] + rows[:, 2]


def test_intervals_are_narrower_where_few_columns_count(monkeypatch):
    settings, width, covered = fitted(25, monkeypatch, three_of_many)
    assert settings[0].inclusion < 1
    monkeypatch.setattr(composite_posterior_fit, "leave_out", lambda stage: None)
    dense, plain, _ = fitted(25, monkeypatch, three_of_many)
    assert all(each.inclusion == 1 for each in dense)
    assert width < 0.85 * plain
    assert covered > 0.9


def test_one_column_and_directions_are_looked_at_as_they_were(monkeypatch):
    settings, _, _ = fitted(1, monkeypatch, lambda rows: rows[:, 0])
    several = [each for each in settings if all(each.linear)]  # its scores are another column
    assert all(each.inclusion == 1 for each in settings if each not in several)
    with monkeypatch.context() as context:
        context.setattr(composite_model, "_DIRECTIONS", 10)
        settings, _, _ = fitted(25, context, three_of_many)
    assert all(each.inclusion == 1 for each in settings)


def test_the_search_for_how_few_ends_at_the_best_of_its_neighbours():
    class Stage:
        def add(self, setting, sites):
            value = -abs(setting.inclusion - 0.05) - abs(setting.linear[0] - 0.4)
            return SimpleFound(setting, value)

    class SimpleFound:
        def __init__(self, setting, evidence):
            self.setting, self.evidence, self.found = setting, evidence, self
            self.sites = None

    base = SimpleFound(composite_model.Setting((), (0.1, 0.0), (), (0.0,) * 4), -9.0)
    best, few = few_that_count._climb(Stage(), base, 20)
    assert few == (0.05, 2)
    assert best.setting.linear == (0.4, 0.0)
    assert few_that_count._climb(Stage(), base, 1)[1] == few_that_count._START


def test_large_tables_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(few_that_count, "_WORK", 1e5)
    settings, _, _ = fitted(25, monkeypatch, three_of_many)
    assert all(each.inclusion == 1 for each in settings)
