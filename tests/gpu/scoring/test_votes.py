"""Votes and weighted scores of new rows: by the definition, by every back end, and pruned."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bootprob_gpu import (
    InputError,
    Problem,
    fit,
    model_scores,
    replicate_scores,
    vote_shares,
    votes,
)
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.kernels import rbf
from bootprob_gpu.scoring import models_in_use, row_stream, scorers
from bootprob_gpu.scoring import votes as vote_counting
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes
from bootprob_gpu.scoring.votes import vote_counter

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


# --- counting ------------------------------------------------------------------------------------


def drawn(rng, m, k, R, B, dtype=torch.float64):
    """Rows (m, k), coefficients (R, k, B), intercepts (R, B)."""
    shapes = (m, k), (R, k, B), (R, B)
    return tuple(torch.from_numpy(rng.normal(size=shape)).to(dtype) for shape in shapes)


def whole(rng, m, k, R, B, dtype):
    """The same in small whole numbers: scores are exact in any order, and 0 is among them."""
    shapes = (m, k), (R, k, B), (R, B)
    numbers = (rng.integers(-3, 4, size=shape) for shape in shapes)
    return tuple(torch.from_numpy(each).to(dtype) for each in numbers)


def by_definition(rows, coef, intercept):
    return ((rows @ coef + intercept[:, None]) > 0).sum(2, dtype=torch.int32)


def sizes(rng):
    """Sizes that are no multiples of any tile, small ones and empty ones among them."""
    yield 1, 1, 1, 1
    yield 0, 3, 2, 4
    yield 5, 0, 2, 7
    for _ in range(3):
        yield tuple(int(n) for n in rng.integers((1, 1, 1, 1), (400, 90, 4, 200)))


@DTYPES
def test_compiled_votes_are_those_of_the_definition(rng, dtype, monkeypatch):
    from bootprob_gpu.scoring import votes_compiled

    PackedModels, count_votes = votes_compiled.PackedModels, votes_compiled.count_votes
    empty = np.empty
    monkeypatch.setattr(
        votes_compiled.np, "empty", lambda *a, **k: (out := empty(*a, **k)).fill(77) or out
    )
    for size in sizes(rng):
        rows, coef, intercept = whole(rng, *size, dtype)
        expected = by_definition(rows, coef, intercept)
        for threads in (1, 3):
            found = count_votes(
                rows.numpy(), PackedModels(coef.numpy(), intercept.numpy()), threads
            )
            np.testing.assert_array_equal(found, expected, err_msg=str(size))


@DTYPES
def test_many_columns_and_rows_in_many_tasks(rng, dtype):
    from bootprob_gpu.scoring.votes_compiled import PackedModels, count_votes

    for size in ((40, 9000, 1, 7), (5000, 3, 1, 9)):
        rows, coef, intercept = whole(rng, *size, dtype)
        found = count_votes(rows.numpy(), PackedModels(coef.numpy(), intercept.numpy()), 2)
        np.testing.assert_array_equal(found, by_definition(rows, coef, intercept))


@DTYPES
def test_a_rows_votes_do_not_depend_on_where_it_stands(rng, dtype):
    rows, coef, intercept = drawn(rng, 700, 40, 2, 50, dtype)
    count = vote_counter(coef, intercept)
    order = torch.from_numpy(rng.permutation(700))
    together = count(rows)
    assert torch.equal(together[:, order], count(rows[order].contiguous()))
    assert torch.equal(together[:, 123:130], count(rows[123:130]))


@DTYPES
def test_votes_differ_only_where_a_score_is_rounding(rng, dtype):
    rows, coef, intercept = drawn(rng, 300, 61, 3, 100, dtype)
    exact = rows.double() @ coef.double() + intercept.double()[:, None]
    error = 100 * torch.finfo(dtype).eps * (rows.double().abs() @ coef.double().abs())
    found = vote_counter(coef, intercept)(rows)
    assert ((exact > error).sum(2) <= found).all()
    assert (found <= (exact > -error).sum(2)).all()


# --- the Triton kernel ---------------------------------------------------------------------------


@pytest.fixture
def where(monkeypatch, kernel_device):
    """Where kernels run, compiled or interpreted, into outputs that are full of garbage."""
    pytest.importorskip("triton")
    from bootprob_gpu.hardware.triton_interpreted import loop_bounds

    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(-12345))
    bounds = loop_bounds() if kernel_device.type == "cpu" else nullcontext()
    with bounds, triton_kernels("always"):
        yield kernel_device


def twin_counts(given):
    with triton_kernels("never"):
        return vote_counting._count(*given).cpu()


@DTYPES
def test_kernel_counts_as_its_twin(rng, where, dtype):
    for size in sizes(rng):
        given = whole(rng, *size, dtype)
        expected = by_definition(*given)
        rows, coef, intercept = given = [each.to(where) for each in given]
        assert torch.equal(vote_counter(coef, intercept)(rows).cpu(), expected), size
        assert torch.equal(twin_counts(given), expected), size


@DTYPES
def test_kernel_counts_as_its_twin_but_for_rounding(rng, where, dtype):
    given = drawn(rng, 150, 70, 2, 140, dtype)
    rows, coef, intercept = (each.double() for each in given)
    error = 100 * torch.finfo(dtype).eps * (rows.abs() @ coef.abs())
    unsure = ((rows @ coef + intercept[:, None]).abs() <= error).sum(2)
    rows, coef, intercept = given = [each.to(where) for each in given]
    found = vote_counter(coef, intercept)(rows).cpu()
    assert ((found - twin_counts(given)).abs() <= unsure).all()


def test_sums_of_three_tf32_products(rng, where):
    from bootprob_gpu.scoring import triton_votes

    given = whole(rng, 130, 40, 2, 150, torch.float32)
    found = triton_votes.count_votes(*(each.to(where) for each in given), precision="tf32x3")
    assert torch.equal(found.cpu(), by_definition(*given))


def test_twin_takes_rows_in_blocks(rng, monkeypatch):
    monkeypatch.setattr(vote_counting, "_SCORES_AT_ONCE", 50)
    given = whole(rng, 101, 5, 2, 20, torch.float32)
    assert torch.equal(vote_counting._count(*given), by_definition(*given))


# --- batches of models ---------------------------------------------------------------------------

B, N, P = 7, 60, 3
KINDS = (
    "linear",
    "linear dual",
    "rbf, one scale",
    "rbf, own scales",
    "poly, one scale",
    "poly, own scales",
    "precomputed, one scale",
)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def batch(rng, kind):
    """Two values of C, three of γ if any; a replicate of one class; an offset in the rows."""
    X = 5 + rng.normal(size=(N, P))
    y = np.where(X[:, 0] + rng.normal(size=N) > 5, 1, -1)
    y[:2] = -1, 1
    counts = rng.multinomial(N, np.full(N, 1 / N), size=B)
    counts[:, :2], counts[:, -5:] = 1, 0  # some rows are in no sample
    counts[3, y > 0] = 0
    kernel, scale = kind.split()[0].rstrip(","), rng.uniform(0.5, 2, (B, P))
    if kind.endswith("one scale"):
        scale = np.full(P, 1.5)
    if kernel == "precomputed":
        X, scale = np.exp(-np.abs(X[:, None] - X).sum(2)), None
    gamma = [0.05, 0.3, 1.0] if kernel == "rbf" else [0.01, 0.02, 0.05]
    problem = Problem(
        X,
        y,
        counts,
        [0.1, 10.0],
        kernel=kernel,
        gamma=gamma if kernel in ("rbf", "poly") else None,
        scale=scale,
    )
    solver = "smo-compiled" if kind == "linear dual" else "auto"
    fitted = fit(problem, solver=solver, tol=1e-2, max_iter=10**5)
    assert (fitted.coef is None) == (kind != "linear")
    return fitted


def rows_of(rng, batch, m=400):
    return torch.from_numpy(5 + rng.normal(size=(m, len(batch.center))))


def scores_of(fitted, X):
    return torch.cat([scores for _, scores in model_scores(fitted, X)])


def some_weights(rng, R):
    weights = torch.from_numpy(rng.uniform(0.1, 1, R))
    weights[torch.from_numpy(rng.permutation(R)[: (R + 1) // 2])] = 0
    return weights


@DTYPES
def test_votes_shares_and_scores_are_those_of_all_scores(rng, batch, dtype):
    batch = replace(batch, dtype=dtype)
    X = rows_of(rng, batch)
    scores = scores_of(batch, X).double()
    R = scores.shape[1]
    weights = some_weights(rng, R)
    used = weights != 0
    rounding = 1e4 * torch.finfo(dtype).eps * scores.abs().max()
    unsure = (scores.abs() <= rounding).sum(0).T
    assert unsure.sum() < 0.05 * unsure.numel() * B

    every, some = votes(batch, X), votes(batch, X, weights)
    assert every.dtype == some.dtype == torch.int64
    assert ((every - (scores > 0).sum(0).T).abs() <= unsure).all()
    assert (some[:, ~used] == 0).all()
    assert ((some - every).abs()[:, used] <= unsure[:, used]).all()

    share = vote_shares(batch, X, weights)
    assert share.dtype == torch.float64
    torch.testing.assert_close(share, some.double() @ weights / B, rtol=1e-12, atol=1e-14)

    summed = replicate_scores(batch, X, weights)
    assert summed.dtype == dtype
    expected = torch.einsum("r,brm->mb", weights, scores)
    assert (summed - expected).abs().max() <= R * rounding


@DTYPES
def test_blocks_of_rows_and_of_replicates_change_no_bit_of_a_share(
    rng, batch, kind, dtype, monkeypatch
):
    batch = replace(batch, dtype=dtype)
    X, weights = rows_of(rng, batch, 900), some_weights(rng, batch.intercept.shape[1])
    whole = vote_shares(batch, X, weights), replicate_scores(batch, X, weights)
    monkeypatch.setattr(scorers, "_LEAST_REPLICATES", 2)
    small = replace(batch, memory_limit=1)
    assert len(Votes(small, weights)._replicates) == 4
    pieces = vote_shares(small, X, weights), replicate_scores(small, X, weights)
    if kind.startswith("linear"):  # kernels in blocks of another size are rounded otherwise
        assert torch.equal(pieces[0], whole[0])
    torch.testing.assert_close(pieces[0], whole[0], rtol=0, atol=0.02)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(pieces[1], whole[1], rtol=0, atol=1e4 * eps * whole[1].abs().max())


def test_one_preparation_serves_many_blocks(rng, batch, kind, monkeypatch):
    X, weights = rows_of(rng, batch, 50), some_weights(rng, batch.intercept.shape[1])
    made = []

    def recorded(coef, intercept):
        made.append(intercept.numel())
        return vote_counter(coef, intercept)

    monkeypatch.setattr(scorers, "vote_counter", recorded)
    prepared = Votes(batch, weights)
    pieces = torch.cat([prepared.counts(part) for part in X.split(7)])
    assert torch.equal(pieces, prepared.counts(X))
    # Models of weight 0 are not among those that were made ready, each once.
    assert sum(made) == (0 if kind.endswith("own scales") else B * int((weights != 0).sum()))


@pytest.mark.parametrize("kind", ["rbf, one scale", "rbf, own scales"], indirect=True)
@pytest.mark.parametrize("scorer", [Votes, ReplicateScores])
def test_kernels_are_evaluated_with_support_vectors_only(rng, batch, kind, scorer, monkeypatch):
    entries = []

    def recorded(products, rows, squares):
        entries.append(products.numel())
        return distances(products, rows, squares)

    distances = rbf._distances
    monkeypatch.setattr(rbf, "_distances", recorded)
    X = rows_of(rng, batch, 10)
    R = batch.intercept.shape[1]
    scored = scorer(batch, torch.ones(R))
    (scored.counts if scorer is Votes else scored)(X)
    with_all, entries[:] = sum(entries), []
    assert kind != "rbf, one scale" or with_all <= 10 * N  # distances are those of every γ
    # The larger C of the second γ: free support vectors are few.
    weights = torch.zeros(R)
    weights[3] = 0.5
    scored = scorer(batch, weights)
    (scored.counts if scorer is Votes else scored)(X)
    needed = (batch.dual_coef[:, 3] != 0).numpy()
    columns = needed.any(axis=0).sum() if kind == "rbf, one scale" else needed.sum()
    assert sum(entries) == 10 * columns
    assert columns < N * (1 if kind == "rbf, one scale" else B)
    assert sum(entries) < with_all


@pytest.mark.parametrize("kind", ["rbf, own scales"], indirect=True)
@pytest.mark.parametrize("at_once", [1, 4 * N, 2**24])
def test_supports_are_the_rows_that_a_model_in_use_needs(rng, batch, monkeypatch, at_once):
    monkeypatch.setattr(models_in_use, "_COEFFICIENTS_AT_ONCE", at_once)
    dual_coef = batch.dual_coef.numpy()
    dual_coef[rng.random(dual_coef.shape) < 0.7] = 0.0
    dual_coef[2] = 0.0  # a replicate that needs no row
    weights = some_weights(rng, dual_coef.shape[1])
    used = weights != 0
    found = models_in_use.own_kernels(batch, used)
    gammas = sorted({int(r) // 2 for r in used.nonzero()})
    assert found.kernel.gamma.tolist() == [batch.gamma[g].item() for g in gammas]
    assert len(found.supports) == B
    for b, support in enumerate(found.supports):
        needed = [i for i in range(N) if any(dual_coef[b, r, i] for r in range(6) if used[r])]
        assert support.tolist() == needed


class Waits(TorchDispatchMode):
    """Counts operations for which the host would wait, if their tensors were on a GPU."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __enter__(self):
        self.count = 0
        return super().__enter__()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.__name__.split(".")[0]
        self.count += name in ("nonzero", "_local_scalar_dense", "masked_select", "item")
        # A mask as an index is looked for; numbers of rows are not.
        if name in ("index", "index_put_", "index_put"):
            self.count += any(each is not None and each.dtype == torch.bool for each in args[1])
        return operation(*args, **(kwargs or {}))


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Votes are counted in plain torch, and `tolist` counts as well: it bypasses the dispatcher."""
    monkeypatch.setattr(
        scorers,
        "vote_counter",
        lambda coef, b: lambda rows: vote_counting._count_in_torch(rows, coef, b),
    )
    waits, tolist = Waits(), torch.Tensor.tolist

    def counted(tensor):
        waits.count += 1
        return tolist(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", counted)
    return waits


def test_no_block_of_rows_waits_for_the_device(rng, batch, as_on_a_gpu):
    weights = some_weights(rng, batch.intercept.shape[1])
    counter, scores = Votes(batch, weights), ReplicateScores(batch, weights)
    X = rows_of(rng, batch, 30)
    with as_on_a_gpu as waits:
        for score in (counter.counts, counter.shares, scores):
            score(X)
    assert waits.count == 0
    with as_on_a_gpu as waits:  # it does count
        (X > 0).any().item()
        X[X > 0].sum()
        X[0].tolist()
    assert waits.count >= 3


@pytest.mark.parametrize("kind", ["rbf, own scales"], indirect=True)
def test_preparing_waits_no_longer_for_more_replicates(rng, batch, as_on_a_gpu):
    weights = some_weights(rng, batch.intercept.shape[1])
    found = []
    for b in (1, B):
        some = replace(
            batch,
            intercept=batch.intercept[:b],
            dual_coef=batch.dual_coef[:b],
            scale=batch.scale[:b],
        )
        with as_on_a_gpu as waits:
            Votes(some, weights)
            ReplicateScores(some, weights)
        found.append(waits.count)
    assert found[0] == found[1] > 0


def test_all_models_weigh_the_same_by_default(rng, batch):
    """In float64, whatever torch makes tensors of by default."""
    X, R = rows_of(rng, batch, 30), batch.intercept.shape[1]
    weights = Votes(batch)._weights
    assert weights.dtype == torch.float64
    assert (weights == 1 / R).all()
    equal = torch.full((R,), 1 / R, dtype=torch.float64)
    assert torch.equal(Votes(batch).shares(X), vote_shares(batch, X, equal))


class OnAnotherGpu(torch.Tensor):
    """Rows that say so; whatever is made of them is here."""

    device = torch.device("cuda", 1)
    is_cuda = True

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [
            each.as_subclass(torch.Tensor) if type(each) is cls and function.__name__ == "to"
            else each
            for each in args
        ]  # fmt: skip
        return super().__torch_function__(function, types, plain, kwargs)


def test_rows_on_another_gpu_do_not_go_through_the_host(rng, batch, monkeypatch):
    pytest.importorskip("numba")  # plain torch would go by where the rows say that they are
    X, weights = rows_of(rng, batch, 40), some_weights(rng, batch.intercept.shape[1])
    expected = votes(batch, X, weights), replicate_scores(batch, X, weights)
    monkeypatch.setattr(scorers, "_SENT_AT_ONCE", 7 * P * 8)
    monkeypatch.delattr(row_stream, "_fill")
    there = X.as_subclass(OnAnotherGpu)
    assert torch.equal(votes(batch, there, weights), expected[0])
    torch.testing.assert_close(
        replicate_scores(batch, there, weights), expected[1], rtol=1e-9, atol=1e-9
    )


def test_no_weight_at_all(rng, batch):
    X, zeros = rows_of(rng, batch, 4), torch.zeros(batch.intercept.shape[1])
    assert (votes(batch, X, zeros) == 0).all()
    assert (vote_shares(batch, X, zeros) == 0).all()
    assert (replicate_scores(batch, X, zeros) == 0).all()


def test_no_rows(rng, batch):
    weights = torch.ones(batch.intercept.shape[1])
    X = rows_of(rng, batch, 0)
    assert votes(batch, X).shape == (0, len(weights))
    assert vote_shares(batch, X, weights).shape == (0,)
    assert replicate_scores(batch, X, weights).shape == (0, B)


@pytest.mark.parametrize("kind", ["linear"], indirect=True)
def test_other_weights_are_refused(rng, batch):
    for score in (votes, vote_shares, replicate_scores):
        with pytest.raises(InputError, match=r"shape \(3,\).* has 2 models"):
            score(batch, rows_of(rng, batch, 1), torch.ones(3))
