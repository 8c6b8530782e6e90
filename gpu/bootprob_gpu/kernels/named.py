"""Kernels by name; a new one is a line in `KERNELS`, and one in `Kernel`."""

from __future__ import annotations

from typing import Any, Literal

import torch
from numpy.typing import ArrayLike

from bootprob_gpu.inputs import InputError, positive_grid
from bootprob_gpu.kernels.function import KernelFunction
from bootprob_gpu.kernels.laplacian import Laplacian
from bootprob_gpu.kernels.linear import Linear
from bootprob_gpu.kernels.polynomial import Polynomial
from bootprob_gpu.kernels.precomputed import Precomputed
from bootprob_gpu.kernels.rbf import Rbf

__all__ = ["KERNELS", "Kernel", "kernel_function", "spoken_name"]

Kernel = Literal["linear", "rbf", "laplacian", "poly", "precomputed"]

KERNELS: dict[str, type[KernelFunction]] = {
    each.name: each for each in (Linear, Rbf, Laplacian, Polynomial, Precomputed)
}
_CALLED = {"rbf": "RBF", "laplacian": "Laplacian", "poly": "polynomial"}


def spoken_name(kernel: str) -> str:
    """What a kernel is called in a sentence."""
    return _CALLED.get(kernel, kernel)


def kernel_function(
    kernel: Kernel | KernelFunction, gamma: ArrayLike | None = None, **parameters: Any
) -> KernelFunction:
    """The kernel of a name and its parameters, on the CPU.

    Parameters
    ----------
    kernel : str or KernelFunction
        One that is made already has its parameters.
    gamma : array_like, shape (G,), optional
        Grid of γ, positive.
    **parameters
        Others; None stands for not given.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if gamma is not None:
        given["gamma"] = gamma
    if isinstance(kernel, KernelFunction):
        if given:
            raise InputError(
                f"{', '.join(given)} was given with a kernel that is made already; leave it out."
            )
        if kernel.gamma is None:
            return kernel
        return kernel.with_gamma(
            torch.tensor(positive_grid(kernel.gamma.cpu(), "gamma"), device="cpu")
        )
    if not isinstance(kernel, str) or kernel not in KERNELS:
        *most, last = (repr(name) for name in KERNELS)
        raise InputError(f"kernel is {kernel!r}; give {', '.join(most)} or {last}.")
    cls = KERNELS[kernel]
    called = spoken_name(kernel)
    for name in given:
        if name not in cls.parameters:
            raise InputError(
                f"{name} was given with the {called} kernel, which has none; leave it out."
            )
    if "gamma" in cls.parameters:
        if gamma is None:
            raise InputError(
                f"The {called} kernel needs gamma: give one positive number or a grid."
            )
        given["gamma"] = torch.tensor(positive_grid(gamma, "gamma"), device="cpu")
    return cls(**given)
