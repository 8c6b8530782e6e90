"""Machines under constraints written in CVXPY: against scikit-learn, and by what they keep."""

import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.svm import SVC

from bootprob import DataError
from bootprob.constrained.convex_svc import (
    ConvexConstrainedSVC,
    InfeasibleConstraintsError,
    UnsolvedError,
)
from bootprob_gpu.derivatives.active_sets import SetStatus
from bootprob_gpu.derivatives.kkt import differentiable_scores

cp = pytest.importorskip("cvxpy")

TIGHT = {"eps": 1e-10, "max_iters": 100_000}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(50, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.8] + rng.normal(size=50) > 0, "yes", "no")
    y[:2] = "yes", "no"
    return X, y


def test_without_constraints_it_is_the_plain_machine(data, rng):
    X, y = data
    weight = rng.uniform(0.5, 2, size=50)
    ours = ConvexConstrainedSVC(C=0.5, class_weight="balanced").fit(X, y, weight)
    theirs = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y, ours.cost_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert (ours.predict(X) == theirs.predict(X))[np.abs(ours.decision_function(X)) > 1e-2].all()
    share = np.array([weight[y == label].sum() for label in ours.classes_])
    factor = (weight.sum() / (2 * share))[(y == "yes").astype(int)]
    np.testing.assert_allclose(ours.cost_, 0.5 * weight * factor)


def test_groups_get_scores_that_differ_by_no_more_than_asked(data):
    X, y = data
    group = X[:, 3] > 0

    def fair(machine):
        scores = machine.scores()
        return cp.abs(cp.sum(scores[group]) / group.sum() - cp.sum(scores[~group]) / (~group).sum())

    plain = ConvexConstrainedSVC().fit(X, y)
    model = ConvexConstrainedSVC(lambda machine: fair(machine) <= 0.05).fit(X, y)

    def apart(one):
        scores = one.decision_function(X)
        return abs(scores[group].mean() - scores[~group].mean())

    assert apart(plain) > 0.05
    assert apart(model) <= 0.05 + 1e-6
    assert model.objective_ >= plain.objective_ - 1e-6
    assert model.constraint_violation_ <= 1e-6


def test_signs_and_a_budget(data):
    X, y = data
    model = ConvexConstrainedSVC(
        lambda machine: [machine.coef >= 0, cp.norm1(machine.coef) <= 0.7]
    ).fit(X, y)
    assert (model.coef_ >= -1e-6).all()
    assert np.abs(model.coef_).sum() <= 0.7 + 1e-6
    # No multiple of the coefficients within the budget, and no other intercept, does better.
    sign = np.where(y == "yes", 1.0, -1.0)
    for scale in (0.5, 0.9, 1.0):
        for shift in (-0.1, 0.0, 0.1):
            coef = model.coef_[0] * scale
            slack = np.maximum(0, 1 - sign * (X @ coef + model.intercept_[0] + shift))
            assert 0.5 * coef @ coef + model.cost_ @ slack >= model.objective_ - 1e-5


def test_duals_are_the_price_of_a_bound(data):
    X, y = data

    def trained(budget):
        return ConvexConstrainedSVC(lambda machine: [cp.norm1(machine.coef) <= budget]).fit(X, y)

    step = 1e-3
    price = (trained(0.5 - step).objective_ - trained(0.5 + step).objective_) / (2 * step)
    assert float(trained(0.5).constraint_duals_[0]) == pytest.approx(price, rel=0.02, abs=0.02)


@pytest.mark.filterwarnings("ignore:.*copy keyword:DeprecationWarning")
def test_layer_agrees_with_the_closed_form(data, rng):
    pytest.importorskip("cvxpylayers")
    X, y = data[0][:20], data[1][:20]
    sign = torch.from_numpy(np.where(y == "yes", 1.0, -1.0))
    rows, new = torch.from_numpy(X), torch.from_numpy(rng.normal(size=(3, 4)))
    cost = torch.from_numpy(rng.uniform(0.1, 1.0, size=20)).requires_grad_(True)
    coef, intercept = ConvexConstrainedSVC().layer(X, y)(cost, solver_args=TIGHT)
    (new @ coef + intercept).sum().backward()
    theirs, cost.grad = cost.grad, None
    scores, models = differentiable_scores(rows, sign, cost[None, None], new)
    scores.sum().backward()
    if models.status[0, 0] != SetStatus.REGULAR:
        pytest.skip("degenerate draw")
    size = max(1.0, float(cost.grad.abs().max()))
    torch.testing.assert_close(theirs, cost.grad, rtol=0, atol=1e-4 * size)


@pytest.mark.filterwarnings("ignore:.*copy keyword:DeprecationWarning")
def test_layer_keeps_the_constraints_and_agrees_with_refits(data):
    pytest.importorskip("cvxpylayers")
    X, y = data
    model = ConvexConstrainedSVC(lambda machine: [cp.norm1(machine.coef) <= 0.7])
    cost = torch.full((50,), 1.0, dtype=torch.float64, requires_grad=True)
    coef, intercept = model.layer(X, y)(cost, solver_args=TIGHT)
    model.fit(X, y)
    np.testing.assert_allclose(coef.detach(), model.coef_[0], atol=1e-3)
    assert float(coef.detach().abs().sum()) <= 0.7 + 1e-3
    (coef.sum() + intercept).backward()
    assert torch.isfinite(cost.grad).all()


@pytest.mark.parametrize(
    ("constraints", "error", "message"),
    [
        (
            lambda m: [m.coef[0] >= 1, m.coef[0] <= 0],
            InfeasibleConstraintsError,
            r"No machine keeps the 2 constraints",
        ),
        (lambda m: [m.coef[0] >= 0, cp.norm1(m.coef) >= 1], DataError, "Constraint 1 .*not convex"),
        (lambda m: [True], DataError, "Constraint 0 .*not a constraint of CVXPY"),
        (lambda m: [cp.Variable(boolean=True) <= m.coef[0]], DataError, "integer or boolean"),
        (lambda m: [m.coef[0] <= cp.Parameter()], DataError, "1 cvxpy.Parameter"),
    ],
    ids=["infeasible", "not convex", "no constraint", "boolean", "parameter"],
)
def test_what_cannot_be_kept_is_refused(data, constraints, error, message):
    with pytest.raises(error, match=message):
        ConvexConstrainedSVC(constraints).fit(*data)


def test_solvers(data, monkeypatch):
    X, y = data
    with pytest.raises(DataError, match="solver is 'NONE'; installed are"):
        ConvexConstrainedSVC(solver="NONE").fit(X, y)

    def broken(*_, **__):
        raise cp.SolverError("it broke")

    monkeypatch.setattr(cp.Problem, "solve", broken)
    with pytest.raises(UnsolvedError, match=r"CLARABEL failed \(it broke\)"):
        ConvexConstrainedSVC().fit(X, y)


@pytest.mark.parametrize("case", ["one class", "NaN", "strings", "empty", "negative C"])
def test_unusable_data_are_refused(data, case):
    X, y = data
    model = ConvexConstrainedSVC()
    if case == "one class":
        y = np.full(50, "yes")
    elif case == "NaN":
        X = X.copy()
        X[3, 1] = np.nan
    elif case == "strings":
        X = np.full(X.shape, "a")
    elif case == "empty":
        X, y = X[:0], y[:0]
    else:
        model = ConvexConstrainedSVC(C=-1.0)
    with pytest.raises(ValueError, match=r"."):
        model.fit(X, y)


def test_a_missing_package_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpylayers.torch", None)
    with pytest.raises(ImportError, match=r"bootprob\[layers\]"):
        ConvexConstrainedSVC().layer(*data)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"cvxpy is needed .*bootprob\[layers\]"):
        ConvexConstrainedSVC().fit(*data)


def test_many_rows_are_warned_of(rng):
    X = rng.normal(size=(1001, 2))
    with pytest.warns(UserWarning, match="1001 rows"):
        ConvexConstrainedSVC(C=0.01).fit(X, X[:, 0] > 0)


def test_ugly_columns(rng):
    """A constant column, a duplicated row, two rows a class."""
    X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    model = clone(ConvexConstrainedSVC(lambda machine: machine.coef[1] >= 0.1))
    model.fit(X, [0, 0, 1, 1])
    assert np.isfinite(model.coef_).all()
    assert (model.predict(X) == [0, 0, 1, 1]).all()
