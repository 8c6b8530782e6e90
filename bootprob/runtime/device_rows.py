"""Rows in the arrays of another library: taken where they lie, and answered in kind.

That is torch's tensors and whatever else offers DLPack, such as CuPy's arrays; arrays of numpy and
tables go another way. What is said of rows goes back to the library and the device they came from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from bootprob.exceptions import DataError

__all__ = ["DeviceRows", "answered_in_kind", "in_kind", "on_host", "take_rows"]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS_IN_DLPACK = "biuf"  # numpy's letters of the types that every library has


@dataclass(frozen=True)
class DeviceRows:
    """Rows that were checked, on the device that they were given on.

    Attributes
    ----------
    tensor : Tensor of float32 or float64, shape (m, p)
        The memory given, unless its numbers were of another type.
    """

    tensor: Tensor

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, rows: slice) -> DeviceRows:
        return DeviceRows(self.tensor[rows])


def answered_in_kind(method: F) -> F:
    """Let a method of a fitted model, ``method(self, X, ...)``, take rows of other libraries.

    Parameters
    ----------
    method : callable
        Takes `DeviceRows` too, and answers in an array of numpy, or a dict or tuple of them.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        rows = take_rows(self, X)
        found = method(self, rows, *arguments, **options)
        return found if rows is X else in_kind(found, X)

    return answer  # type: ignore[return-value]


def take_rows(model: Any, X: Any) -> Any:
    """Rows to be scored; those of another library checked on their device.

    Parameters
    ----------
    model : estimator
        Fitted; its columns and their names are what rows are held against.
    X : array_like, shape (m, p)

    Returns
    -------
    DeviceRows, or X itself
        X where it is `DeviceRows` already or of no other library; then nothing is checked here.

    Raises
    ------
    DataError
        For what is no plain table of finite real numbers, on a CPU or a CUDA device.
    ValueError
        For another number of columns, in scikit-learn's words.
    """
    if not _is_foreign(X):
        return X
    check_is_fitted(model)
    tensor = _as_tensor(X)
    where = f"{_name_of(X)} of {tensor.dtype} on {tensor.device}"
    if tensor.ndim != 2 or 0 in tensor.shape:
        raise DataError(
            f"Rows have the shape {tuple(tensor.shape)} ({where}); give a row of columns for each "
            "case, and one of them at least."
        )
    validate_data(model, tensor, reset=False, skip_check_array=True)
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.double()
    # A sum needs no array of answers, unlike a look at every number.
    if not tensor.sum(dtype=torch.float64).isfinite() and (wrong := ~tensor.isfinite()).any():
        row, column = wrong.nonzero()[0].tolist()
        raise DataError(
            f"Row {row}, column {column} (counted from 0) is {tensor[row, column].item()} "
            f"({where}); impute such rows, or leave them out."
        )
    return DeviceRows(tensor)


def in_kind(found: Any, X: Any) -> Any:
    """An answer about rows, in the library and on the device of the rows.

    Parameters
    ----------
    found : ndarray, Tensor, or dict or tuple of them
        Labels that are no numbers stay in an array of numpy: no other library has them.
    X : Tensor or an array that offers DLPack
        The rows.
    """
    if isinstance(found, dict):
        return {name: in_kind(part, X) for name, part in found.items()}
    if isinstance(found, tuple):
        return tuple(in_kind(part, X) for part in found)
    if isinstance(found, np.ndarray):
        if found.dtype.kind not in _KINDS_IN_DLPACK:
            return found
        found = torch.from_numpy(np.ascontiguousarray(found))
    found = found.to(_as_tensor(X).device)
    return found if isinstance(X, Tensor) else _namespace(X).from_dlpack(found)


def on_host(values: Any) -> Any:
    """Values of another library as an array of numpy, from whatever device; others as they are."""
    if not _is_foreign(values):
        return values
    tensor = _as_tensor(values)
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()


def _is_foreign(X: Any) -> bool:
    return isinstance(X, Tensor) or (
        hasattr(X, "__dlpack__")
        and hasattr(X, "__dlpack_device__")
        and hasattr(X, "shape")
        and not isinstance(X, np.ndarray | np.generic)
    )


def _as_tensor(X: Any) -> Tensor:
    """The memory of an array as a tensor, if it is one of plain real numbers."""
    try:
        tensor = X if isinstance(X, Tensor) else from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"The {_name_of(X)} cannot be read through DLPack ({reason}); give a plain array of "
            "float32 or float64."
        ) from error
    fault = None
    if tensor.device.type not in ("cpu", "cuda"):
        fault = "only CPUs and CUDA devices are known", "X.cpu()"
    elif tensor.layout != torch.strided or tensor.is_quantized:
        fault = "only dense tables are known", "X.to_dense() or X.dequantize()"
    elif tensor.is_complex():
        fault = "only real numbers are known", "real columns"
    elif tensor.requires_grad:
        fault = "gradients do not pass through a fitted model", "X.detach()"
    if fault is not None:
        raise DataError(
            f"The {_name_of(X)} has the type {tensor.dtype} on {tensor.device}, and {fault[0]}; "
            f"give {fault[1]}."
        )
    return tensor


def _namespace(X: Any) -> Any:
    """The module of an array, which has `from_dlpack`."""
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__()
    module = sys.modules[type(X).__module__.partition(".")[0]]
    if not hasattr(module, "from_dlpack"):
        raise DataError(
            f"Nothing can be said in arrays of the type {_name_of(X)}: its library "
            f"{module.__name__} has no from_dlpack. Give torch.from_dlpack(X)."
        )
    return module


def _name_of(X: Any) -> str:
    return f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
