"""Memory is planned, and a plan that fails is halved."""

import weakref

import numpy as np
import pytest
import torch

from bootprob_gpu import Problem, fit, iter_fit, training
from bootprob_gpu.hardware import memory
from bootprob_gpu.hardware.memory import chunked, free_bytes, visible_block


def _sizes(n_items, work, **plan):
    return [items.stop - items.start for items, _ in chunked(n_items, work, **plan)]


def test_chunks_follow_the_plan():
    assert _sizes(10, lambda s: None, bytes_per_item=10, available=35) == [3, 3, 3, 1]
    assert _sizes(10, lambda s: None, bytes_per_item=10, available=1000) == [10]
    assert _sizes(10, lambda s: None, bytes_per_item=10, available=1000, largest=4) == [4, 4, 2]
    assert _sizes(3, lambda s: None, bytes_per_item=10, available=1) == [1, 1, 1]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDn...`"),
    ],
)
def test_running_out_of_memory_halves_the_chunk(error):
    seen = []

    def work(items):
        if items.stop - items.start > 3:
            raise error
        seen.extend(range(items.start, items.stop))
        return items

    sizes = _sizes(20, work, bytes_per_item=1, available=100)
    assert max(sizes) <= 3
    assert seen == list(range(20))  # every item once, in order


def test_the_cache_is_emptied_after_what_did_not_fit_is_gone(monkeypatch):
    """A traceback holds the tensors of all the frames that an error came through."""
    tensors, alive = [], []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "empty_cache", lambda: alive.append([each() is not None for each in tensors])
    )

    def work(items):
        large = torch.empty(7)
        tensors.append(weakref.ref(large))
        if items.stop - items.start > 1:
            raise torch.OutOfMemoryError(f"CUDA out of memory beside {len(large)} numbers")

    assert _sizes(4, work, bytes_per_item=1, available=4) == [1, 1, 1, 1]
    assert alive == [[False], [False, False]]


def test_a_single_item_that_does_not_fit_says_so():
    def work(items):
        raise MemoryError

    with pytest.raises(MemoryError, match="single item of 3 MiB; use fewer rows"):
        _sizes(4, work, bytes_per_item=3 * 2**20, available=2**30)


def test_other_errors_pass():
    def work(items):
        raise RuntimeError("not about memory")

    with pytest.raises(RuntimeError, match="not about memory"):
        _sizes(4, work, bytes_per_item=1, available=10)


def test_the_limit_caps_what_is_free():
    free = free_bytes(torch.device("cpu"))
    assert free > 0
    assert free_bytes(torch.device("cpu"), 1000) == 1000


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert free_bytes(torch.device("cpu")) == 2_000_000
    # What files occupy in the page cache is given up at need, as far as nobody uses it.
    (tmp_path / "memory.stat").write_text("anon 400000\ninactive_file 600000\nactive_file 7\n")
    assert free_bytes(torch.device("cpu")) == 2_300_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(torch.device("cpu")) > 2_300_000


def test_blocks_leave_progress_to_be_seen():
    assert visible_block(n_replicates=10_000, n_models=11) == 500
    assert visible_block(n_replicates=500, n_models=11) == 47  # 517 models
    assert visible_block(n_replicates=1, n_models=1000) == 1


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_training_recovers_from_running_out(rng, monkeypatch, kernel):
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=12)
    C = np.array([0.1, 1.0])
    problem = Problem(
        X,
        y,
        counts,
        C,
        kernel=kernel,
        gamma=None if kernel == "linear" else 0.3,
        upper=C[:, None] * counts[:, None],
    )
    expected = fit(problem)
    upper_of = Problem.upper_of

    def greedy(self, replicates):
        if replicates.stop - replicates.start > 2:
            raise MemoryError
        return upper_of(self, replicates)

    monkeypatch.setattr(Problem, "upper_of", greedy)
    blocks = list(iter_fit(problem))
    assert [b.replicates.stop - b.replicates.start for b in blocks] == [
        b.intercept.shape[0] for b in blocks
    ]
    assert max(b.intercept.shape[0] for b in blocks) <= 2
    recovered = torch.cat([b.intercept for b in blocks])
    torch.testing.assert_close(recovered, expected.intercept, rtol=0, atol=1e-9)


def test_training_scores_are_not_kept(rng):
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=5)
    problem = Problem(X, y, counts, [1.0])
    assert all(block.train_scores.shape[-1] == 30 for block in iter_fit(problem))
    assert fit(problem).train_scores is None


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_training_scores_go_block_by_block(rng, monkeypatch, kernel):
    """Those of one block are gone before the next one is trained."""
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=5)
    gamma = None if kernel == "linear" else 0.5
    problem = Problem(X, y, counts, [1.0], kernel=kernel, gamma=gamma)
    scores, alive = [], []

    def watched(*args, **kwargs):
        for block in iter_fit(*args, **kwargs):
            alive.append(sum(each() is not None for each in scores))
            scores.append(weakref.ref(block.train_scores))
            yield block

    monkeypatch.setattr(training, "iter_fit", watched)
    assert fit(problem, memory_limit=1).train_scores is None
    assert alive == [0] * 5


def test_free_memory_is_what_psutil_says(monkeypatch, tmp_path):
    """Read from the system where it has such a file, by psutil elsewhere."""
    psutil = pytest.importorskip("psutil")
    for file in (memory._MEMINFO, tmp_path / "nowhere"):
        monkeypatch.setattr(memory, "_MEMINFO", file)
        # Other processes come and go between the two.
        ratio = memory._available_bytes() / psutil.virtual_memory().available
        assert 0.5 < ratio < 2
