"""Metrics of several classes against scikit-learn's, intervals against those of two classes."""

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.metrics import log_loss

from bootprob.exceptions import DataError
from bootprob.metrics import class_metrics
from bootprob.metrics.bounds import quantile_of_few
from bootprob.metrics.class_intervals import class_metric_intervals
from bootprob.metrics.intervals import metric_intervals


def drawn(rng, n, K, sharpness=2.0):
    p = rng.dirichlet(np.full(K, 1 / sharpness), size=n)
    return p, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)


@pytest.mark.parametrize("groups", [None, np.arange(200) // 4])
def test_of_two_classes_they_are_those_of_two_classes(rng, groups):
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    weight = rng.exponential(size=200)
    for p_ in (p, np.full(200, 0.3)):  # of the latter all losses are alike in a class
        of_two = metric_intervals(y, p_, weight, 0.9, groups=groups)
        both = np.stack([1 - p_, p_], axis=1)
        found = class_metric_intervals(y, both, weight, 0.9, groups=groups)
        for name, factor in (("log_loss", 1), ("brier_score", 2), ("accuracy", 1)):
            for end in ("value", "lower", "upper"):
                expected = factor * getattr(of_two[name], end)
                assert getattr(found[name], end) == pytest.approx(expected, rel=1e-9)
            assert found[name].method == of_two[name].method


def test_losses_that_are_all_alike_are_those_of_two_classes():
    """Two groups of the same rows: no resample differs, and there is a width."""
    y, p, groups = np.tile([0, 1], 20), np.full(40, 0.5), np.repeat([0, 1], 20)
    of_two = metric_intervals(y, p, groups=groups)
    found = class_metric_intervals(y, np.full((40, 2), 0.5), groups=groups)
    for name, factor in (("log_loss", 1), ("brier_score", 2), ("accuracy", 1)):
        for end in ("lower", "upper"):
            assert getattr(found[name], end) == pytest.approx(factor * getattr(of_two[name], end))
        assert found[name].upper - found[name].lower > 0.5


def test_of_groups_accuracy_is_that_of_a_bootstrap_of_groups(rng):
    """Against 20,000 draws of whole groups, of unequal sizes and ease; rows alone vary less."""
    sizes = rng.integers(5, 40, size=60)
    groups = np.repeat(rng.permutation(60), sizes)
    p = rng.dirichlet(np.ones(3), size=len(groups))
    ease = np.repeat(rng.random(60), sizes)
    best, other = p.argmax(axis=1), rng.integers(3, size=len(groups))
    y = np.where(rng.random(len(groups)) < ease, best, other)
    found = class_metric_intervals(y, p, groups=groups)["accuracy"]
    right, n = (np.bincount(groups, each) for each in (best == y, np.ones(len(y))))
    draws = rng.integers(60, size=(20_000, 60))
    replicates = right[draws].sum(axis=1) / n[draws].sum(axis=1)
    lower, upper = np.quantile(replicates, [0.025, 0.975])
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=0.02)
    of_rows = class_metric_intervals(y, p)["accuracy"]
    assert of_rows.upper - of_rows.lower < 0.8 * (found.upper - found.lower)
    assert found.upper - found.lower < 0.25  # one row a group: about this, and more


@pytest.mark.parametrize("seed", range(5))
def test_of_two_groups_the_interval_goes_beyond_both(seed):
    """No draw of groups does; Student's interval of one degree of freedom does, by far."""
    rng = np.random.default_rng(seed)
    p, y = drawn(rng, 100, 3)
    groups = np.repeat([0, 1], 50)
    found = class_metric_intervals(y, p, groups=groups)["log_loss"]
    ends = sorted(-np.log(p[np.arange(100), y]).reshape(2, 50).mean(axis=1))
    assert found.method == "student"
    spread = (ends[1] - ends[0]) / 2 * 0.5**0.5  # of both, of one twice, of the other twice
    reach = quantile_of_few(0.95, 2) * spread
    assert found.upper - found.value == pytest.approx(reach, rel=0.05)
    assert found.lower == pytest.approx(max(found.value - reach, 0), abs=0.05 * reach)


def test_of_several_classes_values_are_scikit_learns(rng):
    p, y = drawn(rng, 300, 4)
    p[7] = np.nan
    found = class_metric_intervals(y, p, level=0.9)
    kept = np.arange(300) != 7
    assert found["log_loss"].value == pytest.approx(log_loss(y[kept], p[kept], labels=range(4)))
    truth = np.eye(4)[y[kept]]
    brier = np.square(p[kept] - truth).sum(axis=1).mean()
    assert found["brier_score"].value == pytest.approx(brier)
    right = int((p[kept].argmax(axis=1) == y[kept]).sum())
    lower, upper = beta.ppf(0.05, right, 300 - right), beta.ppf(0.95, right + 1, 299 - right)
    assert (found["accuracy"].lower, found["accuracy"].upper) == pytest.approx((lower, upper))
    assert found["accuracy"].n_left_out == 1
    decided = np.zeros(300, dtype=int)
    other = class_metric_intervals(y, p, decided=decided)["accuracy"].value
    assert other == pytest.approx((y[kept] == 0).mean())


def test_mistakes_that_were_not_seen_are_in_the_upper_bound():
    y = np.repeat([0, 1, 2], 20)
    p = np.full((60, 3), 0.01)
    p[np.arange(60), y] = 0.98
    found = class_metric_intervals(y, p)
    share = 1 - 0.025 ** (1 / 60)  # Clopper and Pearson's bound of no mistake in 60 rows
    cost = -np.log(0.01) + np.log(0.98)
    assert found["log_loss"].upper == pytest.approx(-np.log(0.98) + share * cost)


def test_they_cover_what_the_model_reaches_on_many_rows(rng):
    """Of 25 tables; 13 or fewer would be chance once in a million even at 90 %."""
    many, labels = drawn(rng, 200_000, 3)
    truth = {
        "log_loss": log_loss(labels, many, labels=range(3)),
        "brier_score": np.square(many - np.eye(3)[labels]).sum(axis=1).mean(),
        "accuracy": (many.argmax(axis=1) == labels).mean(),
    }
    covered = dict.fromkeys(truth, 0)
    for _ in range(25):
        p, y = drawn(rng, 100, 3)
        for name, metric in class_metric_intervals(y, p).items():
            covered[name] += metric.lower <= truth[name] <= metric.upper
    assert min(covered.values()) >= 14


def test_one_class_alone_is_refused():
    with pytest.raises(DataError, match="all of one class"):
        class_metric_intervals(np.zeros(5, dtype=int), np.full((5, 3), 1 / 3))


THIRDS = np.full((2, 3), 1 / 3)


@pytest.mark.parametrize(
    ("codes", "probability", "weight", "message"),
    [
        ([0, -1], THIRDS, None, "codes must hold a whole number from 0 to 2"),
        ([0, 5], THIRDS, None, "codes must hold"),
        ([0.5, 1], THIRDS, None, "codes must hold"),
        ([0, 1], THIRDS * np.nan, None, "numbers from 0 to 1"),
        ([0, 1], [["a", "b"]] * 2, None, "probability must hold numbers"),
        ([0, 1], THIRDS, [0, 0], "weight must hold"),
        ([0, 1], THIRDS, [1, -1], "weight must hold"),
    ],
)
def test_errors_of_classes_are_of_classes_and_probabilities(codes, probability, weight, message):
    with pytest.raises(DataError, match=message):
        class_metrics(codes, probability, weight)


def test_errors_of_classes_take_lists():
    found = class_metrics([0, 1], [[0.2, 0.8], [0.3, 0.7]], groups=["a", "b"])
    assert found["accuracy"][0] == 0.5
