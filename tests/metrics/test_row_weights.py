"""Weights of any unit: metrics and their intervals do not know it."""

import numpy as np
import pytest

from bootprob.costs import CostMatrix, cost_of_rules
from bootprob.exceptions import DataError
from bootprob.metrics import (
    calibration_line,
    calibration_tests,
    class_metrics,
    metric_intervals,
    net_benefit,
    reliability_curve,
    subgroup_metrics,
)
from bootprob.metrics.class_intervals import class_metric_intervals
from bootprob.metrics.intervals import log_loss_difference
from bootprob.metrics.reliability import check_rows
from bootprob.metrics.row_weights import without_unit

N = 60


def _rows(rng):
    p = rng.uniform(0.02, 0.98, N)
    y = (rng.random(N) < p).astype(int)
    y[:4] = 0, 0, 1, 1
    return y, p, rng.uniform(0.5, 2, N)


def _bounds(found):
    return [(each.value, each.lower, each.upper) for each in found.values()]


MEASURED = {
    "metrics": lambda y, p, w: _bounds(metric_intervals(y, p, w)),
    "groups": lambda y, p, w: _bounds(metric_intervals(y, p, w, groups=np.arange(N) // 2)),
    "difference": lambda y, p, w: _bounds({"": log_loss_difference(y, p, p**2, w)}),
    "classes": lambda y, p, w: _bounds(class_metric_intervals(y, np.stack([1 - p, p], axis=1), w)),
    "errors": lambda y, p, w: [*class_metrics(y, np.stack([1 - p, p], axis=1), w).values()],
    "line": lambda y, p, w: _bounds(calibration_line(y, p, w)),
    "tests": lambda y, p, w: [each.p_value for each in calibration_tests(y, p, w).values()],
    "benefit": lambda y, p, w: net_benefit(y, p, [0.2, 0.5], w),
    "reliability": lambda y, p, w: reliability_curve(y, p, w).upper,
    "subgroups": lambda y, p, w: [
        bound
        for each in subgroup_metrics(y, p, np.arange(N) % 2, w).subgroups
        for bound in _bounds(each.numbers)
    ],
    "rules": lambda y, p, w: [
        (each.cost, each.lower, each.upper)
        for each in cost_of_rules(y, p, CostMatrix(1.0, 2.0), w).values()
    ],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e200, 1e-200])
@pytest.mark.parametrize("name", MEASURED)
def test_any_unit_gives_the_same(rng, name, unit):
    y, p, weights = _rows(rng)
    expected, found = (np.asarray(MEASURED[name](y, p, w)) for w in (weights, unit * weights))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", sorted({*MEASURED} - {"line", "errors"}))
def test_weights_are_far_apart_or_too_far(rng, name):
    """Where they can be computed with numbers are found, else it is said."""
    y, p, weights = _rows(rng)
    far = weights * 10.0 ** rng.choice([-60.0, 0.0, 60.0], N)
    assert np.isfinite(np.asarray(MEASURED[name](y, p, far))).all()
    with pytest.raises(DataError, match="further apart than can be computed with"):
        MEASURED[name](y, p, np.where(np.arange(N) % 2, 1e200, 1e-200))


def test_nothing_is_rounded():
    weights = np.array([1.0, 2.9, 0.3])
    assert np.array_equal(without_unit(weights), weights / 2)
    assert np.array_equal(without_unit(np.ones(3)), np.ones(3))
    assert np.array_equal(without_unit(np.full(3, 2.0**1023)), np.ones(3))  # their sum is none
    _, _, kept, _ = check_rows([0, 1, 1], [0.5] * 3, [2.0**1023, 0.0, 2.0**1022])
    assert np.array_equal(kept, [1.0, 0.5])
    found = class_metrics(np.array([0, 1, 1]), np.full((3, 2), 0.5), np.full(3, 2.0**1023))
    assert found["Brier score"][0] == pytest.approx(0.5)
