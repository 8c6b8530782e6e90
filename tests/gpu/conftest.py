"""Every engine back end by name, and a bench that trains each problem once for all tests."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from pretended_cuda import Driver, pretended_cuda
from problems import BATCH, REGULAR, UGLY, Case
from truth import Answer, Truth, certify, optimum, svc, svc_on_resampled_rows

from bootprob_gpu import FittedBatch, Problem, fit
from bootprob_gpu.hardware import cuda as engine_cuda
from bootprob_gpu.hardware import triton_choice
from bootprob_gpu.hardware.cuda import Replayed
from bootprob_gpu.hardware.numba_choice import numba_loads
from bootprob_gpu.solvers import BACK_ENDS

# For other processes: packages are taken away, a GPU is pretended, a kernel is interpreted.
collect_ignore = ["bare", "pretended_cuda/at_start", "doubling_kernel.py"]


@dataclass(frozen=True)
class Backend:
    """A solver on a device in a precision, for a kernel; new ones are a line in `BACKENDS`."""

    solver: str
    kernel: str
    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    max_iter: int | None = None
    """Iterations that an ugly problem may take; beyond, an honest MAX_ITER is good enough."""
    excused: Collection[str] = ()
    """Ugly problems on which it need not converge, as long as it says so."""

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return "-".join((self.kernel, self.solver, dtype, self.device))

    @property
    def tol(self) -> float:
        """Relative duality gap asked for."""
        if self.dtype == torch.float32:
            return 1e-4
        return 1e-7 if self.kernel == "linear" else 1e-6

    @property
    def eps(self) -> float:
        """Unit roundoff of the scores."""
        return torch.finfo(self.dtype).eps

    def fit(self, problem: Problem, **changes) -> FittedBatch:
        """Train with this back end."""
        return fit(problem, **(self.options | changes))

    @property
    def options(self) -> dict:
        """Keyword arguments of `fit` and `iter_fit`."""
        names = ("solver", "device", "dtype", "tol")
        return {name: getattr(self, name) for name in names}


# The linear kernel is not what SMO is good at: a large C or unequal columns cost it millions of
# iterations. In plain torch an iteration is slow on a CPU, so few are allowed in here.
_HARD = {
    "max_iter": 200_000,
    "excused": ("extreme_c", "heavy_tails", "outlier", "unequal_scales"),
}
_SLOW = {"max_iter": 200, "excused": tuple(UGLY)}
_SOLVERS = [
    Backend("interior-point", "linear"),
    Backend("interior-point-compiled", "linear"),
    Backend("smo-compiled", "linear", **_HARD),
    Backend("smo-compiled", "linear", torch.float32, **_HARD),
    Backend("smo-compiled", "rbf"),
    Backend("smo-compiled", "rbf", torch.float32),
    Backend("smo-compiled", "laplacian"),
    Backend("smo-compiled", "laplacian", torch.float32),
    Backend("smo-compiled", "poly"),
    Backend("smo-compiled", "poly", torch.float32),
    Backend("smo-compiled", "precomputed"),
    Backend("smo-compiled", "precomputed", torch.float32),
    Backend("smo-batched", "linear", **_SLOW),
    Backend("smo-batched", "linear", torch.float32, **_SLOW),
    Backend("smo-batched", "rbf"),
    Backend("smo-batched", "rbf", torch.float32),
    Backend("smo-batched", "laplacian"),
    Backend("smo-batched", "laplacian", torch.float32),
    Backend("smo-batched", "poly"),
    Backend("smo-batched", "poly", torch.float32),
    Backend("smo-batched", "precomputed"),
    Backend("smo-batched", "precomputed", torch.float32),
]
# On a CPU its twin, "smo-batched", would do the work.
_CUDA_ONLY = [
    Backend("smo-fused", "linear", **_HARD),
    Backend("smo-fused", "linear", torch.float32, **_HARD),
    Backend("smo-fused", "rbf"),
    Backend("smo-fused", "rbf", torch.float32),
    Backend("smo-fused", "laplacian"),
    Backend("smo-fused", "laplacian", torch.float32),
    Backend("smo-fused", "poly"),
    Backend("smo-fused", "poly", torch.float32),
    Backend("smo-fused", "precomputed"),
    Backend("smo-fused", "precomputed", torch.float32),
]
# By default everything that is here; `make gpu-check` wants the GPU alone.
_DEVICES = os.environ.get(
    "BOOTPROB_TEST_DEVICE", "cpu,cuda" if torch.cuda.is_available() else "cpu"
).split(",")
BACKENDS = [
    replace(each, device=device)
    for device in _DEVICES
    for each in (_SOLVERS if device == "cpu" else _SOLVERS + _CUDA_ONLY)
    if ((device == "cpu" and numba_loads()) or not BACK_ENDS[each.solver].is_compiled)
]


class Bench:
    """Problems drawn from one seed, their truths, and what each back end makes of them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        # Caches of this bench alone: a problem is drawn, solved and trained once a session.
        self.case = cache(self._case)
        self.truth = cache(self._truth)
        self.by_svc = cache(self._by_svc)
        self.refitted = cache(self._refitted)
        self.fit = cache(self._fit)
        self.answers = cache(self._answers)

    def rng(self, name: str) -> np.random.Generator:
        """A stream of its own for every name, whatever the order of the tests."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def _case(self, name: str) -> Case:
        return (REGULAR | UGLY | BATCH)[name](self.rng(name))

    def _truth(self, name: str, kernel: str, b: int, r: int) -> Truth:
        return optimum(self.case(name).machine(kernel, b, r))

    def _by_svc(self, name: str, kernel: str, b: int, r: int) -> Truth:
        return svc(self.case(name).machine(kernel, b, r))

    def fresh_rows(self, name: str) -> np.ndarray:
        """Rows of no training set."""
        case = self.case(name)
        draw = self.rng(f"fresh rows of {name}").normal(size=(7, case.X.shape[1]))
        return case.centre + draw * np.maximum(case.X.std(axis=0), 1e-9)

    def _refitted(
        self, name: str, kernel: str, b: int, r: int, tol: float
    ) -> tuple[Truth, np.ndarray]:
        """Scikit-learn's SVC on the resampled rows; its scores of the rows and of fresh ones."""
        case = self.case(name)
        C, gamma = case.parameters(kernel, r)
        scale = 1.0 if kernel == "precomputed" else case.scale_of(b)
        model, alpha = svc_on_resampled_rows(
            case.given(kernel, case.X) / scale,
            case.labels_of(b), case.counts[b], C, case.weight, kernel, gamma, tol,
        )  # fmt: skip
        intercept = float(model.intercept_[0])
        if kernel == "linear":
            intercept += float(model.coef_[0] @ (case.centre / scale))
        truth = certify(case.machine(kernel, b, r), alpha, intercept=intercept)
        rows = case.given(kernel, np.vstack([case.X, self.fresh_rows(name)])) / scale
        rows = rows[:, model.rows_] if kernel == "precomputed" else rows
        return truth, model.decision_function(rows)

    def _fit(self, backend: Backend, name: str) -> FittedBatch:
        problem = Problem(**self.case(name).arguments(backend.kernel))
        return backend.fit(problem, max_iter=backend.max_iter if name in UGLY else None)

    def _answers(self, backend: Backend, name: str) -> list[tuple[tuple[int, int], Answer]]:
        fitted, case = self.fit(backend, name), self.case(name)
        return [
            ((b, r), Answer.read(fitted, case, backend, b, r))
            for b, r in self.models(name, backend.kernel)
        ]

    def models(self, name: str, kernel: str) -> Iterator[tuple[int, int]]:
        """All pairs of replicate and model of a problem in which both classes carry weight."""
        case = self.case(name)
        for b in range(len(case.counts)):
            for r in range(case.n_models(kernel)):
                if case.has_both_classes(kernel, b, r):
                    yield b, r


# --- what `make test` leaves to `make endurance` -------------------------------------------------


def covering(problems: Iterable[str]) -> set[tuple[Backend, str]]:
    """Back ends for each problem such that every two of a solver, a kernel, a precision, a device
    and a problem that can meet do so at least once; those that were taken least come first.
    """
    chosen, met, taken = set(), set(), Counter()

    def new(backend: Backend, problem: str) -> set[tuple]:
        values = backend.solver, backend.kernel, backend.dtype, backend.device, problem
        return set(combinations(values, 2)) - met

    for problem in problems:
        while BACKENDS:
            best = max(BACKENDS, key=lambda each: (len(new(each, problem)), -taken[each]))
            if not new(best, problem):
                break
            met |= new(best, problem)
            taken[best] += 1
            chosen.add((best, problem))
    return chosen


def problem_of(item: pytest.Item) -> str:
    """Name of a test's problem; "" where it has one of its own."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return str(params.get("name") or params.get("regular") or params.get("ugly") or "")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Back ends × problems: all of them by `make endurance`, a covering part by `make test`.

    Tests of one problem stand together, so that one pytest-xdist worker solves it for all.
    """
    here = [i for i, item in enumerate(items) if Path(__file__).parent in item.path.parents]
    for i, item in zip(here, sorted((items[i] for i in here), key=problem_of), strict=True):
        items[i] = item
    # A test whose problem is its own comes first: it meets each solver with each of its kernels.
    kept = covering(["", *REGULAR, *UGLY])
    for item in (items[i] for i in here):
        backend = item.callspec.params.get("backend") if hasattr(item, "callspec") else None
        if isinstance(backend, Backend) and (backend, problem_of(item)) not in kept:
            item.add_marker(pytest.mark.endurance)


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench(int(os.environ["BOOTPROB_TEST_SEED"]))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors are tiny in here: more threads only get into each other's way."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def _quick_interpreter() -> None:
    """Interpreted kernels take a fifth of their time, with the same bits."""
    if not torch.cuda.is_available() and find_spec("triton"):
        from quick_interpreter import make_quick

        make_quick()


@pytest.fixture(scope="session")
def kernel_device() -> torch.device:
    """Where Triton kernels are tested: compiled on a GPU, else interpreted on the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def no_gpu_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that has not seen a GPU yet, where there is none: one may be pretended."""
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    pytest.importorskip("triton")
    monkeypatch.setattr(Replayed, "_capturable", True)
    monkeypatch.setattr(triton_choice, "_broken", set())
    monkeypatch.setattr(engine_cuda._of_thread, "streams", {}, raising=False)


@pytest.fixture
def pretended_gpu(no_gpu_seen: None) -> Iterator[Driver]:
    """A CUDA device on the host's memory."""
    with pretended_cuda() as device:
        yield device


@pytest.fixture(params=BACKENDS, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(scope="session")
def backends() -> list[Backend]:
    return BACKENDS


@pytest.fixture(params=[each for each in BACKENDS if each.kernel == "linear"], ids=str)
def linear_backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture(params=REGULAR)
def regular(request: pytest.FixtureRequest) -> str:
    """Name of a well-behaved problem."""
    return request.param


@pytest.fixture(params=UGLY)
def ugly(request: pytest.FixtureRequest) -> str:
    """Name of an ugly problem."""
    return request.param
