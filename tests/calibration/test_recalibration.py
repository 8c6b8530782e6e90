"""Probabilities moved to what new rows say, beside independent truths."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit, logit
from scipy.stats import norm

from bootprob.calibration.logistic_posterior import logistic_posterior
from bootprob.calibration.recalibration import Recalibration, base_rate_of_scores

NONE, Z = np.zeros((2, 2)), norm.ppf(0.975)


@pytest.fixture
def labelled():
    rng = np.random.default_rng(2)
    logits = rng.normal(-1, 1.5, size=400)
    return logits, rng.random(400) < expit(0.7 + 0.8 * logits)


def of_labels(logits, positive, weight=None, start=None):
    weight = np.ones(len(logits)) if weight is None else weight
    start = Recalibration(covariance=0.02 * np.eye(2)) if start is None else start
    return Recalibration.of_labels(logits, positive, weight, start, NONE)


def test_a_posterior_is_the_integral(labelled):
    logits, positive = labelled[0][:40], labelled[1][:40]
    design, prior = np.stack([np.ones(40), logits], axis=1), np.array([[0.5, 0.1], [0.1, 0.3]])
    mode, covariance, evidence = logistic_posterior(
        design, positive, np.ones(40), np.array([0.0, 1.0]), prior
    )
    precision = np.linalg.inv(prior)

    def log_height(slope, intercept):
        eta = intercept + slope * logits
        away = np.array([intercept, slope - 1])
        return (
            -np.sum(np.logaddexp(0, eta) - positive * eta)
            - away @ precision @ away / 2
            - np.log(2 * np.pi)
            - np.linalg.slogdet(prior)[1] / 2
        )

    top = log_height(mode[1], mode[0])
    for step in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
        assert log_height(mode[1] + step[1], mode[0] + step[0]) < top
    whole, _ = dblquad(lambda b, a: np.exp(log_height(b, a) - top), -3, 4, -2, 4)
    assert evidence == pytest.approx(top + np.log(whole), abs=0.05)
    mean, _ = dblquad(lambda b, a: a * np.exp(log_height(b, a) - top), -3, 4, -2, 4)
    square, _ = dblquad(lambda b, a: a * a * np.exp(log_height(b, a) - top), -3, 4, -2, 4)
    variance = square / whole - (mean / whole) ** 2
    assert covariance[0, 0] == pytest.approx(variance, rel=0.15)


def test_rows_that_stand_for_several_count_as_these(labelled):
    logits, positive = labelled
    design = np.stack([np.ones(400), logits], axis=1)
    prior, mean = np.eye(2), np.array([0.0, 1.0])
    counts = np.arange(400) % 3 + 1
    repeated = np.repeat(np.arange(400), counts)
    many = logistic_posterior(design[repeated], positive[repeated], np.ones(800 - 1), mean, prior)
    few = logistic_posterior(design, positive, counts, mean, prior)
    for one, other in zip(many, few, strict=True):
        assert np.allclose(one, other)


def test_many_labels_speak_for_themselves(labelled):
    rng = np.random.default_rng(3)
    logits = rng.normal(-1, 1.5, size=200_000)
    learnt = of_labels(logits, rng.random(200_000) < expit(0.7 + 0.8 * logits))
    error = np.sqrt(np.diag(learnt.covariance))
    assert np.abs((learnt.coefficients - [0.7, 0.8]) / error).max() < 5
    assert error.max() < 0.02


def test_few_labels_leave_what_is_known(labelled):
    logits, positive = labelled
    start = Recalibration(np.array([0.4, 0.9]), 1e-3 * np.eye(2))
    learnt = of_labels(logits[:1], positive[:1], start=start)
    assert np.abs(learnt.coefficients - start.coefficients).max() < 0.4
    learnt = of_labels(logits, np.random.default_rng(1).random(400) < expit(logits))
    assert np.abs(learnt.coefficients - [0, 1]).max() < 0.3


def test_weights_are_repeated_rows(labelled):
    logits, positive = labelled
    counts = np.arange(400) % 3 + 1
    repeated = np.repeat(np.arange(400), counts)
    many = of_labels(logits[repeated], positive[repeated])
    assert np.allclose(
        many.coefficients, of_labels(logits, positive, counts.astype(float)).coefficients
    )


def test_scores_that_point_the_wrong_way_say_nothing(labelled):
    logits, _ = labelled
    learnt = of_labels(3 * logits, logits < -1)
    assert learnt.coefficients[1] == 0
    p = learnt.predict(np.array([0.1, 0.9]))
    assert p[0] == p[1]
    assert abs(p[0] - np.mean(logits < -1)) < 0.1


@pytest.mark.parametrize("labels", [np.zeros(30, bool), np.ones(30, bool)])
def test_one_class_alone_moves_no_further_than_a_prior(labels):
    learnt = of_labels(np.zeros(30), labels)
    assert np.isfinite(learnt.coefficients).all()
    p = learnt.predict(np.array([0.5]))[0]
    assert (p > 0.5) == labels[0]
    assert 0.001 < p < 0.999


def test_base_rates_are_bayes_rule():
    p, before, after = np.array([0.01, 0.3, 0.97]), 0.2, 0.6
    likelihood = p / (1 - p) / (before / (1 - before))
    odds = likelihood * after / (1 - after)
    moved = Recalibration.of_base_rates(before, after)
    assert np.allclose(moved.predict(p), odds / (1 + odds))


def test_a_base_rate_of_scores_is_where_the_em_algorithm_ends():
    rng = np.random.default_rng(5)
    positive = rng.random(3000) < 0.4
    x = rng.normal(np.where(positive, 1.0, -1.0))
    before = 0.15  # p(1 | x) at that base rate
    logits = 2 * x + logit(before)
    share, variance = base_rate_of_scores(logits, before)
    weight = np.ones(3000)
    known = before
    for _ in range(2000):  # Saerens et al. (2002), (2.5) to (2.6), and half a row of each class
        positive_part = known / before * expit(logits)
        negative_part = (1 - known) / (1 - before) * expit(-logits)
        known = (np.sum(positive_part / (positive_part + negative_part)) + 0.5) / 3001
    assert share == pytest.approx(known, abs=1e-6)
    assert abs(logit(share) - logit(0.4)) < 5 * np.sqrt(variance)
    doubled = base_rate_of_scores(logits, before, 2 * weight)
    repeated = base_rate_of_scores(np.tile(logits, 2), before)
    assert doubled == pytest.approx(repeated)
    assert doubled[1] == pytest.approx(variance / 2, rel=0.01)


def test_scores_that_are_alike_say_nothing_of_a_base_rate():
    assert base_rate_of_scores(np.full(10, logit(0.2)), 0.2)[1] == np.inf


@pytest.mark.parametrize("side", [-1, 1])
def test_base_rates_at_the_end(side):
    share, variance = base_rate_of_scores(np.full(50, side * 6.0), 0.3)
    assert (share > 0.9) == (side > 0)
    assert 0 < share < 1
    assert np.isfinite(variance)


def test_intervals_follow():
    p = np.array([0.1, 0.5])
    interval = np.array([[0.05, 0.3], [0.5, 0.9]])
    moved = Recalibration(np.array([0.3, 0.8])).bounds(p, interval, Z)
    assert np.allclose(moved, expit(0.3 + 0.8 * logit(interval)))
    covariance = np.array([[0.04, 0.01], [0.01, 0.02]])
    wider = Recalibration(np.array([0.3, 0.8]), covariance).bounds(p, interval, Z)
    g = np.array([1, logit(0.1)])
    own = 0.8 * (logit(0.3) - logit(0.1))
    half = np.hypot(own, Z * np.sqrt(g @ covariance @ g))
    assert wider[0, 1] == pytest.approx(expit(0.3 + 0.8 * logit(0.1) + half))
    less = Recalibration(np.array([0.3, 0.8]), covariance, covariance / 2).bounds(p, interval, Z)
    assert (wider[:, 0] <= less[:, 0]).all()
    assert (less[:, 1] <= wider[:, 1]).all()
    once = np.array([[0.08, 0.2], [0.5, 0.7]])
    wide = expit(logit(p)[:, None] + Z * (logit(once) - logit(p)[:, None]))
    known = Recalibration(np.array([0.3, 0.8]), covariance, covariance / 2)
    assert np.allclose(known.bounds(p, wide, Z, once), known.bounds(p, wide, Z))
    beyond = Recalibration(np.array([0.0, 1.0])).bounds(p, np.array([[0.2, 0.3], [0.5, 0.9]]), Z)
    assert np.allclose(beyond[0], [0.2, 0.3])  # of a biased method, on the far side of p
    of_open = Recalibration().bounds(np.array([1.0]), np.array([[0.0, 1.0]]), Z)
    assert (of_open == [[0, 1]]).all()
