"""Stability of predictions: pminternal's definitions in loops, on tables of its documentation.

R is not needed: the tables are simulated with R's random numbers.
"""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bootprob.exceptions import DataError
from bootprob.metrics import (
    MetricInterval,
    calibration_line,
    effective_sample_size,
    net_benefit,
    stability,
)
from bootprob.metrics.logistic_calibration import logistic_line, spline_curve
from r_random import RRandom


def regression(columns, y, at):
    """Probabilities at rows by an unpenalised logistic regression, as of R's glm."""
    design, beta = np.column_stack([np.ones(len(y)), columns]), np.zeros(columns.shape[1] + 1)
    for _ in range(30):
        p = expit(design @ beta)
        beta += np.linalg.solve((design.T * (p * (1 - p))) @ design, design.T @ (y - p))
    return expit(np.column_stack([np.ones(len(at)), at]) @ beta)


def bootstrapped(random, columns, y, n_replicates):
    """The model and its replicates on all rows: pminternal's get_stability of a glm."""
    drawn = [random.sample(len(y)) for _ in range(n_replicates)]
    replicates = [regression(columns[rows], y[rows], columns) for rows in drawn]
    return regression(columns, y, columns), np.array(replicates)


@pytest.fixture(scope="module")
def documented():
    """The table of the examples of prediction_stability and the others: set.seed(456), B = 10."""
    random = RRandom(456)
    x1, x2 = random.rnorm(2000), random.rnorm(2000)
    y = random.rbinom(expit(-2 + x1 + x2 - 0.3 * x1 * x2))
    assert y.mean() == 0.1985  # as printed there
    p, replicates = bootstrapped(random, np.column_stack([x1, x2]), y, 10)
    return y, p, replicates, stability(y, p, replicates, threshold=0.2)


def test_r_draws_what_r_draws():
    np.testing.assert_allclose(RRandom(42).runif(3), [0.914806, 0.9370754, 0.2861395], atol=5e-8)
    np.testing.assert_allclose(RRandom(123).rnorm(3), [-0.56047565, -0.23017749, 1.55870831])
    assert RRandom(123).sample(10)[:8].tolist() == [2, 2, 9, 1, 5, 4, 3, 5]


def test_numbers_printed_in_the_readme_of_pminternal():
    """Optimism is what the bootstrap models say of their own samples less of the whole table."""
    random = RRandom(2345)
    columns = random.rnorm(8000).reshape(10, 800).T
    y = random.rbinom(expit(-1 + columns[:, :5].sum(axis=1)))
    p, replicates = bootstrapped(random, columns, y, 100)
    found = stability(y, p, replicates)
    assert round(float(np.mean((y - p) ** 2)), 4) == 0.1423
    assert (round(found.intercept, 4), round(found.slope, 4)) == (0.0, 1.0)
    assert round(float(-found.intercepts.mean()), 4) == 0.0175
    assert round(float(1 - found.slopes.mean()), 4) == 0.0529


class TestDefinitions:
    def test_rows(self, documented):
        _, p, replicates, found = documented
        errors, instability, lower, upper = [], [], [], []
        for i in range(len(p)):
            own = [float(each[i]) for each in replicates]
            errors.append(sum(abs(p[i] - q) for q in own) / len(own))
            same = [(q > 0.2) == (p[i] > 0.2) for q in own]
            instability.append(1 - sum(same) / len(same))
            ordered = sorted(own)  # R's quantile of type 7
            for share, into in ((0.025, lower), (0.975, upper)):
                place = (len(own) - 1) * share
                low = int(place)
                into.append(ordered[low] + (place - low) * (ordered[low + 1] - ordered[low]))
        for mine, wanted in (
            (found.absolute_error, errors),
            (found.classification_instability, instability),
            (found.interval[:, 0], lower),
            (found.interval[:, 1], upper),
        ):
            np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-12)
        assert found.mean_absolute_error == pytest.approx(sum(errors) / len(p), abs=1e-12)
        expected = sum(instability) / len(p)
        assert found.mean_classification_instability == pytest.approx(expected, abs=1e-12)
        assert 0 < expected < 0.1

    def test_decision_curves(self, documented):
        y, p, replicates, found = documented
        for mine, own in zip(
            (found.net_benefit, *found.net_benefits, found.net_benefit_of_all),
            (p, *replicates, np.ones(len(y))),
            strict=True,
        ):
            for k, t in enumerate(found.thresholds):
                true = sum(1 for a, b in zip(own, y, strict=True) if a >= t and b == 1)
                false = sum(1 for a, b in zip(own, y, strict=True) if a >= t and b == 0)
                wanted = true / len(y) - t / (1 - t) * false / len(y)
                assert mine[k] == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(
            found.net_benefit_band, np.quantile(found.net_benefits, [0.025, 0.975], axis=0).T
        )

    def test_calibration(self, documented):
        """By scikit-learn's logistic regression, of the lines and of Hmisc's spline basis."""
        y, p, replicates, found = documented
        lines = zip(found.slopes, found.intercepts, found.in_the_larges, strict=True)
        own = [(found.slope, found.intercept, found.in_the_large), *lines]
        exact = {"C": np.inf, "tol": 1e-14, "max_iter": 500, "solver": "newton-cholesky"}
        for q, mine, curve in zip((p, *replicates), own, (found.curve, *found.curves), strict=True):
            x = logit(q)
            line = LogisticRegression(**exact).fit(x[:, None], y)
            wanted = [line.coef_[0, 0], line.intercept_[0]]
            np.testing.assert_allclose(mine[:2], wanted, rtol=0, atol=1e-9)
            # the score of the intercept alone is 0
            assert abs((y - expit(x + mine[2])).sum()) < 1e-9
            knots = [float(np.quantile(x, s)) for s in (0.05, 0.275, 0.5, 0.725, 0.95)]
            at = np.linspace(q.min(), q.max(), 100)
            fitted = LogisticRegression(**exact).fit(hmisc(x, knots), y)
            np.testing.assert_allclose(curve.probability, at, rtol=0, atol=1e-15)
            expected = fitted.predict_proba(hmisc(logit(at), knots))[:, 1]
            np.testing.assert_allclose(curve.observed, expected, rtol=0, atol=1e-9)

    def test_effective_sample_size(self, documented):
        _, p, replicates, found = documented
        for i in range(0, len(p), 97):
            own = replicates[:, i]
            variance = sum((q - own.mean()) ** 2 for q in own) / (len(own) - 1)
            assert found.effective_sample_size[i] * variance == pytest.approx(p[i] * (1 - p[i]))


def hmisc(x, knots):
    """The basis of Hmisc's rcspline.eval without normalisation, element by element."""
    *_, before, last = knots
    rows = []
    for value in x:
        row = [value]
        for knot in knots[:-2]:
            term = max(value - knot, 0) ** 3
            term -= (last - knot) / (last - before) * max(value - before, 0) ** 3
            term += (before - knot) / (last - before) * max(value - last, 0) ** 3
            row.append(term)
        rows.append(row)
    rows = np.array(rows)
    return rows / np.abs(rows).max(axis=0)


def test_effective_sample_size_of_a_share_is_the_number_of_rows():
    """Of the mean of n labels, drawn with replacement, it is n."""
    rng = np.random.default_rng(3)
    y = rng.random(400) < 0.3
    drawn = rng.multinomial(400, np.full(400, 1 / 400), size=40_000) @ y / 400
    share = np.full(1, y.mean())
    assert effective_sample_size(share, drawn[:, None])[0] == pytest.approx(400, rel=0.03)


def test_weights_count_like_repeated_rows_and_none_like_no_row(rng):
    p, times = rng.beta(1, 2, 120), rng.integers(0, 4, 120)
    y = (rng.random(120) < p).astype(int)
    replicates = expit(logit(p) + 0.4 * rng.normal(size=(30, 120)))
    one = stability(y, p, replicates, times)
    many = stability(*(np.repeat(each, times, axis=-1) for each in (y, p, replicates)))
    assert len(one.probability) == np.count_nonzero(times)
    for name in (
        "mean_absolute_error", "mean_classification_instability", "slopes", "intercepts",
        "in_the_larges", "net_benefit", "net_benefit_band", "net_benefit_of_all",
    ):  # fmt: skip
        np.testing.assert_allclose(getattr(one, name), getattr(many, name), atol=1e-9, err_msg=name)


@pytest.mark.parametrize("trial", range(5))
def test_lines_and_curves_are_maxima(rng, trial):
    """No step raises the likelihood, whatever the weights and however few the rows."""
    n = int(rng.integers(30, 150))
    p, w = rng.beta(0.4, 0.8, n).clip(1e-6, 1 - 1e-6), rng.exponential(size=n)
    y = (rng.random(n) < 0.2 + 0.6 * p).astype(float)
    line = logistic_line(y, p, w)
    residual = w * (y - expit(line.intercept + line.slope * logit(p)))
    assert abs(residual.sum()) < 1e-8 * w.sum()
    assert abs(residual @ logit(p)) < 1e-8 * w.sum() * np.abs(logit(p)).max()

    def loss(moved):
        eta = logit(p) + moved
        return w @ (np.logaddexp(0, eta) - y * eta)

    assert line.in_the_large == pytest.approx(minimize_scalar(loss).x, abs=1e-5)
    curve = spline_curve(y, p, w)
    assert ((curve.observed >= 0) & (curve.observed <= 1)).all()


def test_ugly_probabilities():
    y = np.array([0, 0, 1, 1, 0, 1])
    apart = np.array([0.0, 0.1, 0.8, 1.0, 0.2, 0.9])
    same = np.full(6, 0.5)
    mixed = np.array([0.0, 0.6, 0.4, 1.0, 0.0, 1.0])
    found = stability(y, apart, [same, mixed, same])
    assert np.isnan(found.slope)
    assert np.isnan(found.slopes[[0, 2]]).all()
    assert np.isfinite(found.slopes[1])
    np.testing.assert_array_equal(found.slope_interval, found.slopes[[1, 1]])
    assert found.in_the_larges[0] == pytest.approx(0, abs=1e-9)
    for curve in (found.curve, *found.curves):
        assert np.isfinite(curve.observed).all()
    np.testing.assert_allclose(found.curves[0].observed, 0.5, atol=1e-9)
    few = stability(
        [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9], [[0.1, 0.6, 0.4, 0.9], [0.3, 0.4, 0.6, 0.7]]
    )
    assert np.isfinite([few.slope, *few.curve.observed]).all()
    none = stability(y, apart, [same, same])
    assert np.isnan(none.slope_interval).all()
    assert np.isinf(none.effective_sample_size).all()


def test_net_benefit_by_hand():
    y, p = [1, 1, 0, 0, 0], [0.9, 0.0, 0.5, 0.2, 1.0]
    found = net_benefit(y, p, [0.0, 0.2, 0.5, 0.95])
    wanted = [1 / 5, 1 / 5 - 3 / 5 / 4, 1 / 5 - 2 / 5, 0 - 1 / 5 * 0.95 / 0.05]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_line_covers_what_is_true():
    """Of labels drawn from p itself slope 1 and 0 in the large, and twice too extreme 1/2."""
    rng, trials, kept = np.random.default_rng(11), 400, {"right": 0, "large": 0, "extreme": 0}
    for _ in range(trials):
        logits = rng.normal(size=300)
        y = rng.random(300) < expit(logits)
        right, extreme = calibration_line(y, expit(logits)), calibration_line(y, expit(2 * logits))
        for key, interval, truth in (
            ("right", right["calibration_slope"], 1.0),
            ("large", right["calibration_in_the_large"], 0.0),
            ("extreme", extreme["calibration_slope"], 0.5),
        ):
            kept[key] += interval.lower <= truth <= interval.upper
    assert all(0.90 < k / trials < 0.99 for k in kept.values()), kept


def test_line_of_groups_of_copies_is_that_of_single_rows(rng):
    p = rng.random(100)
    y = rng.random(100) < p
    one = calibration_line(y, p)
    copies = calibration_line(np.repeat(y, 3), np.repeat(p, 3), groups=np.repeat(np.arange(100), 3))
    for name, each in one.items():
        for bound in ("value", "lower", "upper"):
            assert getattr(copies[name], bound) == pytest.approx(getattr(each, bound), abs=1e-9)


def test_what_the_bounds_of_the_line_come_from_is_documented(rng):
    p = rng.random(100)
    for each in calibration_line(rng.random(100) < p, p).values():
        assert f'"{each.method}"' in MetricInterval.__doc__


def test_refusals():
    y, p, two = [0, 1, 1], [0.1, 0.6, 0.7], [[0.1, 0.5, 0.5], [0.2, 0.4, 0.9]]
    for arguments, options, message in (
        ((y, p, [0.1, 0.5, 0.5]), {}, r"replicates \(B, n\)"),
        ((y, p, two[:1]), {}, "two or more, better 200"),
        ((y, [0.1, 0.6, np.nan], two), {}, "without gaps"),
        ((y, p, [[0.1, 0.5, 1.5], two[0]]), {}, "between 0 and 1"),
        (([1, 1, 1], p, two), {}, "both"),
        ((y, p, two), {"threshold": 2}, "threshold is 2"),
        ((y, p, two), {"thresholds": [0.5, 1.0]}, "less than 1"),
        ((y, p, two), {"level": 1}, "level"),
        ((y, p, two, [1, -1, 1]), {}, "weights"),
    ):
        with pytest.raises(DataError, match=message):
            stability(*arguments, **options)
    with pytest.raises(DataError, match="no calibration slope"):
        calibration_line(y, p)


def test_an_effective_sample_size_is_of_probabilities():
    for p, replicates in ([2.0], [[0.1], [0.2]]), ([np.nan], [[0.1], [0.2]]), (["a"], [["b"]] * 2):
        with pytest.raises(DataError, match="must hold"):
            effective_sample_size(p, replicates)
    with pytest.raises(DataError, match="thresholds must hold numbers"):
        net_benefit([0, 1], [0.2, 0.8], ["a"])


def test_the_line_is_the_maximum_where_a_newton_step_overshoots():
    y = np.array([0, 1, 0, 0, 0, 0, 0, 0])
    p = np.array([0.999999, 0.95, 0.999999, 0.99, 1e-4, 0.95, 0.99, 0.01])
    found = calibration_line(y, p)["calibration_in_the_large"]
    known = brentq(lambda a: (y - expit(logit(p) + a)).sum(), -100, 100)
    assert found.value == pytest.approx(known)
    assert found.lower < known < found.upper
    assert found.upper - found.lower < 30
    timid = [0.001, 1e-6, 1e-6, 1e-4, 0.05, 1e-4]
    assert np.isfinite(calibration_line([1, 1, 1, 1, 1, 0], timid)["calibration_slope"].value)


def test_a_curve_of_separated_classes_rises_to_its_ends():
    rng = np.random.default_rng(40)
    x = 4 * rng.normal(size=40)
    p, y = expit(x), rng.uniform(size=40) < expit(2 * x)
    assert p[~y].max() < p[y].min()
    observed = stability(y, p, np.stack([p, p])).curve.observed
    assert observed[0] < 0.001
    assert observed[-1] > 0.999
