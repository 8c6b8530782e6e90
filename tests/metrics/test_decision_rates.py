"""Rates of right decisions: exact intervals, weights, the curve of all thresholds."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_curve

from bootprob.intervals.shares import exact_interval
from bootprob.metrics.decision_rates import decision_rates, trade_off


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_intervals_are_those_of_the_binomial_test(rng, level):
    for n in (1, 2, 17, 400):
        for hits in {0, int(rng.integers(n + 1)), n}:
            expected = stats.binomtest(hits, n).proportion_ci(level, method="exact")
            found = exact_interval(hits / n, n, level)
            assert found == pytest.approx(tuple(expected), abs=1e-9)


def test_rates_are_counted_in_each_class(rng):
    positive, decided = rng.uniform(size=(2, 60)) < 0.5
    positive[:2], decided[:2] = [True, False], [True, False]
    rates = decision_rates(positive, decided, np.ones(60), 0.9)
    for name, members in (("tpr", positive), ("tnr", ~positive)):
        rate, right = rates[name], int((decided == positive)[members].sum())
        assert (rate.n_right, rate.n_rows) == (right, members.sum())
        assert rate.value == pytest.approx(right / members.sum())
        expected = stats.binomtest(right, int(members.sum())).proportion_ci(0.9, method="exact")
        assert (rate.lower, rate.upper) == pytest.approx(tuple(expected))


def test_weights_count_and_rows_of_none_do_not(rng):
    positive, decided = rng.uniform(size=(2, 80)) < 0.5
    weight = rng.integers(0, 3, size=80).astype(float)
    positive[:2], weight[:2] = [True, False], 2.0
    found = decision_rates(positive, decided, weight, 0.95)
    for name, members in (("tpr", positive), ("tnr", ~positive)):
        right = weight[members & (decided == positive)].sum()
        assert found[name].value == pytest.approx(right / weight[members].sum())
        assert found[name].n_rows == (members & (weight > 0)).sum()
        assert found[name].lower <= found[name].value <= found[name].upper
    # All weights doubled tell no more than they did.
    assert decision_rates(positive, decided, 2 * weight, 0.95)["tpr"] == found["tpr"]


@pytest.mark.parametrize("n", [30, 4000])
def test_the_curve_lies_on_that_of_all_thresholds(rng, n):
    positive = np.arange(n) < n // 3
    scores = rng.normal(size=n) + positive
    scores[::7] = np.nan
    weight = rng.uniform(size=n)
    weight[::5] = 0.0
    curve = trade_off(positive, scores, weight)
    seen = np.isfinite(scores) & (weight > 0)
    false_alarms, found, _ = roc_curve(positive[seen], scores[seen], sample_weight=weight[seen])
    whole = set(zip(found, 1 - false_alarms, strict=True))
    assert set(zip(curve.sensitivity, curve.specificity, strict=True)) <= whole
    assert (curve.sensitivity[0], curve.specificity[0]) == (0, 1)
    assert (curve.sensitivity[-1], curve.specificity[-1]) == (1, pytest.approx(0))
    assert len(curve.sensitivity) <= 202
    if n == 4000:  # thinned evenly: twice the mean step at most, and a row
        steps = np.abs(np.diff(curve.sensitivity)) + np.abs(np.diff(curve.specificity))
        assert steps.max() < 0.03
