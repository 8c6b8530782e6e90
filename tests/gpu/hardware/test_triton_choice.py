"""When a Triton kernel runs, when its twin, and what is said about it."""

import subprocess
import warnings
from contextlib import contextmanager

import pytest
import torch

from bootprob_gpu.hardware import triton_choice
from bootprob_gpu.hardware.triton_choice import (
    KernelFallbackWarning,
    fell_back,
    kernel_names,
    triton_kernels,
    use_triton,
    with_twin,
)
from bootprob_gpu.scoring.votes import vote_counter

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def _nothing_broken(monkeypatch):
    monkeypatch.setattr(triton_choice, "_broken", set())
    monkeypatch.setattr(triton_choice, "_names", set(triton_choice._names))


def _pretend_cuda(monkeypatch):
    monkeypatch.setattr(triton_choice, "use_triton", lambda device: True)


def failing(error):
    calls = []

    @with_twin(lambda x: x + 1, name="sum")
    def launch(x):
        calls.append(x)
        raise error

    return launch, calls


def test_cpu_tensors_go_to_the_twin_unless_told_otherwise():
    launch = with_twin(lambda x: "twin", name="sum")(lambda x: "kernel")
    x = torch.ones(1)
    assert launch(x) == "twin"
    with triton_kernels("always"):
        assert launch(x) == "kernel"
    assert launch(x) == "twin"
    assert use_triton(torch.device("cuda"))
    with triton_kernels("never"):
        assert not use_triton(torch.device("cuda"))


@pytest.mark.parametrize(
    "error", [subprocess.CalledProcessError(1, "ptxas"), ImportError("no libcuda")]
)
def test_a_kernel_that_cannot_be_compiled_warns_once_and_its_twin_works_on(monkeypatch, error):
    _pretend_cuda(monkeypatch)
    launch, calls = failing(error)
    assert not fell_back({"sum"})
    with pytest.warns(KernelFallbackWarning, match="'sum' could not be compiled"):
        assert launch(torch.tensor(1)) == 2
    assert fell_back({"sum"})
    assert fell_back({"product", "sum"})
    assert not fell_back({"product"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert launch(torch.tensor(2)) == 3
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("installed", "advised"), [("3.4.0", True), ("3.5.0", False), ("3.10.1+git", False)]
)
def test_an_older_triton_is_named_as_the_likely_reason(monkeypatch, installed, advised):
    _pretend_cuda(monkeypatch)
    monkeypatch.setattr("triton.__version__", installed)
    launch, _ = failing(ImportError("Unsupported lhs dtype fp64"))
    with pytest.warns(KernelFallbackWarning) as said:
        launch(torch.tensor(1))
    (warning,) = said
    assert ("Triton 3.4.0; install 3.5 or newer" in str(warning.message)) == advised


def test_a_launch_says_which_kernel_it_is_about():
    one, other = (with_twin(len, name=name)(len) for name in ("one", "other"))
    assert kernel_names(one, other, one) == {"one", "other"}
    with pytest.raises(AttributeError):
        kernel_names(len)


def test_a_compiler_that_is_missing_counts_and_an_error_of_triton_too(monkeypatch):
    from triton.compiler.errors import CompilationError
    from triton.runtime import build

    _pretend_cuda(monkeypatch)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)

    @with_twin(lambda x: "twin", name="build")
    def launch(x):
        build._build("name", "src.c", "/tmp", [], [], [], [])

    with pytest.warns(KernelFallbackWarning, match="C compiler"):
        assert launch(torch.ones(1)) == "twin"
    broken, _ = failing(CompilationError("x = 1", None, "reason"))
    with pytest.warns(KernelFallbackWarning):
        broken(torch.ones(1))


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("out of memory"), RuntimeError("illegal access"), ValueError()]
)
def test_errors_of_running_are_not_swallowed(monkeypatch, error):
    _pretend_cuda(monkeypatch)
    launch, _ = failing(error)
    with pytest.raises(type(error)):
        launch(torch.ones(1))


def raised_by_triton(message):
    """An error from where Triton loads kernels and launches them."""
    place = {"__name__": "triton.backends.nvidia.driver"}
    exec("def load():\n    raise RuntimeError(message)", place | {"message": message}, place)
    return place["load"]


@pytest.mark.parametrize(
    ("message", "falls_back"),
    [
        ("Triton Error [CUDA]: an illegal memory access was encountered", False),
        ("Triton Error [CUDA]: unspecified launch failure", False),
        ("Triton Error [CUDA]: out of memory", False),
        ("Triton Error [CUDA]: device kernel image is invalid", True),
        ("Triton Error [CUDA]: no kernel image is available for execution on the device", True),
        ("Triton Error [CUDA]: a PTX JIT compilation failed", True),
        ("Failed to find C compiler", True),
    ],
)
def test_of_the_drivers_errors_only_a_kernel_that_is_not_loaded_counts(
    monkeypatch, message, falls_back
):
    _pretend_cuda(monkeypatch)

    @with_twin(lambda x: "twin", name="sum")
    def launch(x):
        raised_by_triton(message)()

    if falls_back:
        with pytest.warns(KernelFallbackWarning):
            assert launch(torch.ones(1)) == "twin"
    else:
        with pytest.raises(RuntimeError, match="CUDA"):
            launch(torch.ones(1))
    assert fell_back({"sum"}) == falls_back


def test_a_kernel_is_launched_on_the_device_of_its_first_tensor(monkeypatch):
    current = []

    @contextmanager
    def device_of(tensor):
        current.append(tensor)
        try:
            yield
        finally:
            current.pop()

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    x, y = torch.ones(1), torch.zeros(1)

    @with_twin(lambda x, y: len(current), name="sum")
    def launch(x, y):
        if y.any():
            raise ValueError
        return [each is x for each in current]

    assert launch(x, y) == 0  # the twin, on a CPU
    with triton_kernels("always"):
        assert launch(x, y) == [True]
        with pytest.raises(ValueError):  # noqa: PT011
            launch(x, x)
    assert current == []


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_kernel_runs_where_its_tensors_are():
    rows, coef = torch.ones(5, 3, device="cuda:1"), torch.ones(2, 3, 7, device="cuda:1")
    with triton_kernels("always"):
        counts = vote_counter(coef, torch.zeros(2, 7, device="cuda:1"))(rows)
    assert (counts == 7).all()


def test_told_always_nothing_falls_back():
    launch, _ = failing(ImportError("no libcuda"))
    with triton_kernels("always"), pytest.raises(ImportError):
        launch(torch.ones(1))
