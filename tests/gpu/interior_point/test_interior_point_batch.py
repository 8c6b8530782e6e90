"""What a batch of interior points costs: memory, matrix products, reads from the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from counted_operations import Operations
from torch.profiler import ProfilerActivity, profile

from bootprob_gpu import Problem, fit, iter_fit
from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point import batched as interior_point
from bootprob_gpu.interior_point import state as interior_point_state
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices
from bootprob_gpu.interior_point.state import State

HOST_READS = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal"}


def peak_bytes(work: Callable[[], object]) -> int:
    """Most bytes that tensors on the CPU hold at any time, by torch's own allocator."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    sizes = [
        e.nbytes() for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"
    ]
    return int(np.cumsum(sizes).max())


def draw(rng: np.random.Generator, n: int, p: int, B: int, C: np.ndarray) -> Problem:
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    return Problem(X, y, rng.multinomial(n, np.full(n, 1 / n), size=B), C)


def batch(problem: Problem) -> tuple[torch.Tensor, State]:
    """Rows and starting point of all models."""
    n, p = problem.X.shape
    X1 = torch.from_numpy(np.column_stack([problem.X, np.ones(n)]))
    upper = torch.from_numpy(problem.upper_of(slice(None))).flatten(0, 1)
    models = len(upper)
    state = interior_point_state.start(
        torch.from_numpy(problem.y),
        upper,
        torch.ones(models, p, dtype=torch.float64),
        torch.zeros(models, p + 1, dtype=torch.float64),
        Certificate.empty(models, device="cpu"),
        1e-7,
    )
    return X1, state


@pytest.mark.parametrize("limit", [2 * 10**7, 3 * 10**7])
def test_memory_is_what_was_planned(rng, limit):
    """Never more, and not much less, or blocks would be needlessly small."""
    problem = draw(rng, 4000, 3, B=30, C=2.0 ** np.arange(-3, 4))
    rows = 12 * problem.X.nbytes  # the shared rows and what is made of them, not planned
    blocks: list[int] = []

    def work() -> None:
        trained = iter_fit(problem, solver="interior-point", memory_limit=limit, max_iter=3)
        blocks.extend(len(block.intercept) for block in trained)

    used = peak_bytes(work)
    assert len(blocks) > 1
    assert 0.6 * limit <= used <= limit + rows


def test_rows_beyond_memory_are_streamed(rng):
    X1 = torch.from_numpy(rng.normal(size=(1000, 6)))
    theta = torch.from_numpy(rng.random((3, 1000)))
    whole, streamed = NormalMatrices(X1, 10**9), NormalMatrices(X1, 10**4)
    assert whole.nbytes == 1000 * 21 * 8
    assert streamed.nbytes <= 10**4
    expected = (X1.T * theta[:, None]) @ X1
    for each in (whole, streamed):
        found = each(theta)[:, each.unpack].view(3, 6, 6)
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def test_models_do_not_depend_on_the_size_of_temporaries(rng, monkeypatch):
    problem = draw(rng, 70, 3, B=9, C=np.array([0.1, 1.0, 10.0]))
    whole = fit(problem, solver="interior-point")
    monkeypatch.setitem(interior_point_state.TWIN_CELLS, "cpu", 200)
    parts = fit(problem, solver="interior-point")
    assert torch.equal(whole.n_iter, parts.n_iter)
    torch.testing.assert_close(whole.coef, parts.coef, rtol=1e-9, atol=1e-9)


def test_bounds_given_are_left_as_they_were(rng, tmp_path):
    """Also those in a file that may only be read."""
    rule = draw(rng, 40, 3, B=5, C=np.array([0.1, 1.0]))
    upper = rule.upper_of(slice(None))
    np.save(tmp_path / "upper.npy", upper)
    kept = upper.copy()
    file = np.load(tmp_path / "upper.npy", mmap_mode="r")
    expected = fit(rule, solver="interior-point")
    for given in (upper, file):
        problem = Problem(rule.X, rule.y, rule.counts, rule.C, upper=given)
        found = fit(problem, solver="interior-point")
        assert torch.equal(found.coef, expected.coef)
    np.testing.assert_array_equal(upper, kept)


def test_an_iteration_is_seven_matrix_products(rng):
    problem = draw(rng, 60, 4, B=6, C=np.array([0.01, 1.0, 100.0]))
    with Operations() as operations:
        fitted = fit(problem, solver="interior-point")
    iterations = int(fitted.n_iter.max())
    products = operations.count["mm"] + operations.count["addmm_"]
    # And those of the start, of the certificates at the start and of the scores.
    assert products <= 7 * iterations + 6


def test_a_step_reads_nothing_back_and_leaves_its_tensors_where_they_are(rng):
    """So that it can be replayed as a CUDA graph."""
    pytest.importorskip("triton")
    X1, state = batch(draw(rng, 30, 2, B=2, C=np.array([1.0])))
    matrices = NormalMatrices(X1, 10**6)
    places = {name: value.data_ptr() for name, value in vars(state).items()}
    with triton_kernels("always"), Operations() as operations:
        for _ in range(2):
            interior_point._advance(X1, state, matrices)
            interior_point._certify(X1, state)
    assert operations.count["mm"] == 14
    assert not HOST_READS & operations.count.keys()
    assert places == {name: value.data_ptr() for name, value in vars(state).items()}
    assert state.iteration.item() == 2
    assert (state.n_iter == 2).all()


def test_taking_answered_problems_out_allocates_nothing_large(rng):
    _, state = batch(draw(rng, 3000, 2, B=20, C=np.array([1.0])))
    before = {name: value.clone() for name, value in vars(state).items()}
    state.working[[0, 3, 19]] = 0
    kept = [k for k in range(20) if k not in (0, 3, 19)]
    assert peak_bytes(lambda: state.keep_working(17)) < 3000 * 8
    for name in ("upper", "a", "t", "xi", "index", "penalty", "w", "primal", "status"):
        assert torch.equal(getattr(state, name), before[name][kept]), name
    large = (state.upper, state.a, state.t, state.xi, state.left, state.scores, state.spare)
    assert len({each.untyped_storage().data_ptr() for each in large}) == len(large)
    assert all(each.shape == (17, 3000) and each.is_contiguous() for each in large)


def test_problems_leave_with_what_they_had(rng):
    """Answered one by one, early and late, in batches that are compacted on the way."""
    problem = draw(rng, 80, 3, B=30, C=10.0 ** np.arange(-4, 5))
    fitted = fit(problem, solver="interior-point")
    assert fitted.n_iter.unique().numel() > 3
    scores = torch.from_numpy(problem.X) @ fitted.coef.mT + fitted.intercept[:, None]
    hinge = (1 - torch.from_numpy(problem.y)[:, None] * scores).clamp_min(0)
    upper = torch.from_numpy(problem.upper_of(slice(None)))
    primal = 0.5 * fitted.coef.square().sum(2) + (upper * hinge.mT).sum(2)
    torch.testing.assert_close(fitted.primal, primal, rtol=1e-9, atol=1e-12)
    gap = (fitted.primal - fitted.dual) / fitted.primal
    torch.testing.assert_close(fitted.gap, gap, rtol=1e-6, atol=1e-12)
    assert (fitted.status == Status.CONVERGED).all()
