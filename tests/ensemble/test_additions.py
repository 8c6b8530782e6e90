"""Curves that are added to a composite posterior: what the evidence gains, sums, and rests."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit

from bootprob.ensemble.uncertainty import composite_columns
from bootprob.ensemble.uncertainty.additions import Added
from bootprob.ensemble.uncertainty.composite_columns import Columns
from bootprob.ensemble.uncertainty.composite_model import (
    CURVED,
    LOGIT,
    Rest,
    Setting,
)
from bootprob.ensemble.uncertainty.composite_posterior_fit import fit_composite_posterior
from bootprob.ensemble.uncertainty.composite_settings import kind_of
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.evidence_beside import EvidenceBeside
from bootprob.ensemble.uncertainty.expectation_propagation import Sites
from bootprob.ensemble.uncertainty.link_tails import bent
from bootprob.ensemble.uncertainty.masses import Masses
from bootprob.intervals import of_mixture
from bootprob.preparation.views import view_kernels
from stages import stage_of, stage_of_a_product

CPU = torch.device("cpu")


@pytest.fixture
def stage(rng):
    return stage_of_a_product(rng, 80, 80)


@pytest.mark.parametrize("number", [0, 1])
def test_gains_are_differences_of_the_logarithm_of_the_mass(stage, number):
    """Beside linear parts, and beside a curve; of a curve that landmarks know exactly."""
    base, curve = stage.straight(), Curve("quadratic", "columns", 0.0, (1, 2))
    if number:
        setting = replace(base.setting, kernel=(Curve("quadratic", "scores", 0.0, (0, 3)),))
        base = stage.add(replace(setting, scales=(1.0,)), base.found.sites)
    gains = stage.additions(base).gains(curve)
    assert base.columns.missing(base.setting) is None
    which, precision = base.columns.of(base.setting)
    [(block, known)] = base.columns.blocks(which)
    seen = stage.model.probes.seen(stage.data.rows)
    more = stage.model.probes.values(curve, seen) @ stage.model.probes.basis(curve)
    blocks = [(block, torch.cat([known, more], dim=1))]
    sites = base.found.sites
    [without] = Masses.of([(block, known)], sites, None).beside(precision[None])
    of_curve = 1 / torch.tensor(CURVED, dtype=torch.float64).square()
    every = torch.cat([precision.expand(6, -1), of_curve[:, None].expand(-1, more.shape[1])], dim=1)
    masses = Masses.of(blocks, sites, None).beside(every)
    np.testing.assert_allclose(gains, np.subtract(masses, without))


def test_no_curve_gains_what_a_link_with_heavy_tails_does_not_expect():
    """There a label far from its logit has a factor of no precision, which nothing bounds."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    rows = np.column_stack([rows, np.arange(300) < 10, np.arange(300) % 50 == 0])
    rows[0, 0] = 2
    positive = rng.uniform(size=300) < expit(4 * rows[:, 0])
    positive[0] = False
    stage = stage_of((rows - rows.mean(0)) / rows.std(0), positive, 80)
    straight = stage.straight()
    heavy = replace(straight.setting, linear=(0.4, 0.0), tails=(-2.5, -2.5, 0.0, 0.0))
    base = stage.add(heavy, straight.found.sites)
    additions = stage.additions(base)
    [probability] = bent(additions.logits[:1], heavy.tails).neg().sigmoid().tolist()
    gains = additions.gains(Curve("product", "columns", 0.0, (3, 4)))
    assert probability < 0.5
    assert base.found.sites.precision[0] < 1e-9
    assert gains.max() < (1 / probability - 1) / 2


def test_a_mass_is_the_determinant_and_the_square_of_what_factors_say(rng):
    columns, shift = torch.from_numpy(rng.normal(size=(9, 3))), torch.from_numpy(rng.normal(size=9))
    tau, noise = torch.from_numpy(rng.uniform(0.1, 2, size=(2, 9)))
    precisions = torch.from_numpy(rng.uniform(0.1, 5, size=(4, 3)))
    found = Masses.of([(slice(0, 9), columns)], Sites(tau, shift), noise).beside(precisions)
    for got, precision in zip(found, precisions, strict=True):
        covariance = columns @ torch.diag(1 / precision) @ columns.T + torch.diag(noise)
        inner = torch.eye(9, dtype=torch.float64) + covariance * tau
        expected = shift @ torch.linalg.solve(inner, covariance) @ shift / 2
        assert got == pytest.approx(float(expected - torch.logdet(inner) / 2))


def test_a_mass_from_rows_is_that_from_columns(rng, monkeypatch):
    """Of settings of a wide table: straight, with a curve that landmarks do not reach, and two."""
    rows = rng.normal(size=(300, 240))
    rows[:, :30] = np.sign(rows[:, :30])  # their own scores
    positive, weight = rng.uniform(size=300) < 0.5, rng.uniform(0.5, 1.5, size=300)
    stage = stage_of(rows, positive, 40, weight=weight)
    data = stage.data
    every, few = Curve("rbf", "columns", 0.01), Curve("quadratic", "scores", 0.0, (0, 3))
    settings = [
        Setting(kernel, linear, scales, LOGIT)
        for kernel, scales in (
            ((), ()),
            ((every,), (2.0,)),
            ((every,), (0.5,)),
            ((every, few), (2.0, 1.0)),
        )
        for linear in ((0.1, 0.2), (0.4, 0.0), (0.0, 0.3))
        if (linear[0] and linear[1]) or bool(kernel) == bool(linear[0])
    ]
    start = Sites.beginning(data.label, data.weight)
    known = {each.curves: Columns(data, stage.model, each.curves) for each in settings}
    assert all(columns.are_many for columns in known.values())
    assert known[settings[-1].curves].missing(settings[-1]) is not None
    base = SimpleNamespace(setting=settings[0], found=SimpleNamespace(sites=start), evidence=0.0)

    def values():
        return EvidenceBeside(base, known, stage._log_prior).of(settings)

    found = values()
    monkeypatch.setattr(composite_columns, "_CHANGED", 0.0)
    monkeypatch.setattr(Columns, "are_many", False)
    expected = values()
    assert found.keys() == expected.keys()
    for setting, value in expected.items():
        assert found[setting] == pytest.approx(value, abs=1e-6)


def test_a_rest_has_curves_by_their_probability(stage, monkeypatch):
    additions, few = stage.additions(stage.straight()), Curve("quadratic", "columns", 0.0, (1, 2))
    likely = [Added(0.0, few, 2.0), Added(np.log(1 / 3), few, 1.0), Added(-9.0, few, 1.0)]
    monkeypatch.setattr(additions, "likely", lambda: likely)
    rest = additions.near()
    assert rest.kernel == (few, few)
    np.testing.assert_allclose(np.square(rest.scales), [2, 1 / 4])
    monkeypatch.setattr(additions, "likely", lambda: likely[2:])
    assert additions.near() is None


def test_no_curve_of_a_rest_says_more_than_ten_logits_of_any_row(stage, monkeypatch):
    """Products of a few rare rows would, and their factors would not settle."""
    additions, few = stage.additions(stage.straight()), Curve("product", "columns", 0.0, (1, 2))
    monkeypatch.setattr(additions, "likely", lambda: [Added(30.0, few, 1e3)])
    [scale] = additions.near().scales
    landmarks = stage.model.landmarks
    variances = landmarks.diagonal(few, landmarks.seen(stage.data.rows, ("columns", "scores")))
    assert scale * float(variances.max().sqrt()) == pytest.approx(10)


def test_rests_leave_kernels_that_are_there(stage):
    """A curve in all columns may be a rest of the straight, and a kernel of its own."""
    straight = stage.straight()
    found = stage.add_each(
        (replace(straight.setting, kernel=(each,), scales=(1.0,)), straight.found.sites)
        for each in stage.model.of_all
    )
    assert stage.with_rests(straight)
    for each in found:
        assert stage.ranked(each, [()])


def test_kinds_of_settings_and_what_would_be_likely(stage):
    straight = stage.straight()
    few = Curve("quadratic", "columns", 0.0, (1, 2))
    rest, kernel = Rest((few,), (0.1,), 0.0), {"kernel": (few,), "scales": (0.1,)}
    others = [{"rest": rest}, kernel, kernel | {"rest": replace(rest, scales=(0.2,))}]
    found = stage.add_each(
        (replace(straight.setting, **each), straight.found.sites) for each in others
    )
    kinds = sorted(stage.best_of_each(kind_of).items())
    assert [kind for kind, _ in kinds] == [*product((False, True), repeat=2)]
    assert [best for _, best in kinds[1:]] == found
    best, other = stage.likely()[0], replace(straight.setting, inclusion=0.05)
    assert stage.would_be_likely(other, best.evidence - 1)
    assert not stage.would_be_likely(other, best.evidence - 9)
    for k in range(16):  # no more that are straight are kept
        linear = tuple(deviation * (1 + k / 1000) for deviation in straight.setting.linear)
        stage.add(replace(straight.setting, linear=linear), straight.found.sites)
    assert not stage.would_be_likely(other, straight.evidence - 1)
    assert stage.would_be_likely(other, best.evidence + 1)


def test_kernels_as_likely_as_the_best_get_a_rest_where_it_has_one(one_link):
    """Opposite slopes of two clusters, which several kernels say nearly as well."""
    rng = np.random.default_rng(1000)
    second = rng.uniform(size=500) < 0.5
    rows = rng.normal(size=(500, 4))
    rows[:, :2] += np.where(second, 2.5, -2.5)[:, None]
    positive = rng.uniform(size=500) < expit(np.where(second, 1.5, -1.5) * rows[:, 2])
    kernels = view_kernels(rows, np.ones(500))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(500), kernels, CPU)
    parts = [posterior.curves(part) for part in range(len(posterior.weight))]
    assert sum(len(curves) > 2 for curves in parts) > 2


def test_the_curves_of_all_columns_share_their_odds(stage):
    """The likeliest one's evidence, with its odds, is that of all together, at each σ."""
    base = stage.straight()
    rests = [s.rest for _, s in stage.with_rests(base) if not s.rest.kernel[0].columns]
    rests = list(dict.fromkeys(rests))
    assert [rest.scales for rest in rests] == [(scale,) for scale in CURVED[:3]]
    every = {rest.kernel for rest in rests}
    assert len(every) == 1
    kernels = [(), *((each,) for each in stage.model.of_all)]
    columns = {each: Columns(stage.data, stage.model, each) for each in kernels}
    beside = EvidenceBeside(base, columns, stage._log_prior)
    for rest in rests:
        settings = [
            replace(base.setting, rest=Rest((each,), rest.scales, 0.0))
            for each in stage.model.of_all
        ]
        values = list(beside.of(settings).values())
        [own] = beside.of([replace(base.setting, rest=rest)]).values()
        together = np.logaddexp.reduce(values) - np.log(len(values)) + np.log(0.1 / 3)
        assert own == pytest.approx(together)


def test_terms_in_different_columns_are_a_sum(one_link):
    rng, n, p = np.random.default_rng(4), 700, 8
    rows, new = rng.normal(size=(n, p)), rng.normal(size=(400, p))

    def logit(rows):
        return 1.5 * rows[:, 0] * rows[:, 1] + 2 * np.abs(rows[:, 5]) - 1.5

    positive = rng.uniform(size=n) < expit(logit(rows))
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    of_terms = [
        {(0, 1), (5,)} <= {curve.columns for curve in posterior.curves(part)}
        for part in range(len(posterior.weight))
    ]
    assert posterior.weight[of_terms].sum() > 0.5
    bounds = expit(of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95))
    truth = expit(logit(new))
    assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.8


def test_a_slope_that_jumps_with_another_column_is_found(one_link):
    rng, n, p = np.random.default_rng(6), 800, 5
    rows, new = rng.normal(size=(n, p)), rng.normal(size=(400, p))

    def logit(rows):
        return np.where(rows[:, 0] > 0.5, 2.0, 0.0) * rows[:, 1] + 0.5 * rows[:, 2]

    positive = rng.uniform(size=n) < expit(logit(rows))
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    varying = [
        any(each.family.startswith("varying") for each in posterior.curves(part))
        for part in range(len(posterior.weight))
    ]
    assert posterior.weight[varying].sum() > 0.5
    bounds = expit(of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95))
    truth = expit(logit(new))
    assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.9


def test_slopes_that_all_vary_with_one_column_are_found(one_link):
    """Two turn round with it, and two more count the less, the larger it is."""
    rng, n, p = np.random.default_rng(3), 600, 6
    rows, new = rng.normal(size=(n, p)), rng.normal(size=(400, p))

    def logit(rows):
        less = 1 - np.tanh(rows[:, 4])
        slopes = [2 * np.sin(rows[:, 4]), 1.5 * np.cos(rows[:, 4]), less, -less]
        return (rows[:, :4] * np.column_stack(slopes)).sum(axis=1)

    positive = rng.uniform(size=n) < expit(logit(rows))
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    found = [
        any((each.family, each.columns) == ("moderated", (4,)) for each in posterior.curves(part))
        for part in range(len(posterior.weight))
    ]
    assert posterior.weight[found].sum() > 0.9
    bounds = expit(of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95))
    truth = expit(logit(new))
    assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.9


def test_what_jumps_with_two_columns_together_is_an_interaction():
    """Slopes that jump are nearly as likely, stood for it before, and were too sure."""
    rng, n, p = np.random.default_rng(7), 600, 4
    rows, new = rng.normal(size=(n, p)), rng.normal(size=(400, p))
    positive = rng.uniform(size=n) < expit(2 * np.sign(rows[:, 0] * rows[:, 1]))
    kernels = view_kernels(rows, np.ones(n))
    posterior, _ = fit_composite_posterior(rows, positive, np.ones(n), kernels, CPU)
    found = [
        any(each.family == "interaction" for each in posterior.curves(part))
        for part in range(len(posterior.weight))
    ]
    assert posterior.weight[found].sum() > 0.5
    bounds = of_mixture(posterior.moments(new, kernels, CPU), posterior.weight, 0.95)
    truth = 2 * np.sign(new[:, 0] * new[:, 1])
    assert ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean() > 0.9


@pytest.mark.parametrize("n", [7, 12, 40])
def test_slopes_vary_where_there_are_rows_enough_for_knots(rng, n):
    rows = rng.normal(size=(n, 5))
    model = stage_of(rows, np.arange(n) % 2 > 0, n).model
    for columns in ((0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)):
        found = {each.family for each in model.among(columns, model.of_columns)}
        for family in ("varying", "interaction"):
            assert (family in found) == (1 < len(columns) <= 4 and n >= 4 * len(columns))
        assert ("moderated" in found) == (len(columns) == 1)
        for curve in model.among(columns, model.of_columns):
            assert model.landmarks.basis(curve).numel()


def test_prior_odds_of_sums_multiply_to_that_of_all_orders(stage):
    """After a curve in all columns the first of few is the first, and nothing is counted twice."""
    model, every = stage.model, stage.model.curved[0]
    few = [Curve("quadratic", "columns", 0.0, (k,)) for k in range(3)]

    def prior(*kernel):
        scales = (1.0,) * len(kernel)
        return model.log_prior(replace(stage.straight().setting, kernel=kernel, scales=scales))

    of_one = np.log(1 / 2 / 2 / 4 / 3) + model.log_share(1.0)  # one more, one column, of 4, of 3
    assert prior(every, few[0]) - prior(every) == pytest.approx(of_one)
    assert prior(every, *few[:2]) - prior(every, few[0]) == pytest.approx(of_one + np.log(2))
    assert prior(*few) - prior(*few[:2]) == pytest.approx(of_one + np.log(3))
    assert (0.2, 0.0) not in model.linear((every,))


def test_a_sum_has_the_curves_that_go_best_with_the_others():
    """A wave across two columns beside a bend: the first curve that is found is too smooth."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 4))
    logit = 3 * np.sin(2 * (rows[:, 0] + rows[:, 1])) + np.square(rows[:, 2]) - 1
    positive = rng.uniform(size=800) < expit(logit)
    stage = stage_of(rows, positive, 256)
    found = stage.grown(stage.straight())
    [wave] = [curve for curve in found.setting.kernel if {0, 1} <= {*curve.columns}]
    assert wave not in stage.model.among(wave.columns, stage.model.plain)
    pairs = zip(found.setting.kernel, found.setting.scales, strict=True)
    others = [pair for pair in pairs if pair[0] != wave]
    for plain in stage.model.among(wave.columns, stage.model.plain):
        for scale in CURVED:
            kernel, scales = zip(*sorted([*others, (plain, scale)]), strict=True)
            setting = replace(found.setting, kernel=kernel, scales=scales)
            assert stage.add(setting, found.found.sites).evidence < found.evidence
