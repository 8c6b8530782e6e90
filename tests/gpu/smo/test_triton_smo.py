"""Kernels of sequential minimal optimisation, interpreted, against their twin and libsvm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch
from sklearn.svm import SVC
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.smo import triton_paths as triton_smo
from bootprob_gpu.smo.batched import smo_batched
from bootprob_gpu.smo.triton_paths import launch, smo_fused

tl = pytest.importorskip("triton.language")
from bootprob_gpu.smo import triton_registers, triton_rules, triton_tiles  # noqa: E402

Found = tuple[Tensor, Tensor, Certificate]


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """Fresh memory holds NaN or the largest integer: what a kernel leaves unwritten shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def _checks_come_often(monkeypatch: pytest.MonkeyPatch, kernel_device: torch.device) -> None:
    """Interpreted, an iteration takes milliseconds: so few of them have to see every branch.

    With 16 between checks and 32 between gradients that are computed anew, hardly any problem of
    these tests is solved before it has met both. Compiled kernels keep the numbers they have.
    """
    if kernel_device.type == "cpu":
        for module in (triton_rules, triton_registers, triton_tiles):
            monkeypatch.setattr(module, "CHECK_EVERY", tl.constexpr(16))
        for module in (triton_registers, triton_tiles):
            monkeypatch.setattr(module, "REFRESH_EVERY", tl.constexpr(32))


@dataclass
class Drawn:
    """Gram matrices (G, n, n), labels (n,) or (P, n) and box bounds (P, R, n)."""

    K: Tensor
    y: Tensor
    upper: Tensor

    @property
    def labels(self) -> Tensor:
        """Beside (P, R, n)."""
        return self.y if self.y.ndim == 1 else self.y[:, None]

    def train(self, train=launch, **options) -> Found:
        return train(self.K, self.y, self.upper, **({"tol": 1e-3, "max_iter": 2000} | options))

    def twin(self, **options) -> Found:
        return self.train(smo_batched, **options)


def gram(X: np.ndarray, gammas: list[float]) -> np.ndarray:
    distances = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.exp(-np.array(gammas)[:, None, None] * distances)


@pytest.fixture
def draw(rng: np.random.Generator, kernel_device: torch.device):
    """Problems of n rows: P paths of bootstrap weights over the values of C, RBF kernels."""

    def draw(n, P, Cs, gammas=(0.5,), dtype=torch.float64, X=None, y=None) -> Drawn:
        X = rng.normal(size=(n, 3)) if X is None else X
        if y is None:
            y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
            y[:2] = 1, -1
        counts = rng.multinomial(n, np.full(n, 1 / n), size=P).astype(float)
        counts[:, :2] += 1  # both classes
        upper = counts[:, None] * np.array(Cs)[:, None]
        return Drawn(
            torch.from_numpy(gram(X, list(gammas))).to(kernel_device, dtype),
            torch.from_numpy(y).to(kernel_device),
            torch.from_numpy(upper).to(kernel_device),
        )

    return draw


def objectives(drawn: Drawn, found: Found) -> tuple[Tensor, Tensor]:
    """Primal and dual objective by their definition, shape (P, R) each."""
    s, b, _ = found
    matrices = drawn.K.double()[torch.arange(len(s), device=s.device) % len(drawn.K)]
    products = s @ matrices
    norm = (s * products).sum(-1)
    hinge = (1 - drawn.labels * (products + b.unsqueeze(-1))).clamp_min(0)
    return 0.5 * norm + (drawn.upper * hinge).sum(-1), (drawn.labels * s).sum(-1) - 0.5 * norm


def assert_honest(drawn: Drawn, found: Found, tol: float = 1e-3) -> None:
    """Feasible, everything written, and what the certificate says is so."""
    s, b, certificate = found
    for tensor in (s, b, certificate.primal, certificate.dual, certificate.gap):
        assert tensor.dtype == torch.float64
        assert torch.isfinite(tensor).all()
    a = drawn.labels * s
    assert ((a >= 0) & (a <= drawn.upper)).all()
    assert s.sum(-1).abs().max() <= 1e-12 * drawn.upper.sum(-1).max()
    both = certificate.status != Status.SINGLE_CLASS
    primal, dual = objectives(drawn, found)
    for said, so in ((certificate.primal, primal), (certificate.dual, dual)):
        torch.testing.assert_close(said[both], so[both], rtol=1e-10, atol=1e-12)
    gap = (primal - dual) / primal
    torch.testing.assert_close(certificate.gap[both], gap[both], rtol=0, atol=1e-10)
    converged = certificate.status == Status.CONVERGED
    assert (gap[converged].abs() <= tol * (1 + 1e-9)).all()


def assert_same_optimum(found: Found, expected: Found, tol: float = 1e-3) -> None:
    """Both solved; each dual objective is below the other's primal one."""
    for one, other in ((found[2], expected[2]), (expected[2], found[2])):
        assert (one.status == Status.CONVERGED).all()
        assert (one.dual <= other.primal * (1 + 1e-12)).all()
        assert (one.dual >= (1 - tol) * other.dual).all()


def equal_bits(one: Found, other: Found) -> bool:
    def tensors(found: Found) -> list[Tensor]:
        return [*found[:2], *(getattr(found[2], f.name) for f in fields(Certificate))]

    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


def test_fresh_memory_is_poisoned():
    assert torch.empty(3, dtype=torch.float64).isnan().all()
    assert (torch.empty(3, dtype=torch.int64) > 10**9).all()


# Rows that fill a block of 16, 32 or 64, and that do not; one matrix for two paths, and two.
@pytest.mark.parametrize(("n", "P", "Cs", "gammas", "dtype"), [
    (5, 2, [0.3, 30.0], [1.0], torch.float64),
    (16, 1, [2.0], [0.3], torch.float32),
    (19, 2, [1.0], [0.2, 2.0], torch.float64),
    (40, 1, [1.0], [0.2], torch.float32),
])  # fmt: skip
def test_models_are_those_of_the_twin(draw, n, P, Cs, gammas, dtype):
    drawn = draw(n, P, Cs, gammas, dtype)
    found = drawn.train()
    assert_honest(drawn, found)
    assert_same_optimum(found, drawn.twin())


def test_models_are_those_of_libsvm(draw, rng):
    drawn = draw(int(rng.integers(6, 16)), 2, [5.0], [0.2, 1.0])
    found = drawn.train(tol=1e-6)
    assert_honest(drawn, found, 1e-6)
    y = drawn.y.cpu().numpy()
    for p in range(2):
        K = drawn.K[p % 2].cpu().numpy()
        for r, upper in enumerate(drawn.upper[p].cpu().numpy()):
            # libsvm leaves out rows of no weight.
            rows = np.flatnonzero(upper)
            part = K[np.ix_(rows, rows)]
            svm = SVC(C=1.0, kernel="precomputed", tol=1e-6)
            svm.fit(part, y[rows], sample_weight=upper[rows])
            dual_coef = np.zeros(len(y))
            dual_coef[rows[svm.support_]] = svm.dual_coef_[0]
            theirs = y @ dual_coef - 0.5 * dual_coef @ K @ dual_coef
            assert float(found[2].dual[p, r]) == pytest.approx(theirs, rel=2e-6)
            scores = K @ found[0][p, r].cpu().numpy() + float(found[1][p, r])
            their_scores = K @ dual_coef + svm.intercept_[0]
            # √(2 gap primal) bounds differences of scores; a free support vector ties the rest.
            bound = 4 * np.sqrt(2e-6 * 2 * float(found[2].primal[p, r]))
            assert np.ptp(scores - their_scores) <= bound


def test_programs_share_matrices_and_find_their_own(draw):
    """Three paths of two matrices, which is no multiple; and four, which is one."""
    drawn = draw(5, 4, [100.0], [0.1, 5.0])
    together = drawn.train(max_iter=1)
    odd = Drawn(drawn.K, drawn.y, drawn.upper[:3]).train(max_iter=1)
    for p in range(4):
        alone = Drawn(drawn.K[p % 2][None], drawn.y, drawn.upper[p][None]).train(max_iter=1)
        assert torch.equal(alone[0][0], together[0][p])
        assert p == 3 or torch.equal(alone[0][0], odd[0][p])


@pytest.mark.parametrize("block", [None, 4])
def test_paths_have_labels_of_their_own(draw, block):
    drawn = draw(9, 3, [0.5, 5.0], [0.3, 1.0])
    drawn.y = torch.stack([drawn.y, -drawn.y, drawn.y.roll(1)])
    drawn.upper[2] = 0.5  # so that both classes have weight
    together = drawn.train(max_iter=3, block=block)
    assert_honest(drawn, together)
    for p in range(3):
        K, y, upper = drawn.K[p % 2][None], drawn.y[p], drawn.upper[p][None]
        alone = Drawn(K, y, upper).train(max_iter=3, block=block)
        assert torch.equal(alone[0][0], together[0][p])
        assert torch.equal(alone[1][0], together[1][p])
    if block is None:
        assert_same_optimum(drawn.train(), drawn.twin())


def test_tiles_walk_the_same_way_as_registers(draw):
    """To the bit while nothing is summed up; afterwards in another order."""
    drawn = draw(11, 2, [5.0], [0.3, 1.0], torch.float32)
    drawn.upper[:, :, 4] = 0.0
    registers = drawn.train(max_iter=4, tol=0.0)
    tiles = drawn.train(max_iter=4, tol=0.0, block=8)
    assert_honest(drawn, tiles)
    assert (tiles[2].n_iter > 0).all()
    assert torch.equal(tiles[2].n_iter, registers[2].n_iter)
    assert torch.equal(tiles[0], registers[0])
    torch.testing.assert_close(tiles[1], registers[1], rtol=1e-12, atol=1e-12)


def test_tiles_solve(draw):
    drawn = draw(7, 1, [5.0])
    found = drawn.train(block=4, kkt_tol=1e-4)
    assert_honest(drawn, found)
    assert_same_optimum(found, drawn.train(smo_batched, tol=1e-5))


def test_iterations_end(draw):
    """After a check of the gap too, and by then at the same place in tiles as in registers."""
    drawn = draw(12, 1, [50.0], dtype=torch.float32)
    registers, tiles = (drawn.train(tol=-1.0, max_iter=18, block=block) for block in (None, 8))
    for found in (registers, tiles):
        assert_honest(drawn, found)
        assert int(found[2].n_iter) == 18
        assert int(found[2].status) == Status.MAX_ITER
    assert torch.equal(registers[0], tiles[0])


@pytest.mark.parametrize("block", [None, 4])
def test_a_single_class_answers_with_its_sign(draw, block):
    drawn = draw(10, 3, [1.0, 2.0])
    drawn.upper[0, :, drawn.y > 0] = 0.0
    drawn.upper[1, :, drawn.y < 0] = 0.0
    drawn.upper[2] = 0.0
    drawn.upper[2, 1, :2] = 1.0  # two rows, one of each class, for the second model alone
    s, b, certificate = found = drawn.train(block=block)
    assert_honest(drawn, found)
    assert b[:2].tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert float(b[2, 0]) == 0.0
    single = certificate.status == Status.SINGLE_CLASS
    assert single.tolist() == [[True, True], [True, True], [True, False]]
    for tensor in (s, certificate.primal, certificate.dual, certificate.gap, certificate.n_iter):
        assert (tensor[single] == 0).all()
    assert int(certificate.status[2, 1]) == Status.CONVERGED


def test_duplicated_rows_and_rows_without_weight(draw, rng):
    half = rng.normal(size=(5, 2))
    y = np.array([1.0, -1.0] * 5)  # of two equal rows, one is positive and one negative
    drawn = draw(10, 1, [1.0, 4.0], X=np.vstack([half, half]), y=y)
    drawn.upper[:, :, 4] = 0.0
    found = drawn.train()
    assert_honest(drawn, found)
    assert (found[0][:, :, 4] == 0).all()
    assert_same_optimum(found, drawn.twin())


@pytest.mark.parametrize("block", [None, 8])
def test_larger_boxes_that_change_nothing_cost_nothing(draw, rng, block):
    """Separable: once no variable is at its bound, every larger C has the same solution."""
    y = np.array([1.0, -1.0] * 5)
    X = rng.normal(size=(10, 2)) * 0.3 + 3 * y[:, None]
    drawn = draw(10, 1, [1000.0, 2000.0], [0.05], X=X, y=y)
    # Left early, while a stretch would still change it.
    found = drawn.train(tol=1e-12, kkt_tol=0.1, block=block)
    assert_honest(drawn, found, np.inf)
    assert (found[2].status == Status.CONVERGED).all()
    s, u = found[0][0].abs(), drawn.upper[0]
    assert (s[0] < u[0])[u[0] > 0].all()
    assert int(found[2].n_iter[0, 1]) == 0
    assert torch.equal(found[0][0, 0], found[0][0, 1])


@pytest.mark.parametrize("block", [None, 4])
def test_a_model_that_nothing_improves_is_given_up(draw, block):
    """All variables at their bounds after three steps, and a tolerance that nothing meets."""
    drawn = draw(6, 1, [0.01], y=np.array([1.0, -1.0] * 3))
    drawn.upper[:] = 0.01
    found = drawn.train(tol=-1.0, block=block)
    assert_honest(drawn, found)
    assert (found[0].abs() == 0.01).all()
    assert int(found[2].n_iter) == 3
    assert int(found[2].status) == Status.STALLED


@pytest.mark.parametrize("block", [None, 4])
def test_a_model_at_its_bounds_is_stretched_to_the_next(draw, block):
    drawn = draw(6, 1, [0.01, 0.02], y=np.array([1.0, -1.0] * 3))
    drawn.upper[:] = torch.tensor([[0.01], [0.02]])
    drawn.upper[..., 4:] = 0.0  # the last tile touches no bound
    found = drawn.train(block=block)
    assert_honest(drawn, found)
    assert torch.equal(found[0].abs(), drawn.upper)
    assert found[2].n_iter.tolist() == [[2, 0]]


@pytest.mark.parametrize("block", [None, 4])
def test_shrinking_boxes_are_solved_too(draw, block):
    drawn = draw(7, 1, [10.0, 0.1])
    found = drawn.train(block=block)
    assert_honest(drawn, found)
    assert_same_optimum(found, drawn.twin())


@pytest.mark.parametrize("block", [None, 8])
def test_violation_of_the_optimality_conditions_stops(draw, block):
    drawn = draw(13, 1, [20.0])
    s, _, certificate = found = drawn.train(tol=1e-15, kkt_tol=0.05, block=block)
    assert_honest(drawn, found, np.inf)
    assert int(certificate.status) == Status.CONVERGED
    g = drawn.y - s[0, 0] @ drawn.K[0]
    upper = torch.where(drawn.y > 0, drawn.upper[0, 0], 0.0)
    lower = torch.where(drawn.y > 0, 0.0, -drawn.upper[0, 0])
    violation = g[s[0, 0] < upper].max() - g[s[0, 0] > lower].min()
    assert float(violation) <= 0.05 + 1e-12
    assert float(certificate.gap) > 1e-15
    strict = drawn.train(tol=1e-15, kkt_tol=0.0, max_iter=int(certificate.n_iter), block=block)
    assert int(strict[2].status) == Status.MAX_ITER


def test_a_small_violation_does_not_wait_for_the_next_check(draw):
    drawn = draw(8, 1, [1000.0])
    for block in (None, 4):
        certificate = drawn.train(tol=-1.0, kkt_tol=1.9, block=block)[2]
        assert int(certificate.status) == Status.CONVERGED
        assert int(certificate.n_iter) == 9


def test_reruns_agree_bit_by_bit(draw, kernel_device):
    """Threads that do not wait for each other show on a GPU alone, and there with many rows."""
    gpu = kernel_device.type == "cuda"
    n, P, Cs, max_iter = (200, 2, [0.5, 5.0], 2000) if gpu else (6, 1, [5.0], 2)
    drawn = draw(n, P, Cs, [0.3, 1.0], torch.float32)
    for block in (None, 64 if gpu else 4):
        once, again = (drawn.train(max_iter=max_iter, block=block) for _ in range(2))
        assert equal_bits(once, again)


def test_the_twin_stands_in(draw):
    drawn = draw(8, 1, [1.0])
    for choice in ("never", "always"):
        with triton_kernels(choice):
            found = drawn.train(smo_fused, tol=1e-5, kkt_tol=0.0)
        assert_same_optimum(found, drawn.twin(tol=1e-5))


def test_many_rows_go_to_the_tiles(draw, monkeypatch):
    drawn = draw(9, 1, [1.0])
    expected = drawn.train(block=4, max_iter=1)
    monkeypatch.setattr(triton_smo, "IN_REGISTERS", 8)
    monkeypatch.setattr(triton_smo, "TILE", 4)
    assert equal_bits(drawn.train(max_iter=1), expected)


def compacted(K: Tensor, rows: Tensor) -> Tensor:
    """The part of each path's Gram matrix that its rows make, shape (P, m, m)."""
    return torch.stack([K[p % len(K)][each][:, each] for p, each in enumerate(rows)])


@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_rows_of_a_path_are_found_in_a_larger_matrix(draw, rng, block, dtype):
    """Through an index, or as the first of longer rows: the same steps to the bit."""
    drawn = draw(9, 3, [0.5, 5.0], [0.3, 1.0], dtype)
    rows = torch.from_numpy(np.stack([rng.permutation(9)[:5] for _ in range(3)]))
    rows = rows.to(drawn.K.device)
    y = drawn.y[rows]
    y[:, 0], y[:, 1] = 1.0, -1.0
    upper = drawn.upper.gather(2, rows[:, None].expand(-1, 2, -1)) + 0.1
    options = {"tol": 1e-3, "max_iter": 2, "block": block}
    expected = launch(compacted(drawn.K, rows), y, upper, **options)
    assert_honest(Drawn(compacted(drawn.K, rows), y, upper), expected)
    order = torch.from_numpy(rng.permutation(3)).to(drawn.K.device)
    gathered = launch(drawn.K, y, upper, rows=rows, order=order, unit_diagonal=True, **options)
    assert equal_bits(gathered, expected)
    matrix = torch.tensor([2, 0, 1], device=drawn.K.device)
    wide = drawn.K.new_full((3, 7, 8), torch.nan)
    wide[matrix, :5, :5] = compacted(drawn.K, rows)
    wide[:, range(5, 7), range(5, 7)] = 1.0
    assert equal_bits(launch(wide, y, upper, matrix=matrix, **options), expected)


@pytest.mark.parametrize("train", [launch, smo_batched])
def test_rounded_matrices_reach_what_exact_ones_certify(draw, train):
    """The objectives are those of the exact matrices, and so is the gap that is reached."""
    drawn = draw(9, 1, [0.5, 20.0], [0.05])
    rounded = Drawn(drawn.K.to(torch.bfloat16).float(), drawn.y, drawn.upper)
    found = rounded.train(train, tol=1e-4, exact=drawn.K)
    done = found[2].status == Status.CONVERGED
    assert done.any()
    assert ((found[2].gap <= 1e-4) | ~done).all()
    primal, dual = objectives(drawn, found)
    torch.testing.assert_close(found[2].primal, primal, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found[2].dual, dual, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("block", [None, 4])
def test_a_matrix_that_misleads_is_owned_up_to(draw, block):
    """What no exact gradient ever confirms is given up, not called solved."""
    drawn = draw(6, 1, [100.0], [1.0])
    drawn.K[:] += torch.eye(6, device=drawn.K.device)
    wrong = Drawn(torch.ones_like(drawn.K), drawn.y, drawn.upper)
    for train, options in ((launch, {"block": block}), (smo_batched, {})):
        found = wrong.train(train, tol=1e-9, exact=drawn.K, **options)
        assert_honest(drawn, found, 1e-9)
        assert int(found[2].status) == Status.STALLED
        assert int(found[2].n_iter) < 2000


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_twin_gathers_rows_too(draw, rng, dtype):
    drawn = draw(15, 3, [0.5, 5.0], [0.3, 1.0], dtype)
    rows = torch.from_numpy(np.stack([rng.permutation(15)[:9] for _ in range(3)]))
    rows = rows.to(drawn.K.device)
    y = drawn.y[rows]
    y[:, 0], y[:, 1] = 1.0, -1.0
    upper = drawn.upper.gather(2, rows[:, None].expand(-1, 2, -1)) + 0.1
    small = Drawn(compacted(drawn.K, rows), y, upper)
    found = smo_batched(drawn.K, y, upper, tol=1e-5, max_iter=20_000, rows=rows)
    assert_honest(small, found, 1e-5)
    assert_same_optimum(found, small.twin(tol=1e-5, max_iter=20_000), 1e-5)
