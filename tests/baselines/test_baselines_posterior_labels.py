"""Machines on probabilities as labels, against CVXPY, and the empirical posterior."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob.baselines import BestCSVC, PosteriorProbabilitySVC
from bootprob.baselines.inner_cross_validation import inner_folds
from bootprob.baselines.margin_targets import linear_machines, machine_of_kernel
from bootprob.baselines.soft_labels import neighbours

EXACT = {"tol_gap_rel": 1e-10, "tol_gap_abs": 1e-11, "tol_feas": 1e-10}


def optimum(columns, penalty, sign, target, upper):
    """Least ``½ vᵀ Λ v + Σ u max(0, t − s (v·x + b))`` by CVXPY."""
    v, b = cp.Variable(columns.shape[1]), cp.Variable()
    missing = cp.pos(target - cp.multiply(sign, columns @ v + b))
    objective = 0.5 * cp.sum(cp.multiply(penalty, cp.square(v))) + upper @ missing
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", **EXACT)
    return problem.value


def objective(penalty, coef, scores, sign, target, upper):
    missing = np.maximum(0.0, target - sign * scores)
    return 0.5 * (penalty * coef * coef).sum() + upper @ missing


def draw(rng, n, p):
    X = rng.normal(size=(n, p))
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    sign[:2] = [1, -1]
    return X, sign, rng.uniform(0.02, 1, size=n)


@pytest.mark.parametrize("kind", ["plain", "separable", "duplicated", "dependent columns", "tiny"])
def test_linear_machines_reach_cvxpys_optimum(rng, kind):
    X, sign, target = draw(rng, 40, int(rng.integers(1, 5)))
    if kind == "separable":
        sign = np.sign(X[:, 0] - np.median(X[:, 0]) + 1e-9)
    elif kind == "duplicated":
        X = np.repeat(X[:8], 5, axis=0)
    elif kind == "dependent columns":
        X = np.hstack([X, X[:, :1], np.zeros((40, 1))])
    elif kind == "tiny":
        X, sign, target = X[:2], sign[:2], target[:2]
    n, p = X.shape
    C = np.array([0.01, 1.0, 100.0])
    upper = C[:, None] * target
    upper[1, 2:] *= rng.random(n - 2) < 0.8
    penalty = rng.uniform(0.5, 2, size=(3, p))
    coef, intercept = linear_machines(
        X, np.tile(sign, (3, 1)), np.tile(target, (3, 1)), upper, penalty
    )
    for k in range(3):
        reached = objective(penalty[k], coef[k], X @ coef[k] + intercept[k], sign, target, upper[k])
        best = optimum(X, penalty[k], sign, target, upper[k])
        assert reached == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_many_machines_are_solved_in_parts(rng, monkeypatch):
    X, sign, target = draw(rng, 30, 2)
    tiled = (
        np.tile(sign, (9, 1)),
        np.tile(target, (9, 1)),
        np.geomspace(0.1, 9, 9)[:, None] * target,
    )
    together = linear_machines(X, *tiled, np.ones((9, 2)))
    monkeypatch.setattr("bootprob.baselines.margin_targets._NUMBERS_AT_ONCE", 90)
    for found, expected in zip(linear_machines(X, *tiled, np.ones((9, 2))), together, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("C", [0.05, 5.0, 500.0])
def test_machines_of_kernels_reach_cvxpys_optimum(rng, C):
    X, sign, target = draw(rng, 35, 2)
    kernel = rbf_kernel(X, gamma=1.0)
    values, vectors = np.linalg.eigh(kernel)
    columns = vectors * np.sqrt(np.maximum(values, 0))
    dual_coef, intercept = machine_of_kernel(kernel, sign, target, C * target, tol=1e-6)
    reached = objective(
        1.0, columns.T @ dual_coef, kernel @ dual_coef + intercept, sign, target, C * target
    )
    best = optimum(columns, np.ones(35), sign, target, C * target)
    assert reached == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "linear with p > n"])
def test_the_estimator_minimises_the_papers_primal(rng, kernel):
    n, p = (20, 30) if "p > n" in kernel else (50, 2)
    X = rng.normal(size=(n, p))
    y = X[:, 0] + 0.7 * rng.normal(size=n) > 0
    y[:4] = [True, False] * 2
    r = 0.8 * np.sqrt(p)
    C = 0.6
    model = PosteriorProbabilitySVC(
        r, C=C, kernel=kernel.split()[0], gamma=0.5, probability="score"
    )
    model.fit(X, y)
    seen = StandardScaler().fit_transform(X)
    label = 2 * model.posterior_ - 1
    if "linear" in kernel:
        columns = seen
        coef = model.coef_[0]
    else:
        values, vectors = np.linalg.eigh(rbf_kernel(seen, gamma=0.5))
        columns = vectors * np.sqrt(np.maximum(values, 0))
        coef = columns.T @ model.dual_coef_[0]
    # ½ ‖w‖² + C Σ ξ subject to y (w·x + b) ≥ y² − ξ, word for word.
    w, b, xi = cp.Variable(columns.shape[1]), cp.Variable(), cp.Variable(n, nonneg=True)
    kept = cp.multiply(label, columns @ w + b) >= np.square(label) - xi
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * cp.sum(xi)), [kept])
    problem.solve(solver="CLARABEL", **EXACT)
    slack = np.maximum(0, np.square(label) - label * model.machine_score(X))
    reached = 0.5 * coef @ coef + C * slack.sum()
    assert reached == pytest.approx(problem.value, rel=1e-4, abs=1e-7)
    expected = (1 + np.clip(model.machine_score(X), -1, 1)) / 2
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)


def test_radius_0_is_the_plain_machine(rng):
    X = rng.normal(size=(70, 3))
    y = X[:, 0] + rng.normal(size=70) > 0
    for kernel in ("linear", "rbf"):
        model = PosteriorProbabilitySVC(0.0, C=1.0, kernel=kernel, gamma=0.4).fit(X, y)
        peer = SVC(C=1.0, kernel=kernel, gamma=0.4, tol=1e-7)
        seen = StandardScaler().fit_transform(X)
        expected = peer.fit(seen, y).decision_function(seen)
        np.testing.assert_allclose(model.machine_score(X), expected, atol=1e-2)
        # A new row has no neighbours: 0 or 1. A training row is its own.
        new = rng.normal(size=(30, 3))
        assert set(model.predict_proba(new)[:, 1]) <= {0.0, 1.0}
        assert set(model.predict_proba(X)[:, 1]) <= {0.0, 0.5, 1.0}
        assert np.array_equal(model.posterior_, y.astype(float))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_folds_count_neighbours_and_standardise_on_their_own(rng, kernel):
    X = rng.normal(size=(40, 2))
    X[:, 1] *= 30
    y = X[:, 0] + rng.normal(size=40) > 0
    C, r = 0.5, 0.6
    model = PosteriorProbabilitySVC(
        r, C=C, kernel=kernel, gamma=0.5, cv=4, random_state=9, probability="score"
    ).fit(X, y)
    right = []
    # γ and r act on columns standardised inside the fold.
    for outside in inner_folds(y, 4, np.random.RandomState(9)):
        scaler = StandardScaler().fit(X[~outside])
        # The training part alone, as the estimator would be fitted to it.
        part = PosteriorProbabilitySVC(r, C=C, kernel=kernel, gamma=0.5, probability="score")
        part.fit(X[~outside], y[~outside])
        np.testing.assert_allclose(part.scale_, scaler.scale_)
        right.append(np.mean((part.machine_score(X[outside]) > 0) == y[outside]))
    assert model.cv_accuracy_[0, 0] == pytest.approx(np.mean(right), abs=0.026)  # a row on 0


def test_neighbours_by_brute_force(rng):
    rows, training = rng.normal(size=(25, 3)), rng.normal(size=(40, 3))
    positive = rng.random(40) < 0.4
    distance = np.sqrt(np.square(rows[:, None] - training[None]).sum(axis=2))
    for r in (0.0, 0.9, 2.0, 50.0):
        n_positive, n_all = neighbours(rows, training, positive, r)
        assert np.array_equal(n_all, (distance <= r).sum(axis=1))
        assert np.array_equal(n_positive, (distance <= r)[:, positive].sum(axis=1))
    # A row at distance r exactly is within r.
    assert neighbours(np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([True]), 5.0)[1] == 1


def test_a_new_row_counts_itself_with_the_class_of_its_score(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    model = PosteriorProbabilitySVC(1.0, C=1.0).fit(X, y)
    new = rng.normal(size=(20, 2))
    scaler = StandardScaler().fit(X)
    seen, others = scaler.transform(new), scaler.transform(X)
    for row, score, p in zip(seen, model.machine_score(new), model.predict_proba(new), strict=True):
        near = np.sqrt(np.square(others - row).sum(axis=1)) <= 1.0
        assert p[1] == pytest.approx((y[near].sum() + (score > 0)) / (near.sum() + 1))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_side_alone_is_a_constant(rng, kernel):
    X = rng.normal(size=(40, 2))
    y = np.arange(40) < 8  # within a radius beyond all rows, one in five is positive
    model = PosteriorProbabilitySVC(100.0, C=[0.1, 1.0], kernel=kernel, probability="score")
    model.fit(X, y)
    np.testing.assert_allclose(model.posterior_, 0.2)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.2)
    balanced = model.fit(X, np.arange(40) < 20)  # every label is 0: no row says anything
    np.testing.assert_allclose(balanced.predict_proba(X), 0.5)


def test_soft_labels_forgive_a_stray_row(rng):
    X = np.concatenate([rng.normal(-1.5, 0.6, size=(40, 2)), rng.normal(1.5, 0.6, size=(40, 2))])
    truth = np.arange(80) >= 40
    X[[3, 11]], X[60] = -1.5, 1.5  # among many others
    y = truth.copy()
    y[[3, 11, 60]] ^= True
    model = PosteriorProbabilitySVC(0.5, C=1.0, probability="score").fit(X, y)
    plain = BestCSVC(C=1.0).fit(X, y)

    def error(p):
        return np.mean(np.square(p - truth))

    # The stray rows' labels are those of their neighbours.
    assert (np.abs(model.posterior_[[3, 11, 60]] - truth[[3, 11, 60]]) < 0.75).all()
    assert error(model.predict_proba(X)[:, 1]) < error(plain.predict_proba(X)[:, 1]) + 0.05
