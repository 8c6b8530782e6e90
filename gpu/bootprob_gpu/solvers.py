"""Solvers by name, and what each of them takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import torch

from bootprob_gpu.hardware.numba_choice import numba_error, numba_loads
from bootprob_gpu.hardware.triton_choice import use_triton
from bootprob_gpu.inputs import InputError
from bootprob_gpu.problem import Problem

__all__ = ["BACK_ENDS", "BackEnd", "Solver"]

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
