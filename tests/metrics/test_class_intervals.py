"""Metrics of several classes against scikit-learn's, intervals against those of two classes."""

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.metrics import log_loss

from bootprob.exceptions import DataError
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
    of_two = metric_intervals(y, p, weight, 0.9, groups=groups)
    found = class_metric_intervals(y, np.stack([1 - p, p], axis=1), weight, 0.9, groups=groups)
    for name, factor in (("log_loss", 1), ("brier_score", 2)):
        for end in ("value", "lower", "upper"):
            expected = factor * getattr(of_two[name], end)
            assert getattr(found[name], end) == pytest.approx(expected, rel=1e-9)
    assert found["accuracy"].value == pytest.approx(of_two["accuracy"].value)


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
