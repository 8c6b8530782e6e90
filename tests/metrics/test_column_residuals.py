"""Score tests of columns, beside likelihood ratios and by simulation."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2, kstest
from sklearn.linear_model import LogisticRegression

from bootprob.metrics.column_residuals import column_residuals


def fitted(logits, y, *columns, weight=None):
    design = np.stack([logits, *columns], axis=1)
    model = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000).fit(design, y, weight)
    p = model.predict_proba(design)[:, 1]
    w = np.ones(len(y)) if weight is None else weight
    return p, np.sum(w * np.log(np.where(y, p, 1 - p)))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    logits = X[:, 0] + 0.5 * X[:, 1]
    return X, logits, rng.random(400) < expit(logits + 0.25 * X[:, 2])


def test_they_agree_with_the_likelihood_ratio(rows):
    X, logits, y = rows
    p, before = fitted(logits, y)
    p_value, column = column_residuals(X[:, 2:], y, p, np.ones(400))
    assert column == 0
    _, after = fitted(logits, y, X[:, 2])
    assert p_value == pytest.approx(chi2.sf(2 * (after - before), 1), rel=0.3)


def test_weights_are_repeated_rows(rows):
    X, logits, y = rows
    counts = np.arange(400) % 3 + 1
    p, _ = fitted(logits, y, weight=counts)
    again = np.repeat(np.arange(400), counts)
    one = column_residuals(X, y, p, counts.astype(float))
    other = column_residuals(X[again], y[again], p[again], np.ones(len(again)))
    assert one == (pytest.approx(other[0]), other[1])


def test_what_is_in_the_logit_or_constant_is_not_looked_at(rows):
    X, logits, y = rows
    p, _ = fitted(logits, y)
    constant = np.stack([np.full(400, 3.0), logits / 7], axis=1)
    logit = np.log(p) - np.log1p(-p)
    constant[:, 1] = 5 * logit - 2
    assert column_residuals(constant, y, p, np.ones(400)) == (1.0, None)
    _, column = column_residuals(np.column_stack([constant, X[:, 2]]), y, p, np.ones(400))
    assert column == 2


def test_scales_do_not_matter(rows):
    X, logits, y = rows
    p, _ = fitted(logits, y)
    one = column_residuals(X, y, p, np.ones(400))
    other = column_residuals(X * [1e6, 1e-6, 1e3] + [1e3, 5, -1e6], y, p, np.ones(400))
    assert one == (pytest.approx(other[0], rel=1e-6), other[1])


def test_without_an_error_p_values_are_uniform():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        X = rng.normal(size=(150, 1))
        logits = rng.normal(size=150)
        y = rng.random(150) < expit(logits)
        found.append(column_residuals(X, y, fitted(logits, y)[0], np.ones(150))[0])
    assert kstest(found, "uniform").pvalue > 1e-6
