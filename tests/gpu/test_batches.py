"""What a model comes out as does not depend on the company it is trained in."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from problems import bootstrap_counts, overlapping
from threadpoolctl import threadpool_info, threadpool_limits
from torch.utils._python_dispatch import TorchDispatchMode

from bootprob_gpu import FittedBatch, Problem, Status, fit
from bootprob_gpu.hardware import process_setting as settings
from bootprob_gpu.smo import batched_steps


@pytest.fixture
def problem(rng) -> Problem:
    """Models that need from a few iterations to many, one of a single class among them."""
    X, y = overlapping(rng, n=60, p=4)
    counts = bootstrap_counts(rng, 30, y)
    counts[7, y > 0] = 0
    return Problem(X, y, counts, 10.0 ** np.arange(-4, 4))


def alone(problem: Problem, b: int) -> Problem:
    """Replicate b of a problem, nothing else."""
    return Problem(problem.X, problem.y, problem.counts[b : b + 1], problem.C)


def assert_same_models(one: FittedBatch, other: FittedBatch) -> None:
    # Matrix products of another size round otherwise, which can tip a gap that is next to the
    # tolerance; all other models are the same.
    same = one.n_iter == other.n_iter
    assert (~same).sum() <= 0.01 * same.numel()
    assert torch.equal(one.status, other.status)
    for name in ("primal", "dual"):
        found, expected = getattr(one, name)[same], getattr(other, name)[same]
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("memory_limit", [1, 10**6, 10**7])
def test_memory_limit_changes_no_model(problem, memory_limit):
    whole = fit(problem, solver="interior-point")
    assert len(set(whole.n_iter.flatten().tolist())) > 3
    parts = fit(problem, solver="interior-point", memory_limit=memory_limit)
    assert_same_models(whole, parts)


def test_batch_mates_change_no_model(problem):
    whole = fit(problem, solver="interior-point")
    parts = [fit(alone(problem, b), solver="interior-point") for b in range(problem.n_replicates)]
    assert_same_models(whole, FittedBatch.concatenate(parts))
    assert (whole.status[7] == Status.SINGLE_CLASS).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_each_gamma_may_have_c_of_its_own(problem, kernel):
    grid = np.array([[0.01, 0.1], [1.0, 100.0], [0.5, 2.0]])
    gammas = [None] if kernel == "linear" else [0.1, 0.4, 2.0]
    grid = grid[: len(gammas)]
    of = {"kernel": kernel} if kernel == "linear" else {"kernel": kernel, "gamma": gammas}
    own = Problem(problem.X, problem.y, problem.counts, grid, **of)
    np.testing.assert_array_equal(own.C_per_model, grid.ravel())
    whole = fit(own)
    for g, gamma in enumerate(gammas):
        alone = {"kernel": kernel} if gamma is None else {"kernel": kernel, "gamma": [gamma]}
        part = fit(Problem(problem.X, problem.y, problem.counts, grid[g], **alone))
        for name in ("primal", "dual"):
            found = getattr(whole, name)[:, 2 * g : 2 * g + 2]
            torch.testing.assert_close(found, getattr(part, name), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("shared", [True, False])
def test_some_replicates_taken(rng, shared):
    """All that differs between replicates goes with them, all else stays."""
    B, R, n, p = 5, 4, 8, 3
    X, weight = rng.normal(size=(n, p)), rng.uniform(0, 2, n)
    y = np.where(rng.uniform(size=(B, n)) < 0.5, 1, -1)
    counts, upper = rng.integers(0, 3, (B, n)), rng.uniform(0, 2, (B, R, n))
    scale = rng.uniform(1, 2, (B, p))
    own = {} if shared else {"upper": upper, "scale": scale}
    options = {"kernel": "rbf", "gamma": [0.5, 2.0], "row_weight": weight, **own}
    problem = Problem(X, y[0] if shared else y, counts, [1.0, 3.0], **options)
    assert problem.take(slice(0, B)) is problem
    some = problem.take(slice(1, 4))
    assert (some.n_replicates, some.n_models, some.kernel) == (3, R, "rbf")
    for name in ("X", "C_per_model", "gamma_per_model", "row_weight"):
        np.testing.assert_array_equal(getattr(some, name), getattr(problem, name))
    for name in ("y_of", "scale_of", "upper_of"):
        found = getattr(some, name)(slice(0, 3))
        np.testing.assert_array_equal(found, getattr(problem, name)(slice(1, 4)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_shared_gram_matrices_are_each_paths_own(rng, kernel, dtype):
    """One scale for all, said once or said for every replicate."""
    X, y = overlapping(rng, n=30, p=3)
    counts = bootstrap_counts(rng, 4, y)
    gamma = [0.1, 0.5, 2.0] if kernel == "rbf" else None
    scale = rng.uniform(0.5, 2.0, size=3)
    fits = [
        fit(
            Problem(X, y, counts, [0.1, 1.0], kernel=kernel, gamma=gamma, scale=each),
            solver="smo-batched",
            dtype=dtype,
            tol=1e-3,
        )
        for each in (scale, np.tile(scale, (4, 1)))
    ]
    torch.testing.assert_close(fits[0].primal, fits[1].primal, rtol=1e-3, atol=0)
    torch.testing.assert_close(fits[0].dual, fits[1].dual, rtol=1e-3, atol=0)
    assert (fits[0].status == Status.CONVERGED).all()


class Searches(TorchDispatchMode):
    """Counts operations whose result has a size that the host must wait for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation.__name__.split(".")[0] in ("nonzero", "_unique2")
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("kind", ["all", "some", "shared"])
@pytest.mark.parametrize("at_once", [1, 3 * 7 * 7, 2**24])
def test_products_with_the_gram_matrices_of_problems(rng, monkeypatch, dtype, kind, at_once):
    """One matrix a problem, those of the problems that are left, and matrices that many share."""
    monkeypatch.setattr(batched_steps, "_NUMBERS_AT_ONCE", at_once)
    K = torch.from_numpy(rng.normal(size=(10, 7, 7))).to(dtype)
    K = K + K.mT
    matrix = {"all": np.arange(10), "some": np.array([1, 4, 5, 9]), "shared": np.arange(23) % 10}
    matrix = torch.from_numpy(matrix[kind])
    s = torch.from_numpy(rng.normal(size=(len(matrix), 7)))
    with Searches() as searches:
        found = batched_steps.times_gram(K, matrix, s)
    expected = np.stack([K[k].double().numpy() @ v.numpy() for k, v in zip(matrix, s, strict=True)])
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if kind != "shared":
        assert searches.count <= 1  # however many matrices there are


def test_threads_that_train_leave_blas_as_it_was(problem):
    fit(alone(problem, 0))  # loads all libraries
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        assert any(each["num_threads"] == 2 for each in before if each["user_api"] == "blas")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda b: fit(alone(problem, b), memory_limit=1), range(16)))
        assert threadpool_info() == before


def test_blas_is_limited_until_the_last_fit_ends():
    def blas_threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    settings._libraries()  # loads what the limit is to reach
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before
        first, second = ExitStack(), ExitStack()
        first.enter_context(settings.one_blas_thread)
        second.enter_context(settings.one_blas_thread)
        first.close()
        assert set(blas_threads()) == {1}
        second.close()
        assert blas_threads() == before
