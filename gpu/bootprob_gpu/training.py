"""Training of a whole problem: choice of solver, blocks of replicates, certificates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from bootprob_gpu.certificate import Certificate, Status, relative_gap
from bootprob_gpu.fitted import FittedBatch
from bootprob_gpu.interior_point import NormalMatrices, interior_point
from bootprob_gpu.kernels import cross_gram
from bootprob_gpu.memory import chunked, free_bytes
from bootprob_gpu.problem import InputError, Problem
from bootprob_gpu.smo_batched import smo_batched
from bootprob_gpu.smo_compiled import smo_path

__all__ = ["Solver", "choose_solver", "fit", "iter_fit", "resolve_device"]

Solver = Literal["auto", "interior-point", "smo-compiled", "smo-batched"]

_INTERIOR_POINT_ARRAYS = 30  # tensors of the size of the batch alive in an iteration
_SMO_ARRAYS = 14
_MAX_ITER = {"interior-point": 100, "smo-compiled": 2_000_000, "smo-batched": 200_000}
_CPU_BATCH = 1024  # problems in an interior-point batch that suit a CPU's caches


def fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
    memory_limit: int | None = None,
) -> FittedBatch:
    """Train all models of a problem.

    Parameters
    ----------
    problem : Problem
        What to train.
    solver : {"auto", "interior-point", "smo-compiled", "smo-batched"}, default "auto"
        "interior-point": linear kernel, float64, any device. "smo-compiled": both kernels, CPU.
        "smo-batched": both kernels, any device. "auto" takes the interior point for a linear
        kernel with no more columns than rows, else the SMO of the device.
    tol : float, optional
        Relative duality gap to reach; default 1e-7 for the linear kernel, 1e-6 for RBF in
        float64 and 1e-4 in float32.
    max_iter : int, optional
        Iterations allowed for each model; default 100 for the interior point, 2,000,000 for
        "smo-compiled" and 200,000 for "smo-batched".
    device : str or torch.device, default "cpu"
        Where to train.
    dtype : torch.dtype, default torch.float64
        Precision of Gram matrices and of later scoring; the solvers' own arithmetic is float64.
    memory_limit : int, optional
        Bytes that a block may use; default half of the free memory.

    Returns
    -------
    FittedBatch
        Models that were not solved to `tol` say so in their status; nothing is ever NaN.

    Raises
    ------
    InputError
        If an option is unknown or does not fit the problem.
    MemoryError
        If a single replicate does not fit into memory.
    """
    return FittedBatch.concatenate(
        list(
            iter_fit(
                problem,
                solver=solver,
                tol=tol,
                max_iter=max_iter,
                device=device,
                dtype=dtype,
                memory_limit=memory_limit,
            )
        )
    )


def iter_fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    max_iter: int | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
    memory_limit: int | None = None,
) -> Iterator[FittedBatch]:
    """Train block by block of replicates, as `fit` does, and hand each block out when done.

    Scores of the training rows come along in each block (`FittedBatch.train_scores`), so that
    a caller can reduce them before the next block starts; they are never held for all
    replicates at once.

    Parameters
    ----------
    problem, solver, tol, max_iter, device, dtype, memory_limit
        As for `fit`.

    Returns
    -------
    iterator of FittedBatch
        Consecutive blocks of replicates. Options are checked before this function returns.
    """
    options = _Options.checked(problem, solver, tol, max_iter, device, dtype, memory_limit)
    if options.solver == "interior-point":
        return _train_interior_point(problem, options)
    return _train_smo(problem, options)


def choose_solver(problem: Problem, device: torch.device) -> Solver:
    """The solver that "auto" stands for; the measurements are in docs/engine.md."""
    n, p = problem.X.shape
    if problem.kernel == "linear" and p <= n:
        return "interior-point"
    return "smo-compiled" if device.type == "cpu" else "smo-batched"


@dataclass(frozen=True)
class _Options:
    solver: Solver
    tol: float
    max_iter: int
    device: torch.device
    dtype: torch.dtype
    memory_limit: int | None

    @classmethod
    def checked(
        cls,
        problem: Problem,
        solver: Solver,
        tol: float | None,
        max_iter: int | None,
        device: str | torch.device,
        dtype: torch.dtype,
        memory_limit: int | None,
    ) -> _Options:
        device = resolve_device(device)
        if solver not in get_args(Solver):
            raise InputError(f"solver is {solver!r}; give one of {', '.join(get_args(Solver))}.")
        if dtype not in (torch.float32, torch.float64):
            raise InputError(f"dtype is {dtype}; give torch.float32 or torch.float64.")
        if solver == "auto":
            solver = choose_solver(problem, device)
        elif solver == "interior-point":
            if problem.kernel != "linear":
                raise InputError("The interior point trains linear kernels only; use 'auto'.")
            if dtype != torch.float64:
                raise InputError(
                    "The interior point needs float64: in float32 it fails on one problem in seven."
                )
        elif solver == "smo-compiled" and device.type != "cpu":
            raise InputError(f"'smo-compiled' runs on the CPU only, not on {device}; use 'auto'.")
        if tol is None:
            if problem.kernel == "linear":
                tol = 1e-7
            else:
                tol = 1e-6 if dtype == torch.float64 else 1e-4
        if not 0 < tol < 1:
            raise InputError(f"tol is {tol!r}; give a relative duality gap between 0 and 1.")
        if max_iter is None:
            max_iter = _MAX_ITER[solver]
        if not max_iter >= 1:
            raise InputError(f"max_iter is {max_iter!r}; give a positive number.")
        if memory_limit is not None and not memory_limit > 0:
            raise InputError(f"memory_limit is {memory_limit!r}; give a positive number of bytes.")
        return cls(solver, float(tol), int(max_iter), device, dtype, memory_limit)


def resolve_device(device: str | torch.device) -> torch.device:
    """Check that a device can be used.

    Parameters
    ----------
    device : str or torch.device
        "cpu", "cuda", "cuda:1", ..., or "auto": CUDA where there is one, else the CPU.

    Raises
    ------
    InputError
        If there is no such device here.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {str(device)!r} cannot be used ({reason}).") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {str(device)!r} has no float64 arithmetic; use 'cpu' or 'cuda'.")
    return device


def _train_interior_point(problem: Problem, options: _Options) -> Iterator[FittedBatch]:
    n, p = problem.X.shape
    R, q = problem.n_models, p + 1
    X = torch.from_numpy(problem.X).to(options.device)
    y = torch.from_numpy(problem.y).to(options.device)
    # Columns of mean 0 and unit scale keep the normal matrices well conditioned; the intercept
    # absorbs the one and the penalty the other.
    center = X.mean(0)
    spread = (X - center).square().mean(0).sqrt()
    spread = torch.where(spread > 1e-14 * center.abs(), spread, 1.0)
    X1 = torch.cat([(X - center) / spread, X.new_ones(n, 1)], dim=1)
    available = free_bytes(options.device, options.memory_limit)
    normal_matrices = NormalMatrices(X1, available // 2)
    ratio = 1 / spread.cpu().numpy()

    def work(items: slice) -> FittedBatch:
        scale = torch.from_numpy(problem.scale_of(items) * ratio).to(options.device)
        upper = torch.from_numpy(problem.upper_of(items)).to(options.device)
        b = len(upper)
        w, certificate = interior_point(
            X1,
            y,
            upper.flatten(0, 1),
            scale.square().repeat_interleave(R, dim=0),
            normal_matrices,
            tol=options.tol,
            max_iter=options.max_iter,
        )
        coef = w[:, :-1] / spread
        return FittedBatch(
            intercept=(w[:, -1] - coef @ center).view(b, R),
            coef=coef.view(b, R, p),
            dual_coef=None,
            X=None,
            scale=torch.from_numpy(problem.scale),
            gamma=None,
            certificate=_shaped(certificate, b, R),
            train_scores=(w @ X1.T).view(b, R, n),
            replicates=items,
            dtype=options.dtype,
            memory_limit=options.memory_limit,
        )

    bytes_per_problem = 8 * (_INTERIOR_POINT_ARRAYS * n + 3 * q * q)
    largest = max(1, _CPU_BATCH // R) if options.device.type == "cpu" else None
    blocks = chunked(
        problem.n_replicates,
        work,
        bytes_per_item=R * bytes_per_problem,
        available=available // 2,
        largest=largest,
    )
    for _, block in blocks:
        yield block


def _train_smo(problem: Problem, options: _Options) -> Iterator[FittedBatch]:
    n, p = problem.X.shape
    R, device = problem.n_models, options.device
    grid = 1 if problem.gamma is None else len(problem.gamma)
    X = torch.from_numpy(problem.X).to(device)
    y = torch.from_numpy(problem.y).to(device)
    gamma = None if problem.gamma is None else torch.from_numpy(problem.gamma).to(device)
    scale = torch.from_numpy(problem.scale).to(device)
    center = X.mean(0)
    solve = _solve_compiled if options.solver == "smo-compiled" else _solve_batched

    def gram_of(scale: Tensor) -> Tensor:
        rows = ((X - center) / scale.unsqueeze(-2)).to(options.dtype)
        return cross_gram(rows, rows, None if gamma is None else gamma.to(options.dtype))

    shared = gram_of(scale) if problem.shares_scale else None

    def work(items: slice) -> FittedBatch:
        gram = gram_of(scale[items]) if shared is None else shared
        upper = torch.from_numpy(problem.upper_of(items)).to(device)
        b = len(upper)
        upper = upper.view(b, grid, R // grid, n)
        dual_coef, intercept, certificate = solve(gram, y, upper, options)
        scores = (dual_coef.to(gram.dtype) @ gram).to(torch.float64) + intercept.unsqueeze(-1)
        if gamma is None:
            block_scale = scale if problem.shares_scale else scale[items].view(b, 1, 1, p)
            coef = dual_coef @ (X - center) / block_scale**2
            intercept = intercept - coef @ center
        return FittedBatch(
            intercept=intercept.view(b, R),
            coef=None,
            dual_coef=dual_coef.view(b, R, n),
            X=X,
            scale=scale if problem.shares_scale else scale[items],
            gamma=gamma,
            certificate=_shaped(certificate, b, R),
            train_scores=scores.view(b, R, n),
            replicates=items,
            dtype=options.dtype,
            memory_limit=options.memory_limit,
        )

    item = options.dtype.itemsize
    bytes_per_replicate = 8.0 * _SMO_ARRAYS * R * n
    if shared is None:
        bytes_per_replicate += item * ((2 + 2 * grid) * n * n + 2 * n * p)
    blocks = chunked(
        problem.n_replicates,
        work,
        bytes_per_item=bytes_per_replicate,
        available=free_bytes(device, options.memory_limit),
        largest=4 * _workers() if device.type == "cpu" else None,
    )
    for _, block in blocks:
        yield block


def _solve_batched(
    gram: Tensor, y: Tensor, upper: Tensor, options: _Options
) -> tuple[Tensor, Tensor, Certificate]:
    b, grid, per_path, n = upper.shape
    if len(gram) != b and grid == 1:
        K = gram[0] if gram.ndim == 4 else gram
        K = K.view(n, n)
    else:
        K = gram.expand(b, grid, n, n).reshape(b * grid, n, n)
    dual_coef, intercept, certificate = smo_batched(
        K, y, upper.flatten(0, 1), tol=options.tol, max_iter=options.max_iter
    )
    return dual_coef.view(upper.shape), intercept.view(b, grid, per_path), certificate


def _solve_compiled(
    gram: Tensor, y: Tensor, upper: Tensor, options: _Options
) -> tuple[Tensor, Tensor, Certificate]:
    """One path of C after another, on the rows of weight only; as many at once as cores."""
    b, grid, per_path, n = upper.shape
    K = gram.view(-1, grid, n, n).numpy()
    labels, box = y.numpy(), upper.numpy()
    dual_coef = np.zeros(box.shape)
    intercept = np.zeros((b, grid, per_path))
    primal, dual = np.zeros_like(intercept), np.zeros_like(intercept)
    n_iter = np.zeros(intercept.shape, dtype=np.int64)
    status = np.full(intercept.shape, int(Status.SINGLE_CLASS))

    def solve(path: int) -> None:
        k, g = divmod(path, grid)
        mass = np.stack([(box[k, g] * (labels == sign)).sum(1) for sign in (-1, 1)])
        single = (mass == 0).any(0)
        intercept[k, g, single] = np.sign(mass[1] - mass[0])[single]
        models = np.flatnonzero(~single)
        if len(models) == 0:
            return
        rows = np.flatnonzero(box[k, g].any(0))
        found = np.zeros((len(models), len(rows)))
        end = [np.zeros(len(models)) for _ in range(3)]
        iterations, converged = np.zeros(len(models), np.int64), np.zeros(len(models), bool)
        smo_path(
            np.ascontiguousarray(K[k % len(K), g][np.ix_(rows, rows)]),
            labels[rows],
            np.ascontiguousarray(box[k, g][np.ix_(models, rows)]),
            options.tol,
            options.max_iter,
            np.zeros(len(rows)),
            found,
            end[0],
            end[1],
            end[2],
            iterations,
            converged,
        )
        dual_coef[k, g][np.ix_(models, rows)] = found
        for target, values in zip((intercept, primal, dual), end, strict=True):
            target[k, g, models] = values
        n_iter[k, g, models] = iterations
        unfinished = np.where(iterations >= options.max_iter, Status.MAX_ITER, Status.STALLED)
        status[k, g, models] = np.where(converged, Status.CONVERGED, unfinished)

    with ThreadPoolExecutor(_workers()) as pool:
        list(pool.map(solve, range(b * grid)))
    primal_t, dual_t = torch.from_numpy(primal), torch.from_numpy(dual)
    return (
        torch.from_numpy(dual_coef),
        torch.from_numpy(intercept),
        Certificate(
            primal_t,
            dual_t,
            relative_gap(primal_t, dual_t),
            torch.from_numpy(n_iter),
            torch.from_numpy(status),
        ),
    )


def _workers() -> int:
    """Threads that solve at the same time: what torch is allowed to use."""
    return max(1, min(torch.get_num_threads(), os.cpu_count() or 1))


def _shaped(certificate: Certificate, *shape: int) -> Certificate:
    return Certificate(
        certificate.primal.view(shape),
        certificate.dual.view(shape),
        certificate.gap.view(shape),
        certificate.n_iter.view(shape),
        certificate.status.view(shape),
    )
