"""E-values of rows, beside what they are by hand and by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import chi2, kstest

from bootprob.exceptions import DataError
from bootprob.monitoring import CalibrationEvidence, DriftEvidence
from bootprob.monitoring.bins import CENTERS, bins_of
from bootprob.monitoring.monitor import Monitor

COVARIANCE = np.array([[0.02, 0.005], [0.005, 0.01]])


def labelled(n, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(-0.5, 1.5, size=n)
    return logits, rng.random(n) < expit(logits + shift)


def test_bins_are_near():
    logits = np.random.default_rng(0).uniform(-12, 12, size=1000)
    assert np.abs(CENTERS[bins_of(logits)] - logits).max() <= 1 / 64
    assert CENTERS[bins_of(np.array([-40.0, 40.0]))].tolist() == [-12, 12]


def test_the_value_is_a_ratio_of_likelihoods():
    logits, positive = labelled(60, 1.5)
    found = CalibrationEvidence().after(logits, positive, COVARIANCE)
    x = CENTERS[bins_of(logits)]
    precision = np.linalg.inv(COVARIANCE)

    def loss(theta, rows):
        eta = theta[0] + theta[1] * x[rows]
        return np.sum(np.logaddexp(0, eta) - positive[rows] * eta)

    def taught(prior, rows):
        start = np.array([0.0, 1.0])
        return minimize(
            lambda t: loss(t, rows) + (t - start) @ np.linalg.inv(prior) @ (t - start) / 2, start
        ).x

    numerators = np.zeros(2)
    for start in range(0, 60, 20):
        for k, spread in enumerate([[2.0, 1e-6], [1.0, 0.5]]):
            theta = taught(np.diag(np.square(spread)) + COVARIANCE, slice(0, start))
            numerators[k] -= loss(theta, slice(start, start + 20))
    assert np.allclose(found.numerators, numerators, atol=1e-3)
    radius = chi2.isf(0.025, 2)
    ellipse = {"type": "ineq", "fun": lambda t: radius - (t - [0, 1]) @ precision @ (t - [0, 1])}
    null = minimize(loss, [0.0, 1.0], args=(slice(None),), constraints=ellipse, method="SLSQP")
    value = np.exp(logsumexp(numerators) - np.log(2) + null.fun)
    assert found.largest == pytest.approx(max(value, 1.0), rel=0.01)


def test_the_order_of_looks_keeps_what_was_seen():
    logits, positive = labelled(500, 1.0)
    at_once = CalibrationEvidence().after(logits, positive, COVARIANCE)
    by_parts = CalibrationEvidence()
    for part in np.array_split(np.arange(500), 7):
        by_parts = by_parts.after(logits[part], positive[part], COVARIANCE)
    assert np.array_equal(at_once.rows, by_parts.rows)
    assert np.array_equal(at_once.positives, by_parts.positives)
    nothing = by_parts.after(logits[:0], positive[:0], COVARIANCE)
    assert nothing is by_parts


def test_an_alarm_stays():
    logits, positive = labelled(2000, 1.5)
    found = CalibrationEvidence().after(logits, positive, COVARIANCE)
    assert found.alarm
    assert found.largest > 1e6
    assert found.after(*labelled(2000, -1.5, seed=1), COVARIANCE).alarm


@pytest.mark.parametrize("labels", [np.zeros(400, bool), np.ones(400, bool)])
def test_labels_of_one_class(labels):
    found = CalibrationEvidence().after(np.zeros(400), labels, COVARIANCE)
    assert found.alarm
    assert np.isfinite(found.largest)


def test_no_change_is_no_alarm():
    logits, positive = labelled(20_000)
    assert not CalibrationEvidence().after(logits, positive, COVARIANCE).alarm
    known = np.random.default_rng(4).normal(-0.5, 1.5, size=300)
    assert not DriftEvidence.beside(known).after(logits).alarm


def test_places_are_uniform_and_counted_by_hand():
    logits = np.round(np.random.default_rng(0).normal(size=1200), 1)  # with ties
    evidence = DriftEvidence.beside(logits[:300])
    places = np.concatenate(
        [
            evidence._places(bins_of(logits[300:800])),
            evidence.after(logits[300:800])._places(bins_of(logits[800:])),
        ]
    )
    assert kstest(places, "uniform").pvalue > 1e-6
    bins = bins_of(logits)
    for k in (0, 5, 499, 500, 899):
        before = bins[: 300 + k]
        above, same = np.sum(before > bins[300 + k]), np.sum(before == bins[300 + k])
        assert above <= places[k] * (301 + k) <= above + same + 1


def test_the_martingale_is_the_jumpers():
    logits = np.random.default_rng(0).normal(size=60)
    evidence = DriftEvidence.beside(np.random.default_rng(1).normal(size=40))
    places = evidence._places(bins_of(logits))
    total = []
    for each in (places, 2 * np.abs(places - 0.5)):
        capital = dict.fromkeys((-1, 0, 1), 1 / 3)
        path = []
        for place in each:
            whole = sum(capital.values())
            capital = {
                bet: (0.99 * capital[bet] + 0.01 / 3 * whole) * (1 + bet * (place - 0.5))
                for bet in capital
            }
            path.append(sum(capital.values()))
        total.append(path)
    found = evidence.after(logits)
    values = np.mean(total, axis=0)
    assert found.largest == pytest.approx(max(values.max(), 1.0))
    assert np.exp(found.log_scale) * found.capital.sum() / 2 == pytest.approx(values[-1])


@pytest.mark.parametrize(("scale", "shift"), [(1, 1.0), (1, -1.0), (3, 0.0), (0.2, 0.0)])
def test_drift_of_each_kind_is_found(scale, shift):
    rng = np.random.default_rng(0)
    evidence = DriftEvidence.beside(rng.normal(size=400))
    found = evidence.after(scale * rng.normal(size=1500) + shift)
    assert found.alarm
    assert found.after(rng.normal(size=50_000)).alarm
    assert np.isfinite(found.after(np.full(100_000, 11.0)).largest)


def test_what_is_kept_goes_on():
    logits, positive = labelled(700, 0.5)
    monitor = Monitor.beside(logits[:200])
    one = Monitor(
        monitor.calibration.after(logits[200:], positive[200:], COVARIANCE),
        monitor.drift.after(logits[200:]),
    )
    again = Monitor.of(one.arrays)
    assert again.found == one.found
    assert all(np.array_equal(again.arrays[name], each) for name, each in one.arrays.items())


def test_labels_of_0_and_1_are_labels(rng):
    logits = rng.normal(size=400)
    labels = rng.uniform(size=400) < expit(logits)
    given = 0.01 * np.eye(2)
    asked, answer = (
        CalibrationEvidence().after(logits, each, given) for each in (labels.astype(int), labels)
    )
    assert asked.largest == answer.largest
    assert asked.positives.tolist() == answer.positives.tolist()


@pytest.mark.parametrize(
    "labels",
    [np.array([-1.0, 1.0, 1.0]), np.array(["a", "b", "b"]), np.array([True, False]), [[1, 0, 1]]],
)
def test_labels_of_calibration_are_those_of_the_rows(labels):
    with pytest.raises(DataError, match="booleans or 1 and 0"):
        CalibrationEvidence().after(np.zeros(3), labels, np.eye(2))


def test_what_is_no_evidence_is_refused():
    with pytest.raises(DataError, match="logits must be numbers"):
        DriftEvidence.beside(np.zeros(10)).after(np.array([np.nan, 1.0]))
    with pytest.raises(DataError, match="logits must be numbers"):
        CalibrationEvidence().after(np.array([np.nan, 1.0]), np.array([0, 1]), 0.01 * np.eye(2))
    for none in (np.zeros((2, 2)), np.eye(3), np.full((2, 2), np.nan), [[1.0, 0.5], [0.0, 1.0]]):
        with pytest.raises(DataError, match="covariance must be symmetric"):
            CalibrationEvidence().after(np.zeros(2), np.array([0, 1]), none)
