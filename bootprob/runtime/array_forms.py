"""What an array of a fitted model must look like, in a few words: types, shape and range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "ArrayForm", "check_arrays"]

LARGEST = 1e100
"""Numbers beyond it have squares that overflow."""

_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}
_MAY_BE_EMPTY = "kms"
_RANGES = {
    "finite": (-LARGEST, LARGEST),
    "positive": (1 / LARGEST, LARGEST),
    "not negative": (0.0, LARGEST),
    "a share": (-1e-9, 1 + 1e-9),  # sums of weights round
}


@dataclass(frozen=True)
class ArrayForm:
    """What an array must look like.

    Attributes
    ----------
    kinds : str
        numpy's letters of the types that it may have; "f" and "i" alone stand for 64 bits.
    shapes : tuple of str
        Alternatives; words with a letter for each axis, or a digit, which is its length. A letter
        stands for the same number in all arrays, which only for k, m and s may be 0.
    numbers : str
        "finite", "positive", "not negative" or "a share", and "or NaN" or "or 0" after it; or
        "any".
    optional : bool
        Whether there may be no such array.
    """

    kinds: str
    shapes: tuple[str, ...]
    numbers: str = "finite"
    optional: bool = False

    def check(self, name: str, array: NDArray[Any], lengths: dict[str, int]) -> None:
        """Compare an array with it; letters seen for the first time enter `lengths`."""
        dtype = _DTYPES.get(self.kinds)
        if array.dtype.kind not in self.kinds or (dtype and array.dtype != dtype):
            raise TypeError(f"{name} has the dtype {array.dtype}")
        for shape in self.shapes:
            if len(shape) == array.ndim:
                for axis, length in zip(shape, array.shape, strict=True):
                    expected = int(axis) if axis.isdigit() else lengths.setdefault(axis, length)
                    if length != expected:
                        raise ValueError(
                            f"{name} has the shape {array.shape}; {axis} is {expected}"
                        )
                    if length == 0 and axis not in _MAY_BE_EMPTY:
                        raise ValueError(f"{name} is empty")
                break
        else:
            raise ValueError(f"{name} has {array.ndim} axes")
        if self.kinds in _DTYPES and self.numbers != "any":
            _check_numbers(name, array, self.numbers)


def check_arrays(
    forms: Mapping[str, ArrayForm], arrays: Mapping[str, NDArray[Any]], lengths: dict[str, int]
) -> None:
    """Compare arrays with their forms, in the order of their names.

    Parameters
    ----------
    forms, arrays : mapping
        By name; every array has a form.
    lengths : dict of str to int
        Of letters that are known.

    Raises
    ------
    TypeError, ValueError
        An array has another type; or another shape, or numbers out of range.
    """
    for name in sorted(arrays):
        forms[name].check(name, arrays[name], lengths)


def _check_numbers(name: str, array: NDArray[Any], wanted: str) -> None:
    kind, _, otherwise = wanted.partition(" or ")
    lowest, highest = _RANGES[kind]
    if otherwise:
        array = array[~np.isnan(array) if otherwise == "NaN" else array != 0]
    # NaN passes through min and max, and then no comparison holds.
    if array.size and not (lowest <= np.min(array) and np.max(array) <= highest):
        raise ValueError(f"{name} has numbers that are not {wanted}")
