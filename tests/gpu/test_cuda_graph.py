"""Steps replayed as a CUDA graph: the protocol, on stand-ins for CUDA; the real thing on a GPU."""

import contextlib
import warnings

import numpy as np
import pytest
import torch

from bootprob_gpu import Problem, cuda_graph, fit, interior_point
from bootprob_gpu.cuda_graph import Replayed
from bootprob_gpu.triton_choice import KernelFallbackWarning

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CAPTURING = "CUDA error: operation not permitted when stream is capturing"
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"


class Cuda:
    """Records what is asked of CUDA. While it captures, a step is noted and not counted as work."""

    device = torch.device("cuda", 0)

    def __init__(self) -> None:
        self.log: list[str] = []
        self.capturing = False
        self.end_error: Exception | None = None

    def wait_stream(self, other: object) -> None:
        self.log.append("wait")

    def capture_begin(self, capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"
        self.log.append("begin")
        self.capturing = True

    def capture_end(self) -> None:
        self.log.append("end")
        self.capturing = False
        if self.end_error is not None:
            raise self.end_error

    def replay(self) -> None:
        self.log.append("replay")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: fake)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: fake)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: fake)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(Replayed, "_capturable", True)
    monkeypatch.setattr(cuda_graph._of_thread, "streams", {}, raising=False)
    return fake


def replayed(cuda: Cuda, error: Exception | None = None) -> Replayed:
    def step() -> None:
        cuda.log.append("recorded" if cuda.capturing else "run")
        if cuda.capturing and error is not None:
            raise error

    return Replayed(step, cuda.device)


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


def test_a_step_that_cannot_be_captured_is_run_as_it_is_and_no_other_is_tried(cuda):
    cuda.end_error = RuntimeError(INVALIDATED)
    step = replayed(cuda, RuntimeError(CAPTURING))
    step()
    with pytest.warns(KernelFallbackWarning, match="could not be captured into a CUDA graph"):
        step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step()
        replayed(cuda)()
    assert work(cuda) == ["run", "begin", "recorded", "end", "run", "run", "run"]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
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
    assert Replayed._capturable


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
def test_replayed_training_is_training(rng, monkeypatch):
    X = rng.normal(size=(200, 6))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=20)
    problem = Problem(X, y, counts, 2.0 ** np.arange(-5, 6))
    options = {"solver": "interior-point", "device": "cuda"}
    replays = [fit(problem, **options) for _ in range(2)]
    assert torch.equal(replays[0].coef, replays[1].coef)
    monkeypatch.setattr(interior_point, "_REPLAYED_CELLS", 0)
    one_by_one = fit(problem, **options)
    assert torch.equal(one_by_one.status, replays[0].status)
    torch.testing.assert_close(one_by_one.primal, replays[0].primal, rtol=1e-8, atol=0)
