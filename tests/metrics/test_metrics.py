"""Metrics against scikit-learn, numbers worked out by hand, and known truths."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    recall_score,
    roc_auc_score,
)

from bootprob.exceptions import DataError
from bootprob.metrics.intervals import metric_intervals
from bootprob.metrics.metrics import METRICS, metrics_of, resampled_weights
from bootprob.metrics.reliability import (
    calibration_error,
    calibration_error_by_chance,
    equal_mass_bins,
    reliability_curve,
)


def by_sklearn(y, p, w):
    return {
        "brier_score": brier_score_loss(y, p, sample_weight=w),
        "log_loss": log_loss(y, p, sample_weight=w, labels=[0, 1]),
        "accuracy": accuracy_score(y, p > 0.5, sample_weight=w),
        "sensitivity": recall_score(y, p > 0.5, sample_weight=w),
        "specificity": recall_score(y, p > 0.5, pos_label=0, sample_weight=w),
        "auc": roc_auc_score(y, p, sample_weight=w),
    }


@pytest.fixture
def sample():
    """200 rows with ties in p, certain answers right and wrong, and unequal weights."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.7, 200).round(2)
    y = (rng.random(200) < p).astype(int)
    p[:3], y[:3] = [0.0, 1.0, 1.0], [0, 1, 0]
    return y, p, rng.integers(1, 5, 200).astype(float)


class TestValues:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_values_are_those_of_scikit_learn(self, sample, weighted):
        y, p, w = sample
        w = w if weighted else np.ones(200)
        metrics = metric_intervals(y, p, w if weighted else None)
        assert list(metrics) == list(METRICS)
        for name, expected in by_sklearn(y, p, w).items():
            assert metrics[name].value == pytest.approx(expected, rel=1e-12), name
            assert metrics[name].name == name
            assert metrics[name].n_rows == 200

    def test_a_weight_counts_like_repeated_rows(self, sample):
        y, p, w = sample
        again = np.repeat(np.arange(200), w.astype(int))
        weighted, repeated = metric_intervals(y, p, w), metric_intervals(y[again], p[again])
        for name in METRICS:
            assert weighted[name].value == pytest.approx(repeated[name].value, rel=1e-12), name

    def test_rows_without_probability_or_weight_are_left_out_and_the_former_counted(self, sample):
        y, p, w = sample
        expected = metric_intervals(y[20:], p[20:], w[20:])
        p[:15], w[15:20], w[0] = np.nan, 0.0, 0.0
        metrics = metric_intervals(y, p, w)
        for name in METRICS:
            assert metrics[name].value == expected[name].value
            assert metrics[name].n_rows == 180
            assert metrics[name].n_left_out == 14

    def test_votes_that_pass_one_by_rounding_are_accepted(self):
        assert metric_intervals([0, 1], [0.0, 1.0 + 1e-12])["brier_score"].value == 0.0

    @pytest.mark.parametrize(
        ("y", "p", "weights", "level", "words"),
        [
            ([0, 1], [0.2, 0.7, 0.1], None, 0.95, "shapes"),
            ([0, 2], [0.2, 0.7], None, 0.95, "y must hold 0"),
            ([-1, 1], [0.2, 0.7], None, 0.95, "y must hold 0"),
            (["no", "yes"], [0.2, 0.7], None, 0.95, "y must hold 0.* not text"),
            ([0, 1], [0.2, 1.1], None, 0.95, "between 0 and 1"),
            ([0, 1], [0.2, np.inf], None, 0.95, "between 0 and 1"),
            ([0, 1], [0.2, 0.7], [1, -1], 0.95, "at least 0"),
            ([0, 1], [0.2, 0.7], [1, np.nan], 0.95, "at least 0"),
            ([0, 1], [np.nan, np.nan], None, 0.95, "No row"),
            ([0, 1], [0.2, np.nan], None, 0.95, "all of one class"),
            ([0, 1], [0.2, 0.7], None, 1.0, "level"),
        ],
    )
    def test_unusable_input_is_refused(self, y, p, weights, level, words):
        with pytest.raises(DataError, match=words):
            metric_intervals(y, p, weights, level=level)


class TestResamples:
    def test_all_at_once_they_agree_with_scikit_learn(self, sample):
        y, p, w = sample
        rng = np.random.default_rng(1)
        weights = rng.multinomial(200, np.full(200, 1 / 200), size=5) * w
        members, ranks = equal_mass_bins(p, w, 10), rng.normal(size=200).round(1)
        found = metrics_of(y.astype(float), p, p > 0.5, ranks, members, weights)
        assert list(found) == sorted(found, key=list(METRICS).index)
        for b, row in enumerate(weights):
            expected = by_sklearn(y, p, row) | {"auc": roc_auc_score(y, ranks, sample_weight=row)}
            for name, value in expected.items():
                assert found[name][b] == pytest.approx(value, rel=1e-10), name
            by_bin = [abs(np.sum((row * (y - p))[inside == 1])) / row.sum() for inside in members.T]
            assert found["calibration_error"][b] == pytest.approx(sum(by_bin), rel=1e-10)

    def test_percentiles_of_a_plain_bootstrap_loop(self, sample):
        y, p, w = sample
        rng = np.random.default_rng(2)
        loss = -np.log(np.clip(np.where(y == 1, p, 1 - p), np.finfo(float).eps, None))
        losses = []
        for _ in range(2000):
            rows = rng.integers(200, size=200)
            losses.append(np.average(loss[rows], weights=w[rows]))
        metric = metric_intervals(y, p, w, 0.8, "percentile")["log_loss"]
        spread = np.std(losses)
        assert metric.lower == pytest.approx(np.quantile(losses, 0.1), abs=0.2 * spread)
        assert metric.upper == pytest.approx(np.quantile(losses, 0.9), abs=0.2 * spread)

    def test_two_rows_a_class_keep_both_classes_in_every_resample(self):
        y = np.array([0.0, 0, 1, 1])
        for w in resampled_weights(y, np.ones(4), seed=0):
            assert (w.sum(axis=1) == 4).all()
            assert ((w @ y > 0) & (w @ y < 4)).all()
        metrics = metric_intervals(y, [0.1, 0.6, 0.4, 0.9])
        for metric in metrics.values():
            assert np.isfinite([metric.value, metric.lower, metric.upper]).all()


class TestReliability:
    def test_calibration_error_by_hand(self):
        # Two bins of two rows: |0.5 − 0.2| and |1 − 0.8|, each with half of the weight.
        y, p = [0, 1, 1, 1], [0.1, 0.3, 0.7, 0.9]
        assert calibration_error(y, p, n_bins=2) == pytest.approx((0.3 + 0.2) / 2)
        # With weight 3 the last row fills a bin alone: |2/3 − 1.1/3| and |1 − 0.9|.
        weighted = calibration_error(y, p, [1, 1, 1, 3], n_bins=2)
        assert weighted == pytest.approx((2 - 1.1 + 3 * 0.1) / 6)

    def test_bins_hold_equally_many_rows_as_in_scikit_learn(self):
        rng = np.random.default_rng(6)
        p = rng.random(500)
        y = (rng.random(500) < p).astype(int)
        curve = reliability_curve(y, p)
        observed, stated = calibration_curve(y, p, n_bins=10, strategy="quantile")
        assert curve.n_rows.tolist() == [50] * 10
        np.testing.assert_allclose(curve.probability, stated)
        np.testing.assert_allclose(curve.observed, observed)
        np.testing.assert_allclose(curve.weight, 0.1)

    def test_intervals_are_wilsons(self):
        rng = np.random.default_rng(7)
        p = rng.random(200) ** 3
        y = (rng.random(200) < p).astype(int)
        curve = reliability_curve(y, p, level=0.9)
        for k, n in enumerate(curve.n_rows):
            hits = round(curve.observed[k] * n)
            expected = binomtest(hits, n).proportion_ci(0.9, method="wilson")
            assert curve.lower[k] == pytest.approx(expected.low, abs=1e-12)
            assert curve.upper[k] == pytest.approx(expected.high, abs=1e-12)

    def test_equal_weights_of_any_size_change_nothing(self):
        rng = np.random.default_rng(8)
        p = rng.random(90)
        y = (rng.random(90) < p).astype(int)
        plain, heavy = reliability_curve(y, p), reliability_curve(y, p, np.full(90, 7.0))
        np.testing.assert_allclose(heavy.lower, plain.lower)
        np.testing.assert_allclose(heavy.upper, plain.upper)

    def test_rows_of_equal_probability_share_a_bin(self):
        p = np.repeat([0.0, 0.4, 1.0], [70, 3, 27])
        y = (p > 0.3).astype(int)
        curve = reliability_curve(y, p)
        assert curve.n_rows.tolist() == [70, 30]
        np.testing.assert_allclose(curve.probability, [0.0, (3 * 0.4 + 27) / 30])

    @pytest.mark.parametrize("n", [1, 2, 7, 19, 101])
    def test_every_row_is_in_one_bin_and_bins_follow_the_probability(self, n):
        rng = np.random.default_rng(n)
        p, w = rng.random(n).round(1), rng.random(n) + 0.01
        members = equal_mass_bins(p, w, 10)
        assert (members.sum(1) == 1).all()
        assert (members.sum(0) > 0).all()
        assert (np.diff(members.argmax(1)[np.argsort(p)]) >= 0).all()

    def test_no_bins_are_refused(self):
        with pytest.raises(DataError, match="n_bins"):
            calibration_error([0, 1], [0.2, 0.8], n_bins=0)

    def test_chance_alone_at_one_half(self):
        # One bin, 400 fair coins: |mean − 1/2| is half a normal with standard deviation 1/40.
        mean, upper = calibration_error_by_chance(np.full(400, 0.5))
        assert mean == pytest.approx(np.sqrt(2 / np.pi) / 40, rel=0.1)
        assert upper == pytest.approx(norm.ppf(0.975) / 40, rel=0.1)

    def test_chance_explains_true_probabilities_and_not_false_ones(self):
        rng = np.random.default_rng(9)
        p = rng.random(400)
        y = (rng.random(400) < p).astype(int)
        _, upper = calibration_error_by_chance(p)
        assert calibration_error(y, p) < upper
        wrong = p**3
        _, upper = calibration_error_by_chance(wrong)
        assert calibration_error(y, wrong) > upper
