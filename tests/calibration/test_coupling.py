"""Pairwise coupling against brute-force optimisation, libsvm and finite differences."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.svm import SVC

from bootprob.calibration.coupling import (
    class_pairs,
    couple,
    coupling_derivative,
    number_of_classes,
)
from bootprob.exceptions import DataError

METHODS = ["wu-lin-weng", "hastie-tibshirani"]


@pytest.fixture(params=METHODS)
def method(request) -> str:
    return request.param


def of_pairs(p: np.ndarray) -> np.ndarray:
    """What every pair says of probabilities p: column by column ``p_j / (p_i + p_j)``."""
    return np.stack(
        [p[..., j] / (p[..., i] + p[..., j]) for i, j in class_pairs(p.shape[-1])], axis=-1
    )


def brute_force(second: np.ndarray, method: str) -> np.ndarray:
    """Minimise the objective of the paper, written out pair by pair, on softmax coordinates."""
    K = number_of_classes(len(second))
    r = {}
    for (i, j), value in zip(class_pairs(K), second, strict=True):
        r[i, j], r[j, i] = 1 - value, value

    def objective(theta: np.ndarray) -> float:
        p = softmax(np.append(theta, 0.0))
        if method == "wu-lin-weng":
            return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i, j in permutations(range(K), 2))
        return -sum(r[i, j] * np.log(p[i] / (p[i] + p[j])) for i, j in permutations(range(K), 2))

    found = minimize(objective, np.zeros(K - 1), method="BFGS", options={"gtol": 1e-10})
    return softmax(np.append(found.x, 0.0))


@pytest.mark.parametrize("K", [3, 4, 6])
def test_nothing_is_better_than_the_solution(rng, K, method):
    second = expit(1.5 * rng.normal(size=(3, K * (K - 1) // 2)))
    for row, p in zip(second, couple(second, method), strict=True):
        np.testing.assert_allclose(p, brute_force(row, method), atol=2e-5)


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
def test_probabilities_of_many_rows(rng, spread, method):
    """Never negative, sums of 1, and a row by itself gives the same as among others."""
    second = expit(spread * rng.normal(size=(400, 10)))
    p = couple(second, method)
    assert p.shape == (400, 5)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(couple(second[7:8], method), p[7:8], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_pairs_that_agree_give_back_their_probabilities(rng, K, method):
    p = rng.dirichlet(np.full(K, 0.5), size=50) + 1e-6
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(couple(of_pairs(p), method), p, rtol=1e-7, atol=1e-12)


def test_of_two_classes_nothing_changes(rng, method):
    second = np.concatenate([rng.random(20), [0.0, 1.0]])[:, None]
    p = couple(second, method)
    assert np.array_equal(p, np.concatenate([1 - second, second], axis=1))
    derivative = coupling_derivative(second, p, method)
    np.testing.assert_allclose(derivative[:, 1, 0], second[:, 0] * (1 - second[:, 0]))
    np.testing.assert_allclose(derivative[:, 0], -derivative[:, 1])


def test_the_order_of_classes_does_not_matter(rng, method):
    K = 4
    order = rng.permutation(K)
    r = np.zeros((K, K))
    for i, j in class_pairs(K):
        r[j, i] = rng.random()
        r[i, j] = 1 - r[j, i]
    moved = r[np.ix_(order, order)]
    p, q = (couple([[each[j, i] for i, j in class_pairs(K)]], method)[0] for each in (r, moved))
    np.testing.assert_allclose(q, p[order], rtol=1e-9, atol=1e-12)


def test_certain_pairs(method):
    """r of exactly 0 and 1: a class that beats all others, a circle, and a draw of the best two."""
    tolerance = 1e-15 if method == "wu-lin-weng" else 2e-5  # the divergence needs them inside
    winner, circle, two = couple([[0, 0, 1], [1, 0, 1], [0.5, 0, 0]], method)
    np.testing.assert_allclose(winner, [1, 0, 0], atol=tolerance)
    np.testing.assert_allclose(circle, np.full(3, 1 / 3), atol=1e-9)
    np.testing.assert_allclose(two, [0.5, 0.5, 0], atol=tolerance)
    all_lost = np.array([[0, 0, 1], [1, 0, 1], [0.5, 0, 0]])
    assert np.isfinite(coupling_derivative(all_lost, couple(all_lost, method), method)).all()


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("spread", [0.5, 4.0])
def test_derivative_is_that_of_finite_differences(rng, K, spread, method):
    logits = spread * rng.normal(size=(20, K * (K - 1) // 2))
    p = couple(expit(logits), method)
    derivative = coupling_derivative(expit(logits), p, method)
    np.testing.assert_allclose(derivative.sum(axis=1), 0, atol=1e-12)
    for pair in range(logits.shape[1]):
        step = 1e-5 * (np.arange(logits.shape[1]) == pair)
        above, below = (couple(expit(logits + sign * step), method) for sign in (1, -1))
        np.testing.assert_allclose(derivative[:, :, pair], (above - below) / 2e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
def test_agrees_with_libsvm(rng):
    """Which stops its iteration when the conditions hold within 0.005 / K."""
    y = np.repeat(np.arange(4), 25)
    X = rng.normal(size=(100, 3)) + np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])[y]
    model = SVC(kernel="linear", probability=True, decision_function_shape="ovo", random_state=0)
    model.fit(X, y)
    # Scores of a pair are for its first class, whose probability is 1 / (1 + exp(A f + B)).
    first = expit(-(model.probA_ * model.decision_function(X) + model.probB_))
    np.testing.assert_allclose(couple(1 - first), model.predict_proba(X), atol=0.01)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([0.5, 0.5, 0.5], r"shape \(3,\).*rows × pairs"),
        (np.ones((2, 4)), r"4 pairs.*every pair"),
        (np.ones((2, 0)), r"0 pairs"),
        ([[0.5, np.nan, 0.5]], r"hold nan.*0 to 1"),
        ([[0.5, 1.5, 0.5]], r"hold 1\.5"),
        ([[0.5, -0.1, 0.5]], r"hold -0\.1"),
        ([["a", "b", "c"]], r"no table of numbers"),
    ],
)
def test_what_is_no_probability_of_pairs_is_refused(second, message, method):
    with pytest.raises(DataError, match=message):
        couple(second, method)
    with pytest.raises(DataError, match=message):
        coupling_derivative(second, np.ones((2, 3)) / 3, method)


def test_unknown_methods_are_refused():
    with pytest.raises(DataError, match=r"'price'.*'wu-lin-weng' or 'hastie-tibshirani'"):
        couple([[0.5]], "price")


def test_no_rows(method):
    assert couple(np.empty((0, 3)), method).shape == (0, 3)
    assert coupling_derivative(np.empty((0, 3)), np.empty((0, 3)), method).shape == (0, 3, 3)


def test_logits_of_pairs_that_agree_add_up(rng, method):
    """Moving the pairs of one class together by t multiplies its odds by exp t."""
    p = rng.dirichlet(np.ones(4), size=10)
    second = of_pairs(p)
    towards = np.array([(j == 2) - (i == 2) for i, j in class_pairs(4)], dtype=float)
    along = coupling_derivative(second, couple(second, method), method) @ towards
    np.testing.assert_allclose(along[:, 2] / (p[:, 2] * (1 - p[:, 2])), 1, rtol=1e-6)
