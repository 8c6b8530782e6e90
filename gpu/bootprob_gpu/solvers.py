"""Solvers by name and what each of them takes; which is chosen, and options that go with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch

from bootprob_gpu.hardware.numba_choice import numba_error, numba_loads
from bootprob_gpu.hardware.triton_choice import use_triton
from bootprob_gpu.inputs import InputError
from bootprob_gpu.problem import Problem

__all__ = [
    "BACK_ENDS",
    "BackEnd",
    "Limits",
    "Options",
    "Solver",
    "choose_solver",
    "resolve_device",
]

Solver = Literal[
    "auto",
    "interior-point",
    "interior-point-compiled",
    "smo-compiled",
    "smo-batched",
    "smo-fused",
]


@dataclass(frozen=True)
class BackEnd:
    """A method, and what carries it out.

    Attributes
    ----------
    name : str
        As `fit` takes it.
    max_iter : int
        Iterations allowed for a model by default.
    is_interior_point : bool
        The primal of linear models in float64; else the dual of any, by SMO on a Gram matrix.
    is_compiled : bool
        By Numba on a CPU, path by path.
    is_fused : bool
        By one Triton kernel.
    """

    name: Solver
    max_iter: int
    is_interior_point: bool = False
    is_compiled: bool = False
    is_fused: bool = False

    def check_problem(self, problem: Problem, dtype: torch.dtype) -> None:
        """Refuse a problem that it does not train, asked for by name."""
        if not self.is_interior_point:
            return
        if not problem.kernel_function.is_linear:
            raise InputError("The interior point trains linear kernels only; use 'auto'.")
        if dtype != torch.float64:
            raise InputError(
                "The interior point needs float64: in float32 it fails on one problem in seven."
            )

    def check_device(self, device: torch.device) -> None:
        """Refuse a device that it does not run on."""
        if self.is_compiled and device.type != "cpu":
            raise InputError(f"{self.name!r} runs on the CPU only, not on {device}; use 'auto'.")
        if self.is_compiled and not numba_loads():
            reason = f"{self.name!r} takes Numba, which cannot be loaded; use 'auto'."
            raise InputError(reason) from numba_error()
        if self.is_fused and not _runs_kernels(device):
            raise InputError(
                f"{self.name!r} is a Triton kernel, which cannot run on {device} here; use 'auto'."
            )


BACK_ENDS: dict[str, BackEnd] = {
    each.name: each
    for each in (
        BackEnd("interior-point", 100, is_interior_point=True),
        BackEnd("interior-point-compiled", 100, is_interior_point=True, is_compiled=True),
        BackEnd("smo-compiled", 2_000_000, is_compiled=True),
        BackEnd("smo-batched", 200_000),
        BackEnd("smo-fused", 2_000_000, is_fused=True),
    )
}


def _runs_kernels(device: torch.device) -> bool:
    """Whether Triton kernels run there: compiled on CUDA, interpreted on the CPU."""
    if not use_triton(device):
        return False
    return device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"


def choose_solver(problem: Problem, device: torch.device) -> Solver:
    """What "auto" stands for.

    Interior point if linear and p ≤ n, else SMO; compiled on a CPU where Numba can be had, fused
    into a Triton kernel where those run.

    Parameters
    ----------
    problem : Problem
        What is to be trained.
    device : torch.device
        Where.

    Examples
    --------
    >>> from bootprob_gpu import Problem
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1]
    >>> counts = [[1, 1, 1, 1], [2, 0, 1, 1]]  # of two bootstrap samples
    >>> problem = Problem(X, y, counts, C=[0.1, 1.0])
    >>> import torch
    >>> from bootprob_gpu import choose_solver
    >>> choose_solver(problem, torch.device("cpu"))[:14]  # "-compiled", where Numba is
    'interior-point'
    """
    n, p = problem.X.shape
    compiled = device.type == "cpu" and numba_loads()
    if problem.kernel_function.is_linear and p <= n:
        return "interior-point-compiled" if compiled else "interior-point"
    if compiled:
        return "smo-compiled"
    return "smo-fused" if use_triton(device) else "smo-batched"


class Limits(NamedTuple):
    """When a model is done.

    Attributes
    ----------
    tol : float
        At this relative duality gap,
    kkt_tol : float or None
        for SMO also at this violation of the optimality conditions: libsvm's rule,
    max_iter : int
        and after so many iterations whatever it has reached.
    """

    tol: float
    kkt_tol: float | None
    max_iter: int


@dataclass(frozen=True)
class Options:
    """The options of `fit`, checked and with their defaults filled in."""

    back_end: BackEnd
    limits: Limits
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
        limits = Limits(float(tol), kkt_tol, int(max_iter))
        return cls(back_end, limits, device, dtype, memory_limit)


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

    Examples
    --------
    >>> from bootprob_gpu import resolve_device
    >>> resolve_device("cpu")
    device(type='cpu')
    >>> resolve_device("quantum")
    Traceback (most recent call last):
        ...
    bootprob_gpu.inputs.InputError: device is 'quantum'; give 'auto', 'cpu', 'cuda' or 'cuda:1'.
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
