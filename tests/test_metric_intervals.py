"""Intervals of metrics against SciPy, scikit-learn, exact tests and numbers worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from bootprob import BootstrapSVC
from bootprob.exceptions import DataError
from bootprob.metric_bounds import (
    auc_score_interval,
    bca,
    calibration_error_interval,
    concordance,
    unseen_share,
)
from bootprob.metric_intervals import metric_intervals, out_of_bag_intervals
from bootprob.metrics import probability_metrics

METHODS = ("auto", "bca", "percentile", "basic")


def sample(rng, n=200):
    """Rows with ties in p, unequal weights, and both classes."""
    p = rng.beta(0.7, 0.9, n).clip(0.01, 0.99).round(2)
    y = (rng.random(n) < p).astype(int)
    y[:2] = 0, 1
    return y, p, rng.integers(1, 5, n).astype(float)


def auc_by_ranks(y, p):
    n_positive = y.sum()
    rank_sum = stats.rankdata(p)[y == 1].sum() - n_positive * (n_positive + 1) / 2
    return rank_sum / (n_positive * (len(y) - n_positive))


def all_right(n_positive, n_negative, high=0.9, low=0.1):
    counts = [n_negative, n_positive]
    return np.repeat([0, 1], counts), np.repeat([low, high], counts)


class TestIntervals:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_estimates_are_those_of_the_other_metrics_and_inside(self, rng, method, weighted):
        y, p, w = sample(rng)
        w = w if weighted else None
        expected = probability_metrics(y, p, w)
        intervals = metric_intervals(y, p, w, method=method)
        assert list(intervals) == list(expected)
        for name, interval in intervals.items():
            assert interval.estimate == pytest.approx(expected[name].value, rel=1e-9), name
            assert interval.lower <= interval.estimate <= interval.upper
            assert interval.lower < interval.upper
            assert (interval.level, interval.n_rows, interval.n_left_out) == (0.95, 200, 0)
            assert interval.lower >= 0
            assert interval.upper <= 1 or name == "log_loss"
            assert (interval.name, interval.label) == (name, expected[name].label)

    @pytest.mark.parametrize("method", ["bca", "percentile", "basic"])
    @pytest.mark.parametrize("name", ["brier_score", "log_loss", "accuracy", "auc"])
    def test_bootstrap_intervals_are_those_of_scipy(self, rng, method, name):
        y, p, _ = sample(rng, 60)
        statistic = {
            "brier_score": lambda y, p: np.mean((y - p) ** 2),
            "log_loss": lambda y, p: -np.mean(np.log(np.where(y == 1, p, 1 - p))),
            "accuracy": lambda y, p: np.mean((p > 0.5) == y),
            "auc": auc_by_ranks,
        }[name]
        theirs = stats.bootstrap(
            (y, p),
            statistic,
            paired=True,
            vectorized=False,
            n_resamples=2000,
            method="BCa" if method == "bca" else method,
            rng=rng,
        ).confidence_interval
        ours = metric_intervals(y, p, method=method)[name]
        assert ours.method == method
        # 1,000 and 2,000 resamples leave noise in both.
        width = theirs.high - theirs.low
        assert ours.lower == pytest.approx(max(theirs.low, 0), abs=0.2 * width)
        highest = np.inf if name == "log_loss" else 1.0
        assert ours.upper == pytest.approx(min(theirs.high, highest), abs=0.2 * width)

    def test_shares_are_exact_binomial(self, rng):
        y, p, _ = sample(rng)
        right = (p > 0.5) == y
        intervals = metric_intervals(y, p, level=0.9)
        rows = {"accuracy": y >= 0, "sensitivity": y == 1, "specificity": y == 0}
        for name, members in rows.items():
            k, n = int(right[members].sum()), int(members.sum())
            exact = stats.binomtest(k, n).proportion_ci(0.9, method="exact")
            assert intervals[name].method == "exact"
            assert (intervals[name].lower, intervals[name].upper) == pytest.approx(exact)

    def test_equal_weights_are_no_weights(self, rng):
        y, p, _ = sample(rng)
        plain, weighted = metric_intervals(y, p), metric_intervals(y, p, np.full(200, 3.0))
        for name, interval in plain.items():
            assert weighted[name].lower == pytest.approx(interval.lower, rel=1e-9), name
            assert weighted[name].upper == pytest.approx(interval.upper, rel=1e-9), name

    def test_rows_without_weight_or_probability_are_left_out(self, rng):
        y, p, w = sample(rng)
        w[2:30], p[30:40] = 0.0, np.nan
        kept = (w > 0) & ~np.isnan(p)
        intervals, expected = metric_intervals(y, p, w), metric_intervals(y[kept], p[kept], w[kept])
        assert intervals == {
            name: type(interval)(**{**vars(interval), "n_left_out": 10})
            for name, interval in expected.items()
        }

    @pytest.mark.parametrize("method", METHODS)
    def test_a_higher_level_is_wider(self, rng, method):
        y, p, w = sample(rng)
        narrow, wide = (metric_intervals(y, p, w, level, method) for level in (0.8, 0.99))
        for name in narrow:
            assert wide[name].lower <= narrow[name].lower, name
            assert wide[name].upper >= narrow[name].upper, name

    def test_the_same_seed_gives_the_same_bounds(self, rng):
        y, p, w = sample(rng)
        assert metric_intervals(y, p, w) == metric_intervals(y, p, w)
        other = metric_intervals(y, p, w, seed=1)
        assert other["brier_score"] != metric_intervals(y, p, w)["brier_score"]


@pytest.mark.parametrize("method", METHODS)
class TestNoInterval:
    """There is always a width, however the rows are."""

    @pytest.mark.parametrize(
        ("y", "p"),
        [
            all_right(30, 50),
            all_right(30, 50, 1.0, 0.0),
            all_right(1, 1),
            all_right(2, 80),
            all_right(30, 50, 0.1, 0.9),  # all wrong
            all_right(30, 50, 0.0, 1.0),
            all_right(30, 50, 0.5, 0.5),
            all_right(30, 50, 0.3, 0.3),
            all_right(30, 50, 1.0, 1.0),
            all_right(5, 5, 0.8, 0.7),
        ],
        ids=str,
    )
    def test_ugly_rows(self, y, p, method):
        for weights in (None, np.arange(1.0, len(y) + 1)):
            for name, interval in metric_intervals(y, p, weights, method=method).items():
                assert np.isfinite([interval.lower, interval.upper]).all()
                assert interval.upper - interval.lower > 1e-4, name
                assert interval.lower <= interval.estimate <= interval.upper, name

    def test_thirty_of_thirty(self, method):
        interval = metric_intervals(*all_right(30, 50), method=method)["sensitivity"]
        assert (interval.estimate, interval.upper, interval.method) == (1.0, 1.0, "exact")
        assert interval.lower == pytest.approx(0.025 ** (1 / 30))

    def test_perfect_order(self, method):
        y, p = all_right(40, 40)
        interval = metric_intervals(y, p + np.linspace(0, 0.05, 80), method=method)["auc"]
        assert (interval.estimate, interval.upper, interval.method) == (1.0, 1.0, "score")
        assert 0.9 < interval.lower < 0.98


class TestUnseenMistakes:
    def test_what_mistakes_would_cost_is_in_the_upper_bound(self, rng):
        y, p = all_right(40, 60)
        p = p + rng.uniform(-0.05, 0.05, 100)
        auto, plain = (metric_intervals(y, p, method=m)["brier_score"] for m in ("auto", "bca"))
        expected = 0.0
        for label, n in ((1, 40), (0, 60)):
            cost = np.mean((label - p[y != label]) ** 2) - np.mean((label - p[y == label]) ** 2)
            expected += n / 100 * (1 - 0.025 ** (1 / n)) * cost
        assert auto.lower == plain.lower
        assert auto.upper - plain.upper == pytest.approx(expected)

    def test_mistakes_that_are_seen_add_nothing(self, rng):
        y, p, _ = sample(rng)
        for name in ("brier_score", "log_loss"):
            auto, plain = (metric_intervals(y, p, method=m)[name] for m in ("auto", "bca"))
            assert auto == plain


class TestBounds:
    def test_bca_without_bias_or_acceleration_is_percentile(self, rng):
        half = rng.normal(size=500)
        replicates = np.concatenate([half, -half])
        bounds = bca(0.0, replicates, np.array([-1.0, 1.0]), 0.9)
        assert bounds == pytest.approx(tuple(np.quantile(replicates, [0.05, 0.95])))

    def test_bca_of_an_exponential_mean_is_scipys(self, rng):
        x = rng.exponential(size=40)
        counts = rng.multinomial(40, np.full(40, 1 / 40), size=20_000)
        lower, upper = bca(x.mean(), counts @ x / 40, x - x.mean(), 0.9)
        jackknife = stats.bootstrap(
            (x,), np.mean, confidence_level=0.9, n_resamples=20_000, rng=rng
        )
        theirs = jackknife.confidence_interval
        assert (lower, upper) == pytest.approx((theirs.low, theirs.high), rel=0.02)

    def test_concordance(self, rng):
        y, p, w = sample(rng, 50)
        right = concordance(y, p, w)
        for i in range(50):
            others = y != y[i]
            sign = 2 * y[i] - 1
            wins = np.sign(sign * (p[i] - p[others])) / 2 + 0.5
            assert right[i] == pytest.approx(np.average(wins, weights=w[others]))
        expected = roc_auc_score(y, p, sample_weight=w)
        for label in (0, 1):
            mean = np.average(right[y == label], weights=w[y == label])
            assert mean == pytest.approx(expected)

    @pytest.mark.parametrize("auc", [0.0, 0.2, 0.5, 0.83, 0.999, 1.0])
    def test_auc_score_interval_solves_its_equation(self, auc):
        m, n, z = 30, 70, stats.norm.ppf(0.975)
        lower, upper = auc_score_interval(auc, m, n, 0.95)
        assert 0 <= lower <= auc <= upper <= 1
        for bound in (lower, upper):
            if 0 < bound < 1:
                q1, q2 = bound / (2 - bound), 2 * bound**2 / (1 + bound)
                # Hanley and McNeil 1982, with both numbers less one replaced by their mean.
                N = (m + n) / 2 - 1
                V = bound * (1 - bound) + N * (q1 - bound**2) + N * (q2 - bound**2)
                assert abs(auc - bound) == pytest.approx(z * np.sqrt(V / (m * n)), rel=1e-6)

    def test_calibration_error_interval_covers_bins_that_are_off(self, rng):
        members = np.repeat(np.eye(5), 40, axis=0)
        p = np.full(200, 0.4)
        truth = np.repeat([0.4, 0.5, 0.3, 0.4, 0.2], 40)
        wanted = np.mean(np.abs(truth - p))
        hits = 0
        for _ in range(200):
            y = (rng.random(200) < truth).astype(float)
            estimate = np.abs((y - p) @ members).sum() / 200
            bounds = calibration_error_interval(estimate, y, p, np.ones(200), members, 0.9, 0)
            hits += bounds[0] <= wanted <= bounds[1]
        assert hits >= 170  # 90 % and more: five standard deviations below 90 % is 79 %

    def test_unseen_share_is_clopper_and_pearsons(self):
        for n in (1, 30, 1000):
            assert unseen_share(n, 0.9) == pytest.approx(
                stats.binomtest(0, n).proportion_ci(0.9, method="exact").high
            )


class TestOutOfBag:
    def test_it_is_the_out_of_bag_rows(self, rng):
        X = rng.normal(size=(60, 2))
        y = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no")
        y[:2] = "no", "yes"
        weight = rng.integers(0, 3, 60).astype(float)
        weight[:2] = 1
        model = BootstrapSVC(n_bootstraps=30, random_state=0).fit(X, y, weight)
        expected = metric_intervals(y == "yes", model.oob_proba_[:, 1], weight, 0.8, "bca", seed=3)
        assert out_of_bag_intervals(model, 0.8, "bca", seed=3) == expected

    def test_rows_never_out_of_bag_are_counted(self, rng):
        y, p, w = sample(rng)
        p[5:9] = np.nan
        model = SimpleNamespace(y_=y, oob_proba_=np.column_stack([1 - p, p]), sample_weight_=w)
        assert {m.n_left_out for m in out_of_bag_intervals(model).values()} == {4}


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"y": [0, 2, 1]}, "y must hold 0"),
            ({"y": [1, 1, 1]}, "all of one class"),
            ({"p": [0.2, 0.7, 1.2]}, "between 0 and 1"),
            ({"p": [np.nan] * 3}, "No row"),
            ({"p": [0.5]}, "one length"),
            ({"weights": [1, 1, -1]}, "at least 0"),
            ({"level": 1}, "level is 1"),
            ({"method": "BCa"}, "give 'auto', 'bca', 'percentile' or 'basic'"),
        ],
        ids=str,
    )
    def test_refused(self, given, words):
        with pytest.raises(DataError, match=words):
            metric_intervals(**{"y": [0, 1, 1], "p": [0.2, 0.7, 0.4], **given})
