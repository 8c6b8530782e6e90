"""The bank of known truths: labels follow the stated probabilities, and the limits are limits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit as scipy_logit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from docs.studies.coverage.known_truth import CAUCHIT, CLOGLOG, LOGIT, PROBIT, flipped
from docs.studies.coverage.known_truths import BANK, BENT, COVERED

EVERY = (*BANK, *BENT)
every_truth = pytest.mark.parametrize("truth", EVERY, ids=lambda truth: truth.name)
independent = [truth for truth in BANK if truth.rows_of_subject == 1]


def test_there_are_enough_truths_of_enough_families():
    names = [truth.name for truth in EVERY]
    assert len(set(names)) == len(names) >= 24
    assert len({truth.family for truth in BANK}) >= 10


@every_truth
def test_labels_follow_the_probabilities(truth):
    """In each fifth of the stated probabilities, within what one in a million draws exceeds."""
    n = 10_000
    generator = np.random.default_rng(truth.n_features)
    X, y = replace(truth, n=n).draw(generator)
    p = truth.probability(X)
    assert ((p >= 0) & (p <= 1)).all()
    # Rows of one subject agree: five of them are one draw. 6 parts of fewer than 70 truths.
    bound = norm.isf(1e-6 / 420) * np.sqrt(truth.rows_of_subject)
    for part in (np.arange(n), *np.array_split(np.argsort(p, kind="stable"), 5)):
        spread = np.sqrt((p[part] * (1 - p[part])).sum())
        assert abs((y[part] - p[part]).sum()) <= bound * spread + 3


@every_truth
def test_fresh_rows_come_with_their_probabilities(truth):
    X, p = truth.sample(np.random.default_rng(0), 40)
    assert X.shape == (40, truth.n_features)
    np.testing.assert_array_equal(p, truth.probability(X))
    assert truth.n in truth.sizes


def test_rows_of_a_subject_share_their_label():
    for truth in (each for each in BANK if each not in independent):
        X, y = replace(truth, n=200).draw(np.random.default_rng(0))
        assert (np.ptp(y.reshape(-1, 5), axis=1) == 0).all()
        assert len(np.unique(X, axis=0)) == 200


@every_truth
def test_the_predictor_is_linear_in_the_design_and_the_logit_where_it_is_said(truth):
    X, _ = truth.sample(np.random.default_rng(1), 2000)
    eta = truth.predictor(X)
    design = np.column_stack([np.ones(len(X)), truth.columns(X)])
    np.testing.assert_allclose(design @ np.linalg.lstsq(design, eta, rcond=None)[0], eta, atol=1e-8)
    table = np.column_stack([np.ones(len(X)), X])
    logit = scipy_logit(truth.probability(X).clip(1e-12, 1 - 1e-12))
    rest = logit - table @ np.linalg.lstsq(table, logit, rcond=None)[0]
    assert (np.abs(rest).max() < 1e-6) == truth.linear


@pytest.mark.parametrize("link", [LOGIT, PROBIT, CAUCHIT, CLOGLOG, flipped(0.1, 0.2)],
                         ids=lambda link: link.name)  # fmt: skip
def test_slopes_of_links_are_derivatives(link):
    eta = np.linspace(-4, 3, 50)
    numerical = (link.probability(eta + 1e-5) - link.probability(eta - 1e-5)) / 2e-5
    np.testing.assert_allclose(link.slope(eta), numerical, atol=1e-8)


def test_the_limit_is_that_of_logistic_regression():
    truth = COVERED[0]
    generator = np.random.default_rng(2)
    X, y = truth.draw(generator)
    new = truth.rows(generator, 50)
    peer = LogisticRegression(C=1e4, tol=1e-10, max_iter=1000).fit(X, y)
    middle = truth.limit(X, y, new, 1e-9).mean(axis=1)
    np.testing.assert_allclose(middle, peer.predict_proba(new)[:, 1], atol=1e-6)


@pytest.mark.parametrize("truth", independent, ids=lambda truth: truth.name)
def test_the_limit_covers(truth):
    """Mean coverage of 20 training sets; those of one set share their luck."""
    covered = []
    for trial in range(20):
        generator = np.random.default_rng([7, trial])
        X, y = truth.draw(generator)
        new, p = truth.sample(generator, 50)
        lower, upper = truth.limit(X, y, new, 0.95).T
        covered.append(((lower <= p) & (p <= upper)).mean())
    assert 0.86 < np.mean(covered) <= 1
