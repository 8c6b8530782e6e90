"""When a Triton kernel runs, when its twin, and what is said about it."""

import subprocess
import warnings

import pytest
import torch

from bootprob_gpu import triton_choice
from bootprob_gpu.triton_choice import KernelFallbackWarning, triton_kernels, use_triton, with_twin

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def _nothing_broken(monkeypatch):
    monkeypatch.setattr(triton_choice, "_broken", set())


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
    with pytest.warns(KernelFallbackWarning, match="'sum' could not be compiled"):
        assert launch(torch.tensor(1)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert launch(torch.tensor(2)) == 3
    assert len(calls) == 1


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


def test_told_always_nothing_falls_back():
    launch, _ = failing(ImportError("no libcuda"))
    with triton_kernels("always"), pytest.raises(ImportError):
        launch(torch.ones(1))
