"""Paths on the rows of weight, with Gram matrices in float32 that float64 ones certify."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import UGLY, Case, bootstrap_counts, overlapping
from sklearn.svm import SVC

from bootprob_gpu import Problem, Status, fit
from bootprob_gpu.box_bounds import upper_on, weighted_rows
from bootprob_gpu.smo.batched import smo_batched
from bootprob_gpu.smo.batched_paths import BatchedPaths
from bootprob_gpu.smo.batched_steps import times_gram
from bootprob_gpu.solvers import Limits

CPU = torch.device("cpu")


def paths(problem: Problem, *, rounded: bool, solve=smo_batched) -> BatchedPaths:
    X, scale = torch.from_numpy(problem.X), torch.from_numpy(problem.scale)
    X = X - X.median(dim=0).values
    kernel = problem.kernel_function
    shared = kernel.gram(X / scale, X / scale) if problem.shares_scale else None
    return BatchedPaths(problem, X, scale, kernel, shared, rounded=rounded, solve=solve)


def draw(rng, n=40, B=3, own_scale=True, own_labels=False, **changes) -> Problem:
    X, y = overlapping(rng, n=n, p=3)
    counts = bootstrap_counts(rng, B, y)
    if own_labels:
        y = np.stack([y, -y, np.roll(y, 1)])
        counts = np.stack([bootstrap_counts(rng, 1, each)[0] for each in y])
    arguments = {
        "C": [0.1, 1.0, 30.0],
        "kernel": "rbf",
        "gamma": [0.02, 0.3, 2.0],
        "scale": rng.uniform(0.5, 2.0, size=(B, 3) if own_scale else 3),
    }
    return Problem(X, y, counts, **(arguments | changes))


def grams(problem: Problem) -> torch.Tensor:
    """Kernels of all rows for every model, shape (B, R, n, n)."""
    scale = problem.scale_of(slice(0, problem.n_replicates))
    rows = torch.from_numpy(problem.X[None] / scale[:, None])
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
    return torch.exp(-torch.from_numpy(problem.gamma_per_model)[:, None, None] * distances[:, None])


@pytest.mark.parametrize("own_labels", [False, True])
@pytest.mark.parametrize("own_scale", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_certificates_are_true_by_all_rows_in_float64(rng, rounded, own_scale, own_labels):
    problem = draw(rng, own_scale=own_scale, own_labels=own_labels)
    found = paths(problem, rounded=rounded).solve(slice(0, 3), Limits(1e-6, None, 200_000))
    dual_coef, intercept, certificate, scores = found
    s, b, f = dual_coef.flatten(1, 2), intercept.flatten(1), scores.flatten(1, 2)
    by_definition = (grams(problem) @ s[..., None]).squeeze(-1) + b[..., None]
    torch.testing.assert_close(f, by_definition, rtol=0, atol=1e-9)
    y = torch.from_numpy(problem.y_of(slice(0, 3)))
    y = y if y.ndim == 1 else y[:, None]
    upper = torch.from_numpy(problem.upper_of(slice(0, 3)))
    assert ((y * s >= 0) & (y * s <= upper)).all()
    norm = (s * (by_definition - b[..., None])).sum(-1)
    primal = 0.5 * norm + (upper * (1 - y * by_definition).clamp_min(0)).sum(-1)
    dual = (y * s).sum(-1) - 0.5 * norm
    assert (certificate.status == Status.CONVERGED).all()
    torch.testing.assert_close(certificate.primal.flatten(1), primal, rtol=1e-9, atol=0)
    torch.testing.assert_close(certificate.dual.flatten(1), dual, rtol=1e-9, atol=0)
    assert ((primal - dual) / primal <= 1e-6 + 1e-9).all()


@pytest.mark.parametrize("rounded", [False, True])
def test_models_are_those_of_libsvm(rng, rounded):
    problem = draw(rng, B=1, C=[1.0, 100.0], gamma=[0.2])
    _, _, certificate, scores = paths(problem, rounded=rounded).solve(
        slice(0, 1), Limits(1e-7, None, 200_000)
    )
    Z, counts = problem.X / problem.scale[0], problem.counts[0]
    for r, C in enumerate(problem.C):
        svm = SVC(C=C, gamma=0.2, tol=1e-7).fit(Z, problem.y, sample_weight=counts.astype(float))
        theirs = svm.decision_function(Z)
        bound = 4 * np.sqrt(4e-7 * float(certificate.primal[0, 0, r]))
        assert np.ptp(scores[0, 0, r].numpy() - theirs) <= bound


@pytest.mark.parametrize("name", sorted(UGLY))
def test_ugly_problems_are_solved_through_rounded_matrices(rng, name):
    """As well as through exact ones, or a status says that they were not."""
    case: Case = UGLY[name](rng)
    problem = Problem(**case.arguments("rbf"))
    everything = slice(0, problem.n_replicates)
    expected = fit(problem)
    dual_coef, intercept, certificate, scores = paths(problem, rounded=True).solve(
        everything, Limits(1e-6, None, 200_000)
    )
    status = certificate.status.flatten(1)
    single = expected.status == Status.SINGLE_CLASS
    assert ((status == Status.SINGLE_CLASS) == single).all()
    assert (dual_coef.flatten(1, 2)[single] == 0).all()
    assert (intercept.flatten(1)[single] == expected.intercept[single]).all()
    assert torch.isfinite(scores).all()
    assert (status[~single] == Status.CONVERGED).all()
    primal, dual = certificate.primal.flatten(1), certificate.dual.flatten(1)
    # Scores of rows that are 1e6 away from others carry a rounding of their own.
    slack = 1e-9 * primal.clamp_min(expected.primal)
    assert (dual <= expected.primal + slack).all()
    assert (expected.dual <= primal + slack).all()


def test_rows_without_weight_are_left_out(rng):
    problem = draw(rng)
    sizes = []

    def seen(K, y, upper, **options):
        sizes.append(upper.shape[2])
        return smo_batched(K, y, upper, **options)

    found = paths(problem, rounded=True, solve=seen)
    assert found.size == max((problem.counts > 0).sum(1))
    found.solve(slice(0, 3), Limits(1e-6, None, 1000))
    assert sizes == [found.size]


def test_one_row_of_weight_in_each_class(rng):
    counts = np.zeros((2, 40), dtype=int)
    X, y = overlapping(rng, n=40, p=3)
    counts[0, [np.argmax(y > 0), np.argmax(y < 0)]] = 1, 3
    counts[1, np.argmax(y > 0)] = 2
    problem = Problem(X, y, counts, [1.0], kernel="rbf", gamma=[0.5], scale=np.ones((2, 3)))
    dual_coef, _, certificate, scores = paths(problem, rounded=True).solve(
        slice(0, 2), Limits(1e-6, None, 1000)
    )
    assert certificate.status.flatten().tolist() == [Status.CONVERGED, Status.SINGLE_CLASS]
    assert (dual_coef[0, 0, 0] != 0).sum() == 2
    assert (scores[1] == 1.0).all()


@pytest.mark.parametrize("own_scale", [False, True])
def test_no_row_of_weight_at_all(rng, own_scale):
    problem = draw(rng, own_scale=own_scale)
    empty = Problem(problem.X, problem.y, 0 * problem.counts, problem.C, kernel="rbf",
                    gamma=problem.gamma, scale=problem.scale)  # fmt: skip
    _, _, certificate, scores = paths(empty, rounded=True).solve(
        slice(0, 3), Limits(1e-6, None, 1000)
    )
    assert (certificate.status == Status.SINGLE_CLASS).all()
    assert (scores == 0).all()


def test_paths_that_stall_are_solved_again_with_exact_matrices(rng):
    problem = draw(rng, own_scale=False)
    asked = []

    def misled(K, y, upper, **options):
        exact = options.get("exact")
        asked.append((K.dtype, len(upper)))
        if exact is not None:
            # For the second γ the rounded matrix says nothing.
            K = K.clone()
            K[1] = 1.0
        return smo_batched(K, y, upper, **options)

    both = paths(problem, rounded=True, solve=misled)
    found = both.solve(slice(0, 3), Limits(1e-6, None, 100_000))
    assert asked == [(torch.float32, 9), (torch.float64, 3)]
    assert (found[2].status == Status.CONVERGED).all()
    expected = paths(problem, rounded=False).solve(slice(0, 3), Limits(1e-6, None, 100_000))
    assert torch.equal(found[0][:, 1], expected[0][:, 1])
    assert (found[2].n_iter[:, 1] >= expected[2].n_iter[:, 1]).all()


def test_the_hardest_gamma_is_begun_first(rng):
    problem = draw(rng, gamma=[1e-3, 10.0, 0.3])
    orders = []

    def seen(K, y, upper, **options):
        orders.append(options["order"].tolist())
        return smo_batched(K, y, upper, **options)

    worked = paths(problem, rounded=False, solve=seen)
    limits = Limits(1e-6, None, 10_000)
    taken = worked.solve(slice(0, 2), limits)[2].n_iter.sum(dim=(0, 2))
    worked.solve(slice(2, 3), limits)
    # The middle of the grid, 0.1; then as long as it took the replicates before.
    assert orders[0] == [2, 5, 0, 3, 1, 4]
    assert taken[orders[1]].tolist() == sorted(taken.tolist(), reverse=True)


def test_weighted_rows_and_their_bounds(rng):
    problem = draw(rng, row_weight=np.r_[0.0, 0.0, np.full(38, 2.0)])
    everything = slice(0, 3)
    upper = problem.upper_of(everything)
    explicit = draw(rng, upper=upper)
    for each in (problem, explicit):
        weighted = weighted_rows(each, everything)
        assert (weighted == (upper > 0).any(1)).all()
        rows = torch.from_numpy(np.stack([rng.permutation(40)[:7] for _ in range(3)]))
        some = upper_on(CPU, each, everything, rows)
        expected = np.take_along_axis(upper, rows.numpy()[:, None].repeat(9, 1), 2)
        np.testing.assert_array_equal(some.numpy(), expected)


def test_products_with_rows_of_a_matrix(rng):
    K = torch.from_numpy(rng.normal(size=(2, 6, 6)))
    rows = torch.tensor([[4, 0, 2], [1, 5, 3], [0, 1, 2]])
    matrix, s = torch.tensor([1, 0, 1]), torch.from_numpy(rng.normal(size=(3, 3)))
    found = times_gram(K + K.mT, matrix, s, rows)
    for k in range(3):
        part = (K + K.mT)[matrix[k]][rows[k]][:, rows[k]]
        torch.testing.assert_close(found[k], part @ s[k])
