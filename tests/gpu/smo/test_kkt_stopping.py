"""Stopping by the violation of the KKT conditions, libsvm's rule, against libsvm itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from problems import bootstrap_counts, overlapping
from sklearn.svm import SVC

from bootprob_gpu import FittedBatch, InputError, Problem, Status, fit
from bootprob_gpu.smo.batched import violation

KKT_TOL = 1e-3
NEVER = 1e-15  # a gap that rounding does not allow
SOLVERS = ["smo-compiled", "smo-batched"]


@dataclass
class Drawn:
    """A problem and its Gram matrices, made by numpy alone."""

    problem: Problem

    @classmethod
    def with_kernel(cls, rng: np.random.Generator, kernel: str) -> Drawn:
        X, y = overlapping(rng, n=60, p=4)
        gamma = [0.1, 0.4] if kernel == "rbf" else None
        scale = rng.uniform(0.5, 2.0, size=(2, 4))
        counts = bootstrap_counts(rng, 2, y)
        return cls(Problem(X, y, counts, [0.25, 1.0, 4.0], kernel=kernel, gamma=gamma, scale=scale))

    def gram(self, b: int, r: int) -> np.ndarray:
        rows = self.problem.X / self.problem.scale[b]
        if self.problem.gamma_per_model is None:
            return rows @ rows.T
        distances = ((rows[:, None] - rows) ** 2).sum(-1)
        return np.exp(-self.problem.gamma_per_model[r] * distances)

    def models(self):
        """All models: Gram matrix, box bounds, and their place."""
        for b in range(self.problem.n_replicates):
            upper = self.problem.upper_of(slice(b, b + 1))[0]
            for r in range(self.problem.n_models):
                yield (b, r), self.gram(b, r), upper[r]


def dual_objective(K: np.ndarray, s: np.ndarray) -> float:
    return float(np.abs(s).sum() - 0.5 * s @ K @ s)


def largest_violation(K: np.ndarray, y: np.ndarray, u: np.ndarray, s: np.ndarray) -> float:
    """m(a) − M(a) by its definition (Fan, Chen, Lin 2005), row by row."""
    gradient = y - K @ s
    a = y * s
    up = [g for g, a_i, u_i, label in zip(gradient, a, u, y, strict=True)
          if (label > 0 and a_i < u_i) or (label < 0 and a_i > 0)]  # fmt: skip
    low = [g for g, a_i, u_i, label in zip(gradient, a, u, y, strict=True)
           if (label < 0 and a_i < u_i) or (label > 0 and a_i > 0)]  # fmt: skip
    return max(up) - min(low)


@pytest.fixture(params=["linear", "rbf"])
def drawn(request, rng) -> Drawn:
    return Drawn.with_kernel(rng, request.param)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_violation_is_what_was_asked_for(drawn, solver, dtype):
    fitted = fit(drawn.problem, solver=solver, tol=NEVER, kkt_tol=KKT_TOL, dtype=dtype)
    assert (fitted.status == Status.CONVERGED).all()
    for (b, r), K, u in drawn.models():
        s = fitted.dual_coef[b, r].numpy()
        assert largest_violation(K, drawn.problem.y, u, s) <= KKT_TOL * (1 + 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_objective_is_as_good_as_libsvms(drawn, solver):
    """For any two feasible points, ``D(a') − D(a) ≤ (m − M)(a) · ½ Σ |s' − s|`` by concavity."""
    fitted = fit(drawn.problem, solver=solver, tol=NEVER, kkt_tol=KKT_TOL)
    y = drawn.problem.y
    for (b, r), K, u in drawn.models():
        kept = np.flatnonzero(u)
        model = SVC(C=1.0, kernel="precomputed", tol=KKT_TOL)
        model.fit(K[np.ix_(kept, kept)], y[kept], sample_weight=u[kept])
        theirs, ours = np.zeros(len(y)), fitted.dual_coef[b, r].numpy()
        theirs[kept[model.support_]] = model.dual_coef_[0]
        allowed = KKT_TOL * 0.5 * np.abs(ours - theirs).sum() + 1e-6 * np.abs(ours).sum()
        assert abs(dual_objective(K, theirs) - dual_objective(K, ours)) <= allowed


@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_holds_the_gap_that_was_reached(drawn, solver):
    fitted = fit(drawn.problem, solver=solver, tol=NEVER, kkt_tol=KKT_TOL)
    assert fitted.gap.max() > 1e-9  # it is not the gap that ended them
    for (b, r), K, _ in drawn.models():
        s = fitted.dual_coef[b, r].numpy()
        assert float(fitted.dual[b, r]) == pytest.approx(dual_objective(K, s), rel=1e-9)
        gap = 1 - float(fitted.dual[b, r]) / float(fitted.primal[b, r])
        assert float(fitted.gap[b, r]) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_whichever_tolerance_is_met_first_ends_a_model(drawn, solver):
    def trained(**options) -> FittedBatch:
        return fit(drawn.problem, solver=solver, **options)

    by_gap, by_violation = trained(tol=1e-7), trained(tol=NEVER, kkt_tol=KKT_TOL)
    both = trained(tol=1e-7, kkt_tol=KKT_TOL)
    loose = trained(tol=0.1, kkt_tol=1e-9)
    # Only the first models start alike.
    assert (both.n_iter[:, 0] <= torch.minimum(by_gap.n_iter, by_violation.n_iter)[:, 0]).all()
    assert (both.gap > 1e-7).any()  # the violation ended some of them
    assert (loose.gap <= 0.1).all()
    assert loose.n_iter.sum() < by_gap.n_iter.sum()
    for fitted in (by_gap, both, loose):
        assert (fitted.status == Status.CONVERGED).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_iterations_that_run_out_first_are_owned_up_to(drawn, solver):
    fitted = fit(drawn.problem, solver=solver, tol=NEVER, kkt_tol=1e-9, max_iter=2)
    y = drawn.problem.y
    for (b, r), K, u in drawn.models():
        left = largest_violation(K, y, u, fitted.dual_coef[b, r].numpy())
        done = left <= 1e-9 or float(fitted.gap[b, r]) <= NEVER
        assert int(fitted.status[b, r]) == (Status.CONVERGED if done else Status.MAX_ITER)
    assert (fitted.status == Status.MAX_ITER).any()


def test_violation_of_a_model_at_its_bounds_is_negative():
    """Every variable at its upper bound: what may grow is empty on one side of each pair."""
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    upper = torch.full((2,), 0.1, dtype=torch.float64)
    s = upper * y
    g = y - torch.eye(2, dtype=torch.float64) @ s
    assert float(violation(y, upper, s, g)) == pytest.approx(-1.8)
    start = torch.zeros(2, dtype=torch.float64)
    assert float(violation(y, upper, start, y)) == 2


def test_interior_points_refuse_it(rng):
    X, y = overlapping(rng)
    problem = Problem(X, y, np.ones((1, len(y)), int), [1.0])
    for solver in ("auto", "interior-point", "interior-point-compiled"):
        with pytest.raises(InputError, match=r"kkt_tol is for SMO only.*bounds.*tol"):
            fit(problem, solver=solver, kkt_tol=KKT_TOL)


@pytest.mark.parametrize("kkt_tol", [0.0, -1e-3, np.nan, 1.0])
def test_values_out_of_range_are_refused(rng, kkt_tol):
    X, y = overlapping(rng)
    problem = Problem(X, y, np.ones((1, len(y)), int), [1.0], kernel="rbf", gamma=0.5)
    with pytest.raises(InputError, match=r"kkt_tol .*between 0 and 1"):
        fit(problem, kkt_tol=kkt_tol)
