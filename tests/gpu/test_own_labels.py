"""Replicates with labels of their own: pairs of several classes trained in one batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import WITH_GAMMA, bootstrap_counts

from bootprob_gpu import FittedBatch, Problem, Status, fit, iter_fit, model_scores
from bootprob_gpu.hardware.memory import chunked
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point import blocks as linear_training
from bootprob_gpu.smo import blocks as dual_training

PAIRS = [(0, 1), (0, 2), (1, 2)]
PER_PAIR = 2
REPLICATES = PER_PAIR * len(PAIRS)


@pytest.fixture
def classes(rng) -> np.ndarray:
    return rng.permutation(np.repeat([0, 1, 2], 10))


@pytest.fixture
def arguments(rng, classes, backend) -> dict:
    """Replicate b is of pair ``b // PER_PAIR``; one of the second pair has a single class."""
    X = rng.normal(size=(30, 3)) + np.eye(3)[classes]
    y, counts = np.ones((REPLICATES, 30)), np.zeros((REPLICATES, 30), dtype=int)
    for b in range(REPLICATES):
        first, second = PAIRS[b // PER_PAIR]
        rows = np.flatnonzero(np.isin(classes, (first, second)))
        y[b, rows] = np.where(classes[rows] == second, 1.0, -1.0)
        counts[b, rows] = bootstrap_counts(rng, 1, y[b, rows])[0]
    counts[PER_PAIR + 1, classes == 2] = 0
    gamma = [0.2, 1.0] if backend.kernel in WITH_GAMMA else None
    scale = rng.uniform(0.5, 2.0, size=3)
    if backend.kernel == "precomputed":
        X, scale = (X @ X.T + 1) ** 2, None
    return {
        "X": X, "y": y, "counts": counts, "C": [0.1, 1.0], "kernel": backend.kernel,
        "gamma": gamma, "scale": scale,
    }  # fmt: skip


@pytest.fixture(scope="module")
def trained() -> dict[object, FittedBatch]:
    """All replicates in one batch: the rows are always the same."""
    return {}


@pytest.fixture
def together(arguments, backend, trained) -> FittedBatch:
    if backend not in trained:
        trained[backend] = backend.fit(Problem(**arguments))
    return trained[backend]


def replicates_of(arguments: dict, items: slice) -> dict:
    return arguments | {"y": arguments["y"][items], "counts": arguments["counts"][items]}


def assert_same_optima(one: FittedBatch, other: FittedBatch, tol: float) -> None:
    assert torch.equal(one.status, other.status)
    for ours, theirs in ((one, other), (other, one)):
        assert (ours.primal >= theirs.dual * (1 - tol) - 1e-12).all()


def test_each_replicate_is_a_problem_of_its_own(arguments, backend, together):
    """In which all replicates share their labels."""
    assert (together.status[PER_PAIR + 1] == Status.SINGLE_CLASS).all()
    parts = []
    for b in range(REPLICATES):
        alone = replicates_of(arguments, slice(b, b + 1))
        parts.append(backend.fit(Problem(**alone | {"y": arguments["y"][b]})))
    apart = FittedBatch.concatenate(parts)
    assert_same_optima(together, apart, 10 * backend.eps)
    if backend.solver.endswith("compiled"):
        assert torch.equal(together.primal, apart.primal)
        assert torch.equal(together.intercept, apart.intercept)


def test_a_pair_is_a_problem_of_two_classes(arguments, backend, classes, together):
    """The rows of other classes taken away instead of weighted by 0."""
    for k, pair in enumerate(PAIRS):
        items, rows = slice(PER_PAIR * k, PER_PAIR * (k + 1)), np.isin(classes, pair)
        alone = arguments | {
            "X": arguments["X"][np.ix_(rows, rows)]
            if backend.kernel == "precomputed"
            else arguments["X"][rows],
            "y": np.where(classes[rows] == pair[1], 1.0, -1.0),
            "counts": arguments["counts"][items][:, rows],
        }
        found = backend.fit(Problem(**alone))
        for primal, dual in (
            (together.primal[items], found.dual),
            (found.primal, together.dual[items]),
        ):
            assert (primal >= dual * (1 - 100 * backend.eps) - 1e-12).all()


def test_labels_of_rows_without_weight_do_not_matter(arguments, backend, together):
    other = np.where(arguments["counts"] == 0, -1.0, arguments["y"])
    again = backend.fit(Problem(**arguments | {"y": other.astype(np.int8)}))
    for name in ("primal", "dual", "intercept", "n_iter", "status"):
        assert torch.equal(getattr(together, name), getattr(again, name))


def test_blocks_know_their_labels(arguments, backend, together):
    blocks = list(iter_fit(Problem(**arguments), memory_limit=1, **backend.options))
    assert len(blocks) > 1
    assert_same_optima(together, FittedBatch.concatenate(blocks), 10 * backend.eps)
    X = torch.from_numpy(arguments["X"])
    for block in blocks:
        scores = torch.cat([each for _, each in model_scores(block, X)])
        tolerance = 1e-3 if backend.dtype == torch.float32 else 1e-9
        torch.testing.assert_close(
            block.train_scores, scores.to(block.train_scores), rtol=tolerance, atol=tolerance
        )


def test_a_pairs_replicates_are_taken_out_of_the_batch(arguments, backend, together):
    block = together
    items = slice(PER_PAIR, 2 * PER_PAIR)
    part = block.take(items)
    assert part.replicates == items
    assert block.take(slice(PER_PAIR, None)).take(slice(0, PER_PAIR)).replicates == items
    for name in ("intercept", "primal", "status"):
        assert torch.equal(getattr(part, name), getattr(block, name)[items])
    X = torch.from_numpy(arguments["X"])
    ours, theirs = (
        torch.cat([each for _, each in model_scores(batch, X)]) for batch in (part, block)
    )
    torch.testing.assert_close(ours, theirs[items])
    first = next(iter_fit(Problem(**arguments), **backend.options))
    assert torch.equal(first.take(slice(1, 2)).train_scores, first.train_scores[1:2])


def test_labels_are_kept_in_eight_bits(rng):
    y = np.array([[1, -1, 1], [-1, 1, 1]])
    problem = Problem(rng.normal(size=(3, 2)), y, np.ones((2, 3), int), [1.0])
    assert problem.y.dtype == np.int8
    assert not problem.shares_labels
    np.testing.assert_array_equal(problem.y_of(slice(1, 2)), y[1:])
    assert problem.y_of(slice(1, 2)).dtype == np.float64


def test_planners_count_labels(arguments, backend, monkeypatch):
    planned = []

    def spy(n_items, work, *, bytes_per_item, **options):
        planned.append(bytes_per_item)
        return chunked(n_items, work, bytes_per_item=bytes_per_item, **options)

    for module in (linear_training, dual_training):
        monkeypatch.setattr(module, "chunked", spy)
    backend.fit(Problem(**arguments), tol=1e-2)
    backend.fit(Problem(**arguments | {"y": arguments["y"][0]}), tol=1e-2)
    own, shared = planned
    assert own >= shared + 8 * len(arguments["X"])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.filterwarnings("ignore:.*could not be compiled")
def test_without_triton(rng, kernel, kernel_device):
    """Twins, on whatever device kernels run."""
    X = rng.normal(size=(20, 2))
    y = np.stack([np.where(rng.permutation(20) < 10, 1, -1) for _ in range(4)])
    gamma = 0.5 if kernel == "rbf" else None
    problem = Problem(X, y, np.ones((4, 20), int), [0.5], kernel=kernel, gamma=gamma)
    with triton_kernels("never"):
        found = fit(problem, device=kernel_device, tol=1e-5)
    expected = fit(problem, device="cpu", tol=1e-5)
    for one, other in ((found, expected), (expected, found)):
        assert (one.primal.cpu() >= other.dual.cpu() * (1 - 1e-12)).all()
