"""Intervals against SciPy and against the printed formulas."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, norm

from bootprob import DataError, intervals
from bootprob.calibration import Sigmoid
from bootprob.ensemble.uncertainty.probability_intervals import logit_normal


def test_wald_is_formula_3_5():
    half = norm.ppf(0.975) * np.sqrt(0.25 / 500)
    bounds = intervals.wald(np.array([0.3, 0.0, 1.0]), 500, 0.95)
    np.testing.assert_allclose(
        bounds, [[0.3 - half, 0.3 + half], [-half, half], [1 - half, 1 + half]]
    )


def test_wald_is_clipped_on_request_only():
    clipped = intervals.wald(np.array([0.0, 1.0]), 100, 0.9, clip=True)
    assert clipped.min() == 0
    assert clipped.max() == 1


@pytest.mark.parametrize("votes", [0, 1, 37, 100])
def test_wilson_is_scipys(votes):
    expected = binomtest(votes, 100).proportion_ci(0.9, method="wilson")
    bounds = intervals.wilson(np.array([votes / 100]), 100, 0.9)[0]
    np.testing.assert_allclose(bounds, [expected.low, expected.high], atol=1e-12)


@pytest.mark.parametrize(("ours", "method"), [("basic", "basic"), ("percentile", "percentile")])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_bootstrap_intervals_are_scipys(rng, ours, method, level):
    data = rng.exponential(size=30)
    result = bootstrap((data,), np.mean, n_resamples=499, rng=1)
    replicates = result.bootstrap_distribution
    # SciPy's basic interval reflects at the statistic of the data, (3.6) at the replicates' mean:
    # shifting the data makes the two the same number.
    shifted = data + replicates.mean() - data.mean()
    expected = bootstrap(
        (shifted,), np.mean, n_resamples=0, bootstrap_result=result, method=method,
        confidence_level=level,
    ).confidence_interval  # fmt: skip
    bounds = getattr(intervals, ours)(replicates[None], level)[0]
    np.testing.assert_allclose(bounds, [expected.low, expected.high], rtol=1e-12)


def test_logit_normal_is_the_delta_method():
    sigmoid = Sigmoid(1.5, -0.2, np.array([[40.0, 3.0], [3.0, 20.0]]))
    score, variance = np.array([0.7]), np.array([0.04])
    g = np.array([0.7, 1.0])
    total = 1.5**2 * 0.04 + g @ np.linalg.inv(sigmoid.information) @ g
    expected = 1.5 * 0.7 - 0.2 + norm.ppf([0.05, 0.95]) * np.sqrt(total)
    bounds = logit_normal(score, variance, sigmoid, 0.9)[0]
    np.testing.assert_allclose(bounds, expected, rtol=1e-10)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, "0.95", None, True, float("nan"), 1 - 2**-53])
def test_impossible_levels_are_refused(level):
    with pytest.raises(DataError, match=r"level is .* give a number between 0 and 1"):
        intervals.check_level(level)


def test_bca_is_scipys(rng):
    """For the mean of a sample, whose jackknife influences give the acceleration."""
    data = rng.exponential(size=25)
    result = bootstrap((data,), np.mean, n_resamples=999, rng=1, method="BCa")
    replicates = result.bootstrap_distribution
    influence = data - data.mean()
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    bounds = intervals.bca(replicates[None], 0.95, np.array([acceleration]), data.mean()[None])[0]
    expected = [result.confidence_interval.low, result.confidence_interval.high]
    np.testing.assert_allclose(bounds, expected, atol=0.02 * np.ptp(expected))


def test_bca_without_bias_and_skewness_is_the_percentile_interval():
    replicates = np.arange(1001.0)[None]
    zero = np.zeros(1)
    np.testing.assert_allclose(
        intervals.bca(replicates, 0.9, zero), intervals.percentile(replicates, 0.9), atol=1e-6
    )
    far = intervals.bca(replicates, 0.9, zero, np.array([-5.0]))[0]  # all on one side
    assert 0 <= far[0] <= far[1] <= 1000


def test_bca_of_equal_replicates_is_not_upside_down(rng):
    replicates = np.repeat(rng.normal(size=(500, 1)), 5, axis=1)
    bounds = intervals.bca(replicates, 0.5, np.full(500, 0.002))
    np.testing.assert_array_equal(bounds, replicates[:, :2])


def test_studentised_has_the_width_of_the_mean(rng):
    replicates = rng.normal(size=(3, 4000))
    deviation = np.array([0.5, 2.0, 0.0])
    bounds = intervals.studentised(replicates, 0.95, deviation)
    width = np.diff(bounds)[:, 0] / (2 * 1.96)
    np.testing.assert_allclose(width, [0.5, 2.0, 1.0], rtol=0.1)  # 0 is no standard error
    np.testing.assert_array_equal(intervals.studentised(np.ones((1, 9)), 0.9, np.zeros(1)), 1.0)


def test_wilson_takes_counts_of_any_integer_type_and_stays_within_0_and_1():
    vote, n = np.array([0.9, 0.5, 0.0, 1.0]), np.array([100, 128, 10, 250])
    expected = intervals.wilson(vote, n, 0.95)
    for dtype in (np.uint8, np.int16, np.int32):
        np.testing.assert_allclose(intervals.wilson(vote, n.astype(dtype), 0.95), expected)
    for B in range(2, 600):
        bounds = intervals.wilson(np.array([0.0, 1.0]), B, 0.9)
        assert bounds.min() >= 0
        assert bounds.max() <= 1


def test_bounds_of_replicates_with_a_gap_are_gaps():
    replicates = np.random.default_rng(0).normal(10, 1, (2, 199))
    replicates[1, 3] = np.nan
    for bounds in (
        intervals.bca(replicates, 0.9, np.zeros(2)),
        intervals.percentile(replicates, 0.9),
        intervals.basic(replicates, 0.9),
    ):
        assert np.isfinite(bounds[0]).all()
        assert np.isnan(bounds[1]).all()


@pytest.mark.parametrize("level", [95, -0.5, 0, 1, np.nan])
def test_levels_lie_between_0_and_1(level):
    replicates, one = np.arange(50.0)[None], np.zeros(1)
    for asked in (
        lambda: intervals.percentile(replicates, level),
        lambda: intervals.basic(replicates, level),
        lambda: intervals.bca(replicates, level, one),
        lambda: intervals.studentised(replicates, level, one),
        lambda: intervals.wald(one, 10, level),
        lambda: intervals.wilson(one, 10, level),
        lambda: intervals.of_mixture(np.array([[[0.0, 1.0]]]), np.ones(1), level),
        lambda: intervals.student_quantile(level, 5),
    ):
        with pytest.raises(DataError, match="level is"):
            asked()


def test_intervals_of_votes_have_names():
    with pytest.raises(DataError, match="'wald' or 'wilson'"):
        intervals.of_votes(np.zeros(1), 10, 0.9, "normal")
