"""Triton's kernels, interpreted, on tensors of the pretended device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from torch import Tensor

from pretended_cuda.driver import driver
from pretended_cuda.tensor import CudaTensor

__all__ = ["interpreted_kernels"]


@contextmanager
def interpreted_kernels() -> Iterator[None]:
    """Let Triton's interpreter take tensors of the device, and no others."""
    from quick_interpreter import make_quick
    from triton.runtime.interpreter import GridExecutor

    from bootprob_gpu.hardware.triton_interpreted import loop_bounds

    make_quick()
    run = GridExecutor.__call__

    def launch(executor: Any, *args: Any, **kwargs: Any) -> None:
        name = executor.fn.__name__
        tensors: list[CudaTensor] = []

        def inner(value: Any) -> Any:
            if isinstance(value, CudaTensor):
                tensors.append(value)
                return value.inner
            if isinstance(value, Tensor):
                raise ValueError(
                    f"Pointer argument of {name} cannot be accessed from Triton (cpu tensor?)"
                )
            return value

        plain = [inner(value) for value in args]
        named = {key: inner(value) for key, value in kwargs.items()}
        work = partial(run, executor, *plain, **named)
        driver().launches[f"triton {name}"] += 1
        if driver().capture is None:
            work()
        else:
            driver().capture.launch(work, tensors)

    with loop_bounds(), patch.object(GridExecutor, "__call__", launch):
        yield
