"""Steps replayed as a CUDA graph: the protocol, on stand-ins for CUDA; the real thing on a GPU."""

import contextlib
import warnings
import weakref

import numpy as np
import pytest
import torch

from bootprob_gpu import Problem, fit
from bootprob_gpu.hardware import cuda as engine_cuda
from bootprob_gpu.hardware import triton_choice
from bootprob_gpu.hardware.cuda import Replayed, can_capture
from bootprob_gpu.hardware.triton_choice import KernelFallbackWarning
from bootprob_gpu.interior_point import answered_problems
from bootprob_gpu.interior_point import batched as interior_point

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CAPTURING = "CUDA error: operation not permitted when stream is capturing"
KERNELS = interior_point._KERNELS
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"


class Cuda:
    """Records what is asked of CUDA. While it captures, a step is noted and not counted as work.

    Stands in for a stream, a graph, and torch's allocator, which is told by `capture_end` that a
    capture is over only if CUDA had nothing against its end.
    """

    device = torch.device("cuda", 0)

    def __init__(self) -> None:
        self.log: list[str] = []
        self.capturing = False
        self.begin_error: Exception | None = None
        self.end_error: Exception | None = None
        self.allocating: list[tuple[int, int]] = []  # pools
        self.used: list[tuple[int, int]] = []  # pool of each capture begun
        self.pools = 0

    def graph_pool_handle(self) -> tuple[int, int]:
        self.pools += 1
        return 0, self.pools

    def end_allocating(self, number: int, pool: tuple[int, int]) -> None:
        assert number == self.device.index
        if pool not in self.allocating:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.allocating.remove(pool)

    def release_pool(self, number: int, pool: tuple[int, int]) -> None:
        assert number == self.device.index
        self.log.append(f"release {pool[1]}")

    def wait_stream(self, other: object) -> None:
        self.log.append("wait")

    def capture_begin(self, pool: tuple[int, int], capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        self.log.append("begin")
        self.allocating.append(pool)
        self.used.append(pool)
        if self.begin_error is not None:
            raise self.begin_error
        self.capturing = True

    def capture_end(self) -> None:
        self.log.append("end")
        self.capturing = False
        if self.end_error is not None:
            raise self.end_error
        self.allocating.pop()

    def replay(self) -> None:
        self.log.append("replay")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: fake)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: fake)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: fake)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", fake.graph_pool_handle)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", fake.end_allocating, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_releasePool", fake.release_pool, raising=False)
    monkeypatch.setattr(Replayed, "_capturable", True)
    monkeypatch.setattr(triton_choice, "_broken", set())
    monkeypatch.setattr(engine_cuda._of_thread, "streams", {}, raising=False)
    return fake


def replayed(cuda: Cuda, error: Exception | None = None) -> Replayed:
    def step() -> None:
        cuda.log.append("recorded" if cuda.capturing else "run")
        if cuda.capturing and error is not None:
            raise error

    return Replayed(step, cuda.device, KERNELS)


def work(cuda: Cuda) -> list[str]:
    return [entry for entry in cuda.log if entry != "wait"]


def test_a_step_is_run_then_captured_then_replayed(cuda):
    step = replayed(cuda)
    for _ in range(4):
        step()
    assert work(cuda) == ["run", "begin", "recorded", "end", "replay", "replay", "replay"]
    # Before and after everything on the side stream.
    assert cuda.log[:5] == ["wait", "run", "wait", "wait", "begin"]
    assert cuda.log[6:8] == ["end", "wait"]
    assert cuda.allocating == []


def test_a_step_that_cannot_be_captured_is_run_as_it_is_and_no_other_is_tried(cuda):
    cuda.end_error = RuntimeError(INVALIDATED)
    step = replayed(cuda, RuntimeError(CAPTURING))
    step()
    with pytest.warns(KernelFallbackWarning, match="could not be captured into a CUDA graph"):
        step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step()
        another = replayed(cuda)
        another()
        another()
    first = ["run", "begin", "recorded", "end", "release 1", "run"]
    assert work(cuda) == [*first, "run", "run", "run"]
    assert not can_capture(KERNELS)


@pytest.mark.parametrize(
    "name", ["_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool"]
)
@pytest.mark.parametrize("where", ["begin", "step", "end"])
def test_a_capture_that_fails_is_over_for_the_allocator(cuda, monkeypatch, where, name):
    """By either name of the function: torch 2.8 gave it another."""
    monkeypatch.delattr(torch._C, "_cuda_endAllocateToPool")
    monkeypatch.setattr(torch._C, name, cuda.end_allocating, raising=False)
    error = RuntimeError(CAPTURING)
    step = replayed(cuda, error if where == "step" else None)
    if where == "begin":
        cuda.begin_error = error
    if where == "end":
        cuda.end_error = error
    step()
    with pytest.warns(KernelFallbackWarning):
        step()
    assert cuda.allocating == []
    # One that ended belongs to the graph, which gives its pool back itself.
    assert cuda.log.count("release 1") == (0 if where == "step" else 1)
    assert work(cuda)[-1] == "run"


@pytest.mark.parametrize("invalidated", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=["torch", "cuBLAS"],
)
def test_a_step_that_does_not_fit_into_a_capture_is_run_as_it_is(cuda, error, invalidated):
    """A capture has to make do without the memory that torch has cached; a step has not."""
    if invalidated:
        cuda.end_error = RuntimeError(INVALIDATED)
    step = replayed(cuda, error)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            step()
    assert [entry for entry in work(cuda) if "release" not in entry] == [
        "run", "begin", "recorded", "end", "run", "run",
    ]  # fmt: skip
    assert cuda.allocating == []
    # Other steps may be smaller.
    cuda.end_error = None
    another = replayed(cuda)
    another()
    another()
    assert work(cuda)[-1] == "replay"


def test_no_step_is_captured_once_a_twin_stands_in_for_a_kernel(cuda):
    step = replayed(cuda)
    step()
    triton_choice._broken.add("Cholesky factor")
    step()
    assert work(cuda) == ["run", "run"]
    assert not can_capture(KERNELS)


@pytest.mark.parametrize("kernel", ["votes", "smo"])
def test_a_kernel_that_the_step_does_not_launch_is_none_of_its_business(cuda, kernel):
    triton_choice._broken.add(kernel)
    assert can_capture(KERNELS)
    step = replayed(cuda)
    step()
    step()
    assert work(cuda)[-1] == "replay"


def test_the_kernels_of_an_iteration_are_those_that_it_asks_for(rng, monkeypatch):
    class Asked(set):
        """Everything is broken, and what was asked about is noted."""

        def __contains__(self, name: object) -> bool:
            self.add(name)
            return True

    asked = Asked()
    monkeypatch.setattr(triton_choice, "_broken", asked)
    monkeypatch.setattr(triton_choice, "use_triton", lambda device: True)
    X = rng.normal(size=(20, 2))
    y = np.where(np.arange(20) % 2 > 0, 1, -1)
    fit(Problem(X, y, np.ones((1, 20), dtype=int), [1.0]), solver="interior-point", device="cpu")
    assert set(asked) == KERNELS


def test_a_graph_that_there_is_goes_on(cuda):
    step = replayed(cuda)
    step()
    step()
    triton_choice._broken.add("Cholesky factor")
    step()
    assert work(cuda)[-2:] == ["replay", "replay"]


def test_a_step_that_is_renewed_is_run_and_captured_anew_in_the_same_memory(cuda, monkeypatch):
    class Graph:
        def __getattr__(self, name: str) -> object:
            return getattr(cuda, name)

    graphs = []

    def made() -> Graph:
        graph = Graph()
        graphs.append(weakref.ref(graph))
        return graph

    monkeypatch.setattr(torch.cuda, "CUDAGraph", made)
    step = replayed(cuda)
    for _ in range(3):
        for _ in range(3):
            step()
        step.renew()
    assert work(cuda) == 3 * ["run", "begin", "recorded", "end", "replay", "replay"]
    assert cuda.used == 3 * [(0, 1)]
    # With a graph, torch would give up workspaces that the next one uses.
    assert all(graph() is not None for graph in graphs)
    del step
    assert all(graph() is None for graph in graphs)


def test_a_step_that_did_not_fit_is_tried_again_once_renewed(cuda):
    cuda.begin_error = torch.OutOfMemoryError("CUDA out of memory")
    step = replayed(cuda)
    for _ in range(3):
        step()
    assert "replay" not in cuda.log
    cuda.begin_error = None
    step.renew()
    for _ in range(2):
        step()
    assert work(cuda)[-5:] == ["run", "begin", "recorded", "end", "replay"]
    # The pool of a capture that failed has gone.
    assert cuda.used == [(0, 1), (0, 2)]
    assert cuda.allocating == []


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        ValueError("shapes"),
    ],
)
def test_other_errors_pass(cuda, error):
    step = replayed(cuda, error)
    step()
    with pytest.raises(type(error)):
        step()
    assert work(cuda)[-1] == "end"
    assert cuda.allocating == []
    assert can_capture(KERNELS)


def test_small_batches_on_a_gpu_are_replayed():
    """By what is known of a batch, without a GPU."""
    pytest.importorskip("triton")

    class Rows:
        def __init__(self, device: str, q: int) -> None:
            self.device, self.is_cuda, self.shape = torch.device(device), device == "cuda", (0, q)

    class Batch:
        def __init__(self, cells: int) -> None:
            self.upper = torch.empty(cells, dtype=torch.float64, device="meta")

    small, large = Batch(5_500 * 569), Batch(5_500 * 900)
    assert interior_point._is_small(Rows("cuda", 31), small)
    assert not interior_point._is_small(Rows("cuda", 31), large)
    assert not interior_point._is_small(Rows("cuda", 200), small)
    assert not interior_point._is_small(Rows("cpu", 31), small)


@needs_cuda
@pytest.mark.parametrize("recaptured_cells", [0, 2**20])
def test_replayed_training_is_training(rng, monkeypatch, recaptured_cells):
    """However often the graph is captured anew."""
    monkeypatch.setattr(answered_problems, "_RECAPTURED_CELLS", recaptured_cells)
    X = rng.normal(size=(200, 6))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=20)
    problem = Problem(X, y, counts, 2.0 ** np.arange(-5, 6))
    options = {"solver": "interior-point", "device": "cuda"}
    replays = [fit(problem, **options) for _ in range(2)]
    for name in ("coef", "primal", "dual", "n_iter"):
        assert torch.equal(getattr(replays[0], name), getattr(replays[1], name))
    assert all(each.is_cuda for each in vars(replays[0]).values() if isinstance(each, torch.Tensor))
    monkeypatch.setattr(interior_point, "_REPLAYED_CELLS", 0)
    one_by_one = fit(problem, **options)
    assert torch.equal(one_by_one.status, replays[0].status)
    # Both are within the tolerance of the same optimum.
    torch.testing.assert_close(one_by_one.primal, replays[0].primal, rtol=1e-7, atol=0)
