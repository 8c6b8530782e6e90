"""What Triton 3.6's interpreter needs for rehearsals beside NumPy 2.4."""

from __future__ import annotations

from typing import Any

from triton.runtime import interpreter

__all__ = ["accept_arrays_of_one_number"]


def accept_arrays_of_one_number() -> None:
    """Bounds of loops are such arrays in there, which NumPy 2.4 does not take for a number."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patched
