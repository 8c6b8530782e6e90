"""Calibrators against scikit-learn and against the definition."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from bootprob.calibration import Isotonic, Sigmoid


@pytest.fixture
def scored(rng):
    scores = rng.normal(size=400) * 3 + 1
    positive = rng.uniform(size=400) < expit(0.8 * scores - 0.5)
    return scores, positive, rng.uniform(0.5, 2, 400)


def test_sigmoid_maximises_the_likelihood_of_platts_targets(scored):
    scores, positive, weight = scored
    sigmoid = Sigmoid.fit(scores, positive, weight)
    # A row of target t is t of a positive row and 1 − t of a negative one.
    up = (weight[positive].sum() + 1) / (weight[positive].sum() + 2)
    down = 1 / (weight[~positive].sum() + 2)
    target = np.where(positive, up, down)
    twice = np.concatenate([scores, scores])[:, None]
    reference = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(
        twice,
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([weight * target, weight * (1 - target)]),
    )
    assert sigmoid.slope == pytest.approx(reference.coef_[0, 0], rel=1e-4)
    assert sigmoid.intercept == pytest.approx(reference.intercept_[0], rel=1e-4, abs=1e-5)


def test_fisher_information_gives_the_delta_method(scored):
    scores, positive, weight = scored
    sigmoid = Sigmoid.fit(scores, positive, weight)
    p = sigmoid.predict(scores)
    design = np.column_stack([scores, np.ones_like(scores)])
    information = design.T @ np.diag(weight * p * (1 - p)) @ design
    new = np.array([-2.0, 0.0, 5.0])
    g = np.column_stack([new, np.ones(3)])
    expected = np.diag(g @ np.linalg.inv(information) @ g.T)
    np.testing.assert_allclose(sigmoid.logit_variance(new), expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_sigmoid_does_not_depend_on_the_units_of_the_score(scored, scale):
    scores, positive, weight = scored
    p = Sigmoid.fit(scores, positive, weight).predict(scores)
    q = Sigmoid.fit(scores * scale, positive, weight).predict(scores * scale)
    np.testing.assert_allclose(p, q, atol=1e-6)


def test_separable_scores_stay_finite():
    scores = np.concatenate([np.full(20, -1.0), np.full(30, 1.0)])
    positive = scores > 0
    p = Sigmoid.fit(scores, positive, np.ones(50)).predict(scores)
    np.testing.assert_allclose(p[[0, -1]], [1 / 22, 31 / 32], atol=1e-6)


def test_scores_that_point_the_wrong_way_give_the_base_rate(rng):
    scores = rng.normal(size=100)
    positive = scores < 0.3
    sigmoid = Sigmoid.fit(scores, positive, np.ones(100))
    assert sigmoid.slope == 0
    assert sigmoid.predict(scores)[0] == pytest.approx(positive.mean(), abs=0.01)


def test_constant_scores_give_the_base_rate():
    positive = np.arange(40) < 10
    p = Sigmoid.fit(np.full(40, 3.0), positive, np.ones(40)).predict(np.array([3.0]))
    assert p[0] == pytest.approx(0.25, abs=0.02)


def test_isotonic_is_scikit_learns_on_platts_targets(scored):
    scores, positive, weight = scored
    isotonic = Isotonic.fit(scores, positive, weight)
    up = (weight[positive].sum() + 1) / (weight[positive].sum() + 2)
    down = 1 / (weight[~positive].sum() + 2)
    reference = IsotonicRegression(out_of_bounds="clip").fit(
        scores, np.where(positive, up, down), sample_weight=weight
    )
    new = np.linspace(-20, 20, 101)
    np.testing.assert_allclose(isotonic.predict(new), reference.predict(new), atol=1e-12)
    assert 0 < isotonic.predict(new).min() < isotonic.predict(new).max() < 1
