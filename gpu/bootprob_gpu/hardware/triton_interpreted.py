"""What Triton's interpreter needs beside NumPy 2.4: for tests and rehearsals without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from triton.runtime import interpreter

__all__ = ["loop_bounds"]


@contextmanager
def loop_bounds() -> Iterator[None]:
    """Let kernels loop up to their arguments, which the interpreter holds as arrays of one number.

    NumPy 2.4 refuses to take such an array for a number.
    """
    give_methods = interpreter._patch_lang_tensor

    def with_index(tensor: Any, *scope: Any) -> None:
        give_methods(tensor, *scope)
        give = scope[0].set_attr if scope else setattr  # older ones leave no trace to be undone
        give(tensor, "__index__", lambda self: self.handle.data.item())

    with patch.object(interpreter, "_patch_lang_tensor", with_index):
        yield
