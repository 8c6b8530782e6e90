"""Intervals of metrics against SciPy, scikit-learn, exact tests and numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss, roc_auc_score

from bootprob.exceptions import DataError
from bootprob.metrics.bounds import (
    auc_score_interval,
    bca,
    calibration_error_interval,
    concordance,
    expanded_level,
    unseen_share,
)
from bootprob.metrics.intervals import log_loss_difference, metric_intervals
from bootprob.metrics.metrics import METRICS
from bootprob.metrics.reliability import reliability_curve

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
    def test_values_are_inside_and_intervals_have_a_width(self, rng, method, weighted):
        y, p, w = sample(rng)
        w = w if weighted else None
        intervals = metric_intervals(y, p, w, method=method)
        assert list(intervals) == list(METRICS)
        for name, interval in intervals.items():
            assert interval.lower <= interval.value <= interval.upper
            assert interval.lower < interval.upper
            assert (interval.level, interval.n_rows, interval.n_left_out) == (0.95, 200, 0)
            assert interval.lower >= 0
            assert interval.upper <= 1 or name == "log_loss"
            assert (interval.name, interval.label, interval.description) == (name, *METRICS[name])

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("unit", [2.0**-400, 2.0**300])
    def test_weights_have_no_unit(self, rng, method, unit):
        y, p, w = sample(rng, 60)
        expected, found = (metric_intervals(y, p, v, method=method) for v in (w, unit * w))
        for name in METRICS:
            np.testing.assert_allclose(
                [found[name].value, found[name].lower, found[name].upper],
                [expected[name].value, expected[name].lower, expected[name].upper],
                rtol=1e-9,
            )

    @pytest.mark.parametrize("method", METHODS)
    def test_rows_beside_others_of_next_to_no_weight(self, rng, method):
        """A class is measured by its own rows, however much the other weighs."""
        y, p, w = sample(rng, 60)
        found = metric_intervals(y, p, np.where(y == 1, 1e30 * w, w), method=method)
        right = np.average(p[y == 0] <= 0.5, weights=w[y == 0])
        assert found["specificity"].value == pytest.approx(right, rel=1e-9)
        for each in found.values():
            assert np.isfinite([each.value, each.lower, each.upper]).all()

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
        plain, weighted = (
            metric_intervals(y, p),
            metric_intervals(y, p, np.full(200, 4.0)),
        )  # sums as exact
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
                assert interval.lower <= interval.value <= interval.upper, name

    def test_thirty_of_thirty(self, method):
        interval = metric_intervals(*all_right(30, 50), method=method)["sensitivity"]
        assert (interval.value, interval.upper, interval.method) == (1.0, 1.0, "exact")
        assert interval.lower == pytest.approx(0.025 ** (1 / 30))

    def test_perfect_order(self, method):
        y, p = all_right(40, 40)
        interval = metric_intervals(y, p + np.linspace(0, 0.05, 80), method=method)["auc"]
        assert (interval.value, interval.upper, interval.method) == (1.0, 1.0, "score")
        assert 0.9 < interval.lower < 0.98


class TestUnseenMistakes:
    def test_what_mistakes_would_cost_is_in_the_upper_bound(self, rng):
        y, p = all_right(40, 60)
        p = p + rng.uniform(-0.05, 0.05, 100)
        auto = metric_intervals(y, p)["brier_score"]
        plain = metric_intervals(y, p, level=expanded_level(0.95, 100), method="bca")["brier_score"]
        expected = 0.0
        for label, n in ((1, 40), (0, 60)):
            cost = np.mean((label - p[y != label]) ** 2) - np.mean((label - p[y == label]) ** 2)
            expected += n / 100 * (1 - 0.025 ** (1 / n)) * cost
        assert auto.lower == plain.lower
        assert auto.upper - plain.upper == pytest.approx(expected)

    def test_mistakes_that_are_seen_add_nothing(self, rng):
        y, p, _ = sample(rng)
        auto = metric_intervals(y, p)
        plain = metric_intervals(y, p, level=expanded_level(0.95, 200), method="bca")
        for name in ("brier_score", "log_loss"):
            bounds = [(found[name].lower, found[name].upper) for found in (auto, plain)]
            assert bounds[0] == bounds[1]


class TestFewUnits:
    def test_means_of_few_normal_rows_have_the_width_of_students_interval(self):
        rng, n, covered = np.random.default_rng(5), 6, []
        for _ in range(400):
            x = rng.normal(size=n)
            means = rng.choice(x, (1000, n)).mean(axis=1)
            lower, upper = np.quantile(
                means, [0.5 - (half := expanded_level(0.9, n) / 2), 0.5 + half]
            )
            covered.append(lower <= 0 <= upper)
        assert 0.86 <= np.mean(covered) <= 0.94

    def test_many_units_leave_the_level_as_it_is(self):
        assert expanded_level(0.95, 1e6) == pytest.approx(0.95, abs=1e-5)
        assert expanded_level(0.95, 1.0) < 1  # one unit says nothing

    def test_they_cover_with_ten_groups(self):
        """As of the later rows of a table with times; of the resamples alone it was .89."""
        rng, covered = np.random.default_rng(6), []
        for _ in range(300):
            p = 1 / (1 + np.exp(-1.5 * rng.normal(size=(10, 10))))
            y = rng.random(p.shape) < p
            found = metric_intervals(y.ravel(), p.ravel(), groups=np.repeat(np.arange(10), 10))
            brier = found["brier_score"]
            covered.append(brier.lower <= 0.17673 <= brier.upper)
        assert np.mean(covered) >= 0.91


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


class TestRanks:
    def test_they_order_the_rows_for_the_auc_and_for_nothing_else(self, rng):
        y, p, w = sample(rng)
        ranks = rng.normal(size=200)
        ranks[5] = np.nan
        p[5] = np.nan
        kept = np.arange(200) != 5
        for method in METHODS:
            plain = metric_intervals(y, p, w, method=method)
            ranked = metric_intervals(y, p, w, method=method, ranks=ranks)
            auc = ranked.pop("auc")
            expected = roc_auc_score(y[kept], ranks[kept], sample_weight=w[kept])
            assert auc.value == pytest.approx(expected)
            assert auc.lower < auc.value < auc.upper
            assert plain.pop("auc").value != auc.value
            assert ranked == plain

    def test_the_same_order_has_the_same_bounds(self, rng):
        y, p, w = sample(rng)
        for method in METHODS:
            ranked = metric_intervals(y, p, w, method=method, ranks=np.log(p))
            assert ranked == metric_intervals(y, p, w, method=method)

    @pytest.mark.parametrize(
        ("ranks", "words"), [([1, 2], "one length"), ([1, np.inf, 2], "finite")]
    )
    def test_unusable_ones_are_refused(self, ranks, words):
        with pytest.raises(DataError, match=words):
            metric_intervals([0, 1, 1], [0.2, 0.7, 0.4], ranks=ranks)


class TestLogLossDifference:
    def test_value_is_the_difference_on_the_rows_that_both_have(self, rng):
        y, p, w = sample(rng)
        q = p * 0.8 + 0.1
        p[4], q[5] = np.nan, np.nan
        both = np.r_[0:4, 6:200]
        found = log_loss_difference(y, p, q, w)
        expected = log_loss(y[both], p[both], sample_weight=w[both]) - log_loss(
            y[both], q[both], sample_weight=w[both]
        )
        assert found.value == pytest.approx(expected, rel=1e-9)
        assert found.lower < found.value < found.upper
        assert (found.n_rows, found.n_left_out, found.level) == (198, 2, 0.95)

    def test_turned_round_it_changes_sign(self, rng):
        y, p, w = sample(rng)
        q = np.clip(p, 0.05, 0.95)
        one, other = log_loss_difference(y, p, q, w), log_loss_difference(y, q, p, w)
        found = [one.value, one.lower, one.upper]
        assert found == pytest.approx([-other.value, -other.upper, -other.lower])

    def test_bounds_are_those_of_scipy(self, rng):
        y, p, _ = sample(rng, 60)
        q = np.clip(p * 0.7 + 0.1, 0.1, 0.9)
        difference = np.log(np.where(y == 1, q, 1 - q)) - np.log(np.where(y == 1, p, 1 - p))
        theirs = stats.bootstrap(
            (difference,), np.mean, confidence_level=0.9, n_resamples=5000, rng=rng
        ).confidence_interval
        ours = log_loss_difference(y, p, q, level=0.9)
        noise = 0.15 * (theirs.high - theirs.low)
        assert (ours.lower, ours.upper) == pytest.approx((theirs.low, theirs.high), abs=noise)

    def test_pairing_makes_it_narrower_than_the_losses_themselves(self, rng):
        y, p, _ = sample(rng)
        p = np.clip(p, 0.02, 0.98)
        difference = log_loss_difference(y, p, np.clip(p, 0.05, 0.95))
        loss = metric_intervals(y, p)["log_loss"]
        assert difference.upper - difference.lower < 0.5 * (loss.upper - loss.lower)

    def test_equal_probabilities_do_not_differ(self, rng):
        y, p, w = sample(rng)
        found = log_loss_difference(y, p, p, w)
        assert (found.value, found.lower, found.upper) == (0, 0, 0)

    def test_other_lengths_are_refused(self):
        with pytest.raises(DataError, match="one length"):
            log_loss_difference([0, 1], [0.2, 0.7], [0.2, 0.7, 0.1])


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


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_few_groups_have_students_interval(n_groups):
    """No resample reaches beyond the best and the worst of them."""
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=60)
        y = (rng.uniform(size=60) < p).astype(int)
        found = metric_intervals(y, p, groups=np.arange(60) % n_groups)["brier_score"]
        assert found.method == "student"
        covered.append(found.lower <= 1 / 6 <= found.upper)  # E p (1 − p)
    assert np.mean(covered) >= 0.875


def test_text_is_refused_by_name(rng):
    p, y = rng.uniform(size=20), np.arange(20) % 2
    for wrong, name in (
        ({"p": ["a"] * 20}, "p"),
        ({"p": [[0.1], [0.2, 0.3]]}, "p"),
        ({"weights": ["a"] * 20}, "weights"),
    ):
        with pytest.raises(DataError, match=f"^{name} must hold numbers"):
            metric_intervals(**{"y": y, "p": p} | wrong)
    with pytest.raises(DataError, match=r"^q must hold probabilities"):
        log_loss_difference(y, p, 3 + p)
    with pytest.raises(DataError, match="decided has values other than true and false"):
        metric_intervals(y, p, decided=2 * y)
    with pytest.raises(DataError, match=r"n_bins is 1\.5"):
        reliability_curve(y, p, n_bins=1.5)


@pytest.mark.parametrize(
    ("y", "p"),
    [([1, 1, 0, 1, 0, 1], [0.5, 0, 0.3, 0.8, 0.5, 0]), ([0, 1, 0, 1], [0.2, 0.1, 0.5, 0.8])],
)
def test_no_brier_score_passes_one(y, p):
    assert metric_intervals(y, p)["brier_score"].upper <= 1


@pytest.mark.parametrize("shape", [(59,), (60, 1)])
def test_weights_beside_groups_are_one_a_row(shape):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=60)
    y, groups = rng.uniform(size=60) < p, np.repeat(range(20), 3)
    with pytest.raises(DataError, match="weights and p must be of one length"):
        reliability_curve(y, p, np.ones(shape), groups=groups)
