"""Columns of rows that a composite posterior looks at, and those that are left to chance."""

import pytest
import torch

from bootprob.ensemble.uncertainty import composite_columns
from bootprob.ensemble.uncertainty.composite_columns import Columns
from bootprob.ensemble.uncertainty.composite_model import CURVED, LOGIT, Rest, Setting
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Curve
from stages import stage_of_a_product

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
    of_intercept, first, second, *of_curves = setting.variances
    seen = stage.model.landmarks.seen(stage.data.rows)
    expected = first * seen["columns"].square().sum(1) + second * seen["scores"].square().sum(1)
    for variance, curve in zip(of_curves, setting.curves, strict=True):
        expected += variance * stage.model.landmarks.diagonal(curve, seen)
    torch.testing.assert_close(reached + columns.missing(setting), expected + of_intercept)


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
