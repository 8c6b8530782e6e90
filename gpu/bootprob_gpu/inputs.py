"""What the engine refuses: the error, and checks of arrays of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LARGEST", "InputError", "finite_floats", "positive_grid"]

Floats = NDArray[np.float64]

LARGEST = 1e100  # numbers beyond this overflow when they are squared and summed


class InputError(ValueError):
    """The engine was given something that it cannot train; the message says what and why."""


def finite_floats(
    values: ArrayLike,
    name: str,
    *,
    ndim: int | None = None,
    shape: tuple[int, ...] | None = None,
    instead: str = "impute or drop such rows",
) -> Floats:
    """Finite numbers in float64, contiguous; `ndim` and `shape` are asked for where given."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"dtype {array.dtype}")
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of real numbers ({error}).") from None
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name} has shape {array.shape}; it must have {ndim} dimensions.")
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; it must be {shape}.")
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # needs no array of answers, unlike a look at every number
    if not np.isfinite(total) and not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError(f"{name} has NaN or infinity, first at {where}; {instead}.")
    return array


def positive_grid(values: ArrayLike, name: str) -> Floats:
    """One or more positive numbers, none beyond `LARGEST` or below its inverse."""
    instead = "give one positive number, or several in one list"
    grid = np.atleast_1d(finite_floats(values, name, instead=instead))
    if grid.ndim != 1 or grid.size == 0 or not (grid > 0).all():
        raise InputError(f"{name} is {grid!r}; {instead}.")
    if grid.max() > LARGEST or grid.min() < 1 / LARGEST:
        raise InputError(f"{name} is {grid!r}; give numbers from {1 / LARGEST:g} to {LARGEST:g}.")
    return grid
