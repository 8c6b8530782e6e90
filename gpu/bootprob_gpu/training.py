"""Training of a whole problem: choice of solver, blocks of replicates, certificates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import torch

from bootprob_gpu.hardware.numba_choice import numba_loads
from bootprob_gpu.hardware.triton_choice import use_triton
from bootprob_gpu.inputs import InputError
from bootprob_gpu.interior_point.blocks import train_linear
from bootprob_gpu.models import FittedBatch
from bootprob_gpu.problem import Problem
from bootprob_gpu.smo.blocks import train_dual
from bootprob_gpu.solvers import BACK_ENDS, BackEnd, Solver

__all__ = ["choose_solver", "fit", "iter_fit", "resolve_device"]


def fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    kkt_tol: float | None = None,
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
    solver : str, default "auto"
        "interior-point": linear kernel, float64, any device; "interior-point-compiled": the same
        on the CPU, problem by problem. "smo-batched": all kernels, any device; "smo-compiled":
        the same on the CPU, path by path; "smo-fused": the same on CUDA, each path by one program
        of a Triton kernel. "auto" takes an interior point for a linear kernel with no more
        columns than rows, else SMO; compiled on the CPU where Numba can be loaded, fused on CUDA
        where triton is installed.
    tol : float, optional
        Relative duality gap to reach; default 1e-7 for the linear kernel and 1e-6 for others in
        float64, 1e-4 in float32.
    kkt_tol : float, optional
        Stop a model also when its largest violation of the KKT conditions, ``m(a) − M(a)``, is at
        most this: the rule of libsvm, whose `tol` is 1e-3 by default. `Status.CONVERGED` then
        means that the gap is within `tol` or the violation within `kkt_tol`; the gap that was
        reached is in the certificate all the same. For SMO only.
    max_iter : int, optional
        Iterations allowed for each model; default 100 for an interior point, 200,000 for
        "smo-batched" and 2,000,000 for the other kinds of SMO.
    device : str or torch.device, default "cpu"
        Where to train.
    dtype : torch.dtype, default torch.float64
        Precision of later scoring, and of the Gram matrices that "smo-batched" and "smo-fused"
        iterate with (on CUDA those of RBF kernels are float32 either way). The solvers' own
        arithmetic is float64, and so are the matrices by which models end and are certified.
    memory_limit : int, optional
        Bytes that a block may use; default half of the free memory.

    Returns
    -------
    FittedBatch
        Models that were not solved say so in their status; nothing is ever NaN.

    Raises
    ------
    InputError
        If an option is unknown or does not fit the problem.
    MemoryError
        If a single replicate does not fit into memory.
    """
    blocks = []
    for block in iter_fit(
        problem,
        solver=solver,
        tol=tol,
        kkt_tol=kkt_tol,
        max_iter=max_iter,
        device=device,
        dtype=dtype,
        memory_limit=memory_limit,
    ):
        block.train_scores = None  # of all blocks, these would fill the memory
        blocks.append(block)
    return FittedBatch.concatenate(blocks)


def iter_fit(
    problem: Problem,
    *,
    solver: Solver = "auto",
    tol: float | None = None,
    kkt_tol: float | None = None,
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
    problem, solver, tol, kkt_tol, max_iter, device, dtype, memory_limit
        As for `fit`.

    Returns
    -------
    iterator of FittedBatch
        Consecutive blocks of replicates. Options are checked before this function returns.
    """
    options = Options.checked(problem, solver, tol, kkt_tol, max_iter, device, dtype, memory_limit)
    if options.back_end.is_interior_point:
        return train_linear(
            problem,
            compiled=options.back_end.is_compiled,
            tol=options.tol,
            max_iter=options.max_iter,
            device=options.device,
            dtype=options.dtype,
            memory_limit=options.memory_limit,
        )
    return train_dual(
        problem,
        back_end=options.back_end,
        tol=options.tol,
        kkt_tol=options.kkt_tol,
        max_iter=options.max_iter,
        device=options.device,
        dtype=options.dtype,
        memory_limit=options.memory_limit,
    )


def choose_solver(problem: Problem, device: torch.device) -> Solver:
    """What "auto" stands for.

    Interior point if linear and p ≤ n, else SMO; compiled on a CPU where Numba can be had, fused
    into a Triton kernel where those run.
    """
    n, p = problem.X.shape
    compiled = device.type == "cpu" and numba_loads()
    if problem.kernel_function.is_linear and p <= n:
        return "interior-point-compiled" if compiled else "interior-point"
    if compiled:
        return "smo-compiled"
    return "smo-fused" if use_triton(device) else "smo-batched"


@dataclass(frozen=True)
class Options:
    """The options of `fit`, checked and with their defaults filled in."""

    back_end: BackEnd
    tol: float
    kkt_tol: float | None
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
        kkt_tol: float | None,
        max_iter: int | None,
        device: str | torch.device,
        dtype: torch.dtype,
        memory_limit: int | None,
    ) -> Options:
        """Check everything before any work is done."""
        device = resolve_device(device)
        if solver not in get_args(Solver):
            raise InputError(f"solver is {solver!r}; give one of {', '.join(get_args(Solver))}.")
        if dtype not in (torch.float32, torch.float64):
            raise InputError(f"dtype is {dtype}; give torch.float32 or torch.float64.")
        back_end = BACK_ENDS[choose_solver(problem, device) if solver == "auto" else solver]
        if solver != "auto":
            back_end.check_problem(problem, dtype)
        back_end.check_device(device)
        if dtype == torch.float32:
            problem.kernel_function.check_float32(problem.X, problem.scale)
        if tol is None:
            in_float64 = 1e-7 if problem.kernel_function.is_linear else 1e-6
            tol = in_float64 if dtype == torch.float64 else 1e-4
        if not 0 < tol < 1:
            raise InputError(f"tol is {tol!r}; give a relative duality gap between 0 and 1.")
        if kkt_tol is not None:
            if back_end.is_interior_point:
                raise InputError(
                    "kkt_tol is for SMO only: an interior point has no variables at their bounds, "
                    "which the violation of the KKT conditions is about; use tol."
                )
            if not 0 < kkt_tol < 1:
                raise InputError(f"kkt_tol is {kkt_tol!r}; give a number between 0 and 1, or None.")
            kkt_tol = float(kkt_tol)
        if max_iter is None:
            max_iter = back_end.max_iter
        if not (max_iter >= 1 and max_iter == int(max_iter)):
            raise InputError(f"max_iter is {max_iter!r}; give a positive whole number.")
        if memory_limit is not None and not memory_limit > 0:
            raise InputError(f"memory_limit is {memory_limit!r}; give a positive number of bytes.")
        return cls(back_end, float(tol), kkt_tol, int(max_iter), device, dtype, memory_limit)


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
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise InputError(f"device is {str(device)!r}; give 'auto', 'cpu', 'cuda' or 'cuda:1'.")
    try:
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {str(device)!r} is not to be had here ({reason}).") from error
    return found
