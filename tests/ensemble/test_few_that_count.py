"""Straight columns few of which count: the prior's factors, and posteriors beside brute force."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit, log_expit
from scipy.stats import norm

from bootprob.ensemble.uncertainty import (
    composite_model,
    composite_posterior_fit,
    composite_stage,
    expectation_propagation,
    few_that_count,
    straight,
)
from bootprob.ensemble.uncertainty.composite_model import INCLUSIONS, LOGIT, Model, Setting
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.curves import Landmarks
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, attempt
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.spike_and_slab import SPIKE, PriorFactors, SpikeAndSlab
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
    total = 1 / left_variance + precision
    mean = (left_mean / left_variance + shift) / total
    few = SpikeAndSlab(tensor(deviation**-2), [torch.tensor([[0]])], inclusion)
    present = PriorFactors(tensor([precision]), tensor(shift), tensor())
    found = few.match(tensor(mean), tensor([total**0.5]), present)
    beta = np.linspace(-8, 8, 400_001)
    left, step = norm.pdf(beta, left_mean, left_variance**0.5), beta[1] - beta[0]
    tilted = left * prior(beta, deviation, inclusion)
    mass = tilted.sum() * step
    true_mean = (beta * tilted).sum() / tilted.sum()
    true_variance = (np.square(beta - true_mean) * tilted).sum() / tilted.sum()
    matched = 1 / (1 / left_variance + float(found.precision))
    known = left_mean / left_variance + float(found.shift)
    assert matched * known == pytest.approx(true_mean, abs=1e-6)
    if true_variance < left_variance:  # else no factor that is a density has it
        assert matched == pytest.approx(true_variance, rel=1e-6)
    else:
        assert float(found.precision) == pytest.approx(0.01 / deviation**2)
    factor = np.exp(shift * beta - precision * np.square(beta) / 2) / (2 * np.pi) ** 0.5
    log_mass = np.log(mass / ((left * factor).sum() * step))
    assert float(found.log_mass) == pytest.approx(log_mass, abs=1e-6)


@pytest.mark.parametrize("inclusion", INCLUSIONS)
@pytest.mark.parametrize("left_mean", [(0.1, -0.2), (1.8, 1.4)])
def test_a_column_and_its_scores_count_together(inclusion, left_mean):
    rng, deviations = np.random.default_rng(0), np.array([0.8, 0.4])
    left_variance = np.array([[0.09, 0.05], [0.05, 0.06]])
    left_precision = np.linalg.inv(left_variance)
    precision, shift = np.array([[0.7, 0.1], [0.1, 0.9]]), np.array([0.2, -0.1])
    total = left_precision + precision
    mean = np.linalg.solve(total, left_precision @ left_mean + shift)
    # Beside one that is normal, and in another order.
    order, every = [2, 0], np.eye(3)
    every[np.ix_(order, order)] = total
    present, means, shifts = np.eye(3), np.zeros(3), np.zeros(3)
    present[np.ix_(order, order)], means[order], shifts[order] = precision, mean, shift
    slab = np.ones(3)
    slab[order] = deviations**-2.0
    few = SpikeAndSlab(torch.from_numpy(slab), [torch.tensor([order])], inclusion)
    found = few.match(
        torch.from_numpy(means),
        torch.from_numpy(np.linalg.cholesky(every)),
        PriorFactors(torch.from_numpy(present), torch.from_numpy(shifts), tensor()),
    )
    n = 2_000_000
    beta = rng.multivariate_normal(left_mean, left_variance, size=n)
    slabs, spikes = (
        np.prod(norm.pdf(beta, scale=deviations * each), axis=1) for each in (1, SPIKE)
    )
    weight = inclusion * slabs + (1 - inclusion) * spikes
    true_mean = np.average(beta, axis=0, weights=weight)
    true_variance = np.cov(beta.T, aweights=weight)
    own = found.precision.numpy()[np.ix_(order, order)]
    matched = np.linalg.inv(left_precision + own)
    matched_mean = matched @ (left_precision @ left_mean + found.shift.numpy()[order])
    np.testing.assert_allclose(matched_mean, true_mean, atol=0.01)
    np.testing.assert_allclose(matched, true_variance, atol=0.01)
    factor = np.exp(beta @ shift - (beta @ precision * beta).sum(axis=1) / 2)
    log_mass = np.log(weight.mean() / factor.mean()) + np.log(2 * np.pi)
    assert float(found.log_mass) == pytest.approx(log_mass, abs=0.05)
    kept = np.ones((3, 3), dtype=bool)
    kept[np.ix_(order, order)] = False
    np.testing.assert_array_equal(found.precision.numpy()[kept], present[kept])


def approximated(columns, label, deviation, inclusion=None, size=1):
    n, d = columns.shape
    ones = torch.ones(n, dtype=torch.float64)
    precision = torch.full((d,), deviation**-2, dtype=torch.float64)
    few = None
    if inclusion is not None:
        few = SpikeAndSlab(precision, [torch.arange(d).unflatten(0, (-1, size))], inclusion)
    start = Sites.beginning(torch.from_numpy(label), ones)
    blocks = [(slice(0, n), torch.from_numpy(columns))]
    return attempt(blocks, torch.from_numpy(label), ones, precision, start, few=few)


@pytest.mark.parametrize("seed", [0, 2, 7])
def test_factors_that_drift_are_left_where_they_move_little(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(300, 8))
    columns = np.column_stack([own, own + 0.3 * rng.normal(size=own.shape)])
    label = (rng.uniform(size=300) < expit(own[:, 0] - own[:, 1])).astype(float)
    found = approximated(columns, label, 0.8, 0.2)
    monkeypatch.setattr(expectation_propagation, "_OF_FEW", (2000, 1e-7))
    true = approximated(columns, label, 0.8, 0.2)
    assert found.settled
    assert true.settled
    deviation = np.sqrt((columns @ true.covariance.numpy() * columns).sum(axis=1))
    ours = np.sqrt((columns @ found.covariance.numpy() * columns).sum(axis=1))
    moved = columns @ (found.mean - true.mean).numpy() / deviation
    assert np.abs(moved).max() < 0.1
    np.testing.assert_allclose(ours, deviation, rtol=0.06)
    assert found.evidence == pytest.approx(true.evidence, abs=0.01)


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
    if name == "columns beside their scores":
        scores = norm.ppf((few.argsort(axis=0).argsort(axis=0) + 0.5) / len(few))
        return np.stack([few, scores], axis=2).reshape(300, 12), 2 * few[:, 0] - few[:, 1]
    columns = rng.normal(size=(60, 200 if name == "more columns than rows" else 40))
    return columns, (3 if name == "more columns than rows" else 50) * columns[:, 0]


@pytest.mark.parametrize("inclusion", INCLUSIONS)
@pytest.mark.parametrize(
    "name",
    [
        "each column four times",
        "one of eight levels",
        "heavy tails",
        "columns beside their scores",
        "more columns than rows",
        "separable",
    ],
)
def test_factors_settle(name, inclusion):
    rng = np.random.default_rng(0)
    columns, logit = ugly(name, rng)
    label = (rng.uniform(size=len(logit)) < expit(logit)).astype(float)
    size = 2 if name == "columns beside their scores" else 1
    found = approximated(columns, label, 0.8, inclusion, size)
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


def test_one_column_is_looked_at_as_it_was(monkeypatch):
    settings, _, _ = fitted(1, monkeypatch, lambda rows: rows[:, 0])
    assert all(each.inclusion == 1 for each in settings)


def test_of_very_many_columns_few_have_coefficients_of_their_own(monkeypatch):
    monkeypatch.setattr(straight, "_DIRECTIONS", 20)
    monkeypatch.setattr(straight, "_ALONE", 8)
    settings, width, covered = fitted(60, monkeypatch, three_of_many)
    assert settings[0].inclusion in {number / 60 for number in composite_model._OF_VERY_MANY}
    monkeypatch.setattr(composite_posterior_fit, "leave_out", lambda stage: None)
    _, plain, _ = fitted(60, monkeypatch, three_of_many)
    assert width < 0.8 * plain
    assert covered > 0.9


def test_columns_without_coefficients_do_not_count_where_few_do(monkeypatch):
    monkeypatch.setattr(straight, "_DIRECTIONS", 20)
    monkeypatch.setattr(straight, "_ALONE", 8)
    rows = np.random.default_rng(0).normal(size=(50, 60))
    data = LabelledRows.of(rows, rows[:, 0] > 0, np.ones(50), CPU)
    views = view_kernels(rows, np.ones(50)).of_columns
    model = Model(Landmarks(data.rows, views), straight.straight_columns(data, views), [])
    assert model.inclusions == (32 / 60, 8 / 60, 2 / 60)
    of_all = Setting((), (0.4, 0.4), (), LOGIT)
    gains = [
        model.log_prior(replace(of_all, inclusion=each)) - model.log_prior(of_all)
        for each in model.inclusions
    ]
    np.testing.assert_allclose(gains, 52 * np.log1p(-np.array(model.inclusions)) - np.log(3))


@pytest.mark.parametrize("n", [40, 200])
def test_directions_are_columns_first_and_span_what_rows_span(n, monkeypatch):
    monkeypatch.setattr(straight, "_DIRECTIONS", 60)
    monkeypatch.setattr(straight, "_ALONE", 8)
    rng = np.random.default_rng(n)
    rows = np.hstack(
        [rng.normal(size=(n, 30)), rng.normal(size=(n, 20)) @ rng.normal(size=(20, 40))]
    )
    positive = rng.uniform(size=n) < expit(2 * rows[:, 3] - 2 * rows[:, 20])
    data = LabelledRows.of(rows, positive, rng.uniform(0.5, 1.5, size=n), CPU)
    found = straight.straight_columns(data, view_kernels(rows, np.ones(n)).of_columns)
    for directions, own in zip(found.directions, found.alone, strict=True):
        vectors = directions.numpy()
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-8)
        np.testing.assert_array_equal(vectors[:, :8].argmax(axis=0), own)
        assert len(own) == 8
        assert {3, 20} < set(own)
    kept = rows @ found.directions[0].numpy()
    np.testing.assert_allclose(np.square(kept).sum(axis=1), np.square(rows).sum(axis=1))


def test_the_search_for_how_few_ends_at_the_best_of_its_neighbours():
    class Stage:
        model = SimpleNamespace(inclusions=INCLUSIONS)

        def add_each(self, starts):
            return [SimpleFound(setting, self.value(setting)) for setting, _ in starts]

        def value(self, setting):
            return -abs(setting.inclusion - 0.05) - abs(setting.linear[0] - 0.4)

    class SimpleFound:
        def __init__(self, setting, evidence):
            self.setting, self.evidence, self.found = setting, evidence, self
            self.sites = None

    base = SimpleFound(Setting((), (0.1, 0.0), (), (0.0,) * 4), -9.0)
    best, few = few_that_count._climb(Stage(), base, (0.2, 1), 20)
    assert few == (0.05, 2)
    assert best.setting.linear == (0.4, 0.0)
    assert few_that_count._climb(Stage(), base, (0.2, 1), 1)[1] == (0.2, 1)


def test_large_tables_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(composite_stage, "_WORK", 1e5)
    settings, _, _ = fitted(25, monkeypatch, three_of_many)
    assert all(each.inclusion == 1 for each in settings)
