"""Kernels of the interior point, interpreted if there is no GPU, against their plain twins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch
from torch import Tensor

from bootprob_gpu import Problem, fit
from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point.normal_matrices import NormalMatrices, factored, solved
from bootprob_gpu.interior_point.passes import correct, judge, losses, move, weigh
from bootprob_gpu.interior_point.state import State, start

pytest.importorskip("triton")

# Problems, rows, columns: none fills its blocks, the third takes several of them, the last the
# larger ones.
SHAPES = [(1, 2, 2), (3, 37, 4), (2, 600, 9), (1, 4500, 2)]
MAGNITUDES = [1.0, 1e-12, 1e12]


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """Fresh memory holds NaN, so that whatever a kernel leaves unwritten shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def _on_the_kernels_device(kernel_device: torch.device) -> Iterator[None]:
    """Tensors of these tests live where kernels run: compiled on a GPU, else interpreted."""
    torch.set_default_device(kernel_device)
    yield
    torch.set_default_device(None)


def test_fresh_memory_is_poisoned():
    assert torch.empty(3, dtype=torch.float64).isnan().all()
    assert torch.ones(3, dtype=torch.float64).new_empty(3).isnan().all()


@dataclass
class Drawn:
    """A state somewhere on its way, and what the matrix products would bring."""

    state: State
    scores: Tensor
    change: Tensor
    small: Tensor  # shape (problems, q)

    def copy(self) -> State:
        values = {f.name: getattr(self.state, f.name).clone() for f in fields(State)}
        for name in ("left", "scores", "spare"):
            values[name].fill_(torch.nan)
        return State(**values)


def draw(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    magnitude: float,
    own_labels: bool = False,
) -> Drawn:
    """Dual variables about `magnitude`, slacks and scores about 1 / `magnitude`."""
    problems, n, q = shape

    def positive(*shape: int) -> Tensor:
        return torch.tensor(rng.uniform(0.01, 1.0, size=shape) ** 2)

    signs = np.where(np.arange(n) < (n + 1) // 2, 1.0, -1.0)
    y = rng.permuted(np.tile(signs, (problems, 1)), axis=1)
    y = torch.tensor(y if own_labels else y[0])
    upper = positive(problems, n) * magnitude
    weightless = torch.tensor(rng.random((problems, n)) < 0.3)
    for end in (y.argmax(-1), y.argmin(-1)):
        weightless[torch.arange(problems), end] = False
    upper[weightless] = 0.0
    solution = torch.zeros(problems, q, dtype=torch.float64)
    s = start(
        y,
        upper,
        positive(problems, q - 1),
        solution,
        Certificate.empty(problems, device=upper.device),
        1,
    )
    inside = s.upper > 0
    s.a = torch.where(inside, s.upper * positive(problems, n), s.a)
    s.t = torch.where(inside, positive(problems, n) / magnitude, s.t)
    s.xi = torch.where(inside, positive(problems, n) / magnitude, s.xi)
    s.w = torch.tensor(rng.normal(size=(problems, q)))
    s.iteration += int(rng.integers(0, 7))
    s.best_iteration = torch.tensor(rng.integers(0, 1 + int(s.iteration), size=problems))
    scores, change = torch.tensor(rng.normal(size=(2, problems, n))) / magnitude
    return Drawn(s, scores, change, torch.tensor(rng.normal(size=(problems, q))))


@pytest.fixture(params=SHAPES, ids=str)
def shape(request: pytest.FixtureRequest) -> tuple[int, int, int]:
    return request.param


@pytest.fixture(params=[*MAGNITUDES, "own labels"])
def drawn(request: pytest.FixtureRequest, rng: np.random.Generator, shape) -> Drawn:
    if request.param == "own labels":
        return draw(rng, shape, 1.0, own_labels=True)
    return draw(rng, shape, request.param)


def both(run) -> list:
    """What `run` returns with the twin and with the kernel."""
    with triton_kernels("never"):
        twin = run()
    with triton_kernels("always"):
        return [twin, run()]


def assert_close(found: Tensor, expected: Tensor) -> None:
    """Up to rounding in the largest number of each problem."""
    assert torch.isfinite(expected).all()
    scale = expected.abs().reshape(len(expected), -1).amax(1)
    worst = (found - expected).abs().reshape(len(expected), -1).amax(1)
    assert (worst <= 1e-11 * scale).all(), worst / scale


def test_losses(drawn):
    def run():
        s = drawn.copy()
        return *losses(drawn.scores, s), s.left

    for expected, found in zip(*both(run), strict=True):
        assert_close(found, expected)


def test_a_loss_that_is_not_a_number_shows(rng):
    drawn = draw(rng, (3, 37, 4), 1.0)
    drawn.scores[1] = torch.nan
    for loss, _ in both(lambda: losses(drawn.scores, drawn.copy())):
        assert loss.isnan().tolist() == [False, True, False]


def test_weights(drawn):
    def run():
        s = drawn.copy()
        return weigh(s.left, s.spare, s), s.left, s.spare

    for expected, found in zip(*both(run), strict=True):
        assert_close(found, expected)


def test_corrector(drawn):
    mu = weigh((s := drawn.copy()).left, s.spare, s)

    def run():
        s = drawn.copy()
        return correct(drawn.change, s.left, s, mu), s.left

    for expected, found in zip(*both(run), strict=True):
        assert_close(found, expected)


def test_step(drawn):
    mu = weigh((s := drawn.copy()).left, s.spare, s)
    level = correct(drawn.scores, s.left, s, mu)

    def run():
        s = drawn.copy()
        move(drawn.small, s, drawn.scores, drawn.change, level)
        return s

    twin, kernel = both(run)
    for name in ("w", "a", "t", "xi"):
        assert_close(getattr(kernel, name), getattr(twin, name))
    weightless = drawn.state.upper == 0
    for after in (twin, kernel):
        assert ((after.a > 0) & (after.t > 0) & (after.xi > 0)).all()
        assert (after.a < after.upper)[~weightless].all()
        assert torch.equal(after.a[weightless], drawn.state.a[weightless])


@pytest.mark.parametrize("q", [5, 1100])
def test_certificates(rng, q):
    """Every way in which a problem can stand: better or not, answered, converged, lost."""
    problems = 40
    drawn = draw(rng, (problems, 6, q), 1.0)
    s = drawn.state
    s.iteration.fill_(25)
    s.best_iteration = torch.tensor(rng.integers(0, 25, size=problems))
    s.primal = torch.tensor(rng.uniform(1, 9, size=problems))
    s.dual = torch.tensor(rng.uniform(-1, 1, size=problems))
    s.best_gap = torch.tensor(rng.uniform(0, 2, size=problems))
    s.working = torch.tensor(rng.integers(0, 2, size=problems))
    s.tol.fill_(0.7)
    loss, mass = (torch.tensor(rng.uniform(0, 9, size=problems)) for _ in range(2))
    loss[0], loss[1], mass[2], drawn.small[3] = torch.nan, torch.inf, -torch.inf, torch.nan
    s.primal[0], s.dual[0], mass[0] = 9.0, 0.0, 0.0  # lost for certain
    s.primal[4], s.dual[4] = 1.0, 0.9  # converged for certain
    s.working[:5] = 1

    def run():
        after = drawn.copy()
        judge(drawn.small, after, loss, mass)
        return after

    expected, found = both(run)
    for name in ("primal", "dual", "best_w", "best_gap"):
        assert_close(getattr(found, name), getattr(expected, name))
    for name in ("best_iteration", "n_iter", "status", "working"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert set(expected.status.tolist()) == {Status.CONVERGED, Status.MAX_ITER, Status.STALLED}


@pytest.mark.parametrize("q", [2, 7, 18])
def test_cholesky_factors_and_solutions(rng, q):
    X1 = torch.tensor(rng.normal(size=(60, q)))
    X1[:, -1] = 1.0
    theta = torch.tensor(10.0 ** rng.uniform(-12, 12, size=(3, 1)) * rng.random((3, 60)))
    matrices = NormalMatrices(X1, 10**6)
    penalty = torch.tensor(rng.random((3, q)))
    packed = matrices(theta)
    working = torch.ones(3, dtype=torch.int64)
    expected, found = both(lambda: factored(packed, penalty, matrices.unpack, working))
    assert_close(found, expected)
    H = (X1.T * theta[:, None]) @ X1 + torch.diag_embed(penalty)
    assert_close(found @ found.mT, H)
    right, w = torch.tensor(rng.normal(size=(2, 3, q)))
    for factor in (expected, found):
        for dw in both(lambda: solved(right, factor, penalty, w, working)):  # noqa: B023
            assert_close((H @ dw.unsqueeze(-1)).squeeze(-1) + penalty * w, right)


def test_an_indefinite_matrix_is_damped_and_no_other(rng):
    """A matrix of ones is singular; its damped factor is known."""
    q = 5
    X1 = torch.tensor(rng.normal(size=(30, q)))
    matrices = NormalMatrices(X1, 10**6)
    packed = matrices(torch.tensor(rng.random((3, 30))))
    packed[1] = 3.0
    penalty = torch.zeros(3, q, dtype=torch.float64)
    working = torch.ones(3, dtype=torch.int64)
    for factor in both(lambda: factored(packed, penalty, matrices.unpack, working)):
        H = packed[:, matrices.unpack].view(3, q, q)
        H[1].diagonal().mul_(1 + q * 1e-12)
        assert (factor[1].diagonal() > 0).all()
        assert_close(factor[1] @ factor[1].T, H[1])
        assert_close(factor @ factor.mT, H)


def test_a_matrix_that_stays_indefinite_spoils_no_solution(rng):
    q = 5
    packed = torch.tensor(rng.normal(size=(2, q * (q + 1) // 2)))
    packed[0] = -1.0  # of a matrix of minus ones
    packed[1, [0, 2, 5, 9, 14]] += 20.0
    unpack = NormalMatrices(torch.ones(1, q, dtype=torch.float64), 10**6).unpack
    penalty, working = torch.zeros(2, q, dtype=torch.float64), torch.ones(2, dtype=torch.int64)
    right = torch.tensor(rng.normal(size=(2, q)))
    with triton_kernels("always"):
        dw = solved(right, factored(packed, penalty, unpack, working), penalty, right, working)
    assert torch.isfinite(dw).all()
    assert_close((packed[1:, unpack].view(1, q, q) @ dw[1:, :, None]).squeeze(-1), right[1:])


def assert_skipped(run, problems: int, rng: np.random.Generator) -> None:
    """`run` takes 1 or 0 for each problem, and returns pairs: tensors as they were, and are.

    Those at work come out to the last bit as they do where all are at work; nothing else changes.
    """
    working = torch.tensor(rng.permutation(np.arange(problems) % 2))
    with triton_kernels("always"):
        everyone, some = run(torch.ones_like(working)), run(working)
    for (_, all_after), (before, after) in zip(everyone, some, strict=True):
        assert torch.equal(after[working > 0], all_after[working > 0])
        np.testing.assert_array_equal(after[working == 0].cpu(), before[working == 0].cpu())
        assert not torch.equal(all_after, before)


@pytest.mark.parametrize("name", ["losses", "judge", "weigh", "correct", "move"])
def test_a_pass_leaves_answered_problems_as_they_are(rng, name):
    problems = 6
    drawn = draw(rng, (problems, 70, 5), 1.0)
    drawn.state.best_iteration.fill_(int(drawn.state.iteration))  # not given up
    mu = weigh((s := drawn.copy()).left, s.spare, s)
    level = correct(drawn.scores, s.left, s, mu)
    loss, mass = mu + 1.0, mu + 2.0

    def run(working: Tensor) -> list[tuple[Tensor, Tensor]]:
        s = drawn.copy()
        s.working.copy_(working)
        before = {f.name: getattr(s, f.name).clone() for f in fields(State)}
        fresh: tuple[Tensor, ...] = ()
        if name == "losses":
            changed, fresh = ["left"], losses(drawn.scores, s)
        elif name == "judge":
            changed = ["primal", "dual", "best_w", "best_gap", "n_iter"]
            judge(drawn.small, s, loss, mass)
        elif name == "weigh":
            changed, fresh = ["left", "spare"], (weigh(s.left, s.spare, s),)
        elif name == "correct":
            changed, fresh = ["left"], (correct(drawn.change, s.left, s, mu),)
        else:
            changed = ["w", "a", "t", "xi"]
            move(drawn.small, s, drawn.scores, drawn.change, level)
        poison = [torch.full_like(each, torch.nan) for each in fresh]
        return [(before[each], getattr(s, each)) for each in changed] + list(
            zip(poison, fresh, strict=True)
        )

    drawn.state.iteration += 1  # so that `n_iter` changes
    assert_skipped(run, problems, rng)


def test_answered_problems_are_neither_factored_nor_solved(rng):
    """Also where the matrix is indefinite, for it is of numbers left over."""
    problems, q = 6, 5
    X1 = torch.tensor(rng.normal(size=(30, q)))
    packed = NormalMatrices(X1, 10**6)(torch.tensor(rng.random((problems, 30))))
    packed[:2] = 3.0  # of a matrix of ones
    penalty = torch.zeros(problems, q, dtype=torch.float64)
    right, w = torch.tensor(rng.normal(size=(2, problems, q)))
    unpack = torch.empty(0, dtype=torch.int64)  # the kernel needs none

    def run(working: Tensor) -> list[tuple[Tensor, Tensor]]:
        factor = factored(packed, penalty, unpack, working)
        dw = solved(right, factor, penalty, w, working)
        return [(torch.full_like(each, torch.nan), each) for each in (factor, dw)]

    assert_skipped(run, problems, rng)


@pytest.mark.parametrize("own_labels", [False, True])
def test_training_with_kernels_is_training_with_twins(rng, kernel_device, own_labels):
    X = rng.normal(size=(24, 2))
    y = np.where(X[:, 0] + rng.normal(size=24) > 0, 1, -1)
    y[:2] = 1, -1
    counts = rng.multinomial(24, np.full(24, 1 / 24), size=3)
    counts[:, :2] += 1
    counts[2, y > 0] = 0
    if own_labels:
        y = np.stack([y, -y, y])
    problem = Problem(X, y, counts, [0.7])
    options = {"solver": "interior-point", "tol": 1e-4, "device": kernel_device}
    twin, kernel = both(lambda: fit(problem, **options))
    assert torch.equal(kernel.n_iter, twin.n_iter)
    assert torch.equal(kernel.status, twin.status)
    assert kernel.status.flatten().tolist() == [0, 0, Status.SINGLE_CLASS]
    for name in ("primal", "dual", "coef", "intercept"):
        torch.testing.assert_close(getattr(kernel, name), getattr(twin, name), rtol=1e-9, atol=1e-9)
