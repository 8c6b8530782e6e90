"""Triton's kernels, interpreted, on tensors of the pretended device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    from triton.runtime.interpreter import GridExecutor

    from bootprob_gpu.hardware.triton_interpreted import loop_bounds

    run = _prepared_once(GridExecutor.__call__)

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


def _prepared_once(run: Callable[..., None]) -> Callable[..., None]:
    """Launches that make Triton's language ready for a module once.

    The interpreter does it again at every call inside a kernel, which takes a third of its time.
    """
    from triton.runtime import interpreter

    if not hasattr(interpreter, "_LangPatchScope"):  # older ones
        return run
    prepare = interpreter._patch_lang

    def launch(*args: Any, **kwargs: Any) -> None:
        ready: set[str] = set()

        def prepare_once(fn: Any) -> Any:
            if fn.__module__ in ready:
                return interpreter._LangPatchScope()
            ready.add(fn.__module__)
            return prepare(fn)

        with patch.object(interpreter, "_patch_lang", prepare_once):
            run(*args, **kwargs)

    return launch
