"""Compiled SMO's own parts, and what a path saves."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest
import torch
from problems import bootstrap_counts, overlapping
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from bootprob_gpu import (
    InputError,
    Problem,
    Status,
    choose_solver,
    fit,
    iter_fit,
    replicate_scores,
    votes,
)
from bootprob_gpu.hardware.compiled_arithmetic import exponential, larger, smaller
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.kernels.rbf import Rbf
from bootprob_gpu.smo.compiled_gram import PADDING, scaled_grams

SOLVERS = ["smo-compiled", "smo-batched"]


@numba.njit
def every_exponential(x):
    return np.array([exponential(each) for each in x])


@numba.njit
def extrema(x):
    low, high = x[0], x[0]
    for each in x:
        low, high = smaller(each, low), larger(each, high)
    return low, high


def test_exponential_is_good_to_the_last_place(rng):
    x = -np.concatenate([10.0 ** rng.uniform(-17, 2.8, size=2000), [0.0, 700.0, 707.9]])
    found, expected = every_exponential(x), np.exp(x)
    assert (np.abs(found - expected) <= 2 * np.spacing(expected)).all()
    assert (every_exponential(np.array([-708.0, -1e4, -1e300, -np.inf])) == 0).all()
    assert every_exponential(np.zeros(1))[0] == 1


def test_extrema(rng):
    x = rng.normal(size=37)
    assert extrema(x) == (x.min(), x.max())


@pytest.mark.parametrize("p", [1, 5, 384, 1000])
def test_scaled_grams(rng, p):
    X, inverse = rng.normal(size=(11, p)), rng.uniform(0.5, 2.0, size=(3, p))
    orders = np.stack([rng.permutation(11) for _ in range(3)])
    sizes = np.array([11, 1, 6])
    grams = np.full((3, 11 + PADDING, 11 + PADDING), np.nan)
    scaled_grams(X, inverse, orders, sizes, grams)
    for order, size, factor, gram in zip(orders, sizes, inverse, grams, strict=True):
        rows = X[order[:size]] * factor
        np.testing.assert_allclose(gram[:size, :size], rows @ rows.T, rtol=1e-12, atol=1e-12 * p)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("own_scale", [False, True])
def test_a_solution_that_touches_no_bound_is_that_of_every_larger_c(rng, solver, own_scale):
    X, y = overlapping(rng, n=20, p=60)
    scale = rng.uniform(0.5, 2.0, size=(3, 60) if own_scale else 60)
    counts = bootstrap_counts(rng, 3, y)
    problem = Problem(X, y, counts, [1e-4, 1e2, 1e3, 1e6], scale=scale)
    (block,) = iter_fit(problem, solver=solver)
    assert (block.status == Status.CONVERGED).all()
    assert (block.gap <= 1e-7).all()
    assert (block.n_iter[:, 1] > 0).all()
    assert (block.n_iter[:, 2:] == 0).all()
    for r in (2, 3):
        assert torch.equal(block.dual_coef[:, r], block.dual_coef[:, 1])
    coef = block.dual_coef @ torch.from_numpy(X / problem.scale_of(slice(0, 3))[:, None] ** 2)
    scores = coef @ torch.from_numpy(X).T + block.intercept[..., None]
    torch.testing.assert_close(block.train_scores, scores, rtol=0, atol=1e-9)
    # No loss is left that a larger C could multiply.
    margins = torch.from_numpy(y) * scores
    drawn = torch.from_numpy(counts > 0)[:, None].expand_as(margins)
    assert (margins[:, 1:][drawn[:, 1:]] >= 1 - 1e-9).all()
    torch.testing.assert_close(block.primal[:, 3], block.primal[:, 1], rtol=1e-6, atol=0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_class_that_is_missing_half_way_does_not_disturb_the_path(rng, solver):
    X, y = overlapping(rng, n=20, p=3)
    upper = rng.uniform(0.5, 1.0, size=(1, 1, 20)) * np.array([[0.1], [1.0], [3.0]])
    alone = Problem(X, y, np.ones((1, 20), int), [1.0], kernel="rbf", gamma=0.5,
                    upper=upper[:, 2:])  # fmt: skip
    upper[0, 1, y > 0] = 0
    path = Problem(X, y, np.ones((1, 20), int), [1.0, 2.0, 3.0], kernel="rbf", gamma=0.5,
                   upper=upper)  # fmt: skip
    found, expected = fit(path, solver=solver), fit(alone, solver=solver)
    assert found.status[0].tolist() == [0, Status.SINGLE_CLASS, 0]
    assert (found.dual_coef[0, 1] == 0).all()
    assert float(found.dual_coef[0, 2].sum()) == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(found.primal[0, 2], expected.primal[0, 0], rtol=2e-6, atol=0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_grid_of_both_is_one_call_and_its_gram_matrices_are_made_once(
    rng, monkeypatch, solver, dtype
):
    X, y = overlapping(rng, n=16, p=3)
    C, gamma = 2.0 ** np.arange(-5, 6), 0.3 * 2.0 ** np.arange(-5, 6)
    problem = Problem(X, y, bootstrap_counts(rng, 6, y), C, kernel="rbf", gamma=gamma)
    made = []
    gram = Rbf.gram

    def counted(*arguments):
        made.append(gram(*arguments))
        return made[-1]

    monkeypatch.setattr(Rbf, "gram", counted)
    blocks = list(iter_fit(problem, solver=solver, dtype=dtype, tol=1e-3, memory_limit=200_000))
    assert len(blocks) > 1
    assert [len(block.intercept) for block in blocks] == [
        block.replicates.stop - block.replicates.start for block in blocks
    ]
    assert [each.shape[-3:] for each in made] == [(11, 16, 16)]
    for block in blocks:
        assert block.status.shape[1] == 121
        assert (block.status == Status.CONVERGED).all()
        assert (block.gap <= 1e-3).all()


@pytest.mark.parametrize("kind", ["all rows", "rows of weight", "rows of its own"])
def test_long_paths_end_where_libsvm_does(kind):
    """So many steps that most are taken among few rows; replicates differ in their rows."""
    rng = np.random.default_rng(0)
    X, y = overlapping(rng, n=150, p=4)
    C = np.array([300.0]) if kind == "all rows" else np.array([0.3, 3.0, 300.0])
    scale = np.full((3, 4), 1.0) if kind == "rows of its own" else None
    counts = bootstrap_counts(rng, 3, y)
    counts[2, 40:] = 0  # most rows have no weight
    counts[2, :40] += 1
    problem = Problem(X, y, counts, C, kernel="rbf", gamma=0.2, scale=scale)
    (found,) = iter_fit(problem, solver="smo-compiled", tol=1e-7)
    assert (found.status == Status.CONVERGED).all()
    assert (found.n_iter[:, -1] > 300).all()
    for b, weight in enumerate(counts):
        inside = weight > 0
        for r, value in enumerate(C):
            svc = SVC(C=value, gamma=0.2, tol=1e-6).fit(X[inside], y[inside], weight[inside])
            a = np.abs(svc.dual_coef_[0])
            s, rows = svc.dual_coef_[0], svc.support_vectors_
            dual = a.sum() - 0.5 * s @ rbf_kernel(rows, rows, gamma=0.2) @ s
            assert float(found.dual[b, r]) == pytest.approx(dual, rel=1e-5)
            np.testing.assert_allclose(
                found.train_scores[b, r], svc.decision_function(X), atol=0.02 * np.sqrt(value)
            )


@pytest.mark.parametrize("seed", [2, 17, 34, 59])
def test_a_dual_that_has_settled_leaves_the_primal_time(seed):
    """Half a million steps: the gap falls long after rounding hides that the dual grows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(127, 12)) * np.exp(rng.normal(0, 1.3, 12))
    y = np.where(rng.uniform(size=127) < 0.5, -1, 1)
    counts = rng.multinomial(127, np.full(127, 1 / 127), size=1)
    problem = Problem(X, y, counts, [0.1, 700.0], kernel="poly", gamma=0.3, degree=2)
    found = fit(problem, solver="smo-compiled", tol=1e-6)
    assert (found.status == Status.CONVERGED).all()


def test_arrays_that_are_read_only_will_do(rng):
    X, y = overlapping(rng, n=12, p=20)
    arrays = {"X": X, "y": y, "scale": np.full(20, 2.0), "upper": rng.random((1, 1, 12)) + 0.1}
    for array in arrays.values():
        array.flags.writeable = False
    problem = Problem(counts=np.ones((1, 12), int), C=[1.0], **arrays)
    assert (fit(problem).status == Status.CONVERGED).all()


@pytest.fixture
def small(rng) -> Problem:
    X, y = overlapping(rng, n=8, p=2)
    return Problem(X, y, np.ones((2, 8), int), [0.5, 2.0], kernel="rbf", gamma=[0.4])


def other_kernel(small: Problem, kernel: str) -> Problem:
    """The same rows under another kernel."""
    if kernel == "rbf":
        return small
    X, options = small.X, {"gamma": [0.4], "degree": 2, "coef0": 1.0}
    if kernel == "precomputed":
        X, options = (0.4 * X @ X.T + 1) ** 2, {}
    return Problem(X, small.y, small.counts, small.C, kernel=kernel, **options)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_the_fused_kernel_trains_a_problem(small, kernel):
    pytest.importorskip("triton")
    small = other_kernel(small, kernel)
    expected = fit(small, solver="smo-compiled")
    with triton_kernels("always"):
        for dtype, tol in ((torch.float64, 1e-5), (torch.float32, 1e-4)):
            fused = fit(small, solver="smo-fused", tol=tol, dtype=dtype)
            assert (fused.status == Status.CONVERGED).all()
            torch.testing.assert_close(fused.primal, expected.primal, rtol=2 * tol, atol=0)
        by_violation = fit(small, solver="smo-fused", tol=1e-15, kkt_tol=1e-3)
    assert (by_violation.status == Status.CONVERGED).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_polynomial_kernel_is_its_values_precomputed(small, solver):
    by_name, by_values = (
        fit(other_kernel(small, kernel), solver=solver) for kernel in ("poly", "precomputed")
    )
    for one, other in ((by_name, by_values), (by_values, by_name)):
        assert (one.dual <= other.primal * (1 + 1e-9)).all()
    # Rounding may end at another of many optima, so the scores compared are of the same models.
    by_values = replace(by_values, dual_coef=by_name.dual_coef, intercept=by_name.intercept)
    new = torch.tensor([[0.5, -1.0], [3.0, 0.2]], dtype=torch.float64)
    values = (0.4 * new @ torch.from_numpy(small.X).T + 1) ** 2
    torch.testing.assert_close(votes(by_name, new), votes(by_values, values))
    one = torch.ones(2, dtype=torch.float64)
    torch.testing.assert_close(
        replicate_scores(by_name, new, one), replicate_scores(by_values, values, one)
    )


def test_the_fused_kernel_is_refused_where_it_cannot_run(small, monkeypatch):
    with pytest.raises(InputError, match=r"smo-fused.*cpu.*auto"):
        fit(small, solver="smo-fused")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with triton_kernels("always"), pytest.raises(InputError, match=r"smo-fused.*cpu.*auto"):
        fit(small, solver="smo-fused")


def test_auto_takes_the_fused_kernel_where_kernels_run(small):
    pytest.importorskip("triton")
    cuda = torch.device("cuda")
    assert choose_solver(small, torch.device("cpu")) == "smo-compiled"
    assert choose_solver(small, cuda) == "smo-fused"
    with triton_kernels("never"):
        assert choose_solver(small, cuda) == "smo-batched"
