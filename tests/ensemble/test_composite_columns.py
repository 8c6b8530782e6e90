"""Columns of rows that a composite posterior looks at, and those that are left to chance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit

from bootprob.ensemble.uncertainty import composite_columns
from bootprob.ensemble.uncertainty.composite_columns import Columns
from bootprob.ensemble.uncertainty.composite_model import CURVED, LOGIT, Rest, Setting
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.link_tails import bent, slope_at
from stages import stage_of, stage_of_a_product

ROUGH, SMOOTH = Curve("laplacian", "columns", 0.5), Curve("rbf", "scores", 0.3, (1, 2))


@pytest.fixture
def stage(rng):
    return stage_of_a_product(rng, 300, 200)


@pytest.mark.parametrize("scale", [0.01, 0.5, 8.0])
def test_what_columns_do_not_say_is_missing_from_them(stage, scale):
    setting = Setting((ROUGH, SMOOTH), (0.4, 0.2), (scale, 2.0), LOGIT, Rest((SMOOTH,), (0.3,), 0))
    columns = Columns(stage.data, stage.model, setting.curves)
    which, precision = columns.of(setting)
    assert len(which) == columns.told(setting).sum() < sum(columns.widths)
    reached = torch.cat([part.square() @ (1 / precision) for _, part in columns.blocks(which)])
    of_intercept, first, second, *of_curves = stage.model.variances(setting)
    seen = stage.model.landmarks.seen(stage.data.rows)
    expected = first * seen["columns"].square().sum(1) + second * seen["scores"].square().sum(1)
    for variance, curve in zip(of_curves, setting.curves, strict=True):
        expected += variance * stage.model.landmarks.diagonal(curve, seen)
    torch.testing.assert_close(reached + columns.missing(setting), expected + of_intercept)


def test_columns_that_are_their_own_scores_are_in_either_linear_part(rng):
    rows = np.column_stack(
        [rng.normal(size=200), rng.choice([-1.0, 1.0], 200), rng.gamma(1, 1, 200)]
    )
    stage = stage_of(rows, rng.uniform(size=200) < 0.5, 50)
    columns = Columns(stage.data, stage.model, ())
    assert stage.model.straight.own_scores(3) == [1]
    for linear, expected in (
        ((0.4, 0.0), {1: 0.4, 2: 0.4, 3: 0.4}),
        ((0.0, 0.2), {2: 0.2, 4: 0.2, 5: 0.2}),
        ((0.4, 0.2), {1: 0.4, 2: 0.4, 3: 0.4, 4: 0.2, 5: 0.2}),
    ):
        setting = Setting((), linear, (), LOGIT)
        which, precision = columns.of(setting)
        found = dict(zip(which.tolist(), precision.rsqrt().tolist(), strict=True))
        assert found.pop(0) == pytest.approx(10)
        assert found == pytest.approx(expected)
        few = columns.few(replace(setting, inclusion=0.2))
        together = [which[each].tolist() for group in few.groups for each in group]
        assert sorted(together) == sorted(
            [at for at in pair if at in expected] for pair in ([1, 4], [2], [3, 5])
        )


@pytest.mark.parametrize("tails", [(-2.5, 0.6), (-0.3, -0.8), (0.25, 0.0)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
def test_a_logit_of_the_base_rate_is_one_under_any_link(rng, share, tails):
    rows, link = rng.normal(size=(400, 2)), (*tails, 0.0, 0.0)
    stage = stage_of(rows, np.arange(400) < 400 * share, 50)
    at = torch.linspace(-500, 500, 1_000_001, dtype=torch.float64)
    near = (bent(at, link) - stage.data.base).abs().argmin()
    measured = (bent(at[near + 1], link) - bent(at[near - 1], link)) / (at[near + 1] - at[near - 1])
    assert slope_at(stage.data.base, link) == pytest.approx(float(measured), rel=2e-3)
    settings = [Setting((ROUGH,), (0.2, 0.0), (2.0,), each) for each in (LOGIT, link)]
    plain, other = (np.array(stage.model.variances(each)) for each in settings)
    np.testing.assert_allclose(other * float(measured) ** 2, plain, rtol=5e-3)


@pytest.mark.parametrize("tails", [(-2.5, -2.5), (-0.8, 0.0), (0.0, -0.8), (0.6, 0.6)])
def test_a_link_gains_nothing_by_being_flat_where_most_labels_are_alike(tails):
    """Without columns that tell anything a flat one had nothing to lose by slopes."""
    rng = np.random.default_rng(0)
    stage = stage_of(rng.normal(size=(400, 8)), rng.uniform(size=400) < 0.8, 50)
    evidence = []
    for link in (LOGIT, (*tails, 0.0, 0.0)):
        found = stage.begin(Setting((), (0.2, 0.0), (), link))
        evidence.append(found.evidence - stage.model.log_prior(found.setting))
    assert evidence[1] < evidence[0] + 0.5


def test_directions_of_which_labels_say_nothing_make_no_difference(stage, monkeypatch):
    """To the evidence, beside another and by itself, and to what is known of the rows."""
    setting = Setting((ROUGH,), (0.4, 0.4), (CURVED[1],), LOGIT)

    def found():
        fresh = Stage(stage.data, stage.model)
        base = fresh.begin(setting)
        return base, {s: v for v, s in fresh.ranked(base, [setting.kernel])}

    few, beside_few = found()
    monkeypatch.setattr(composite_columns, "_CHANGED", 0.0)
    every, beside_every = found()
    assert len(few.found.mean) < 0.95 * len(every.found.mean)
    assert few.evidence == pytest.approx(every.evidence, abs=1.0)
    for near in beside_few.keys() & beside_every.keys():
        assert beside_few[near] == pytest.approx(beside_every[near], abs=1.0)
    deviation = every.found.left_out_variance.sqrt()
    apart = (few.found.left_out_mean - every.found.left_out_mean) / deviation
    assert apart.abs().max() < 0.2
    torch.testing.assert_close(few.found.left_out_variance.sqrt(), deviation, rtol=0.05, atol=0)


def test_nor_do_they_under_a_link_that_is_flat_at_the_base_rate(monkeypatch):
    """There σ is many of the logits that rows near one half tell much of."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 3))
    logit = 1.5 * rows[:, 0] + 1.5 * np.sin(2 * rows[:, 1]) - 2.5
    stage = stage_of(rows, rng.uniform(size=1000) < expit(logit), 256)
    curve = replace(ROUGH, gamma=1 / 8)
    setting = Setting((curve,), (0.4, 0.4), (CURVED[1],), (-0.8, -0.8, 0.0, 0.0))
    assert stage.model.unit(setting.tails) > 3
    few = stage.begin(setting)
    monkeypatch.setattr(composite_columns, "_CHANGED", 0.0)
    every = Stage(stage.data, stage.model).begin(setting)
    assert len(few.found.mean) < 0.95 * len(every.found.mean)
    assert few.evidence == pytest.approx(every.evidence, abs=0.05)
    spread = few.found.left_out_variance / every.found.left_out_variance
    assert spread.max() < 1.03
