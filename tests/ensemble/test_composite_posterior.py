"""The composite posterior beside draws from its prior, direct approximations and ugly tables."""

import os
import warnings
from dataclasses import replace
from functools import partial
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit

from bootprob.ensemble.uncertainty import (
    additions,
    composite_columns,
    composite_model,
    composite_posterior_fit,
    composite_stage,
    few_that_count,
)
from bootprob.ensemble.uncertainty.composite_model import Setting
from bootprob.ensemble.uncertainty.composite_posterior import CompositePosterior
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.curve_families import KERNELS
from bootprob.ensemble.uncertainty.curves import FAMILIES, VIEWS, Curve, Landmarks
from bootprob.ensemble.uncertainty.expectation_propagation import Sites, approximate
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.link_tails import LOGIT, bent, bent_moments
from bootprob.ensemble.uncertainty.straight import straight_columns
from bootprob.intervals import of_mixture
from bootprob.preparation.views import learn_views, view_kernels
from stages import stage_of

CPU = torch.device("cpu")


def table(rng, n, p, logit):
    """Standardised rows, labels, weights and kernels."""
    rows = rng.normal(size=(n, p))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    positive = rng.uniform(size=n) < expit(logit(rows))
    return rows, positive, np.ones(n), view_kernels(rows, np.ones(n))


def straight(rows):
    return rows[:, 0] - 0.5 * rows[:, 1] + 0.3


def wavy(rows):
    return 2.5 * np.sin(2 * rows[:, 0]) + rows[:, 1]


def widths(posterior, rows, kernels):
    lower, upper = expit(
        of_mixture(posterior.moments(rows, kernels, CPU), posterior.weight, 0.95)
    ).T
    assert ((lower < upper) | (lower == 1)).all()  # where all of it is beyond float64
    return upper - lower


def gram(posterior, part, rows):
    """Prior covariance of the logits of rows, by numpy."""
    view = partial(learn_views(rows, np.ones(len(rows))).of, rows=torch.from_numpy(rows))
    of_columns, of_scores, *of_curves = posterior.deviation[part] ** 2
    scores = view("scores").numpy()[:, posterior.scored]
    found = 100 + of_columns * rows @ rows.T + of_scores * scores @ scores.T
    for curve, variance in zip(posterior.curves(part), of_curves, strict=False):
        seen = curve.of(view(curve.view)).numpy()
        found = found + variance * kernel_of(curve, seen)
    return found


def kernel_of(curve, seen):
    additive = np.exp(-curve.gamma * np.square(seen[:, None] - seen[None])).mean(axis=2)
    quadratic = np.square(seen @ seen.T) / np.square(np.square(seen).sum(axis=1)).mean()
    product, sized = seen.prod(axis=1), seen / np.sqrt(np.square(seen).mean(axis=0))
    pairs = list(permutations(range(seen.shape[1]), 2))

    def varying(near):
        slopes = (np.outer(*sized[:, [a, a]].T) * near(seen[:, [b]] - seen[:, b]) for a, b in pairs)
        return sum(slopes) / len(pairs)

    def interaction():
        found = 1.0
        for column in seen.T:
            knots = np.quantile(column, np.linspace(0, 1, min(10, len(seen) // seen.shape[1])))
            near = np.exp(-curve.gamma * np.abs(column[:, None] - knots)).mean(axis=1)
            among = np.exp(-curve.gamma * np.abs(knots[:, None] - knots))
            centred = np.exp(-curve.gamma * np.abs(column[:, None] - column))
            centred = centred - np.outer(near, near) / among.mean()
            found = found * centred / (1 - np.square(among.mean(axis=1)).mean() / among.mean())
        return found

    def moderated():
        slopes = sized[:, 1:] @ sized[:, 1:].T / (seen.shape[1] - 1)
        return slopes * np.exp(-curve.gamma * np.square(seen[:, [0]] - seen[:, 0]))

    return {
        "interaction": interaction,
        "moderated": moderated,
        "rbf": lambda: np.exp(-curve.gamma * cdist(seen, seen, "sqeuclidean")),
        "laplacian": lambda: np.exp(-curve.gamma * cdist(seen, seen, "cityblock")),
        "linear": lambda: curve.gamma * seen @ seen.T,
        "additive": lambda: additive,
        "quadratic": lambda: quadratic,
        "both": lambda: (additive + quadratic) / 2,
        "product": lambda: np.outer(product, product) / np.square(product).mean(),
        "varying": lambda: varying(lambda apart: np.exp(-curve.gamma * np.square(apart))),
        "varying roughly": lambda: varying(lambda apart: np.exp(-curve.gamma * np.abs(apart))),
    }[curve.family]()


def test_moments_and_weights_are_those_of_draws_from_the_prior(monkeypatch):
    """Every part by importance sampling: no approximation, no landmarks, one value of each σ."""
    for module in (composite_model, few_that_count):
        monkeypatch.setattr(module, "STRAIGHT", (0.8,))
    monkeypatch.setattr(composite_model, "_ALL_COUNT", 1 - 1e-12)
    for module in (composite_model, composite_stage, additions):
        monkeypatch.setattr(module, "CURVED", (2.0,))
    monkeypatch.setattr(composite_stage, "_REST_SCALES", (2.0,))
    monkeypatch.setattr(composite_posterior_fit, "_LEAST_WEIGHT", 1e-3)
    n, rng = 7, np.random.default_rng(4)
    rows, _, weight, kernels = table(rng, n, 2, straight)
    positive = np.array([True, False, True, True, False, True, False])
    weight = rng.uniform(0.5, 1.5, size=n)
    kernels = view_kernels(rows, np.ones(n))
    posterior, left_out = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    assert left_out.shape == (n, len(posterior.weight), 2)
    found, sign = posterior.moments(rows, kernels, CPU), 2 * positive - 1
    draws, checked = rng.normal(size=(200_000, n)), 0
    for part, tails in enumerate(posterior.links):
        covariance = gram(posterior, part, rows) + 1e-9 * np.eye(n)
        logits = draws @ np.linalg.cholesky(covariance).T
        logits = bent(torch.from_numpy(logits), tails).numpy()
        likelihood = np.exp(log_expit(sign * logits) @ weight)
        if any(tails):  # of these the middle of an interval is kept, not the mean
            continue
        checked += 1
        for row in range(n):
            mean = np.average(logits[:, row], weights=likelihood)
            deviation = np.sqrt(np.average(np.square(logits[:, row] - mean), weights=likelihood))
            assert found[row, part, 0] == pytest.approx(mean, abs=0.25 * deviation)
            assert found[row, part, 1] == pytest.approx(deviation, rel=0.2)
    assert checked > 3


@pytest.mark.parametrize("tails", [(-1.0, 0.3, 0.0, 0.0), (0.0, 0.0, 0.1, 0.2)])
@pytest.mark.parametrize("noise", [False, True])
def test_evidence_under_a_link_is_that_of_draws(rng, noise, tails):
    n = 6
    columns = np.column_stack([np.ones(n), rng.normal(size=n)])
    label = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    spread = rng.uniform(0.1, 2, size=n) if noise else np.zeros(n)
    found = approximate(
        [(slice(0, n), torch.from_numpy(columns))], label, torch.ones(n, dtype=torch.float64),
        torch.tensor([0.5, 0.3], dtype=torch.float64),
        Sites.beginning(label, torch.ones(n, dtype=torch.float64)),
        partial(bent, tails=tails), torch.from_numpy(spread) if noise else None,
    )  # fmt: skip
    beta = rng.normal(size=(400_000, 2)) / np.sqrt([0.5, 0.3])
    logits = beta @ columns.T + rng.normal(size=(len(beta), n)) * np.sqrt(spread)
    sign = 2 * label.numpy() - 1
    likelihood = np.exp(log_expit(sign * bent(torch.from_numpy(logits), tails).numpy()).sum(axis=1))
    assert found.evidence == pytest.approx(np.log(likelihood.mean()), abs=0.05)
    np.testing.assert_allclose(
        found.mean.numpy(), np.average(beta, axis=0, weights=likelihood), atol=0.15
    )


def test_a_straight_truth_is_narrow_and_a_wave_is_found():
    rng = np.random.default_rng(4)
    for logit, share in ((straight, 0.6), (wavy, 0.0)):
        rows, positive, weight, kernels = table(rng, 300, 2, logit)
        posterior, left_out = fit_composite_posterior(rows, positive, weight, kernels, CPU)
        assert posterior.weight.sum() == pytest.approx(1)
        assert (np.diff(posterior.weight) <= 0).all()
        none = posterior.weight[~posterior.family.any(axis=1)].sum()
        assert none >= share if share else none < 0.01
        new = rng.normal(size=(500, 2))
        bounds = expit(of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95))
        truth = expit(logit(new))
        assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.7
        known, plain = posterior.moments(rows, kernels, CPU), ~np.any(posterior.links, axis=1)
        assert (known[:, plain, 1] <= left_out[:, plain, 1] * (1 + 1e-6)).all()


def test_the_straight_part_alone_is_logistic_regression_with_a_normal_prior(rng, monkeypatch):
    """Where all columns have two values there are no scores, and a share of 1 leaves no curve."""
    monkeypatch.setattr(composite_model, "_STRAIGHT_SHARE", 1 - 1e-12)
    monkeypatch.setattr(composite_model, "_LOGIT_SHARE", 1 - 1e-12)
    monkeypatch.setattr(composite_model, "_ALL_COUNT", 1 - 1e-12)
    monkeypatch.setattr(composite_posterior_fit, "_TEMPERED", 1.0)
    monkeypatch.setattr(additions, "_OF_STRAIGHT", 1e-12)
    monkeypatch.setattr(composite_stage, "_BESIDE_NONE", (1e-12, 1e-12))
    n = 80
    rows = np.where(rng.uniform(size=(n, 3)) < 0.5, -1.0, 1.0)
    positive = rng.uniform(size=n) < expit(rows[:, 0])
    kernels = view_kernels(rows, np.ones(n))
    posterior, left_out = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    assert not posterior.family.any()
    assert posterior.quadratic.shape[1] == 4
    columns = torch.from_numpy(np.column_stack([np.ones(n), rows]))
    label = torch.from_numpy(positive.astype(float))
    start, found = Sites.beginning(label, torch.ones_like(label)), []
    for deviation in composite_model.STRAIGHT:
        precision = torch.tensor([0.01, *[deviation**-2] * 3], dtype=torch.float64)
        found.append(approximate([(slice(0, n), columns)], label, label * 0 + 1, precision, start))
    evidence = np.array([each.evidence for each in found])
    shares = [0.198] * 5 + [0.01]
    weight = shares * np.exp(evidence - evidence.max())
    weight[weight < 0.001 * weight.sum()] = 0
    weight /= weight.sum()
    assert posterior.weight == [1]
    means = np.array([each.mean.numpy() for each in found])
    mean = weight @ means
    apart = np.einsum("g,gi,gj->ij", weight, means - mean, means - mean)
    form = np.tensordot(weight, [each.covariance.numpy() for each in found], axes=1) + apart
    np.testing.assert_allclose(posterior.coefficients[0], mean, atol=2e-3)
    np.testing.assert_allclose(posterior.quadratic[0], form, atol=1e-2)
    squares = weight @ np.square(composite_model.STRAIGHT)
    np.testing.assert_allclose(posterior.deviation[0, 0] ** 2, squares, rtol=0.01)
    left = np.array([each.left_out_mean.numpy() for each in found])
    np.testing.assert_allclose(left_out[:, 0, 0], weight @ left, atol=0.01)
    spread = np.array([each.left_out_variance.numpy() for each in found]) + np.square(left)
    spread = weight @ spread - np.square(weight @ left)
    np.testing.assert_allclose(left_out[:, 0, 1] ** 2, spread, rtol=0.01)


@pytest.mark.parametrize("kernel", [(), (Curve("rbf", "columns", 1.0),)])
def test_prior_probabilities_of_linear_parts_add_up(kernel):
    rows, positive, weight, kernels = table(np.random.default_rng(8), 60, 2, straight)
    landmarks = Landmarks(torch.from_numpy(rows), kernels.of_columns)
    data = LabelledRows.of(rows, positive, weight, CPU)
    model = composite_model.Model(landmarks, straight_columns(data, kernels.of_columns), [])
    setting = composite_model.Setting(kernel, (0.1, 0.1), (1.0,) * len(kernel), LOGIT)
    every = [replace(setting, linear=each) for each in model.linear(kernel)]
    assert len(every) == (36 if kernel else 48)
    assert sum(map(model._probability_of_linear, every)) == pytest.approx(1)


@pytest.mark.parametrize("n_numbers", [1, 290])
def test_prior_probabilities_of_linear_parts_of_wide_tables_add_up(rng, n_numbers):
    """Scores alone would leave out what has none, of which most columns are or few."""
    numbers, others = rng.gamma(1, 1, (60, n_numbers)), rng.choice([-1.0, 1.0], (60, 280))
    model = stage_of(np.column_stack([numbers, others]), np.arange(60) % 2 > 0, 30).model
    every = model.linear(())
    assert min(every)[0] == (0.0 if n_numbers > 280 else 0.1)
    settings = [Setting((), linear, (), LOGIT) for linear in every]
    assert sum(map(model._probability_of_linear, settings)) == pytest.approx(1)


@pytest.mark.parametrize("share", [0.5, 0.005])
def test_prior_probabilities_of_links_add_up(rng, share):
    """Of a rare class links are left out that are flat at its rate."""
    model = stage_of(rng.normal(size=(600, 2)), np.arange(600) < 600 * share, 50).model
    links = [LOGIT, *model.tails]
    assert (len(links) < 13) == (share < 0.1)
    priors = [model.log_prior(Setting((), (0.4, 0.4), (), tails)) for tails in links]
    assert priors[0] - np.logaddexp.reduce(priors) == pytest.approx(np.log(0.3))


def test_settings_count_by_a_power_of_their_evidence_and_kinds_by_its_root():
    settings = [
        Setting((), (0.4, 0.0), (), LOGIT),
        Setting((), (0.4, 0.0), (), (0.6, 0.6, 0.0, 0.0)),
        Setting((), (0.4, 0.0), (), LOGIT, inclusion=0.2),
        Setting((), (0.4, 0.0), (), LOGIT, inclusion=0.5),
    ]
    evidence = (-3.0, -4.0, -5.0, -5.5)
    posteriors = [
        SimpleNamespace(evidence=value, setting=setting)
        for value, setting in zip(evidence, settings, strict=True)
    ]
    counts = np.exp([-2.25, -3.0, -3.75, -4.125])
    for kinds in ([0, 1, 0, 0], [0, 0, 1, 1]):
        of_kinds = np.bincount(kinds, weights=counts)
        counts = counts / np.sqrt(of_kinds[kinds])
    found = composite_posterior_fit._weights(posteriors)
    np.testing.assert_allclose(found, counts / counts.sum())


def test_weights_count_as_rows(one_link):
    rng = np.random.default_rng(4)
    rows, positive, _, _ = table(rng, 40, 2, straight)
    times = rng.integers(1, 4, size=40)
    kernels = view_kernels(rows, np.ones(40))
    counted, _ = fit_composite_posterior(rows, positive, times.astype(float), kernels, CPU)
    repeated, _ = fit_composite_posterior(
        np.repeat(rows, times, axis=0),
        np.repeat(positive, times),
        np.ones(times.sum()),
        kernels,
        CPU,
    )
    new = rng.normal(size=(50, 2))
    middle = [
        of_mixture(each.moments(new, kernels, CPU), each.weight, 0.95)
        for each in (counted, repeated)
    ]
    assert np.abs(expit(middle[0]) - expit(middle[1])).mean() < 0.02


def test_arrays_make_the_same_again_and_no_rows_are_no_rows(rng, one_link):
    rows, positive, weight, kernels = table(rng, 60, 2, wavy)
    posterior, _ = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    arrays = posterior.arrays()
    assert {array.dtype for array in arrays.values()} <= {np.dtype("float64"), np.dtype("int64")}
    again = CompositePosterior(**{name: array.copy() for name, array in arrays.items()})
    found = posterior.moments(rows, kernels, CPU)
    np.testing.assert_array_equal(again.moments(torch.from_numpy(rows), kernels, CPU), found)
    assert posterior.moments(rows[:0], kernels, CPU).shape == (0, len(posterior.weight), 2)
    repeated, _ = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    for name, array in repeated.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


def test_columns_of_two_values_stay_where_scores_are_looked_at_alone(rng):
    rows = np.column_stack(
        [rng.gamma(1, 1, 120), rng.choice([-1.0, 1.0], 120), rng.normal(size=120)]
    )
    stage = stage_of(rows, rng.uniform(size=120) < expit(rows[:, 1]), 30)
    found = stage.begin(Setting((), (0.0, 0.8), (), (0.25, 0.0, 0.0, 0.0)))
    posterior, _ = composite_posterior_fit._mixture([found], stage, None)
    assert posterior.blocks(0) == (0, 1, 2)
    which, _ = found.columns.of(found.setting)
    [(_, columns)] = found.columns.blocks(which)
    variance = (columns @ found.found.covariance * columns).sum(1)
    expected = bent_moments(columns @ found.found.mean, variance.sqrt(), found.setting.tails)
    moments = posterior.moments(rows, view_kernels(rows, np.ones(120)), CPU)
    np.testing.assert_allclose(moments[:, 0], expected.numpy(), rtol=1e-9, atol=1e-9)


def test_a_constant_column_that_is_no_longer_constant_is_not_known(rng):
    """It is its own score; that its coefficient has a mean of 0 does not leave the column out."""
    rows = np.column_stack([np.zeros(120), rng.gamma(1, 1, (120, 2))])
    stage = stage_of(rows, rng.uniform(size=120) < expit(rows[:, 1] - 1), 30)
    found = stage.begin(Setting((), (0.0, 0.8), (), LOGIT))
    posterior, _ = composite_posterior_fit._mixture([found], stage, None)
    kernels = view_kernels(rows, np.ones(120))
    new = rows + np.eye(3)[0]
    variances = (posterior.moments(each, kernels, CPU)[:, 0, 1] ** 2 for each in (rows, new))
    np.testing.assert_allclose(-np.subtract(*variances), 0.8**2)


def test_it_is_the_same_on_any_number_of_cores(monkeypatch):
    table_of = table(np.random.default_rng(5), 150, 3, wavy)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("bootprob_gpu.hardware.threads.workers", lambda cores=cores: cores)
        found.append(fit_composite_posterior(*table_of, CPU))
    (posterior, left_out), (another, same) = found
    np.testing.assert_array_equal(left_out, same)
    for name, array in posterior.arrays().items():
        np.testing.assert_array_equal(array, another.arrays()[name])


@pytest.mark.parametrize("stages", [(1000,), (70, 110)])
def test_it_is_the_same_in_any_order_of_rows(monkeypatch, stages):
    """Landmarks by which curves are compared were every so many rows: bounds moved by .1."""
    rng = np.random.default_rng(6)
    rows, positive, weight, kernels = table(rng, 150, 3, wavy)
    groups = np.arange(150) // 2
    monkeypatch.setattr(composite_posterior_fit, "EXAMINED_ROWS", stages)
    posterior, left_out = fit_composite_posterior(rows, positive, weight, kernels, CPU, groups)
    order = rng.permutation(150)
    shuffled = rows[order], positive[order], weight, kernels, CPU, groups[order]
    another, of_shuffled = fit_composite_posterior(*shuffled)
    np.testing.assert_allclose(of_shuffled, left_out[order], rtol=1e-9)
    for name, array in posterior.arrays().items():
        np.testing.assert_array_equal(array, another.arrays()[name])


@pytest.mark.parametrize("stages", [(1000,), (70, 110)])
def test_swapped_classes_mirror_it(monkeypatch, stages):
    """Of tables that are looked at in stages other rows were drawn: bounds moved by .2."""
    rng = np.random.default_rng(7)
    rows, positive, weight, kernels = table(rng, 150, 3, wavy)
    monkeypatch.setattr(composite_posterior_fit, "EXAMINED_ROWS", stages)
    bounds = []
    for labels in (positive, ~positive):
        posterior, _ = fit_composite_posterior(rows, labels, weight, kernels, CPU)
        moments = posterior.moments(rows, kernels, CPU)
        bounds.append(of_mixture(moments, posterior.weight, 0.95))
    np.testing.assert_allclose(bounds[0], -bounds[1][:, ::-1], atol=1e-6)


@pytest.mark.parametrize(("n", "expected"), [(100, 1), (740, 1), (750, 2)])
def test_few_rows_are_left_to_one_thread(monkeypatch, n, expected):
    """Two took three times as long over 100 rows, of operations too small to share."""
    asked = []

    def stage(data, model, n_threads):
        asked.append(n_threads)
        raise InterruptedError

    rows, positive, weight, kernels = table(np.random.default_rng(0), n, 2, straight)
    monkeypatch.setattr(composite_posterior_fit, "Stage", stage)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(InterruptedError):
            fit_composite_posterior(rows, positive, weight, kernels, CPU)
    finally:
        torch.set_num_threads(before)
    assert asked == [min(expected, os.cpu_count())]


@pytest.mark.parametrize("evidence", [2e8, 7.5e35, np.inf, np.nan])
def test_factors_that_do_not_settle_win_nothing(monkeypatch, evidence):
    """Their evidence is any number; of 500 rows it was 7.5e35, and the fit ended in a KeyError."""
    rows, positive, weight, kernels = table(np.random.default_rng(3), 100, 2, wavy)
    real = composite_stage.attempt

    def diverging(blocks, *given):
        found = real(blocks, *given)
        _, columns = next(iter(blocks))
        return replace(found, evidence=evidence, settled=False) if columns.shape[1] > 7 else found

    monkeypatch.setattr(composite_stage, "attempt", diverging)
    posterior, _ = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    assert not posterior.family.any()


def test_many_rows_in_stages_and_blocks(one_link, monkeypatch):
    rng = np.random.default_rng(4)
    rows, positive, weight, kernels = table(rng, 150, 2, wavy)
    plain, _ = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    few = rows[:50], positive[:50], weight[:50], kernels, CPU
    with monkeypatch.context() as held:
        _, left_out = fit_composite_posterior(*few)
        held.setattr(composite_columns, "_HELD", 0)
        _, again = fit_composite_posterior(*few)
    np.testing.assert_allclose(again, left_out, atol=5e-4)
    monkeypatch.setattr(composite_posterior_fit, "EXAMINED_ROWS", (70, 110))
    narrowed, _ = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    new = rng.normal(size=(100, 2))
    wide, narrow = (
        expit(of_mixture(each.moments(new, kernels, CPU), each.weight, 0.95))
        for each in (narrowed, plain)
    )
    assert np.abs(wide - narrow).mean() < 0.04


@pytest.mark.parametrize("shape", [(60, 300), (120, 60)])
def test_wide_tables_say_that_they_know_little(rng, shape, monkeypatch):
    n, p = shape
    if p == 60:
        monkeypatch.setattr("bootprob.ensemble.uncertainty.straight._DIRECTIONS", 30)
        monkeypatch.setattr("bootprob.ensemble.uncertainty.straight._ALONE", 8)
    rows, positive, weight, kernels = table(rng, n, p, lambda X: X[:, :5].sum(axis=1))
    posterior, left_out = fit_composite_posterior(rows, positive, weight, kernels, CPU)
    assert np.isfinite(left_out).all()
    assert posterior.column_directions.shape[0] == p
    near, far = (widths(posterior, each, kernels).mean() for each in (rows, rng.normal(size=shape)))
    assert far > near
    assert far > 0.3


@pytest.mark.parametrize("n_numbers", [0, 1, 20, 290])
def test_wide_tables_of_columns_of_two_values(rng, n_numbers):
    rows = np.column_stack(
        [rng.gamma(1, 1, size=(60, n_numbers)), rng.choice([-1.0, 1.0], size=(60, 280))]
    )
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    positive = rng.uniform(size=60) < expit(rows[:, -3:].sum(axis=1))
    positive[:2] = True, False
    kernels = view_kernels(rows, np.ones(60))
    posterior, left_out = fit_composite_posterior(rows, positive, np.ones(60), kernels, CPU)
    assert np.isfinite(left_out).all()
    assert len(posterior.scored) == (rows.shape[1] if n_numbers > 280 else n_numbers)
    assert widths(posterior, rows, kernels).mean() > 0.3


UGLY = [
    "constant",
    "one column",
    "duplicated",
    "separable",
    "noise",
    "two rows a class",
    "outliers",
]


@pytest.mark.parametrize("case", UGLY)
def test_ugly_tables(rng, case):
    rows, positive, _, _ = table(rng, 4 if case == "two rows a class" else 60, 3, straight)
    positive[:2], positive[2:4] = True, False
    if case == "constant":
        rows[:, 1:] = 0
    elif case == "one column":
        rows = rows[:, :1]
    elif case == "duplicated":
        rows, positive = np.repeat(rows[:6], 10, axis=0), rng.uniform(size=60) < 0.5
        positive[:2] = True, False
    elif case == "separable":
        positive = rows[:, 0] > 0
    elif case == "noise":
        positive = rng.uniform(size=60) < 0.5
    elif case == "outliers":
        rows = rng.standard_cauchy(size=(60, 3)) ** 3
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    kernels = view_kernels(rows, np.ones(len(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior, left_out = fit_composite_posterior(
            rows, positive, np.ones(len(rows)), kernels, CPU
        )
    assert np.isfinite(left_out).all()
    assert (left_out[..., 1] > 0).all()
    far = np.full((1, rows.shape[1]), 1e3)
    assert np.isfinite(widths(posterior, np.vstack([rows, far]), kernels)).all()


def test_bent_logits(rng):
    logit = torch.from_numpy(np.sort(rng.normal(scale=5, size=200)))
    for alphas, levels in (
        ((0.0, 0.0), (0.0, 0.0)),
        ((-1.0, 0.3), (0.0, 0.0)),
        ((0.5, 0.0), (0.0, 0.0)),
        ((-0.4, -0.4), (0.0, 0.0)),
        ((0.0, 0.0), (0.1, 0.0)),
        ((-0.4, 0.0), (0.02, 0.3)),
    ):
        tails = (*alphas, *levels)
        found = bent(logit, tails)
        assert (found.diff() > 0).all()
        flipped = bent(-logit, (*alphas[::-1], *levels[::-1]))
        torch.testing.assert_close(flipped, -found)
        mean, deviation = bent_moments(logit, torch.ones_like(logit), tails).T
        ends = bent(logit + 1.959963984540054, tails)
        torch.testing.assert_close(mean + 1.959963984540054 * deviation, ends)
    torch.testing.assert_close(bent(logit, (-1.0, 0.0, 0.0, 0.0))[-1:], logit[-1:].log1p())
    missed = 0.05 + 0.65 * logit.sigmoid()
    torch.testing.assert_close(bent(logit, (0.0, 0.0, 0.3, 0.05)), missed.logit())
    assert bent(torch.tensor([-1e4], dtype=torch.float64), (0.0, 0.0, 0.3, 0.0)) < -9e3
    near = logit.abs().clamp_max(5)
    torch.testing.assert_close(bent(near, (0.5, 0.0, 0.0, 0.0)), (near / 2).expm1() * 2)


def test_slopes_that_vary_among_landmarks_of_next_to_nothing(rng):
    """What they are divided by does not vanish."""
    rows = torch.from_numpy(rng.normal(size=(20, 2)))
    views = learn_views(rows.numpy(), np.ones(20))
    for size in (1e-155, 0.0):
        landmarks = Landmarks(rows * size, views)
        for family in ("varying", "varying roughly", "interaction", "moderated"):
            curve = Curve(family, "columns", 0.5)
            for found in (landmarks.values, landmarks.diagonal):
                assert torch.isfinite(found(curve, landmarks.seen(rows))).all()
            assert torch.isfinite(landmarks.between(curve, *[landmarks.seen(rows)] * 2)).all()


@pytest.mark.parametrize("family", FAMILIES[1:])
@pytest.mark.parametrize("view", VIEWS)
def test_values_of_curves_make_kernels(rng, family, view):
    """On the landmarks, of which there are more than an additive kernel has knots, it is exact."""
    rows = torch.from_numpy(rng.permuted(np.tile(np.linspace(-2, 2, 5), (2, 8)), axis=1).T.copy())
    views = replace(
        learn_views(rows.numpy(), np.ones(40)),
        relevance=torch.tensor([0.5, 0.8], dtype=torch.float64),
        components=torch.tensor([[0.0, 0.5], [-1.0, 0.0]], dtype=torch.float64),
    )
    landmarks, curve = Landmarks(rows, views), Curve(family, view, 0.5)
    seen = landmarks.seen(rows)
    values = landmarks.values(curve, seen)
    own = KERNELS[family].own_values(curve.gamma, landmarks.of(curve))
    found = (values @ torch.linalg.pinv(own, hermitian=True, rtol=1e-10) @ values.T).diagonal()
    torch.testing.assert_close(found, landmarks.diagonal(curve, seen), rtol=1e-3, atol=1e-3)
