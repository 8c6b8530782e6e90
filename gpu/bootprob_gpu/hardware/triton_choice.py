"""When a Triton kernel runs, and the plain-torch twin that takes over where it cannot.

A kernel is used for CUDA tensors where the package triton is installed. If it cannot be compiled
there, a warning says so once and its twin, which computes the same, does the work from then on.
"""

from __future__ import annotations

import subprocess
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, ParamSpec, TypeVar

import torch

__all__ = [
    "KernelFallbackWarning", "fell_back", "kernel_names", "triton_kernels", "use_triton",
    "with_twin",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")
Choice = Literal["auto", "never", "always"]

_choice: ContextVar[Choice] = ContextVar("triton_kernels", default="auto")
_broken: set[str] = set()  # kernels that could not be compiled in this process
_OLDEST = (3, 5)  # version of Triton; 3.3 and 3.4 know no matrix products of float64
_NOT_LOADED = ("kernel image", "PTX", "ptx")  # in what the driver says of such kernels


class KernelFallbackWarning(RuntimeWarning):
    """A Triton kernel could not be compiled; its slower twin in plain torch is used."""


Witness = Callable[
    [str, Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any
]
_witness: ContextVar[Witness | None] = ContextVar("witness", default=None)
_names: set[str] = set()  # of all kernels with twins in the modules that were imported


@contextmanager
def witnessed(witness: Witness) -> Iterator[frozenset[str]]:
    """Have every launch inside made by a function, which can run the twin beside it.

    Parameters
    ----------
    witness : callable
        Called as ``witness(name, launch, twin, args, kwargs)``; returns what `launch` returns.

    Yields
    ------
    frozenset of str
        The names of all kernels.
    """
    token = _witness.set(witness)
    try:
        yield frozenset(_names)
    finally:
        _witness.reset(token)


@contextmanager
def triton_kernels(choice: Choice) -> Iterator[None]:
    """Decide about Triton kernels for the calls inside.

    Parameters
    ----------
    choice : {"auto", "never", "always"}
        "auto": for CUDA tensors where triton is installed; "never": the twins; "always": also for
        CPU tensors, which needs Triton's interpreter (``TRITON_INTERPRET=1``), and without
        falling back.
    """
    token = _choice.set(choice)
    try:
        yield
    finally:
        _choice.reset(token)


def use_triton(device: torch.device) -> bool:
    """Whether kernels for tensors of this device should be tried."""
    choice = _choice.get()
    if choice == "auto":
        return device.type == "cuda" and _installed()
    return choice == "always"


def kernel_names(*launches: Callable[..., object]) -> frozenset[str]:
    """Names of the kernels that these functions, decorated by `with_twin`, launch."""
    return frozenset(launch.kernel_name for launch in launches)  # type: ignore[attr-defined]


def fell_back(kernels: Collection[str]) -> bool:
    """Whether one of these kernels could not be compiled in this process: its twin stands in.

    Parameters
    ----------
    kernels : collection of str
        From `kernel_names`.
    """
    return not _broken.isdisjoint(kernels)


def with_twin(twin: Callable[P, T], *, name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator of a function that launches a Triton kernel: run its twin where it cannot run.

    The first argument must be a tensor, whose device decides and is made the current one: Triton
    launches there, wherever its tensors are. Kernels are compiled before they are launched, so a
    twin that takes over finds its arguments untouched.

    Parameters
    ----------
    twin : callable
        Computes the same in plain torch.
    name : str
        The kernel's name in the warning.
    """

    def decorate(launch: Callable[P, T]) -> Callable[P, T]:
        _names.add(name)

        @wraps(launch)
        def chosen(*args: P.args, **kwargs: P.kwargs) -> T:
            device = args[0].device  # type: ignore[attr-defined]
            always = _choice.get() == "always"
            if not use_triton(device) or (name in _broken and not always):
                return twin(*args, **kwargs)
            try:
                with torch.cuda.device_of(args[0]):
                    if (witness := _witness.get()) is not None:
                        return witness(name, launch, twin, args, kwargs)
                    return launch(*args, **kwargs)
            except Exception as error:
                if always or not _is_compile_error(error):
                    raise
                _broken.add(name)
                reason = str(error).strip().splitlines()[:1]
                warnings.warn(
                    f"The Triton kernel {name!r} could not be compiled ({type(error).__name__}"
                    f"{': ' + reason[0] if reason else ''}); its twin in plain torch does the "
                    f"work, more slowly.{_advice(import_module('triton').__version__)}",
                    KernelFallbackWarning,
                    stacklevel=2,
                )
                return twin(*args, **kwargs)

        chosen.kernel_name = name  # type: ignore[attr-defined]
        return chosen

    return decorate


def _advice(installed: str) -> str:
    """What a version of Triton has to do with a kernel that it does not compile."""
    if tuple(int(part) for part in installed.split(".")[:2]) >= _OLDEST:
        return ""
    oldest = ".".join(str(part) for part in _OLDEST)
    return f" This is Triton {installed}; install {oldest} or newer."


@cache
def _installed() -> bool:
    return find_spec("triton") is not None


def _is_compile_error(error: Exception) -> bool:
    """Whether Triton lacks a compiler, an assembler or shared memory; not a fault in running."""
    errors = import_module("triton.errors")
    if isinstance(error, (errors.TritonError, subprocess.CalledProcessError, ImportError)):
        return True
    if not isinstance(error, (RuntimeError, OSError)) or "out of memory" in str(error):
        return False
    # The driver's errors: a kernel that it cannot load is one that could not be compiled for it.
    if "[CUDA]" in str(error) and not any(word in str(error) for word in _NOT_LOADED):
        return False
    # Without a C compiler Triton raises a bare RuntimeError; torch's are raised elsewhere.
    *_, last = traceback.walk_tb(error.__traceback__)
    return "triton" in last[0].f_globals.get("__name__", "").split(".")
