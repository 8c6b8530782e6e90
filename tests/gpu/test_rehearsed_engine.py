"""The engine on the pretended CUDA device: every job takes the branches of a GPU, and is right.

Each is trained on the CPU too. Both are within their gaps of the same optimum, so the objectives
can be compared by theorems, whatever was drawn; and scores, with those of the same models on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
import torch

from bootprob_gpu import (
    Certificate,
    FittedBatch,
    Problem,
    Status,
    choose_solver,
    fit,
    iter_fit,
    model_scores,
    replicate_scores,
    vote_shares,
    votes,
)
from bootprob_gpu.derivatives.kkt import differentiable_scores, solve_exactly
from bootprob_gpu.hardware.triton_choice import triton_kernels
from bootprob_gpu.interior_point import batched as interior_point
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.scoring.row_stream import blocks_on_device, blocks_on_host
from bootprob_gpu.scoring.scorers import ReplicateScores, Votes
from bootprob_gpu.smo import triton_paths as triton_smo

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
RBF: dict[str, Any] = {"kernel": "rbf", "gamma": [0.3, 1.0]}
POLY: dict[str, Any] = {"kernel": "poly", "gamma": [0.3, 1.0], "degree": 2, "coef0": 0.5}
SINGLE: dict[str, Any] = {"dtype": torch.float32}
LOOSE: dict[str, Any] = {"tol": 1e-3}  # kernels are interpreted, and every iteration takes time


class Job(NamedTuple):
    """What to train, and how."""

    problem: Callable[[np.random.Generator], Problem]
    options: dict[str, Any] = {}  # noqa: RUF012 - read only
    kernels: Literal["auto", "never"] = "auto"
    settings: tuple[tuple[Any, str, Any], ...] = ()
    """Module, name and value of constants that choose a branch."""


def drawn(rng, *, n=8, p=2, B=2, C=(0.1, 1.0), own_labels=False, own_scale=False, **changes):
    """A tiny problem in which all replicates have both classes."""
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=B)
    if own_labels:
        y = np.where(rng.random((B, n)) < 0.5, 1, -1)
    y[..., :2] = 1, -1
    counts[:, :2] += 1
    if own_scale:
        changes["scale"] = np.exp(0.3 * rng.normal(size=(B, p)))
    return Problem(X, y, counts, np.asarray(C), **changes)


def some(**changes) -> Callable[[np.random.Generator], Problem]:
    return lambda rng: drawn(rng, **changes)


def own_bounds(rng) -> Problem:
    given = drawn(rng)
    upper = rng.exponential(size=(2, 2, 8)) * (rng.random((2, 2, 8)) < 0.8)
    upper[..., :2] += 0.1
    return Problem(given.X, given.y, given.counts, given.C, upper=upper)


def one_class_missing(rng) -> Problem:
    given = drawn(rng)
    counts = given.counts.copy()
    counts[1, given.y > 0] = 0
    return Problem(given.X, given.y, counts, given.C)


def weighted(rng) -> Problem:
    weight = rng.uniform(0.5, 2.0, size=8)
    weight[-1] = 0.0
    return drawn(rng, row_weight=weight)


def precomputed(rng) -> Problem:
    given = drawn(rng)
    gram = (given.X @ given.X.T + 1) ** 2
    return Problem(gram, given.y, given.counts, given.C, kernel="precomputed")


no_graph = ((interior_point, "_REPLAYED_CELLS", 0),)
tiles = ((triton_smo, "IN_REGISTERS", 0), (triton_smo, "TILE", 16))
few_bytes = {"memory_limit": 1}  # one replicate at a time

JOBS = {
    "linear": Job(some()),
    "linear, own labels": Job(some(own_labels=True), LOOSE),
    "linear, own scale": Job(some(own_scale=True), LOOSE),
    "linear, bounds": Job(own_bounds, LOOSE),
    "linear, weights": Job(weighted, LOOSE),
    "linear, one class": Job(one_class_missing, LOOSE),
    "linear, blocks": Job(some(), LOOSE | few_bytes),
    "linear, kernel by kernel": Job(some(), LOOSE, settings=no_graph),
    "linear, plain torch": Job(some(own_scale=True), kernels="never"),
    "linear, own labels, plain torch": Job(some(own_labels=True), kernels="never"),
    "linear, scored in float32": Job(some(), LOOSE | SINGLE),
    "linear, SMO": Job(some(), {"solver": "smo-fused", "tol": 1e-3}),
    "linear, more columns than rows": Job(some(p=13), LOOSE),
    "linear, more columns, float32": Job(some(p=13, own_scale=True), SINGLE),
    "rbf": Job(some(**RBF)),
    "rbf, own scale": Job(some(**RBF, own_scale=True), LOOSE),
    "rbf, own labels": Job(some(**RBF, own_labels=True), LOOSE),
    "rbf, float32": Job(some(**RBF), SINGLE),
    "rbf, own scale and labels, float32": Job(some(**RBF, own_scale=True, own_labels=True), SINGLE),
    "rbf, KKT": Job(some(**RBF), {"kkt_tol": 1e-2, "tol": 1e-6, **SINGLE}),
    "rbf, blocks": Job(some(**RBF, own_scale=True), LOOSE | few_bytes),
    "rbf, tiles": Job(some(**RBF), LOOSE, settings=tiles),
    "rbf, tiles, own labels": Job(
        some(**RBF, own_labels=True, own_scale=True), LOOSE, settings=tiles
    ),
    "poly": Job(some(**POLY), LOOSE),
    "poly, own scale, float32": Job(some(**POLY, own_scale=True), SINGLE),
    "poly, own scale, plain torch": Job(some(**POLY, own_scale=True), kernels="never"),
    "poly, tiles": Job(some(**POLY), LOOSE, settings=tiles),
    "precomputed": Job(precomputed, LOOSE),
    "precomputed, float32": Job(precomputed, SINGLE),
    "rbf, plain torch": Job(some(**RBF, own_scale=True), kernels="never"),
    "rbf, plain torch, float32": Job(some(**RBF), SINGLE, kernels="never"),
}
# By `make endurance` only: each takes the branches of jobs that are left, in another combination.
COMBINED = {
    "linear, own scale", "linear, weights", "linear, kernel by kernel", "rbf, own scale",
    "rbf, own labels", "rbf, float32", "rbf, own scale and labels, float32", "rbf, blocks",
    "rbf, tiles", "poly", "poly, tiles",
}  # fmt: skip


def tensors(values: Any) -> dict[str, torch.Tensor]:
    """All tensors of a dataclass, also of those in it."""
    found = {}
    for each in fields(values):
        value = getattr(values, each.name)
        if isinstance(value, torch.Tensor):
            found[each.name] = value
        elif isinstance(value, Certificate):
            found |= tensors(value)
    return found


def on_cpu(models: FittedBatch) -> FittedBatch:
    """The same models on the CPU."""

    def moved(values: Any) -> Any:
        names = [each.name for each in fields(values)]
        here = {name: getattr(values, name) for name in names}
        movable = torch.Tensor, KernelFunction
        return {k: v.to(CPU) if isinstance(v, movable) else v for k, v in here.items()}

    certificate = Certificate(**moved(models.certificate))
    return FittedBatch(**moved(models) | {"certificate": certificate})


def objectives(problem: Problem, models: FittedBatch) -> np.ndarray:
    """Primal objectives from the coefficients on the CPU, (B, R)."""
    models = replace(models, dtype=torch.float64)
    rows = torch.from_numpy(problem.X)
    scores = torch.cat([each for _, each in model_scores(models, rows)]).numpy()
    if models.coef is not None:
        squared = np.square(models.coef.numpy() * np.atleast_2d(problem.scale)[:, None]).sum(-1)
    else:
        squared = (models.dual_coef.numpy() * scores).sum(-1)
    every = slice(0, problem.n_replicates)
    label = np.broadcast_to(problem.y_of(every), problem.counts.shape)[:, None]
    loss = np.maximum(0, 1 - label * scores)
    return squared / 2 + (problem.upper_of(every) * loss).sum(-1)


def trained(job: Job, rng, device) -> tuple[Problem, FittedBatch]:
    problem = job.problem(rng)
    with triton_kernels(job.kernels):
        return problem, fit(problem, device=device, **job.options)


@pytest.fixture(
    params=[
        pytest.param(job, id=name, marks=[pytest.mark.endurance] if name in COMBINED else [])
        for name, job in JOBS.items()
    ]
)
def job(request, monkeypatch) -> Job:
    for module, name, value in request.param.settings:
        monkeypatch.setattr(module, name, value)
    return request.param


def test_models_and_their_scores_are_those_of_a_cpu(rng, pretended_gpu, job):
    problem, found = trained(job, rng, "cuda")
    assert all(each.is_cuda for each in tensors(found).values())
    assert tensors(found).keys() >= {"intercept", "primal", "dual", "n_iter", "status"}
    here = on_cpu(found)

    # Certificates say the truth, and the same optimum lies between those of both devices.
    options = {k: v for k, v in job.options.items() if k not in ("solver", "memory_limit")}
    cpu = fit(problem, **options)
    torch.testing.assert_close(here.status, cpu.status)
    assert set(here.status.unique().tolist()) <= {Status.CONVERGED, Status.SINGLE_CLASS}
    primal = here.primal.numpy()
    np.testing.assert_allclose(objectives(problem, here), primal, rtol=1e-7, atol=1e-12)
    slack = 1e-9 * primal + 1e-12
    assert (here.dual.numpy() <= cpu.primal.numpy() + slack).all()
    assert (cpu.dual.numpy() <= primal + slack).all()
    if "kkt_tol" not in job.options:
        tol = job.options.get("tol", 1e-4 if found.dtype == torch.float32 else 1e-6)
        assert (here.gap <= tol).all()

    with triton_kernels(job.kernels):
        scored_alike(rng, found, here)


def scored_alike(rng, found: FittedBatch, here: FittedBatch) -> None:
    """All that is computed of new rows, few and many, of the host and of the device."""
    R = here.intercept.shape[1]
    weights = torch.from_numpy(rng.uniform(size=R))
    weights[0] = 0.0
    eps = torch.finfo(found.dtype).eps
    near = {"rtol": 1e3 * eps, "atol": 1e4 * eps}
    for m in (2, 30):
        rows = torch.from_numpy(rng.normal(size=(m, len(here.center))))
        scores = torch.cat([each for _, each in model_scores(here, rows)])
        for given in (rows, rows.to("cuda")):
            of_device = torch.cat([each for _, each in model_scores(found, given)])
            assert of_device.is_cuda
            torch.testing.assert_close(of_device.cpu(), scores, **near)
            counted = votes(found, given).cpu()
            clear = 1e4 * eps < scores.abs().amin(0).T
            torch.testing.assert_close(counted[clear], (scores > 0).sum(0).T[clear])
            if clear.all():
                shares = counted.double() @ weights / len(scores)
                torch.testing.assert_close(vote_shares(found, given, weights).cpu(), shares)
            mean = torch.einsum("brm,r->mb", scores.double(), weights).to(found.dtype)
            summed = replicate_scores(found, given, weights.to(given.device)).cpu()
            torch.testing.assert_close(summed, mean, **near)


@pytest.mark.parametrize(
    ("name", "solver", "kernels"),
    [
        ("linear", "interior-point", True),
        ("linear, kernel by kernel", "interior-point", True),
        ("linear, plain torch", "interior-point", False),
        ("linear, more columns than rows", "smo-fused", True),
        ("rbf", "smo-fused", True),
        ("rbf, plain torch", "smo-batched", False),
    ],
)
def test_the_branches_are_those_of_a_gpu(rng, pretended_gpu, monkeypatch, name, solver, kernels):
    job = JOBS[name]
    for setting in job.settings:
        monkeypatch.setattr(*setting)
    with triton_kernels(job.kernels):
        assert choose_solver(job.problem(rng), CUDA) == solver
    trained(job._replace(options={"tol": 1e-2}), rng, "cuda")
    launched = [each for each in pretended_gpu.launches if each.startswith("triton ")]
    assert bool(launched) == kernels
    assert (pretended_gpu.replays > 0) == (name == "linear")


def test_blocks_come_with_the_scores_of_their_training_rows(rng, pretended_gpu):
    problem = drawn(rng, B=3, C=[0.3], own_scale=True, **RBF)
    blocks = list(iter_fit(problem, device="cuda", tol=1e-3, memory_limit=1))
    assert [block.replicates for block in blocks] == [slice(b, b + 1) for b in range(3)]
    for block in blocks:
        assert all(each.is_cuda for each in tensors(block).values())
        (own,) = (each for _, each in model_scores(on_cpu(block), torch.from_numpy(problem.X)))
        torch.testing.assert_close(block.train_scores.cpu(), own, rtol=1e-9, atol=1e-9)
    whole = fit(problem, device="cuda", tol=1e-3)
    joined = FittedBatch.concatenate(blocks)
    torch.testing.assert_close(joined.primal.cpu(), whole.primal.cpu(), rtol=1e-3, atol=0)


def test_shards_are_what_they_are_in_the_whole(rng, pretended_gpu):
    problem = drawn(rng, B=3, C=[0.3])
    whole = on_cpu(fit(problem, device="cuda", tol=1e-2))
    for b in (slice(0, 2), slice(2, 3)):
        part = on_cpu(fit(problem.take(b), device="cuda", tol=1e-2))
        torch.testing.assert_close(part.coef, whole.coef[b], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(part.take(slice(0, 1)).primal, whole.take(b).primal[:1])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_derivatives(rng, pretended_gpu, kernel):
    problem = drawn(rng, C=[0.3], own_scale=True, **(RBF if kernel == "rbf" else {}))
    every = slice(0, problem.n_replicates)
    given = problem.X, problem.y, problem.upper_of(every), problem.scale, rng.normal(size=(3, 2))
    new = torch.from_numpy(given[-1])
    found = {}
    for device in ("cpu", "cuda"):
        X, y, upper, scale, rows = (torch.from_numpy(each).to(device) for each in given)
        gamma = None if kernel == "linear" else torch.tensor(RBF["gamma"], device=device).double()
        fitted = fit(problem, device=device)
        models = solve_exactly(fitted, X, y, upper)
        d_upper, d_gamma = models.derivatives(rows)
        assert d_upper.device.type == device
        scores, _ = differentiable_scores(
            X, y, upper.requires_grad_(), rows, gamma=gamma, scale=scale
        )
        scores.square().sum().backward()
        found[device] = [
            each.detach().cpu()
            for each in (models.scores(rows), d_upper, d_gamma, scores, upper.grad, models.status)
            if each is not None
        ]
    for one, other in zip(found["cpu"], found["cuda"], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    assert len(new) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_travel_while_others_are_scored(rng, pretended_gpu, dtype):
    X = rng.normal(size=(20, 3)).astype(dtype)
    pinned = torch.from_numpy(X).pin_memory()
    sizes = [slice(first, first + 6) for first in range(0, 20, 6)]
    for given in (X, np.asfortranarray(X), pinned):
        arriving = blocks_on_device((given[part] for part in sizes), CUDA)
        returning = blocks_on_host((2 * block for block in arriving), CUDA)
        np.testing.assert_array_equal(np.concatenate(list(returning)), 2 * X)
    assert pretended_gpu.waits["Event.synchronize"] > 0
    assert not any("pageable" in what for what in pretended_gpu.waits)


def test_scorers_serve_many_blocks_of_rows(rng, pretended_gpu):
    found = fit(drawn(rng, own_scale=True, **RBF), device="cuda", tol=1e-2)
    here, rows = on_cpu(found), torch.from_numpy(rng.normal(size=(40, 2)))
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    counter, scores = Votes(found, weights), ReplicateScores(found, weights)
    for part in rows.split(25):
        torch.testing.assert_close(scores(part).cpu(), replicate_scores(here, part, weights))
        torch.testing.assert_close(counter.shares(part).cpu(), vote_shares(here, part, weights))
