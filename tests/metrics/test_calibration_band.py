"""Calibration bands and tests: definitions in loops, numbers that others print, and chance."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, norm
from sklearn.isotonic import IsotonicRegression

from bootprob.exceptions import DataError
from bootprob.metrics import calibration_band, calibration_tests
from bootprob.metrics.calibration_bands import has_band
from r_random import RRandom


def in_loops(y, p, alpha, down, up):
    """Bounds at the values of p: of all intervals of values, rounded down for the upper bound."""
    lower, upper = dict.fromkeys(p, 0.0), dict.fromkeys(p, 1.0)
    k = len(set(up))
    for start in set(up):
        for end in set(up):
            if start <= end:
                rows = (up >= start) & (up <= end)
                bound = beta.ppf(alpha / (k * (k + 1)), y[rows].sum(), (1 - y[rows]).sum() + 1)
                if y[rows].sum():
                    last = p[up == end].max()
                    for x in p[p >= last]:
                        lower[x] = max(lower[x], bound)
    k = len(set(down))
    for start in set(down):
        for end in set(down):
            if start <= end:
                rows = (down >= start) & (down <= end)
                bound = beta.isf(alpha / (k * (k + 1)), y[rows].sum() + 1, (1 - y[rows]).sum())
                if (1 - y[rows]).sum():
                    first = p[down == start].min()
                    for x in p[p <= first]:
                        upper[x] = min(upper[x], bound)
    return np.array([lower[x] for x in p]), np.array([upper[x] for x in p])


@pytest.mark.parametrize("digits", [None, 1, 2])
@pytest.mark.parametrize("shape", [(0.3, 0.6), (3, 3), (0.2, 9)])
def test_band_is_that_of_all_intervals(rng, digits, shape):
    p = rng.beta(*shape, size=70)
    p[::4] = p[::4].round(1)
    y = (rng.random(70) < p**0.5).astype(int)
    band = calibration_band(y, p, level=0.9, digits=digits)
    scale = 10.0 ** (digits or 0)
    down, up = (p, p) if digits is None else (np.floor(p * scale), np.ceil(p * scale))
    for found, wanted in zip(band.at(p), in_loops(y, p, 0.1, down, up), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert band.n_rows == 70
    assert (np.diff(band.lower) >= 0).all()
    assert (np.diff(band.upper) >= 0).all()


def areas(band):
    """As calibrationband has them: stretches of 10,000 values that are not between the bounds."""
    values = np.linspace(0, 1, 10_000)
    lower, upper = band.at(values)
    edges = np.diff(((values < lower) | (values > upper)).astype(int), prepend=0, append=0)
    starts, ends = (values[np.flatnonzero(edges == side) - (side < 0)] for side in (1, -1))
    longest = sorted(zip(starts, ends, strict=True), key=lambda area: area[0] - area[1])
    return [tuple(float(f"{end:.3g}") for end in area) for area in longest]


def test_areas_printed_in_the_documentation_of_calibrationband():
    def draw(prepare):
        random = RRandom(123)
        x = prepare(random.runif(10_000))
        return random.rbinom(1 / (1 + ((1 / x * (1 - x)) ** 1.8))), x

    readme = areas(calibration_band(*draw(lambda x: x), digits=3))
    assert readme[:3] == [(0.0396, 0.299), (0.693, 0.951), (0.0389, 0.0393)]
    assert len(readme) == 5
    summary = areas(calibration_band(*draw(np.sort), digits=3))
    assert summary[:3] == [(0.76, 0.967), (0.0724, 0.222), (0.744, 0.746)]
    assert len(summary) == 11


def test_miscalibrated_are_the_values_outside_the_band(rng):
    p = rng.random(400)
    band = calibration_band(rng.random(400) < p**3, p)
    assert not band.contains_diagonal
    values = rng.random(5000)
    lower, upper = band.at(values)
    outside = [any(a < v < b for a, b in band.miscalibrated) for v in values]
    np.testing.assert_array_equal(outside, (values < lower) | (values > upper))
    assert all(a < b for a, b in band.miscalibrated)
    assert all(
        a[1] < b[0] for a, b in zip(band.miscalibrated, band.miscalibrated[1:], strict=False)
    )


def test_band_surrounds_the_isotonic_regression_unless_it_crosses(rng):
    p = rng.random(500)
    y = rng.random(500) < p
    band = calibration_band(y, p, digits=None)
    lower, upper = band.at(band.stated)
    assert not band.crosses
    assert (lower <= band.observed).all()
    assert (band.observed <= upper).all()
    full = IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(p)
    np.testing.assert_allclose(np.unique(band.observed.round(12)), np.unique(full.round(12)))
    for level in np.unique(band.observed):
        ends = p[np.abs(full - level) < 1e-9]
        steps = band.stated[band.observed == level]
        assert (steps[0], steps[-1]) == (ends.min(), ends.max())
    falling = calibration_band(rng.random(5000) < 1 - p.repeat(10), p.repeat(10))
    assert falling.crosses


def test_digits_are_the_fewest_that_leave_twenty_values(rng):
    p = rng.random(1000)
    y = rng.random(1000) < p
    assert calibration_band(y, p).digits == 2
    assert calibration_band(y, p / 50).digits == 3
    assert calibration_band(y, p / 1000).digits == 4
    assert calibration_band(y, p, digits=None).digits is None


def test_certain_labels_and_single_values():
    band = calibration_band([1, 1, 1], [0.5, 0.5, 0.5])
    assert band.probability.tolist() == [0.0, 0.5, 1.0]
    assert band.upper.tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(band.lower, [0, 0.025 ** (1 / 3), 0.025 ** (1 / 3)])
    assert calibration_band([0, 1], [0.0, 1.0]).contains_diagonal
    many = calibration_band(np.repeat([0, 1], 500), np.repeat([0.0, 1.0], 500))
    assert many.at([0.0, 1.0])[1].tolist() == pytest.approx([1 - (0.05 / 6) ** (1 / 500), 1.0])


def test_weights_groups_and_options():
    y, p = [0, 1, 0, 1], [0.1, 0.6, 0.3, 0.8]
    wanted = calibration_band(y[:3], p[:3])
    found = calibration_band(y, p, [2, 2, 2, 0], groups=[0, 1, 2, 2])
    np.testing.assert_array_equal(found.lower, wanted.lower)
    for options in ({"weights": [1, 2, 1, 1]}, {"groups": [0, 0, 1, 2]}):
        with pytest.raises(DataError, match="independent rows that count the same"):
            calibration_band(y, p, **options)
    for digits in (0, 16, 2.5, "two", True):
        with pytest.raises(DataError, match="digits is"):
            calibration_band(y, p, digits=digits)
    assert has_band(np.array([0.0, 3.0, 3.0]), None)
    assert not has_band(np.array([1.0, 3.0]), None)


@pytest.mark.parametrize("given", [1.01, -0.5, [0.2, np.nan], np.inf])
def test_a_band_is_asked_of_probabilities(given):
    p = np.repeat([0.2, 0.7], 50)
    band = calibration_band(np.random.default_rng(0).random(100) < p, p)
    lower, upper = band.at([0.0, 0.3, 1.0])
    assert (lower <= upper).all()
    with pytest.raises(DataError, match="between 0 and 1, not of"):
        band.at(given)


class TestCalibrationTests:
    def test_statistics_in_loops(self, rng):
        p, w = rng.beta(0.6, 0.6, 80).round(1), rng.exponential(size=80)
        y = (rng.random(80) < p).astype(int)
        tests = calibration_tests(y, p, w)
        pairs = list(zip(w, y, p, strict=True))
        z = sum(a * (b - c) * (1 - 2 * c) for a, b, c in pairs)
        z /= sum(a**2 * (1 - 2 * c) ** 2 * c * (1 - c) for a, b, c in pairs) ** 0.5
        deviation = sum(a**2 * c * (1 - c) for a, b, c in pairs) ** 0.5
        sums = [0.0] + [
            sum(a * (b - c) for a, b, c in pairs if c <= value) for value in sorted(set(p))
        ]
        wanted = {
            "spiegelhalter": z,
            "kolmogorov-smirnov": max(map(abs, sums)) / deviation,
            "kuiper": (max(sums) - min(sums)) / deviation,
        }
        for name, value in wanted.items():
            assert tests[name].statistic == pytest.approx(value, abs=1e-10)
            assert tests[name].name == name
        assert tests["spiegelhalter"].p_value == pytest.approx(2 * norm.sf(abs(z)))

    def test_p_values_are_those_of_a_brownian_motion(self):
        """Of a fine walk, whose maximum and range are lower by no more than 0.6 of a step each."""
        rng = np.random.default_rng(5)
        steps = 2000
        walk = np.cumsum(rng.normal(size=(4000, steps)), axis=1) / np.sqrt(steps)
        largest = np.abs(walk).max(axis=1)
        span = np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)
        y, p = np.arange(steps) % 2, np.full(steps, 0.5)
        for name, drawn, overshoot in (
            ("kolmogorov-smirnov", largest, 0.5826), ("kuiper", span, 2 * 0.5826),
        ):  # fmt: skip
            for x in (0.7, 1.0, 1.6, 2.2, 2.8):
                found = p_value_at(name, x)
                seen = np.mean(drawn + overshoot / np.sqrt(steps) > x)
                assert abs(found - seen) < 5 * 0.5 / np.sqrt(4000), (name, x)
        assert calibration_tests(y, p)["kuiper"].p_value == 1

    def test_values_of_tables(self):
        """Of the largest absolute value: the square roots of P. Billingsley's (11.13) at 95 %."""
        assert p_value_at("kolmogorov-smirnov", 2.2414) == pytest.approx(0.05, abs=1e-5)
        assert p_value_at("kolmogorov-smirnov", 2.8070) == pytest.approx(0.01, abs=1e-5)

    def test_power_and_direction(self):
        rng = np.random.default_rng(0)
        p = rng.random(2000)
        extreme = calibration_tests(rng.random(2000) < expit(logit(p) / 1.5), p)
        assert extreme["spiegelhalter"].statistic > 3
        high = calibration_tests(rng.random(2000) < expit(logit(p) - 0.4), p)
        assert high["kolmogorov-smirnov"].p_value < 1e-3

    def test_certain_rows(self):
        certain = [0.0, 1.0, 1.0]
        right, wrong = calibration_tests([0, 1, 1], certain), calibration_tests([0, 0, 1], certain)
        for name in right:
            assert (right[name].statistic, right[name].p_value) == (0, 1)
            assert (abs(wrong[name].statistic), wrong[name].p_value) == (np.inf, 0)
        halves = calibration_tests([0, 1, 1], [0.5, 0.5, 0.5])
        assert (halves["spiegelhalter"].statistic, halves["spiegelhalter"].p_value) == (0, 1)

    def test_groups_are_refused(self):
        with pytest.raises(DataError, match="rows belong together"):
            calibration_tests([0, 1, 1], [0.2, 0.5, 0.5], groups=[0, 0, 1])


def p_value_at(name, statistic):
    """Of a walk of one row whose statistic is this."""
    p = 1 / (1 + statistic**2)
    return calibration_tests([1], [p])[name].p_value


def test_probabilities_of_as_few_digits_are_not_rounded(rng):
    """.29 · 100 is a hair below 29, and .07 · 100 above 7."""
    p = np.round(rng.uniform(size=200), 2)
    y = (rng.uniform(size=200) < p).astype(int)
    own = np.unique(p)
    rounded, exact = (calibration_band(y, p, digits=d).at(own) for d in (2, None))
    np.testing.assert_allclose(rounded, exact, atol=1e-12)
