"""Problems that are answered leave the batch of an interior point, and nobody can tell."""

from __future__ import annotations

import os
from dataclasses import fields

import numpy as np
import pytest
import torch
from counted_operations import Operations
from problems import REGULAR, UGLY, Case, case, overlapping
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bootprob_gpu import FittedBatch, Problem, fit
from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point import answered_problems
from bootprob_gpu.interior_point import batched as interior_point
from bootprob_gpu.interior_point.answered_problems import LateCount, leave
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices, factored
from bootprob_gpu.interior_point.state import State, start
from gpu.roofline import interior_point_counts as counts

aten = torch.ops.aten
interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="kernels are not interpreted here"
)


def test_half_have_to_be_answered_before_a_graph_is_captured_anew():
    rows = 2**10
    assert leave(500, 1000, rows, replayed=False)
    assert leave(900, 1000, rows, replayed=False)
    assert not leave(901, 1000, rows, replayed=False)
    assert leave(62, 63, rows, replayed=False)
    assert not leave(63, 63, rows, replayed=False)
    assert leave(512, 1024, rows, replayed=True)
    assert not leave(513, 1024, rows, replayed=True)
    # Where launches are all there is, nothing is gained.
    assert not leave(1, 1023, rows, replayed=True)


def test_captures_are_as_many_as_halvings(rng):
    cells = interior_point._REPLAYED_CELLS
    for n_rows in (7, 569, 4000):
        batch, leaves = cells // n_rows, 0
        n_iter = rng.integers(0, 200, size=batch)
        for step in range(200):
            working = int((n_iter > step).sum())
            if working and leave(working, batch, n_rows, replayed=True):
                batch, leaves = working, leaves + 1
        assert leaves <= 1 + np.log2(cells / answered_problems._RECAPTURED_CELLS)


class _Stream:
    """Stands in for a CUDA stream: what is queued happens when an event after it is waited for."""

    def __init__(self) -> None:
        self.queue: list = []

    def record_event(self) -> _Event:
        return _Event(self, len(self.queue))


class _Event:
    def __init__(self, stream: _Stream, number: int) -> None:
        self.stream, self.number = stream, number

    def synchronize(self) -> None:
        for position in range(self.number):
            if self.stream.queue[position] is not None:
                self.stream.queue[position]()
                self.stream.queue[position] = None


class _Pinned:
    """Room for a number that arrives when the stream gets to it."""

    def __init__(self, stream: _Stream) -> None:
        self.stream, self.coming, self.value = stream, False, None

    def copy_(self, value: Tensor, *, non_blocking: bool) -> None:
        assert non_blocking
        assert not self.coming, "overwritten before it was read"
        value, self.coming = value.clone(), True
        self.stream.queue.append(lambda: self._arrive(value))

    def _arrive(self, value: Tensor) -> None:
        self.coming, self.value = False, int(value)

    def __int__(self) -> int:
        assert not self.coming, "read before it arrived"
        return self.value


class _Room:
    def __init__(self, stream: _Stream) -> None:
        self.parts = _Pinned(stream), _Pinned(stream)

    def unbind(self) -> tuple[_Pinned, _Pinned]:
        return self.parts


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> _Stream:
    stream = _Stream()
    monkeypatch.setattr(answered_problems, "_pinned", lambda n_counts: _Room(stream))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    return stream


def test_a_late_count_is_that_of_the_call_before(rng, stream):
    working = [torch.tensor(rng.integers(0, 2, size=30)) for _ in range(9)]
    count = LateCount(30)
    told = [count(each) for each in working]
    assert told == [30, *(int(each.sum()) for each in working[:-1])]
    # The last one is still on its way: the host has not waited for it.
    assert [entry is None for entry in stream.queue] == [True] * 8 + [False]


class _Steps:
    """Stands in for steps that are replayed as a CUDA graph."""

    made: list[_Steps]

    def __init__(self, step, device: torch.device, kernels: frozenset[str]) -> None:
        self.step, self.renewed = step, 0
        self.made.append(self)

    def __call__(self) -> None:
        self.step()

    def renew(self) -> None:
        self.renewed += 1


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, stream: _Stream) -> list[_Steps]:
    """Every batch is taken for one whose steps a GPU would replay."""
    monkeypatch.setattr(interior_point, "can_capture", lambda kernels: True)
    monkeypatch.setattr(interior_point, "_is_small", lambda X1, state: True)
    monkeypatch.setattr(interior_point, "Replayed", _Steps)
    monkeypatch.setattr(_Steps, "made", [], raising=False)
    return _Steps.made


class RowByRow(TorchDispatchMode):
    """Matrix products a row at a time, as libraries need not make them: their bits may hang on how
    many rows there are."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.mm.default:
            left, right = args
            return torch.cat([aten.mm.default(row[None].clone(), right) for row in left])
        if func is aten.mm.out:
            kwargs["out"].copy_(self.__torch_dispatch__(aten.mm.default, types, args))
            return kwargs["out"]
        return func(*args, **(kwargs or {}))


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Problems in the batch, step by step."""
    found: list[int] = []
    advance = interior_point._advance

    def noted(X1: Tensor, s: State, normal) -> None:
        found.append(len(s.working))
        advance(X1, s, normal)

    monkeypatch.setattr(interior_point, "_advance", noted)
    return found


def assert_same(found: FittedBatch, expected: FittedBatch) -> None:
    """To the last bit."""
    for field in fields(expected.certificate):
        a, b = (getattr(each.certificate, field.name) for each in (found, expected))
        assert torch.equal(a, b), field.name
    assert torch.equal(found.coef, expected.coef)
    assert torch.equal(found.intercept, expected.intercept)


def both(case: Case, monkeypatch, sizes: list[int], **options) -> tuple[FittedBatch, list[int]]:
    """The models without leaving, after they were compared with those of batches that shrink.

    And the sizes of the batch that shrank most.
    """
    problem = Problem(**case.arguments("linear"))
    with RowByRow(), monkeypatch.context() as patched:
        patched.setattr(interior_point, "leave", lambda *batch, replayed: False)
        whole = fit(problem, solver="interior-point", **options)
        assert len(set(sizes)) == 1
        patched.setattr(answered_problems, "_RECAPTURED_CELLS", 0)  # however few they are
        for rule in (leave, lambda working, batch, rows, *, replayed: working < batch):
            patched.setattr(interior_point, "leave", rule)
            sizes.clear()
            assert_same(fit(problem, solver="interior-point", **options), whole)
    return whole, sizes


CASES = [
    "plain", "clear", "pairs_of_classes", "own_bounds", "wide_margin", "duplicated_rows",
    "contradicting_duplicates", "constant_and_collinear", "class_missing", "extreme_c",
    "unequal_weights",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("replayed", [False, True])
def test_who_has_left_makes_no_difference(rng, name, replayed, monkeypatch, request, sizes):
    if replayed:
        request.getfixturevalue("steps")
    with triton_kernels("never"):
        both((REGULAR | UGLY)[name](rng), monkeypatch, sizes, max_iter=60)


@interpreted
@pytest.mark.parametrize("replayed", [False, True])
def test_with_kernels_neither(rng, replayed, monkeypatch, request, sizes):
    """Kernels skip those who are answered and stay; the twins do not."""
    pytest.importorskip("triton")
    steps = request.getfixturevalue("steps") if replayed else []
    X, y = overlapping(rng, n=14, p=2)
    C = np.array([1e-3, 1.0, 1e2])
    samples = np.stack([np.ones(len(y)), 3 * (y > 0)]).astype(int)
    few = case(rng, X, y, C=C, counts=samples)
    with triton_kernels("always"):
        whole, shrunk = both(few, monkeypatch, sizes, tol=1e-3)
    assert whole.status.tolist() == [[Status.CONVERGED] * 3, [Status.SINGLE_CLASS] * 3]
    n_iter = whole.n_iter[0]
    if n_iter.unique().numel() > 1:
        assert len(set(shrunk)) > 1
    assert [each.renewed > 0 for each in steps[-1:]] == [len(set(shrunk)) > 1] * replayed
    # One step more where the count is late: the device is busy while the host waits.
    assert len(shrunk) == n_iter.max() + replayed


def test_what_is_left_of_answered_problems_sets_off_no_second_factorisation(rng):
    """In plain torch, which factors the larger matrices on a GPU too."""
    X1 = torch.from_numpy(rng.normal(size=(30, 4)))
    normal = NormalMatrices(X1, 10**6)
    packed = normal(torch.from_numpy(rng.random((3, 30))))
    packed[1] = -1.0
    penalty = torch.ones(3, 4, dtype=torch.float64)
    for working, times in (([1, 0, 1], 1), ([1, 1, 1], 2)):
        with triton_kernels("never"), Operations() as operations:
            factored(packed, penalty, normal.unpack, torch.tensor(working))
        assert operations.count["linalg_cholesky_ex"] == times


@pytest.mark.parametrize("replayed", [False, True])
def test_counts_without_a_gpu_are_those_of_a_run(rng, replayed, monkeypatch, request, sizes):
    if replayed:
        request.getfixturevalue("steps")
    monkeypatch.setattr(answered_problems, "_RECAPTURED_CELLS", 0)
    X, y = overlapping(rng, n=60, p=3)
    C = 10.0 ** np.arange(-4, 3)
    problem = Problem(**case(rng, X, y, 12, C=C).arguments("linear"))
    n_iter = fit(problem, solver="interior-point").n_iter.flatten().numpy()
    counted = counts.executed(n_iter, 60, replayed=replayed)
    assert counted.products == sum(sizes)
    assert counted.steps == len(sizes) == n_iter.max() + replayed
    assert counted.left == len(set(sizes)) - 1
    assert counted.kernels == counted.needed == n_iter.sum()
    # Every step of a graph is a launch, but for those that are run or captured.
    assert counted.captures <= replayed * (1 + counted.left)


@interpreted
def test_a_step_launches_and_moves_what_is_counted(rng, monkeypatch):
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    launches: list[str] = []
    numbers: list[int] = []
    n, q, problems = 300, 4, 3

    run = interpreter.GridExecutor.__call__
    load, store = (
        getattr(interpreter.InterpreterBuilder, f"create_masked_{each}")
        for each in ("load", "store")
    )

    def launched(self, *args, **kwargs):
        launches.append(self.fn.__name__)
        return run(self, *args, **kwargs)

    def loaded(self, pointers, mask, *others):
        numbers.append(int(mask.data.sum()))
        return load(self, pointers, mask, *others)

    def stored(self, pointers, value, mask, *others):
        numbers.append(int(mask.data.sum()))
        return store(self, pointers, value, mask, *others)

    X, y = overlapping(rng, n=n, p=q - 1)
    X1 = torch.from_numpy(np.column_stack([X, np.ones(n)]))
    state = start(
        torch.from_numpy(y),
        torch.ones(problems, n, dtype=torch.float64),
        torch.ones(problems, q - 1, dtype=torch.float64),
        torch.zeros(problems, q, dtype=torch.float64),
        Certificate.empty(problems, device="cpu"),
        1e-7,
    )
    normal = NormalMatrices(X1, 10**6)
    interior_point._certify(X1, state)
    monkeypatch.setattr(interpreter.GridExecutor, "__call__", launched)
    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_masked_load", loaded)
    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_masked_store", stored)
    with triton_kernels("always"), Operations() as operations:
        interior_point._advance(X1, state, normal)
        interior_point._certify(X1, state)
    products, counter = operations.count["mm"], operations.count["add_"]
    assert (products, len(launches), counter) == (7, 9, 1)
    assert products + len(launches) + counter == counts.STEP_LAUNCHES
    # Labels, which all problems share, and numbers of a problem, are all that is not counted.
    labels = 8 * n
    left = sum(numbers) / problems - counts.kernel_bytes(n, q) / 8 - labels
    assert 0 <= left <= 40 * q
